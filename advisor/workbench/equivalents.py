"""The mutants that a whole run found to be the same as the original, kept in a file.

With that file a short run without any search tells an old equivalent from a new survivor, which is
what keeps rules from arriving without the cases that hold them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from advisor.errors import RequestError
from advisor.workbench.mutants import Mutant

_HEAD = (
    "# Mutants that no scenario of the catalogue's sample tells from the original rule.",
    "# Written by: advisor rules mutate --known FILE --accept",
)
_SIGN = ": "


def line_of(mutant: Mutant) -> str:
    """Name a mutant so that it is found again after lines have moved."""
    return f"{mutant.rule.id}{_SIGN}{mutant.what}"


def read_known(path: Path) -> Mapping[str, int]:
    """Read a file of equivalents: how often each line stands in it.

    Raises:
        RequestError: The file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise RequestError(
            f"{path} cannot be read: {why}.",
            hint="Make it with --accept, which takes a search of the whole sample.",
        ) from error
    lines = (line.strip() for line in text.splitlines())
    return Counter(line for line in lines if line and not line.startswith("#"))


def told_apart(
    survivors: Iterable[Mutant], known: Mapping[str, int]
) -> tuple[list[Mutant], list[Mutant]]:
    """Split survivors into new ones and known equivalents; each line stands for one."""
    left = Counter(known)
    new: list[Mutant] = []
    old: list[Mutant] = []
    for mutant in survivors:
        line = line_of(mutant)
        (old if left[line] > 0 else new).append(mutant)
        left[line] -= 1
    return new, old


def write_known(path: Path, equivalents: Sequence[Mutant], tried: Collection[str]) -> None:
    """Write the equivalents of the rules tried; lines of other rules stay.

    Raises:
        RequestError: The file cannot be written.
    """
    before = read_known(path) if path.exists() else Counter[str]()
    kept = Counter({x: n for x, n in before.items() if x.partition(_SIGN)[0] not in tried})
    lines = sorted([*kept.elements(), *map(line_of, equivalents)])
    try:
        path.write_text("\n".join([*_HEAD, *lines]) + "\n", encoding="utf-8")
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error.strerror}.") from error
