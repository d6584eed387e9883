"""What one read from a hub may take, however the server behaves: one deadline, one byte budget.

Time and bytes are counted where they arrive, below HTTP: headers that drip, answers before the
answer and bodies without end all go through here.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from msgspec import Struct, json

from advisor.errors import RequestError
from advisor.files import read_kept, refuse_shared, seal, user_cache_dir, write_whole

if TYPE_CHECKING:
    import ssl

    import httpcore
    import httpx

OFFLINE_HINT = "What was read before is there with --offline."


class Bounds:
    """The time, bytes and answers that are left; may be used by several threads.

    Args:
        what: What is read, for messages.
        seconds: From now on.
        most_bytes: Everything that arrives, headers included.
        most_answers: A hub that gives a file byte by byte comes to an end too.
    """

    def __init__(self, what: str, seconds: float, most_bytes: int, most_answers: int) -> None:
        self._what, self._seconds = what, seconds
        self._until = time.monotonic() + seconds
        self._most, self._bytes = most_bytes, most_bytes
        self._answers = most_answers
        self._lock = Lock()

    def left(self, wanted: float | None = None) -> float:
        """Give how long may be waited now, at most as long as wanted.

        Raises:
            RequestError: The time is over.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            text = f"{self._what} was not complete after {self._seconds:g} seconds"
            raise RequestError(text, hint=OFFLINE_HINT)
        return left if wanted is None else min(left, wanted)

    def take(self, count: int) -> None:
        """Count bytes that arrived.

        Raises:
            RequestError: They are more than a read may take.
        """
        with self._lock:
            self._bytes -= count
        if self._bytes < 0:
            text = f"more than {self._most:,} bytes were read before {self._what} was complete"
            raise RequestError(f"{text}, more than the headers of any model have")

    def ask(self) -> None:
        """Count a request.

        Raises:
            RequestError: They are more than any model needs.
        """
        with self._lock:
            self._answers -= 1
        if self._answers < 0:
            raise RequestError(f"the server gives {self._what} in more pieces than any model has")


def bind(http: httpx.Client, bounds: Bounds) -> None:
    """Hold everything that a client reads to bounds, behind a proxy too."""
    import httpx as library  # noqa: PLC0415 - an extra

    for transport in (http._transport, *http._mounts.values()):  # noqa: SLF001 - httpx has no
        if isinstance(transport, library.HTTPTransport):  # other way to a stream of one's own
            pool = transport._pool  # noqa: SLF001
            pool._network_backend = _backend(pool._network_backend, bounds)  # noqa: SLF001


def _backend(inner: httpcore.NetworkBackend, bounds: Bounds) -> httpcore.NetworkBackend:
    """Wrap what opens connections; httpcore comes with httpx, an extra."""
    from httpcore import NetworkBackend, NetworkStream  # noqa: PLC0415

    class Stream(NetworkStream):
        """A connection that is given up when time or bytes are spent."""

        def __init__(self, stream: NetworkStream) -> None:
            self._stream = stream

        def close(self) -> None:
            self._stream.close()

        def get_extra_info(self, info: str) -> Any:
            return self._stream.get_extra_info(info)

        def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
            found = self._stream.read(max_bytes, bounds.left(timeout))
            bounds.take(len(found))
            return found

        def write(self, buffer: bytes, timeout: float | None = None) -> None:
            self._stream.write(buffer, bounds.left(timeout))

        def start_tls(
            self,
            ssl_context: ssl.SSLContext,
            server_hostname: str | None = None,
            timeout: float | None = None,
        ) -> NetworkStream:
            left = bounds.left(timeout)
            return Stream(self._stream.start_tls(ssl_context, server_hostname, left))

    class Backend(NetworkBackend):
        """Opens such connections."""

        def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Iterable[Any] | None = None,
        ) -> NetworkStream:
            left = bounds.left(timeout)
            return Stream(inner.connect_tcp(host, port, left, local_address, socket_options))

    return Backend()


_KEY_LENGTH = 12


class Noted(Struct, frozen=True):
    """What a file was when it was read."""

    size: int
    read: int
    """Bytes of its start that were read; the rest is a hole."""
    sha256: str
    """Of those."""


class Kept(Struct, frozen=True):
    """The place of a file.

    Args:
        folder: Where the files of the model lie at this commit.
        path: Of the file, below it.
        what: Which file of which model at which commit it is.
    """

    folder: Path
    path: str
    what: str

    @property
    def file(self) -> Path:
        """The file itself."""
        return self.folder / self.path

    @property
    def _note(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.notes") / f"{key(self.path)}.json"

    def holds(self, size: int | None) -> bool:
        """Whether the file was read before, of the stated size, and is as it was read.

        Raises:
            UserError: Others can write it.
        """
        content = read_kept(self._note, self.what)
        if content is None:
            return False
        noted = json.decode(content, type=Noted)
        return size in {None, noted.size} and self._is_as_noted(noted)

    def _is_as_noted(self, noted: Noted) -> bool:
        try:
            found = self.file.stat()
            refuse_shared(self.file.parent)
            refuse_shared(self.file, found)
            if found.st_size != noted.size:
                return False
            with self.file.open("rb") as file:
                return hashlib.sha256(file.read(noted.read)).hexdigest() == noted.sha256
        except OSError:
            return False

    def put(self, content: bytes, size: int) -> None:
        """Write a file that starts with ``content`` and is a hole up to ``size`` bytes.

        Raises:
            RequestError: The cache folder cannot be written, or the disk is full.
        """
        noted = Noted(size, len(content), hashlib.sha256(content).hexdigest())
        write(self.file, [content], size)
        write_sealed(self._note, self.what, json.encode(noted))


def write_sealed(path: Path, what: str, content: bytes) -> None:
    """Write what ``read_kept`` reads back.

    Raises:
        RequestError: The cache folder cannot be written, or the disk is full.
    """
    write(path, [seal(what, [content]), content])


def write(path: Path, parts: Sequence[bytes], size: int | None = None) -> None:
    """Write a file whole or not at all, with a hole up to ``size`` bytes.

    Raises:
        RequestError: The cache folder cannot be written, or the disk is full.
    """
    try:
        write_whole(path, parts, size=size)
    except OSError as bad:
        raise RequestError(
            f"'{path.name}' cannot be written to the cache folder {user_cache_dir() / 'hub'} "
            f"({bad.strerror or bad})",
            hint="ADVISOR_CACHE_DIR names another place.",
        ) from None


def key(text: str) -> str:
    """Give a short name for a file of the cache."""
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]
