"""The files of one model at one commit: from the cache, else their headers from the hub."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from msgspec import Struct

from advisor.errors import RequestError
from advisor.files import read_kept, remove_oldest, user_cache_dir
from advisor.models.gguf import header as gguf_header
from advisor.models.gguf.cursor import Budget
from advisor.models.hub.bounds import Kept, key, write_sealed
from advisor.models.hub.client import Client
from advisor.models.hub_names import is_plain_path
from advisor.models.safetensors import MAX_HEADER_BYTES, read_header
from advisor.models.stored_tensors import MAX_TENSORS

if TYPE_CHECKING:
    from advisor.models.hub_names import HubName


MAX_LISTING_BYTES: Final = 20_000_000
_COMMIT: Final = re.compile(r"[0-9a-f]{40,64}")
_LARGEST: Final = 1 << 50


class Listing(Struct, frozen=True):
    """The files of a repository."""

    commit: str
    files: Mapping[str, int | None]
    """Path -> size in bytes; None where the hub does not state it."""

    def dumped(self) -> bytes:
        """Give it as JSON, to be read back by ``loaded``."""
        return json.dumps({"commit": self.commit, "files": dict(self.files)}).encode()


def parse_answer(content: bytes, what: str) -> Listing:
    """Read the hub's answer about a model.

    Raises:
        RequestError: It is no such answer.
    """
    found = _json_object(content)
    commit = found.get("sha")
    siblings = found.get("siblings")
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        commit = None
    if commit is None or not isinstance(siblings, list):
        raise RequestError(
            f"the server's answer about {what} is not that of a hub",
            hint="Look at HF_ENDPOINT, or whether a sign-in page stands before the network.",
        )
    return Listing(commit, dict(_files(siblings)))


def loaded(content: bytes) -> Listing | None:
    """Read back what ``dumped`` gave; None where it is damaged."""
    found = _json_object(content)
    commit, files = found.get("commit"), found.get("files")
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit) or not isinstance(files, dict):
        return None
    return Listing(commit, {p: _size(n) for p, n in files.items() if is_plain_path(p)})


def _json_object(content: bytes) -> Mapping[str, object]:
    try:
        found: object = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _files(siblings: list[object]) -> Iterator[tuple[str, int | None]]:
    """Give every file whose path can be used here as it is; no model file has another."""
    for entry in siblings:
        if not isinstance(entry, dict):
            continue
        path, stored = entry.get("rfilename"), entry.get("lfs")
        size = _size(entry.get("size"))
        if size is None and isinstance(stored, dict):
            size = _size(stored.get("size"))
        if isinstance(path, str) and is_plain_path(path):
            yield path, size


def _size(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _LARGEST else None


_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9.\-]+")


class HubCache:
    """The place of one model of one hub."""

    def __init__(self, root: str, name: HubName) -> None:
        hub = f"{_UNUSUAL.sub('_', urlsplit(root).netloc)}-{key(root)}"
        publisher, _, self._model = name.repository.rpartition("/")
        self._what = f"{name.repository}@{name.revision}"
        self._folder = user_cache_dir() / "hub" / hub / (publisher or "_") / self._model
        self._reference = self._folder / "refs" / f"{key(name.revision)}.json"

    def folder(self, commit: str) -> Path:
        """Give the folder of a commit's files; readers call the model by its last part."""
        return self._folder / commit / self._model

    def listing(self) -> Listing | None:
        """Give what the revision held when it was last read."""
        content = read_kept(self._reference, self._what)
        return None if content is None else loaded(content)

    def remember(self, listing: Listing) -> None:
        """Note what the revision holds, and drop the models that were not used for longest.

        Raises:
            RequestError: The cache folder cannot be written.
        """
        write_sealed(self._reference, self._what, listing.dumped())
        with suppress(OSError):
            os.utime(self._folder)
            remove_oldest((user_cache_dir() / "hub").glob("*/*/*"), _KEPT)


_KEPT: Final = 200
"""Models that stay stored."""


def is_json_object(content: bytes) -> bool:
    """Whether a small file holds a JSON object."""
    try:
        return isinstance(json.loads(content), dict)
    except (ValueError, RecursionError):
        return False


MAX_CONFIG_BYTES: Final = 10_000_000
MAX_INDEX_BYTES: Final = MAX_HEADER_BYTES
MAX_PREFIX_BYTES: Final = 48_000_000 + (1 << 20)
"""The longest header, and what readers take in advance."""
_FIRST_GGUF: Final = 1 << 20
_FIRST_SAFETENSORS: Final = 1 << 17
_AT_ONCE: Final = 8


class Store(Struct, frozen=True):
    """Files of a model."""

    repository: str
    listing: Listing
    folder: Path
    client: Client | None
    """None when offline."""

    def headers(self, paths: Iterable[str]) -> None:
        """See to the headers of weight files, several at once.

        Raises:
            UserError: One is not there, cannot be read, or is damaged.
        """
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

        missing = [path for path in paths if self._is_missing(path)]
        if len(missing) < 2:  # noqa: PLR2004
            for path in missing:
                self._read_header(path)
            return
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            for _ in pool.map(self._read_header, missing):
                pass
        finally:
            pool.shutdown(cancel_futures=True)

    def whole(self, path: str, most: int) -> Path:
        """See to a small JSON file and give its place.

        Raises:
            RequestError: It is not there, too long, or no JSON object.
        """
        if self._is_missing(path):
            what, size = self.shown(path), self.listing.files.get(path)
            content = self._online(path).whole(self._address(path), what, most)
            if size is not None and len(content) != size:
                raise _other_size(what, len(content), size)
            if not is_json_object(content):
                raise RequestError(f"{what} does not hold a JSON object")
            self._kept(path).put(content, len(content))
        return self.folder / path

    def shown(self, path: str) -> str:
        """Call a file by a name that can be typed."""
        return f"{self.repository}:{path}"

    def _is_missing(self, path: str) -> bool:
        if path not in self.listing.files:
            raise RequestError(f"{self.repository} lacks {path}, so the model is not complete")
        return not self._kept(path).holds(self.listing.files[path])

    def _kept(self, path: str) -> Kept:
        return Kept(self.folder, path, f"{self.shown(path)}@{self.listing.commit}")

    def _online(self, path: str) -> Client:
        if self.client is None:
            raise RequestError(
                f"{self.shown(path)} was not read before, and --offline forbids the network",
                hint="Run once with --hub and without --offline.",
            )
        return self.client

    def _address(self, path: str) -> str:
        return f"{self.repository}/resolve/{self.listing.commit}/{quote(path)}"

    def _read_header(self, path: str) -> None:
        """Read a header and check it before it is kept."""
        what = self.shown(path)
        gguf = path.casefold().endswith(".gguf")
        first = _FIRST_GGUF if gguf else _FIRST_SAFETENSORS
        size = self.listing.files[path]
        prefix = Prefix(self._online(path), self._address(path), what, first=first, size=size)
        if gguf:
            gguf_header.read_header(prefix, prefix.size, Path(what), Budget())
        else:
            read_header(prefix, prefix.size, what, MAX_TENSORS)
        self._kept(path).put(prefix.getvalue(), prefix.size)


class Prefix(io.BytesIO):
    """The start of a file on the hub, which grows as it is read.

    It takes the size that the server states where none is given.

    Raises:
        RequestError: It cannot be read, is empty, or its size is not known.
    """

    def __init__(
        self, client: Client, address: str, what: str, *, first: int, size: int | None
    ) -> None:
        super().__init__()
        self._client = client
        self._address = address
        self._what = what
        self._length = 0
        if size == 0:
            raise RequestError(f"{what} is empty")
        self.size = size or 0
        self._take(first)
        self._grow(min(first, self.size))
        self.seek(0)

    def read(self, count: int | None = -1, /) -> bytes:
        """Read ``count`` bytes, which must be stated.

        Raises:
            RequestError: They lie too far from the start, or cannot be read.
        """
        position = self.tell()
        end = self.size if count is None or count < 0 else min(position + count, self.size)
        if end > MAX_PREFIX_BYTES:
            text = f"the header of {self._what} is longer than {MAX_PREFIX_BYTES:,} bytes"
            raise RequestError(f"{text}, more than any model needs")
        if end > self._length:
            self._grow(min(max(end, 2 * self._length), self.size, MAX_PREFIX_BYTES))
        self.seek(position)
        return super().read(end - position if end > position else 0)

    def _grow(self, end: int) -> None:
        while self._length < end:
            self._take(end - self._length)

    def _take(self, count: int) -> None:
        most = min(count, self.size - self._length) if self.size else count
        piece = self._client.piece(self._address, self._what, self._length, most)
        if not self.size:
            if not piece.total:
                raise RequestError(f"the server does not state the size of {self._what}")
            self.size = piece.total
        if piece.total is not None and piece.total != self.size:
            raise _other_size(self._what, piece.total, self.size)
        self.seek(self._length)
        self.write(piece.content[: self.size - self._length])
        self._length = self.tell()


def _other_size(what: str, found: int, listed: int) -> RequestError:
    return RequestError(
        f"{what} has {found:,} bytes, but the hub lists {listed:,}", hint="Try again later."
    )
