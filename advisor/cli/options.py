"""Options that several commands take, and what they name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from advisor.calibration import file_of
from advisor.errors import RequestError

if TYPE_CHECKING:
    from advisor.knowledge.types import Knowledge


RulesFolder = Annotated[Path | None, typer.Option(help="Folder of rules, over the built-in ones.")]
TemplatesFolder = Annotated[
    Path | None, typer.Option(help="Folder of templates, over the built-in ones.")
]
KnowledgeFolder = Annotated[
    Path | None, typer.Option(help="Folder of knowledge, over the built-in one.")
]
NoMeasurements = Annotated[
    bool,
    typer.Option(
        "--no-measurements",
        help="Leave your own measurements out, as ADVISOR_NO_MEASUREMENTS=1 does.",
        rich_help_panel="Your own files",
    ),
]
Scenarios = Annotated[
    Path | None, typer.Option(help="Folder of scenario files. [default: scenarios/ of the rules]")
]
OnlyRules = Annotated[
    list[str] | None, typer.Option("--rule", "-r", help="Only this rule; repeatable.")
]
Workers = Annotated[
    int | None,
    typer.Option(help="Processes that work out facts. [default: one per processor]", min=1),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")]
_HUB = "Models that are not in the knowledge base"
Hub = Annotated[
    bool,
    typer.Option(
        "--hub",
        help="Read an unknown model from Hugging Face: headers only. Needs the extra 'hub'.",
        rich_help_panel=_HUB,
    ),
]
Offline = Annotated[
    bool,
    typer.Option(
        "--offline",
        help="Take only what --hub read before; never use the network.",
        rich_help_panel=_HUB,
    ),
]


class Format(StrEnum):
    """How it is written."""

    text = "text"
    json = "json"


class FindingsFormat(StrEnum):
    """How findings are written."""

    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"


class Length(StrEnum):
    """How much is said."""

    short = "short"
    standard = "standard"
    full = "full"


LENGTHS: Mapping[Length, Literal["short", "standard", "full"]] = {
    Length.short: "short",
    Length.standard: "standard",
    Length.full: "full",
}


def measurements_of(knowledge: Path | None) -> Path | None:
    """Give the file to read: beside the user's knowledge where that is named, else their own.

    None where the environment leaves measurements out.
    """
    if os.environ.get("ADVISOR_NO_MEASUREMENTS", "").casefold() not in {"", "0", "false", "no"}:
        return None
    return file_of(knowledge)


_HINT = "Add --hub to read it from Hugging Face."


def local_model(text: str, knowledge: Knowledge, *, hub: bool, offline: bool) -> str:
    """Give a model's name or path to go on with, reading from the hub where that was asked for.

    A name of the knowledge base and a file on disk go before the hub.

    Raises:
        UserError: The hub does not give it, or it needs the hub and that was not asked for.
    """
    if not hub and not offline:
        if _names_a_hub_file(text):
            raise RequestError(f"'{text[:200]}' is not on this machine", hint=_HINT)
        return text
    from advisor.models.hub.names import has_hub_form  # noqa: PLC0415  only when asked

    if not has_hub_form(text) or _exists(text):
        return text
    return _known_or_fetched(text, knowledge, offline=offline)


def _known_or_fetched(text: str, knowledge: Knowledge, *, offline: bool) -> str:
    from advisor.knowledge.names import find_model  # noqa: PLC0415
    from advisor.models.hub.models import fetch, repository_of  # noqa: PLC0415

    repository, hint = repository_of(text), ""
    if repository is not None and "/" in repository:
        try:
            find_model(knowledge, repository)
        except RequestError as unknown:
            hint = unknown.hint if unknown.hint.startswith("Did you mean") else ""
        else:
            return repository
    try:
        return str(fetch(text, offline=offline))
    except RequestError as error:
        error.hint = " ".join(filter(None, (error.hint, hint)))
        raise


def _names_a_hub_file(text: str) -> bool:
    """Whether a text is an address, or ``org/name:file.gguf``, which nothing else can mean."""
    if "://" in text:
        return True
    return ":" in text and "/" in text and text.endswith(".gguf") and not _exists(text)


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False
