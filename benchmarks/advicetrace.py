"""What one command loads and calls, as JSON, for structure.py.

    python benchmarks/advicetrace.py FOLDER advise --gpu ...

Counts the code of the checkout in FOLDER, which has to be the one that is imported.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType

from advisor.cli.main import main

NOT_A_BODY = 0x01
"""The flag of code that is neither a module nor the body of a class."""


class Trace:
    def __init__(self, folder: Path) -> None:
        self.home = f"{folder / 'advisor'}{os.sep}"
        self.named: set[tuple[str, int]] = set()
        self.unnamed: set[tuple[str, int]] = set()
        self.depth = self.deepest = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event not in {"call", "return"} or not code.co_filename.startswith(self.home):
            return
        self.depth += 1 if event == "call" else -1
        self.deepest = max(self.deepest, self.depth)
        if code.co_flags & NOT_A_BODY:
            seen = self.unnamed if code.co_name.startswith("<") else self.named
            seen.add((code.co_filename, code.co_firstlineno))

    def figures(self) -> Mapping[str, int]:
        return {
            "modules that one advise loads": sum(
                name.partition(".")[0] == "advisor" for name in sys.modules
            ),
            "functions that it calls": len(self.named),
            "lambdas and comprehensions beside them": len(self.unnamed),
            "deepest stack of our functions": self.deepest,
        }


def run(trace: Trace) -> None:
    sys.setprofile(trace)
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)


if __name__ == "__main__":
    trace = Trace(Path(sys.argv.pop(1)))
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        run(trace)
    print(json.dumps(trace.figures()))
