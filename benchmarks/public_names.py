"""Asks for every repository of the public list as people spell it: none may be another model.

    python benchmarks/public_names.py [--every 1]

Prints how many were read, refused and wrong, spelling by spelling; ends with 1 where one is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from advisor.errors import UserError
from advisor.files import data_dir
from advisor.knowledge import load_knowledge
from advisor.reading import read_model
from advisor.reading.public_list import FILE, exact
from tests.reading.test_public_names import is_right, read, spellings


def others(text: str) -> tuple[str, ...]:
    """Name what a text could mean too, as its reading tells the user."""
    try:
        return read_model(load_knowledge(), text).others
    except UserError:
        return ()


def main() -> int:
    """Read them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    every = parser.parse_args().every
    lines = (data_dir("knowledge") / FILE).read_text("ascii").splitlines()[2::every]
    count, wrong = Counter[str](), list[str]()
    for public in filter(None, (exact(line.partition("\t")[0]) for line in lines)):
        for text in spellings(public):
            found = read(text)
            near = is_right(found, public) or public.name in others(text)
            count["refused" if found is None else "read" if near else "wrong"] += 1
            if found and not near:
                wrong.append(
                    f"{text}: {found.name}, {found.parameters:,}, counted {public.parameters_raw}"
                )
    print(*(f"{count[kind]:,} {kind}" for kind in ("read", "refused", "wrong")), sep=", ")
    print(*wrong[:60], sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
