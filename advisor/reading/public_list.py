"""The public list: what a hub says of thousands of repositories, found without reading it all.

``knowledge/public_models.tsv`` has a line for each, sorted by the name without its publisher, so
that a look-up halves the file some twenty times. It is opened only for a name that the known
models do not answer. A newer list of the user's (``advisor knowledge update``) goes before it.
Source, licence and date stand in its first line; docs/public-list.md says how it was made.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from functools import cache
from itertools import chain, takewhile
from pathlib import Path
from threading import Lock
from typing import Final

from msgspec import Struct, convert

from advisor.errors import KnowledgeError, RequestError, Source
from advisor.files import data_dir, refuse_shared, user_data_dir
from advisor.knowledge.layers import UserEntry

FILE: Final = "public_models.tsv"
TEXTS: Final = ("pipeline_tag", "architecture", "release_date", "license", "format")
NUMBERS: Final = (
    "parameters_raw", "active_parameters", "num_experts", "active_experts", "num_hidden_layers",
    "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
    "moe_intermediate_size", "shared_expert_intermediate_size", "context_length", "hf_downloads",
)  # fmt: skip
COLUMNS: Final = ("hf_id", *TEXTS, *NUMBERS, "gguf_repos")
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
    return _SEPARATORS.sub("-", name.lower())


def places() -> Sequence[Path]:
    """Give the lists there may be, in the order in which they count."""
    return user_data_dir() / FILE, _built_in()


def _built_in() -> Path:
    return data_dir("knowledge") / FILE


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
    for path in places():
        for found in _from(path, key):
            if sort_key(found.hf_id) == key:
                return found
            break
    return None


def every() -> Iterator[PublicModel]:
    """Give every repository of every list, in the order of the lists."""
    for path in places():
        yield from _from(path, ("", ""))


def every_named(name: str) -> list[PublicModel]:
    """List the repositories of this name, whoever publishes them, the most downloaded first."""
    key = bare_key(name)
    lists = (_from(path, (key, "")) for path in places())
    named = (takewhile(lambda one: bare_key(one.name) == key, listed) for listed in lists)
    return _by_downloads(chain.from_iterable(named))


def _by_downloads(found: Iterable[PublicModel]) -> list[PublicModel]:
    """Order repositories; of one that stands in both lists the user's line counts."""
    kept: dict[str, PublicModel] = {}
    for one in found:
        kept.setdefault(one.hf_id.lower(), one)
    return sorted(kept.values(), key=lambda one: (-(one.hf_downloads or 0), one.hf_id))


def beginning(name: str) -> Iterator[PublicModel]:
    """Give the repositories whose name begins so, whoever publishes them."""
    stem = bare_key(name)
    for path in places():
        listed = _from(path, (stem, ""))
        yield from takewhile(lambda one: bare_key(one.name).startswith(stem), listed)


def containing(text: str, most: int, exactly: str = "") -> list[PublicModel]:
    """List the most downloaded repositories whose name holds a text, whatever separates its words.

    It reads the whole list, some 50 ms; less where a line has to hold a word ``exactly``.
    """
    wanted = bare_key(text.strip())
    lists = (_from(p, ("", ""), wanted, exactly.encode()) for p in places() if wanted)
    return _by_downloads(chain.from_iterable(lists))[:most]


def counting(parameters: int) -> Sequence[PublicModel]:
    """List the repositories with exactly so many parameters, the most downloaded first."""
    cell = f"\t{parameters}\t".encode()
    lists = (_from(path, ("", ""), cell=cell) for path in places() if parameters)
    every = chain.from_iterable(lists)
    return _by_downloads(one for one in every if one.parameters_raw == parameters)


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


def _from(
    path: Path, key: tuple[str, str], part: str = "", cell: bytes = b""
) -> Iterator[PublicModel]:
    """Give the models of a list from this key on, whose name holds a part, whose line a cell."""
    try:
        by_user = path != _built_in()
        if by_user:
            refuse_shared(path)
        with closing(_Lines(path)) if by_user else nullcontext(_built_in_lines()) as lines:
            columns, low = _header(lines, path)
            for line in lines.holding(cell, _first(lines, low, key)):
                if not part or part in bare_key(line.partition(b"\t")[0].decode("ascii")):
                    yield _model(line, columns, by_user=by_user)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as bad:
        raise KnowledgeError(
            f"the public list cannot be read: {bad}", source=Source(str(path)), hint=_MEND
        ) from None


_LEAST_READ: Final = 1 << 10
_MOST_READ: Final = 1 << 16


class _Lines:
    """A file of which a look-up holds the lines that it reads; threads and forks may share it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self._alone = Lock()
        self.size = os.fstat(self._file.fileno()).st_size
        self.close = self._file.close

    def read(self, at: int, size: int) -> bytes:
        """Read bytes from a place on."""
        if sys.platform != "win32":
            return os.pread(self._file.fileno(), size, at)
        with self._alone:
            self._file.seek(at)
            return self._file.read(size)

    def around(self, low: int, at: int) -> tuple[int, bytes]:
        """Give the line over a place, no more of it than from ``low`` on, and where it begins."""
        reach = _LEAST_READ
        while True:
            begin, end = max(at - reach, low), min(at + reach, self.size)
            data = self.read(begin, end - begin)
            first, last = data.rfind(b"\n", 0, at - begin) + 1, data.find(b"\n", at - begin) + 1
            if (first or begin == low) and (last or end == self.size):
                return begin + first, data[first : last or len(data)]
            reach *= 2

    def holding(self, cell: bytes, at: int) -> Iterator[bytes]:
        """Give the lines from a place on that hold some bytes, without their ends."""
        size = _LEAST_READ
        while at < self.size:
            data = self.read(at, size)
            whole = data.rfind(b"\n") + 1 if at + len(data) < self.size else len(data)
            if cell in data:
                yield from (line for line in data[:whole].split(b"\n") if line and cell in line)
            at += whole
            size = size * 2 if not whole else min(2 * size, _MOST_READ)


@cache
def _built_in_lines() -> _Lines:
    """Keep the built-in list open: to open it takes a fifth of what a name takes to be read."""
    return _Lines(_built_in())


_MEND: Final = "Delete it, and give 'advisor knowledge update' the list again."


def _header(lines: _Lines, path: Path) -> tuple[Sequence[str], int]:
    """Give the columns, which stand in the second line, and where the models begin."""
    start, about = lines.around(0, 0)
    start, line = lines.around(start + len(about), start + len(about))
    columns = line.decode("ascii").rstrip("\n").split("\t")
    if sorted(columns) != sorted(COLUMNS):
        raise KnowledgeError(
            "the public list has other columns than this version reads",
            source=Source(str(path), 2),
            hint=_MEND,
        )
    return columns, start + len(line)


def _first(lines: _Lines, low: int, key: tuple[str, str]) -> int:
    """Find where the first line begins whose key is not below this one."""
    high = lines.size
    while low < high:
        at, line = lines.around(low, (low + high) // 2)
        if sort_key(line.partition(b"\t")[0].decode("ascii")) < key:
            low = at + len(line)
        else:
            high = at
    return low


def _model(line: bytes, columns: Sequence[str], *, by_user: bool) -> PublicModel:
    cells = dict(zip(columns, line.decode("ascii").split("\t"), strict=True))
    fields: dict[str, object] = {name: cells[name] for name in ("hf_id", *TEXTS)}
    fields |= {name: int(cells[name]) if cells[name] else None for name in NUMBERS}
    fields["gguf_repos"] = tuple(filter(None, cells["gguf_repos"].split(";")))
    return convert({**fields, "by_user": by_user}, PublicModel)
