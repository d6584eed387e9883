"""knowledge/ -> Knowledge: parsed and checked once, then read back from the cache."""

from __future__ import annotations

from collections.abc import Collection, ItemsView, Iterator, Mapping, Sequence, ValuesView
from pathlib import Path
from typing import TypeVar

from msgspec import Raw, Struct, json

from advisor.errors import KnowledgeError, Problems, Source, UserError
from advisor.files import compiled, data_dir, digest, read_tree
from advisor.knowledge.provenance import Files
from advisor.knowledge.types import (
    Format,
    Framework,
    GgmlType,
    Gpu,
    Knowledge,
    KvType,
    ModelRecord,
)

_R = TypeVar("_R", bound=Struct)
_SUFFIXES = (".yaml", ".csv")
_NOT_READ = "measurements/"
_loaded: dict[str, Knowledge] = {}


def load_knowledge(folder: Path | None = None, *, alone: bool = False) -> Knowledge:
    """Load the built-in knowledge, with a user's own laid over it (docs/overlays.md).

    Args:
        folder: The user's knowledge folder; ``None`` for the built-in knowledge alone.
        alone: Take ``folder`` as it is, without the built-in files.

    Raises:
        KnowledgeError: One thing is wrong in a file.
        Problems: Several are.
    """
    files, user = read_files(folder, alone=alone)
    sha256 = digest(files)
    key = layers_key(files) if user else sha256
    found = _loaded.get(key)
    if found is None:
        shown = str(folder or "knowledge")
        data = compiled("knowledge", key, lambda: build(files, user, shown), Stored)
        found = _loaded[key] = _knowledge(data, sha256)
    return found


class Stored(Struct, frozen=True):
    """Knowledge as it is kept: records by name as JSON, made when they are first looked at."""

    gpus: dict[str, Raw]
    models: dict[str, Raw]
    ggml_types: dict[str, Raw]
    formats: dict[str, Raw]
    kv_types: dict[str, Raw]
    frameworks: dict[str, Raw]
    policy: dict[str, float]
    second_cards: tuple[str, ...]
    calibration: dict[str, object]
    index: dict[str, object]
    user_entries: dict[str, object]
    switched_off: dict[str, object]


def build(
    files: Mapping[str, bytes], user: Collection[str] = (), shown: str = "knowledge"
) -> Stored:
    """Parse and check the files.

    Args:
        files: Contents by path below the knowledge folder.
        user: Paths of the user's files, whose records replace others of the same name.
        shown: The folder as messages show it.

    Raises:
        KnowledgeError: One thing is wrong in a file.
        Problems: Several are.
    """
    problems: list[UserError] = []
    from advisor.knowledge.parsing import parse  # noqa: PLC0415 - pydantic and pyyaml, which a warm start does without

    found = parse(files, problems)
    raise_at(problems, shown, user)
    return Stored(
        _raw(found.gpus),
        _raw(found.models),
        _raw(found.ggml_types),
        _raw(found.formats),
        _raw(found.kv_types),
        _raw(found.frameworks),
        dict(found.policy),
        found.second_cards,
        dict(found.calibration),
        dict(found.index),
        dict(found.user_entries),
        dict(found.switched_off),
    )


def _raw(table: Mapping[str, Struct]) -> dict[str, Raw]:
    return {name: Raw(json.encode(record)) for name, record in table.items()}


def raise_at(problems: Sequence[UserError], shown: str, user: Collection[str] = ()) -> None:
    """Raise what was collected, with the folder before every file name."""
    moved = [moved_to(problem, shown, user) for problem in problems]
    if len(moved) == 1:
        raise moved[0]
    if moved:
        raise Problems(moved)


def moved_to(problem: UserError, shown: str, user: Collection[str] = ()) -> UserError:
    """Write the folder before the file name of a problem: the user's, or the built-in one."""
    at = problem.source or Source("")
    shown = "knowledge" if user and at.file and at.file not in user else shown
    place = Source(f"{shown}/{at.file}" if at.file else shown, at.line, at.column)
    return KnowledgeError(problem.message, source=place, hint=problem.hint)


def read_files(
    folder: Path | None, *, alone: bool = False
) -> tuple[Mapping[str, bytes], frozenset[str]]:
    """Read the built-in files with a user's beside or in front of them; gives the user's paths.

    Raises:
        KnowledgeError: The folder does not exist.
    """
    built_in = {} if alone and folder else _files_of(data_dir("knowledge"))
    if folder is None:
        return built_in, frozenset()
    if not folder.is_dir():
        what = "a file, not a folder" if folder.is_file() else "missing"
        raise KnowledgeError(
            f"there is no folder '{folder}': it is {what}", hint="Name one with knowledge files."
        )
    user = _files_of(folder)
    every = dict(sorted((built_in | user).items()))
    if not built_in or folder.resolve() == data_dir("knowledge").resolve():
        return every, frozenset(user)
    unread = _unread(folder)
    names = frozenset([*user, *(path for path, _ in unread)])
    whole = all(name in user for name in built_in)
    shadowed = {name: built_in[name] for name in user if name in built_in}
    return Files(every, names, shadowed, whole=whole, unread=unread), names


def _unread(folder: Path) -> list[tuple[str, str]]:
    from advisor.knowledge.overlay import unread  # noqa: PLC0415 - for overlays alone

    paths = (path for path in folder.rglob("*") if path.is_file())
    named = sorted(path.relative_to(folder).as_posix() for path in paths)
    return unread([name for name in named if "/." not in f"/{name}"])


def layers_key(files: Mapping[str, bytes]) -> str:
    """Name what the files lead to: their contents, whose they are, and what lies behind them."""
    if not isinstance(files, Files):
        return digest(files)
    behind = {f"behind {name}": content for name, content in files.shadowed.items()}
    return digest({**files, **behind, "": "\n".join(sorted(files.user)).encode()})


def _files_of(folder: Path) -> dict[str, bytes]:
    """Read what knowledge is made of; the raw measurements are read by ``calibrate`` alone."""
    read = read_tree(folder, _SUFFIXES)
    return {name: content for name, content in read.items() if not name.startswith(_NOT_READ)}


def _knowledge(data: Stored, sha256: str) -> Knowledge:
    return Knowledge(
        gpus=Table(data.gpus, Gpu),
        models=Table(data.models, ModelRecord),
        ggml_types=Table(data.ggml_types, GgmlType),
        formats=Table(data.formats, Format),
        kv_types=Table(data.kv_types, KvType),
        frameworks=Table(data.frameworks, Framework),
        policy=data.policy,
        calibration=data.calibration,
        sha256=sha256,
        index=data.index,
        user_entries=data.user_entries,
        switched_off=data.switched_off,
        second_cards=data.second_cards,
    )


class Table(Mapping[str, _R]):
    """Name -> record, in file order, each made when it is first looked at."""

    __slots__ = ("_built", "_decoder", "_kind", "_stored")

    def __init__(self, stored: Mapping[str, Raw], kind: type[_R]) -> None:
        """Hold the stored records of one type."""
        self._stored = stored
        self._kind = kind
        self._decoder: json.Decoder[_R] | None = None
        self._built: dict[str, _R] = {}

    def __getitem__(self, name: str) -> _R:
        found = self._built.get(name)
        if found is None:
            self._decoder = self._decoder or json.Decoder(self._kind)
            found = self._built[name] = self._decoder.decode(self._stored[name])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def _all(self) -> dict[str, _R]:
        if len(self._built) < len(self._stored):
            self._built = {name: self[name] for name in self._stored}
        return self._built

    def values(self) -> ValuesView[_R]:
        """Every record, in file order."""
        return self._all().values()

    def items(self) -> ItemsView[str, _R]:
        """Every name with its record, in file order."""
        return self._all().items()

    def __len__(self) -> int:
        return len(self._stored)

    def __contains__(self, name: object) -> bool:
        return name in self._stored
