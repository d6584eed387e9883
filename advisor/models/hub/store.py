"""The files of one model at one commit: from the cache, else their headers from the hub."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from advisor.errors import RequestError
from advisor.models.gguf import header as gguf_header
from advisor.models.gguf.cursor import Budget
from advisor.models.hub.cache import holds, is_json_object, put
from advisor.models.hub.client import Client
from advisor.models.hub.listing import Listing
from advisor.models.safetensors import header as safetensors_header
from advisor.models.stored_tensors import MAX_TENSORS

MAX_CONFIG_BYTES: Final = 10_000_000
MAX_INDEX_BYTES: Final = safetensors_header.MAX_HEADER_BYTES
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
            put(self.folder / path, content, len(content))
        return self.folder / path

    def shown(self, path: str) -> str:
        """Call a file by a name that can be typed."""
        return f"{self.repository}:{path}"

    def _is_missing(self, path: str) -> bool:
        if path not in self.listing.files:
            raise RequestError(f"{self.repository} lacks {path}, so the model is not complete")
        return not holds(self.folder / path, self.listing.files[path])

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
            safetensors_header.read_header(prefix, prefix.size, what, MAX_TENSORS)
        put(self.folder / path, prefix.getvalue(), prefix.size)


class Prefix(io.BytesIO):
    """The start of a file on the hub, which grows as it is read.

    Args:
        client: Where to read.
        address: Of the file, below the hub's root.
        what: Its name in messages.
        first: Bytes to read at once.
        size: Bytes of the file; None takes what the server states.

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
