"""Which files ``rules format`` writes, and what it writes into them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from advisor.errors import RequestError, UserError
from advisor.files import data_dir, read_tree
from advisor.rules.language.file_places import openable
from advisor.rules.language.layout import formatted
from advisor.rules.language.load import SCENARIOS
from advisor.workbench.lint.replacement import Edited


def reformatted(paths: Sequence[Path]) -> tuple[Sequence[Edited], int, Sequence[UserError]]:
    """Format files and folders without writing any.

    Args:
        paths: As typed; none: the built-in rules.

    Returns:
        The files that change, how many do not, and what is wrong with the rest.

    Raises:
        RequestError: A path holds no rule file.
    """
    changed: list[Edited] = []
    errors: list[UserError] = []
    same = 0
    for path in dict.fromkeys(file for own in paths or [data_dir("rules")] for file in _files(own)):
        shown = openable(path)
        content = path.read_bytes()
        try:
            after = formatted(content, shown)
        except UserError as error:
            errors.append(error)
            continue
        if after.encode() == content:
            same += 1
        else:
            changed.append(Edited(path, shown, content.decode(), after))
    return changed, same, errors


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        names = [name for name in read_tree(path, [".yaml"]) if not name.startswith(SCENARIOS)]
        if not names:
            raise RequestError(f"{path} holds no rule file (*.yaml)")
        yield from (path / name for name in names)
    elif not path.is_file():
        raise RequestError(f"there is no file or folder '{path}'")
    elif path.suffix != ".yaml":
        raise RequestError(f"{path} is no rule file", hint="A rule file ends in .yaml.")
    else:
        yield path
