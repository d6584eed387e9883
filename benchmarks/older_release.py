"""Print the model types that a runtime has now and an older release of it had not.

    python benchmarks/older_release.py vLLM OLD_WHEEL NEW_WHEEL TRANSFORMERS

The last is a folder that holds the package transformers. For ``model_types`` of rows about cards
that only older releases run on, in knowledge/capabilities.yaml. What transformers has no class for
is not told of, so it stays as the list of the framework has it.
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from runtime_sources import classes_of

from advisor.knowledge import load_knowledge

_REGISTRY = "vllm/model_executor/models/registry.py"


def registered(wheel: Path) -> Mapping[str, str]:
    """Give the classes of a release's registry, each with the module that holds it."""
    with zipfile.ZipFile(wheel) as held:
        text = held.read(_REGISTRY).decode()
    return dict(re.findall(r'"(\w+)": ?\(\s*"([\w.]+)"', text))


def newer(framework: str, old: Path, new: Path, transformers: Path) -> Sequence[str]:
    """Name the types of the framework's list of which the old release had neither class nor module.

    One that only got another name has its module still; what is left to transformers is not told
    of, nor the text part of what was had.
    """
    before, now = registered(old), registered(new)
    had, classes = {*before, *before.values(), "transformers"}, classes_of(transformers)
    listed = load_knowledge().frameworks[framework].model_types or ()
    held = {kind: [n for n in classes.get(kind, ()) if n in now] for kind in listed}
    every = {kind: {*names, *(now[name] for name in names)} for kind, names in held.items()}
    found = {kind for kind, names in every.items() if names and not names & had}
    return sorted(kind for kind in found if kind.removesuffix("_text") in found)


if __name__ == "__main__":
    print(*newer(sys.argv[1], *map(Path, sys.argv[2:])), sep=", ")
