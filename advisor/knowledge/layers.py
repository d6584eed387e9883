"""Folders and files of the user: laid over ours as a stack, and which of them a request may name.

The lowest layer is the built-in folder. A folder is called by its kind where it is the only one
(``rules/mine.yaml``), else by what tells it from the others (``team/rules/mine.yaml``).

A program that answers strangers (``advisor serve``) takes names alone: whatever reads a path of a
request, or asks this machine for its card, asks here first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import cast

from msgspec import Struct, field

from advisor.errors import RequestError, UserError
from advisor.files import Kind, data_dir, read_tree, real
from advisor.knowledge.types import Knowledge

SHORTER = "shorter-list"
"""The kind of warning that a list leaves out what lies below it."""
Stack = Path | Sequence[Path] | None
"""The user's own folders of one kind: one, several of which later ones win, or none."""


class UserFiles(Struct, frozen=True):
    """What a user laid over the built-in folders, and the file of measurements that counts."""

    rules: Stack = None
    templates: Stack = None
    knowledge: Stack = None
    measurements: Path | None = None

    @property
    def folders(self) -> tuple[Stack, Stack, Stack]:
        """Rules, templates and knowledge."""
        return self.rules, self.templates, self.knowledge

    def whole(self) -> UserFiles:
        """Give the same by paths from the root, as a worker elsewhere needs them."""
        rules, templates, knowledge = (
            tuple(path.resolve() for path in stack(paths)) for paths in self.folders
        )
        return UserFiles(
            rules, templates, knowledge, self.measurements and self.measurements.resolve()
        )


class Layer(Struct, frozen=True):
    """One folder of a stack."""

    folder: Path
    label: str
    """How reports and messages call it."""


def stack(folders: Stack) -> tuple[Path, ...]:
    """List the user's own folders, the lowest first."""
    if folders is None:
        return ()
    return (folders,) if isinstance(folders, Path) else tuple(folders)


def is_price_list(path: Path) -> bool:
    """Whether a layer of knowledge is no folder but a table of prices."""
    return path.suffix == ".csv" and path.is_file()


def named_twice(paths: Sequence[Path]) -> Path | None:
    """Give a folder that stands twice among these."""
    whole = [real(path) for path in paths]
    return next((path for n, path in enumerate(paths) if whole[n] in whole[:n]), None)


def layers(folders: Stack, alone: str) -> tuple[Layer, ...]:
    """Give the user's own folders, the lowest first, with their names.

    ``alone`` is how one is called that has none beside it; a file has its own name.
    """
    paths = stack(folders)
    labels = [alone] if len(paths) == 1 and not paths[0].is_file() else _labels(paths)
    return tuple(Layer(path, label) for path, label in zip(paths, labels, strict=True))


def _labels(paths: Sequence[Path]) -> list[str]:
    """Call each by as much of the end of its path as tells it from the others."""
    parts = [real(path).parts for path in paths]
    longest = max(map(len, parts), default=0)
    for length in range(1, longest + 1):
        found = ["/".join(part[-length:]) for part in parts]
        if len({*found}) == len(found) and not any(map(is_built_in, found)):
            return found
    return [real(path).as_posix() for path in paths]


def is_built_in(place: str) -> bool:
    """Whether a place, or a folder, is called as built-in ones are."""
    return place.partition("/")[0] in {"rules", "templates", "knowledge"}


def overlaid(kind: Kind, folders: Stack, suffixes: Iterable[str]) -> Mapping[str, bytes]:
    """Read the built-in files and lay the user's over them: a file of the same path replaces.

    Raises:
        UserError: A folder of the user's is missing or cannot be read.
    """
    wanted = tuple(suffixes)
    files = dict(read_tree(data_dir(kind), wanted))
    for folder in stack(folders):
        files.update(_users(kind, folder, wanted))
    return dict(sorted(files.items()))


def _users(kind: Kind, folder: Path, wanted: Collection[str]) -> Mapping[str, bytes]:
    if not folder.is_dir():
        raise UserError(f"there is no folder '{folder}'.", hint=f"Name a folder with {kind}.")
    try:
        return read_tree(folder, wanted)
    except OSError as bad:
        raise UserError(f"cannot read '{bad.filename}': {bad.strerror}.") from None


def behind(kind: Kind, folders: Stack, suffixes: Iterable[str]) -> Mapping[str, bytes]:
    """Give every file of several folders by name, for hashes: each of them may count."""
    named = layers(folders, kind)
    wanted = tuple(suffixes)
    return {
        f"{layer.label}/{name}": content
        for layer in (named if len(named) > 1 else ())
        for name, content in read_tree(layer.folder, wanted).items()
    }


def holding(folders: Stack, name: str) -> Iterator[Path]:
    """Give the folders that hold a file, the one that counts first."""
    return (folder for folder in reversed(stack(folders)) if (folder / name).is_file())


class UserEntry(Struct, frozen=True):
    """One entry of the user's."""

    what: str
    """``rule``, ``template``, ``gpu``, ``model``, ``format``, ``framework``, ``policy`` ..."""
    name: str
    """Its name."""
    at: str
    """Where it stands: ``rules/my.yaml:12``."""
    replaces: str | None = None
    """Name of the built-in entry whose place it takes; null for one that is added."""
    replaces_at: str | None = None
    """Where that one stands; null where it is added."""
    based_on: str | None = None
    """Name of the built-in entry that it has its other fields from; null where it has none."""
    stated_fields: tuple[str, ...] = field(name="own_fields", default=())
    """The fields that an entry based on another one states itself."""

    def __str__(self) -> str:
        if not self.replaces:
            return f"yours: {self.at}{self.inherited}"
        behind = f" ({self.replaces_at})" if self.replaces_at else ""
        whose = "the built-in " if self.over_built_in else ""
        return f"yours: {self.at}, replaces {whose}{self.replaces}{behind}{self.inherited}"

    @property
    def over_built_in(self) -> bool:
        """Whether what it replaces is no entry of another of the user's folders."""
        return not self.replaces_at or is_built_in(self.replaces_at)

    @property
    def inherited(self) -> str:
        """Say which fields are its own and whose the others are; empty where all are its own."""
        if not self.based_on:
            return ""
        fields = ", ".join(self.stated_fields) or "nothing"
        return f", own: {fields}; the rest from {self.based_on}"


class SwitchedOff(Struct, frozen=True):
    """A built-in rule or entry that the user disabled."""

    name: str = field(name="rule")
    """The rule or entry."""
    at: str
    """Where the user says so."""
    reason: str
    """Why, in the user's words."""

    def __str__(self) -> str:
        return f"switched off by yours: {self.at}: {self.reason}"


def user_record(knowledge: Knowledge, kind: str, name: str) -> UserEntry | None:
    """Say that an entry of the knowledge is the user's; None for a built-in one.

    ``kind`` is ``gpu``, ``model``, ``format``, ``kv_type``, ``framework``, ``policy`` ...
    """
    table = cast("Mapping[str, Sequence[str | None]]", knowledge.user_entries.get(kind) or {})
    if name not in table:
        return None
    at, replaces, behind, based_on, *fields = table[name]
    stated = tuple(str(key) for key in fields)
    return UserEntry(
        kind, name, at or "", replaces or None, behind or None, based_on or None, stated
    )


def switched_off_records(knowledge: Knowledge) -> Iterator[tuple[str, SwitchedOff]]:
    """List the built-in entries that the user disabled, each with its kind."""
    tables = cast("Mapping[str, Mapping[str, Sequence[str]]]", knowledge.switched_off)
    for kind, table in tables.items():
        for name, (at, reason) in table.items():
            yield kind, SwitchedOff(name, at, reason)


_FOLDERS: ContextVar[tuple[Path, ...] | None] = ContextVar("folders", default=None)
"""Folders whose files a request may name; None: every file, and this machine's cards."""


class NotAllowedError(RequestError):
    """The request names what it may not reach."""


@contextmanager
def names_only(*folders: Path) -> Iterator[None]:
    """Let requests name nothing of this machine but files below some folders."""
    before = _FOLDERS.set(tuple(map(real, folders)))
    try:
        yield
    finally:
        _FOLDERS.reset(before)


def allowed(path: str | Path) -> bool:
    """Whether a request may name this path."""
    folders = _FOLDERS.get()
    if folders is None:
        return True
    try:
        return any(real(Path(path)).is_relative_to(folder) for folder in folders)
    except (OSError, ValueError):
        return False


def check_path(path: str | Path) -> None:
    """Refuse a path that a request may not name.

    Raises:
        NotAllowedError: It may not.
    """
    if not allowed(path):
        raise NotAllowedError(
            f"'{path}' is a path, and files of this machine are not read here",
            hint="Name the model: llama-3-8b, or its Hugging Face id.",
        )


def check_machine() -> None:
    """Refuse to ask this machine for its card.

    Raises:
        NotAllowedError: Requests name nothing of this machine.
    """
    if _FOLDERS.get() is not None:
        raise NotAllowedError(
            "'local' is the card of this machine, which is not asked here",
            hint="Name the card, for example RTX 4090.",
        )
