"""The user's own files as flags, once for every command that answers from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

from advisor.calibration import file_of
from advisor.cli.options import KNOWLEDGE, RULES, TEMPLATES, NoMeasurements, layers_option, spread
from advisor.knowledge.layers import OwnFiles, Stack

_FOLDERS = {"rules": RULES, "templates": TEMPLATES, "knowledge": KNOWLEDGE}


def takes_folders(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``own`` of a command by the flags of the user's folders."""
    return spread(command, "own", _folder_flags(None), _own_files)


def takes_own_files(
    panel: str | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace ``own`` by the flags of the folders, in a panel of the help, and of measurements."""
    flags = [*_folder_flags(panel), _flag("no_measurements", NoMeasurements, default=False)]
    return lambda command: spread(command, "own", flags, _own_files)


def _folder_flags(panel: str | None) -> list[Parameter]:
    return [
        _flag(name, Annotated[list[Path] | None, layers_option(said, panel)], default=None)
        for name, said in _FOLDERS.items()
    ]


def _flag(name: str, kind: object, *, default: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _own_files(values: Mapping[str, Any]) -> OwnFiles:
    folders: Mapping[str, Stack] = {name: values[name] for name in _FOLDERS}
    left_out = values.get("no_measurements", True)
    return OwnFiles(
        **folders, measurements=None if left_out else measurements_of(folders["knowledge"])
    )


def measurements_of(knowledge: Stack) -> Path | None:
    """Give the file to read: beside the user's knowledge where that is named, else their own.

    None where the environment leaves measurements out.
    """
    if os.environ.get("ADVISOR_NO_MEASUREMENTS", "").casefold() not in {"", "0", "false", "no"}:
        return None
    return file_of(knowledge)
