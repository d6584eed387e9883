"""A hub on this machine: the public API's answers, ranged reads, and every kind of fault."""

from __future__ import annotations

import json
import socketserver
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
_BLOCK = bytes(1 << 16)


@dataclass(frozen=True)
class Held:
    """A file with a hole behind its start."""

    start: bytes
    size: int

    def read(self, start: int, end: int) -> Iterator[bytes]:
        """Give the bytes from ``start`` to before ``end`` in blocks."""
        while start < end:
            known = self.start[start : min(end, start + len(_BLOCK))]
            block = known or _BLOCK[: end - start]
            yield block
            start += len(block)


@dataclass
class Seen:
    """A request that came in."""

    path: str
    range: str | None
    authorization: str | None
    sent: int = 0


Fault = Callable[["Handler"], bool]
"""Answers a request itself and says so, or leaves it."""


@dataclass
class FakeHub:
    """The models of one hub."""

    address: str = ""
    models: dict[str, dict[str, Held]] = field(default_factory=dict)
    fault: Fault = lambda _handler: False
    sizes: dict[str, int | None] = field(default_factory=dict)
    """Sizes that the listing states wrongly, or not at all."""
    commit: str = COMMIT
    seen: list[Seen] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def add(self, repository: str, folder: Path) -> None:
        """Publish the files of a folder, without reading their holes."""
        found = self.models.setdefault(repository, {})
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            with path.open("rb") as file:
                start = file.read(1 << 24).rstrip(b"\0")
            found[path.relative_to(folder).as_posix()] = Held(start, path.stat().st_size)

    def downloads(self) -> list[Seen]:
        return [seen for seen in self.seen if "/resolve/" in seen.path]

    @property
    def sent(self) -> int:
        return sum(seen.sent for seen in self.seen)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    hub: FakeHub
    request_seen: Seen

    def do_GET(self) -> None:
        seen = Seen(self.path, self.headers.get("Range"), self.headers.get("Authorization"))
        self.request_seen = seen
        with self.hub.lock:
            self.hub.seen.append(seen)
        if self.hub.fault(self):
            return
        path = unquote(urlsplit(self.path).path)
        if path.startswith("/api/models/"):
            self.list_files(path.removeprefix("/api/models/"))
        else:
            self.give(path.lstrip("/"))

    def list_files(self, path: str) -> None:
        repository, _, _revision = path.partition("/revision/")
        if repository not in self.hub.models:
            self.answer(401, {"X-Error-Code": "RepoNotFound"})
            return
        siblings: list[dict[str, object]] = []
        for name, held in self.hub.models[repository].items():
            size = self.hub.sizes.get(name, held.size)
            siblings.append({"rfilename": name} | ({} if size is None else {"size": size}))
        doc = {"id": repository, "sha": self.hub.commit, "siblings": siblings}
        self.answer(200, {"Content-Type": "application/json"}, json.dumps(doc).encode())

    def give(self, path: str) -> None:
        repository, _, rest = path.partition("/resolve/")
        commit, _, name = rest.partition("/")
        held = self.hub.models.get(repository, {}).get(name)
        if held is None or commit != self.hub.commit:
            self.answer(404, {"X-Error-Code": "EntryNotFound"})
            return
        stated = self.headers.get("Range")
        if stated is None:
            self.stream(200, held, 0, held.size)
            return
        first, _, last = stated.removeprefix("bytes=").partition("-")
        self.stream(206, held, int(first), min(int(last) + 1, held.size))

    def stream(self, status: int, held: Held, start: int, end: int, **more: str) -> None:
        headers = {"Content-Length": str(end - start)}
        if status == 206:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{held.size}"
        self.send_response(status)
        for key, value in (headers | {k.replace("_", "-"): v for k, v in more.items()}).items():
            self.send_header(key, value)
        self.end_headers()
        for block in held.read(start, end):
            self.wfile.write(block)
            self.request_seen.sent += len(block)

    def answer(self, status: int, headers: Mapping[str, str], content: bytes = b"") -> None:
        self.send_response(status)
        for key, value in ({"Content-Length": str(len(content))} | dict(headers)).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name there
        return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # not HTTPServer's, which asks a name server

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has read enough hangs up."""


@contextmanager
def serving() -> Iterator[FakeHub]:
    hub = FakeHub()
    own = type("OwnHandler", (Handler,), {"hub": hub})
    with _Server(("127.0.0.1", 0), own) as server:
        hub.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
