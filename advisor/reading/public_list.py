"""The public list: what a hub says of thousands of repositories, found without reading it all.

``knowledge/public_models.tsv`` has a line for each, sorted by the name without its publisher, so
that a look-up halves it some twenty times. It is read only for a name that the known models do not
answer, and its names are set apart when the first is looked for by a word of it. A newer list of
the user's (``advisor knowledge update``) goes before it.
Source, licence and date stand in its first line; docs/public-list.md says how it was made.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Final

from msgspec import Struct

from advisor.errors import KnowledgeError, RequestError, Source
from advisor.files import data_dir, refuse_shared, user_data_dir, user_data_folder
from advisor.knowledge.layers import UserEntry

FILE: Final = "public_models.tsv"
TEXTS: Final = ("pipeline_tag", "architecture", "release_date", "license", "format")
NUMBERS: Final = (
    "parameters_raw", "active_parameters", "num_experts", "active_experts", "num_hidden_layers",
    "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
    "moe_intermediate_size", "shared_expert_intermediate_size", "context_length", "hf_downloads",
)  # fmt: skip
COLUMNS: Final = ("hf_id", *TEXTS, *NUMBERS, "gguf_repos")
_BUILT_IN: Final = data_dir("knowledge") / FILE
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,120}", re.ASCII)
_SEPARATORS: Final = re.compile(r"[-_\s]+")
_MODALITY_OF: Final = {
    "image-text-to-text": "vision",
    "any-to-any": "vision",
    "feature-extraction": "embedding",
    "sentence-similarity": "embedding",
    "text-to-speech": "audio",
}
_LONGEST: Final = 200
_MOST_NAMED: Final = 4
_MOST_OTHERS: Final = 0.1


class PublicModel(Struct, frozen=True):
    """One repository of the list; a number is None where the list does not state it."""

    hf_id: str
    pipeline_tag: str
    """What the repository is for, in the hub's word: ``text-generation`` ..."""
    architecture: str
    """``model_type`` of its config.json."""
    release_date: str
    license: str
    format: str
    """``mlx``, ``awq``, ``gptq`` or ``autoround`` where the list says so, else empty."""
    parameters_raw: int | None
    """Elements of its weight files: packed ones are counted as they are packed."""
    active_parameters: int | None
    num_experts: int | None
    active_experts: int | None
    num_hidden_layers: int | None
    hidden_size: int | None
    num_attention_heads: int | None
    num_key_value_heads: int | None
    head_dim: int | None
    vocab_size: int | None
    moe_intermediate_size: int | None
    """Width of an expert; of a dense model that of the feed-forward block."""
    shared_expert_intermediate_size: int | None
    context_length: int | None
    """Often a default of whoever made the list."""
    hf_downloads: int | None
    gguf_repos: tuple[str, ...]
    """Repositories that publish GGUF files of it."""
    by_user: bool = False
    """Whether it stands in the user's own list."""

    @property
    def name(self) -> str:
        """The repository without its publisher."""
        return self.hf_id.partition("/")[2]

    @property
    def modality(self) -> str:
        """What the hub's word for its purpose says that it is: text where it says nothing else."""
        return _MODALITY_OF.get(self.pipeline_tag, "text")


def is_repository(text: str) -> bool:
    """Whether a text has the form ``publisher/name``."""
    return _REPOSITORY.fullmatch(text) is not None


def sort_key(hf_id: str) -> tuple[str, str]:
    """Give what the list is sorted by: the name without case and separators, then the whole."""
    folded = hf_id.lower()
    return bare_key(folded.partition("/")[2]), folded


def bare_key(name: str) -> str:
    """Fold case and separators: ``Qwen3 32B_AWQ`` is ``qwen3-32b-awq``."""
    folded = name.lower().replace("_", "-")
    plain = "--" not in folded and folded.split() == [folded]
    return folded if plain else _SEPARATORS.sub("-", folded)


def places() -> Sequence[Path]:
    """Give the lists there may be, in the order in which they count."""
    return user_data_dir() / FILE, _BUILT_IN


def find_public(text: str) -> PublicModel | None:
    """Find a repository by ``publisher/name``, or by its name alone.

    Case does not matter, nor what separates the words of a bare name. Of several publishers the
    most downloaded one is meant where the others hold the same model, or next to nobody takes
    theirs.

    Raises:
        RequestError: Several different models have this name; the message lists them.
    """
    text = text.strip()
    if not text.isascii() or len(text) > _LONGEST or not text:
        return None
    if "/" in text:
        return exact(text) if is_repository(text) else None
    return _one_of(text, every_named(text))


def exact(hf_id: str) -> PublicModel | None:
    """Find a repository by its whole name; case does not matter."""
    key = sort_key(hf_id)
    return next(_every(lambda listed: listed.run(key, key.__eq__)), None)


def every() -> Iterator[PublicModel]:
    """Give every repository of every list, in the order of the lists."""
    return _every(lambda listed: listed.run(("", ""), bool))


def every_named(name: str) -> list[PublicModel]:
    """List the repositories of this name, whoever publishes them, the most downloaded first."""
    key = bare_key(name)
    return _by_downloads(_every(lambda listed: listed.run((key, ""), lambda at: at[0] == key)))


def _by_downloads(found: Iterable[PublicModel]) -> list[PublicModel]:
    """Order repositories; of one that stands in both lists the user's line counts."""
    kept: dict[str, PublicModel] = {}
    for one in found:
        kept.setdefault(one.hf_id.lower(), one)
    return sorted(kept.values(), key=lambda one: (-(one.hf_downloads or 0), one.hf_id))


def beginning(name: str, publisher: str = "") -> Iterator[PublicModel]:
    """Give the repositories whose name begins so, of one publisher or whoever publishes them."""
    stem, theirs = bare_key(name), f"{publisher}/".encode() if publisher else b""

    def lines(listed: _List) -> Iterator[bytes]:
        begun = listed.run((stem, ""), lambda at: at[0].startswith(stem))
        return (line for line in begun if line.startswith(theirs))

    return _every(lines)


def going_on(name: str, meant: Callable[[str], bool]) -> Iterator[PublicModel]:
    """Give those called so, with words behind or without, whose name is a meant one.

    No sign sorts before the hyphen, so these stand together.
    """
    stem, more = bare_key(name), f"{bare_key(name)}-"

    def lines(listed: _List) -> Iterator[bytes]:
        begun = listed.run((stem, ""), lambda at: at[0] == stem or at[0].startswith(more))
        return filter(lambda line: meant(_name(line)), begun)

    return _every(lines)


def having(words: Iterable[str], meant: Callable[[str], bool]) -> Iterator[PublicModel]:
    """Give the repositories whose name has some words, and is a meant one."""
    told = {*words}
    return _every(lambda listed: filter(lambda line: meant(_name(line)), listed.holding(*told)))


def containing(text: str, most: int) -> list[PublicModel]:
    """List the most downloaded repositories whose name holds a text, whatever separates its words.

    Every name is looked through, in some 5 ms.
    """
    wanted = bare_key(text.strip())
    longest = max(wanted.split("-"), key=len)
    found = _every(lambda listed: listed.holding(longest)) if wanted else ()
    return _by_downloads(one for one in found if wanted in bare_key(one.hf_id))[:most]


def counting(parameters: int) -> Sequence[PublicModel]:
    """List the repositories with exactly so many parameters, the most downloaded first."""
    cell = f"\t{parameters}\t".encode()
    found = _every(lambda listed: listed.stating(cell)) if parameters else ()
    return _by_downloads(one for one in found if one.parameters_raw == parameters)


def user_entry(hf_id: str) -> UserEntry | None:
    """Say that a repository stands in the user's own list; None for a built-in one."""
    found = exact(hf_id)
    if found is None or not found.by_user:
        return None
    return UserEntry("model", found.hf_id, str(places()[0]))


def same_model(one: PublicModel, other: PublicModel) -> bool:
    """Whether two repositories hold a model of the same sizes in the same form."""
    columns = ["format", "num_hidden_layers", "hidden_size"]
    if not (one.format and one.num_hidden_layers):  # packed alike, if with more beside
        columns.append("parameters_raw")
    if not one.parameters_raw:
        columns.append("architecture")
    return all(getattr(one, column) == getattr(other, column) for column in columns)


def _one_of(text: str, named: Sequence[PublicModel]) -> PublicModel | None:
    if not named:
        return None
    first, *others = named
    different = [one for one in others if not same_model(one, first)]
    taken = sum(one.hf_downloads or 0 for one in different)
    if taken > _MOST_OTHERS * (first.hf_downloads or 0):
        shown = ", ".join(one.hf_id for one in (first, *different[: _MOST_NAMED - 1]))
        raise RequestError(
            f"'{text}' names different models of several publishers: {shown}.",
            hint="Write one of these, publisher included.",
        )
    return first


def _every(lines: Callable[[_List], Iterable[bytes]]) -> Iterator[PublicModel]:
    """Give the models of some lines of every list, in the order of the lists."""
    for path in (f"{user_data_folder()}/{FILE}", ""):
        try:
            if listed := _opened(path):
                yield from map(listed.model, lines(listed))
        except (OSError, ValueError) as bad:
            at = Source(path or str(_BUILT_IN))
            message = f"the public list cannot be read: {bad}"
            raise KnowledgeError(message, source=at, hint=_MEND) from None


_MOST_KEPT: Final = 4096
"""Texts of which it is known in which names they are."""
_MEND: Final = "Delete it, and give 'advisor knowledge update' the list again."


def _opened(users: str) -> _List | None:
    """Open the user's list, if it is there, or the built-in one, which nothing changes."""
    if not users:
        return _read(_BUILT_IN, by_user=False)
    try:
        found = os.stat(users)  # noqa: PTH116  asked for each name
    except (FileNotFoundError, NotADirectoryError):
        return None
    path = Path(users)
    refuse_shared(path, found)
    return _read(path, found.st_ino, found.st_size, found.st_mtime_ns, by_user=True)


class _List:
    """A list as it lies in its file; nothing in it changes, so threads may share it."""

    def __init__(self, path: Path, *, by_user: bool) -> None:
        self._data, self._by_user = path.read_bytes(), by_user
        about, columns, *_ = (*self._data.split(b"\n", 2), b"")
        self._columns = columns.decode("ascii").split("\t")
        self._begin = len(about) + len(columns) + 2
        self._names: tuple[str, Sequence[int], Sequence[int]] | None = None
        self._rows: dict[str, frozenset[int]] = {}
        if sorted(self._columns) != sorted(COLUMNS):
            raise KnowledgeError(
                "the public list has other columns than this version reads",
                source=Source(str(path), 2),
                hint=_MEND,
            )

    def stating(self, cell: bytes) -> Iterator[bytes]:
        """Give the lines that hold some bytes, one as often as it does."""
        at = self._data.find(cell, self._begin)
        while at >= 0:
            yield self._line(self._data.rfind(b"\n", 0, at) + 1)
            at = self._data.find(cell, at + 1)

    def _since(self, at: int) -> Iterator[bytes]:
        """Give the lines from a place on."""
        while at < len(self._data):
            line = self._line(at)
            at += len(line) + 1
            if line:
                yield line

    def run(
        self, key: tuple[str, str], goes_on: Callable[[tuple[str, str]], bool]
    ) -> Iterator[bytes]:
        """Give the lines from the first on whose key is not below this one, while one goes on."""
        for line in self._since(self._first(key)):
            if not goes_on(_key(line)):
                return
            yield line

    def holding(self, *texts: str) -> Iterator[bytes]:
        """Give the lines whose repository, in lower case, has these texts."""
        known = {one: self._rows.get(one) for one in texts}
        rows = self._rows_with(max(texts, key=len, default=""))
        rows = rows.intersection(*(kept for kept in known.values() if kept is not None))
        more = [one for one, kept in known.items() if kept is None]
        names, ends, begins = self._set_apart()
        for row in sorted(rows):
            name = names[ends[row - 1] if row else 0 : ends[row]] if more else ""
            if all(map(name.__contains__, more)):
                yield self._line(begins[row])

    def _rows_with(self, text: str) -> frozenset[int]:
        names, ends, _ = self._set_apart()
        if (found := self._rows.get(text)) is None:
            rows, at = list[int](), names.find(text)
            while at >= 0:
                rows.append(bisect_right(ends, at))
                at = names.find(text, ends[rows[-1]])
            if len(self._rows) >= _MOST_KEPT:
                self._rows.clear()
            found = self._rows[text] = frozenset(rows)
        return found

    def model(self, line: bytes) -> PublicModel:
        """Read a line."""
        cells = dict(zip(self._columns, line.decode("ascii").split("\t"), strict=True))
        texts = (cells[name] for name in ("hf_id", *TEXTS))
        numbers = (int(cells[name]) if cells[name] else None for name in NUMBERS)
        files = tuple(filter(None, cells["gguf_repos"].split(";")))
        fields = (*texts, *numbers, files, self._by_user)  # as they stand in the class
        return PublicModel(*fields)  # type: ignore[arg-type]

    def _line(self, at: int) -> bytes:
        end = self._data.find(b"\n", at)
        return self._data[at : end if end >= 0 else len(self._data)]

    def _first(self, key: tuple[str, str]) -> int:
        if self._names:
            names, ends, begins = self._names

            def at_row(row: int) -> tuple[str, str]:
                return sort_key(names[ends[row - 1] if row else 0 : ends[row] - 1])

            row = bisect_left(range(len(ends)), key, key=at_row)
            return begins[row]
        low, high = self._begin, len(self._data)
        while low < high:
            middle = (low + high) // 2
            at = self._data.rfind(b"\n", low, middle) + 1 or low
            line = self._line(at)
            if _key(line) < key:
                low = at + len(line) + 1
            else:
                high = at
        return low

    def _set_apart(self) -> tuple[str, Sequence[int], Sequence[int]]:
        """Give the names, a line each, where each ends, and where its line in the file begins."""
        if self._names:
            return self._names
        lines = [*self._since(self._begin)]
        names = [line.partition(b"\t")[0] for line in lines]
        ends = accumulate(len(name) + 1 for name in names)
        begins = accumulate((len(line) + 1 for line in lines), initial=self._begin)
        text = b"\n".join(names).decode("ascii").lower()
        self._names = text, [*ends], [*begins]
        return self._names


@lru_cache(maxsize=2)
def _read(path: Path, *_stamp: int, by_user: bool) -> _List:
    return _List(path, by_user=by_user)


def _key(line: bytes) -> tuple[str, str]:
    return sort_key(line.partition(b"\t")[0].decode("ascii"))


def _name(line: bytes) -> str:
    return line.partition(b"\t")[0].decode("ascii").partition("/")[2]
