"""The files that knowledge is read from: the built-in ones and, over them, those of the user."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from advisor.errors import KnowledgeError, Source, UserError
from advisor.files import data_dir, digest, read_tree, real
from advisor.knowledge.file_names import is_single, unread
from advisor.knowledge.layers import Layer, Stack, layers, stack

_FOLDER = "knowledge/"
_SUFFIXES = (".yaml", ".csv")
_NOT_READ = ("measurements/", "flags/")


class Files(dict[str, bytes]):
    """Knowledge files by name: the built-in ones with the user's laid over them.

    A file is named by its path below its folder; one of several folders of the user's by the name
    of that folder too.
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        layers: Sequence[Mapping[str, str]] = (),
        built_in: Mapping[str, bytes] | None = None,
        *,
        unread: Sequence[tuple[str, str]] = (),
        places: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(files)
        self.layers = layers
        """Name -> path below its folder, of the files of each of the user's, the lowest first."""
        self.built_in = built_in or {}
        """Every built-in file by its path."""
        self.unread = unread
        """Files that nothing reads, each with what to do."""
        self.places = places or {}
        """Of several folders: name of a file -> where it lies."""
        self.paths = {name: path for layer in layers for name, path in layer.items()}
        self.user = frozenset([*self.paths, *(name for name, _ in unread)])
        """Names of the user's files."""
        self.replaced: dict[str, dict[str, list[str | None]]] = {}
        """Kind -> name -> where the user's entry stands, what it replaces, where that
        stands, what it is based on, and the fields that it then states itself."""
        self.off: dict[str, dict[str, list[str]]] = {}
        """Kind -> name of a built-in entry -> where the user switches it off, and why."""

    def path(self, name: str) -> str:
        """Give the path of a file below its folder."""
        return self.paths.get(name, name)

    def called(self, at: Source) -> str:
        """Write a place as reports do: ``knowledge/gpus/mine.yaml:3``."""
        folder = "" if at.file in self.places else _FOLDER
        return f"{folder}{at.file}:{at.line}"

    @property
    def shadowed(self) -> Mapping[str, bytes]:
        """The built-in files that one of the user's lies in front of."""
        return {path: self.built_in[path] for path in self.paths.values() if path in self.built_in}


def files_of_user(files: Mapping[str, bytes]) -> Collection[str]:
    """Give the paths of a user's files; none where there is no overlay."""
    return files.user if isinstance(files, Files) else ()


def places_of(files: Mapping[str, bytes]) -> Mapping[str, str]:
    """Give where files of several folders lie, by name."""
    return files.places if isinstance(files, Files) else {}


def read_files(
    folders: Stack, *, alone: bool = False
) -> tuple[Mapping[str, bytes], frozenset[str]]:
    """Read the built-in files with a user's beside or in front of them; gives the user's names.

    Args:
        folders: The user's, each over those before it.
        alone: Take the first of them in the place of the built-in one.

    Raises:
        KnowledgeError: A folder does not exist.
    """
    lowest = data_dir("knowledge")
    own = [layer for layer in layers(folders, "") if real(layer.folder) != real(lowest)]
    for layer in own:
        _check_folder(layer.folder)
    if not own or (alone and len(own) == 1):
        files = _files_of(own[0].folder if own else lowest)
        return files, frozenset(files if stack(folders) else ())
    built_in = _files_of(own.pop(0).folder if alone else lowest)
    files = _stacked(built_in, own)
    return files, files.user


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        what = "a file, not a folder" if folder.is_file() else "missing"
        raise KnowledgeError(
            f"there is no folder '{folder}': it is {what}", hint="Name one with knowledge files."
        )


def _stacked(built_in: Mapping[str, bytes], own: Sequence[Layer]) -> Files:
    """Put the files of all layers together, those of the lowest two in order of their paths."""
    named: list[Mapping[str, str]] = []
    contents: dict[str, bytes] = {}
    places: dict[str, str] = {}
    unread: list[tuple[str, str]] = []
    for layer in own:
        read = _files_of(layer.folder)
        names = {_name(layer, path): path for path in read}
        named.append(names)
        contents |= {name: read[path] for name, path in names.items()}
        found = [(_name(layer, path), path, hint) for path, hint in _unread(layer.folder)]
        unread += [(name, hint) for name, _, hint in found]
        if layer.label:
            placed = [*names.items(), *((name, path) for name, path, _ in found)]
            places |= {name: f"{layer.folder}/{path}" for name, path in placed}
    first = named[0].values()
    lowest = {path: content for path, content in built_in.items() if path not in first}
    paths = {name: path for names in named[:1] for name, path in names.items()}
    order = sorted([*lowest, *paths], key=lambda name: (paths.get(name, name), name))
    every = {name: contents.get(name, lowest.get(name, b"")) for name in order} | contents
    return Files(every, named, built_in, unread=unread, places=places)


def _name(layer: Layer, path: str) -> str:
    """Name a file; one that is read under one name only is that of the highest layer."""
    return f"{layer.label}/{path}" if layer.label and not is_single(path) else path


def _unread(folder: Path) -> list[tuple[str, str]]:
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
    """Read what knowledge is made of; raw measurements and flags are read where they are asked."""
    read = read_tree(folder, _SUFFIXES)
    return {name: content for name, content in read.items() if not name.startswith(_NOT_READ)}


def unread_problems(files: Mapping[str, bytes]) -> list[UserError]:
    """Say of every file that nothing reads where it would be read."""
    found = files.unread if isinstance(files, Files) else ()
    return [
        KnowledgeError("nothing is read from a file of this name.", source=Source(name), hint=hint)
        for name, hint in found
    ]
