"""The files that knowledge is read from: which, the built-in ones, and over them the user's."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from advisor.errors import KnowledgeError, Source, UserError, nearest, raise_problems
from advisor.files import data_dir, digest, hashed, read_tree, read_whole, real
from advisor.knowledge.layers import Layer, Stack, is_price_list, layers, stack

FOLDERS = {"gpus": "gpu", "models": "model"}
"""Folder -> kind of its records."""
TABLES = {
    "ggml_types": "ggml_type",
    "formats": "format",
    "kv_types": "kv_type",
    "frameworks": "framework",
    "commands": "command",
    "capabilities": "capability",
    "policy": "policy",
    "sources": "id",
    "compute_capabilities": "compute_capability",
    "card_words": "card_words",
    "computers": "machine",
    "boards": "board",
}
"""Name of the file, which may go on after a hyphen -> kind of its records."""
SINGLE = (
    "facts.yaml",
    "presets.yaml",
    "logs.yaml",
    "calibration.yaml",
    "calibration-fitted.yaml",
    "measured.csv",
    "merit.csv",
    "second_cards.yaml",
    "usual_cards.yaml",
    "measurements.csv",
)
"""Files that have one name only."""
_GONE_WHY = "this file is not read any more: own figures have one home, measurements.csv"
_GONE = {
    "measurements-user.csv": (
        "Move it out of the folder and run 'advisor measure add measurements-user.csv', with"
        " --knowledge if the figures are to stay in this folder."
    ),
    "calibration-user.yaml": (
        "Delete it. A card's factor now comes from what was measured on it: advisor measure add."
    ),
}
UNREAD = ("measurements/", "flags/", "architectures.yaml")
"""Raw measurements, which ``advisor calibrate`` reads, flags, for ``advisor check-command``, and
architectures, whose entries name functions of the program: read from the built-in folder alone."""
_DATA = (".yaml", ".yml", ".csv", ".json", ".jsonl", ".toml")
"""Endings of what is meant as data; a README beside it is not."""


def is_table(path: str, table: str) -> bool:
    """Whether a file holds entries of a table: ``formats.yaml``, ``formats-mine.yaml``."""
    if "/" in path or not path.endswith(".yaml"):
        return False
    stem = path.removesuffix(".yaml")
    return stem == table or stem.startswith(f"{table}-")


def holds(path: str, where: str) -> bool:
    """Whether a file holds entries of a folder or table: a key of ``FOLDERS`` or ``TABLES``."""
    if where in FOLDERS:
        return path.startswith(f"{where}/") and path.endswith(".yaml")
    return is_table(path, where)


def unread(paths: Sequence[str]) -> list[tuple[str, str]]:
    """List files that look like data and that nothing reads, each with what to do."""
    return [
        (path, _instead(path))
        for path in paths
        if path.endswith(_DATA) and not path.startswith(UNREAD) and not _is_read(path)
    ]


def is_single(path: str) -> bool:
    """Whether a file is read under one name only, so that one layer's counts."""
    return path in SINGLE or path in _GONE


def _is_read(path: str) -> bool:
    return is_single(path) or any(holds(path, where) for where in (*FOLDERS, *TABLES))


def _instead(path: str) -> str:
    """Give the nearest path that is read."""
    named = PurePosixPath(path)
    stem, top = named.stem, named.parts[0]
    if named.suffix != ".yaml" and _is_read(str(named.with_suffix(".yaml"))):
        return f"Rename it to {named.with_suffix('.yaml')}."
    if len(named.parts) > 1:
        near = nearest(top, FOLDERS, most=1)
        return f"Did you mean {near[0]}/{'/'.join(named.parts[1:])}?" if near else _rule()
    table = nearest(stem.partition("-")[0], [*FOLDERS, *TABLES], most=1)
    if table:
        return f"Did you mean {table[0]}{'/' if table[0] in FOLDERS else '-'}mine.yaml?"
    near = nearest(path, SINGLE, most=1)
    return f"Did you mean {near[0]}?" if near else _rule()


def _rule() -> str:
    tables = ", ".join(f"{name}-NAME.yaml" for name in TABLES)
    return f"Cards go into gpus/NAME.yaml, models into models/NAME.yaml, the rest into {tables}."


def gone_problems(files: Mapping[str, bytes]) -> list[UserError]:
    """Say of files that older versions read what to do with them."""
    return [
        KnowledgeError(_GONE_WHY, source=Source(name), hint=do)
        for name, do in _GONE.items()
        if name in files
    ]


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

    ``alone`` takes the first folder in the place of the built-in one.

    Raises:
        KnowledgeError: A folder does not exist.
    """
    lowest = data_dir("knowledge")
    users = [layer for layer in layers(folders, "") if real(layer.folder) != real(lowest)]
    for layer in users:
        _check_folder(layer.folder)
    if not users or (alone and len(users) == 1):
        files = _files_of(users[0].folder if users else lowest)
        return files, frozenset(files if stack(folders) else ())
    built_in = _files_of(users.pop(0).folder if alone else lowest)
    files = _stacked(built_in, users)
    return files, files.user


def _check_folder(folder: Path) -> None:
    if not folder.is_dir() and not is_price_list(folder):
        what = "a file, not a folder" if folder.is_file() else "missing"
        raise KnowledgeError(
            f"there is no folder '{folder}': it is {what}", hint="Name one with knowledge files."
        )


def _stacked(built_in: Mapping[str, bytes], users: Sequence[Layer]) -> Files:
    """Put the files of all layers together, those of the lowest two in order of their paths."""
    named: list[Mapping[str, str]] = []
    contents: dict[str, bytes] = {}
    places: dict[str, str] = {}
    unread: list[tuple[str, str]] = []
    for layer in users:
        read = _files_of(layer.folder)
        names = {_name(layer, path): path for path in read}
        named.append(names)
        contents |= {name: read[path] for name, path in names.items()}
        found = [(_name(layer, path), path, hint) for path, hint in _unread(layer.folder)]
        unread += [(name, hint) for name, _, hint in found]
        if is_price_list(layer.folder):
            places |= dict.fromkeys(names, str(layer.folder))
        elif layer.label:
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
    if path == _PRICES and is_price_list(layer.folder):
        return layer.label
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
    if is_price_list(folder):
        return _price_records(folder)
    return dict(read_tree(folder, _SUFFIXES, *_NOT_READ))


def unread_problems(files: Mapping[str, bytes]) -> list[UserError]:
    """Say of every file that nothing reads where it would be read."""
    found = files.unread if isinstance(files, Files) else ()
    return [
        KnowledgeError("nothing is read from a file of this name.", source=Source(name), hint=hint)
        for name, hint in found
    ]


# ---- a table of prices as a layer

_PRICES = "gpus/prices.yaml"
"""The file of a folder that its lines would stand in."""
_PRICE_SOURCES = "sources-prices.yaml"
_PRICE_COLUMNS = ("gpu", "usd", "seen", "source")
_EXAMPLE = "Write for example 'GeForce RTX 4090,1899,2026-11-20,our dealer'."
_DAY = re.compile(r"20\d\d-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?")


def _price_records(path: Path) -> dict[str, bytes]:
    """Write a table of prices as records; a card's stands on the line that it has in the table.

    Raises:
        KnowledgeError: It is no such table; several problems come as ``Problems``.
    """
    content = read_whole(path)
    problems: list[UserError] = []
    cards, sources = [""], dict[str, str]()
    for row in _rows(content, str(path), problems):
        made = hashed(b"\0".join((content, row["source"].encode(), row["seen"].encode())))
        source = f"price-{made[:12]}"
        price = f"{row['usd']} USD"
        card = {"gpu": row["gpu"], "based_on": row["gpu"], "launch_price": price, "source": source}
        cards.append(f"- {json.dumps(card)}")
        declared = {"id": source, "what": row["source"], "kind": "background", "as_of": row["seen"]}
        sources[source] = f"- {json.dumps(declared)}"
    raise_problems(problems)
    return {
        _PRICES: "\n".join(cards).encode(),
        _PRICE_SOURCES: "\n".join(sources.values()).encode(),
    }


def _rows(content: bytes, shown: str, problems: list[UserError]) -> Iterator[Mapping[str, str]]:
    """Read the lines below the header; of a wrong one every problem is collected."""
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        problems.append(KnowledgeError("the file is not UTF-8.", source=Source(shown)))
        return
    header, *rest = [[cell.strip() for cell in cells] for cells in map(_cells, lines)] or [[]]
    if sorted(header) != sorted(_PRICE_COLUMNS):
        wanted = f"The first line is '{','.join(_PRICE_COLUMNS)}'."
        place = Source(shown, 1)
        problems.append(KnowledgeError("no table of prices.", source=place, hint=wanted))
        return
    for number, cells in enumerate(rest, start=2):
        row = dict(zip(header, cells, strict=False))
        place, wrong = Source(shown, number), [*_flaws(row, len(cells))]
        problems += [KnowledgeError(each, source=place, hint=_EXAMPLE) for each in wrong]
        if not wrong:
            yield row


def _cells(line: str) -> list[str]:
    import csv  # noqa: PLC0415 - for those who have such a table

    return next(csv.reader([line]), [])


def _flaws(row: Mapping[str, str], cells: int) -> Iterator[str]:
    if cells != len(_PRICE_COLUMNS) or not all(row.values()):
        yield f"a line needs {', '.join(_PRICE_COLUMNS[:-1])} and {_PRICE_COLUMNS[-1]}."
        return
    if not re.fullmatch(r"\d{1,9}(\.\d{1,2})?", row["usd"]):
        yield f"usd is '{row['usd']}', no price in US dollars."
    if not _DAY.fullmatch(row["seen"]):
        yield f"seen is '{row['seen']}', no date such as 2026-11-20."
