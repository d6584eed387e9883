"""Questions to a model server over HTTP: one address, JSON, bounded in size and time.

No proxy is used and no redirect followed, so nothing is asked but the address that was named.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from advisor.errors import RequestError
from advisor.units import plain

_CONNECT_SECONDS = 5.0
_MOST_BYTES = 8 << 20
_GOOD = 200
_SCHEMES: Mapping[str, type[http.client.HTTPConnection]] = {
    "http": http.client.HTTPConnection, "https": http.client.HTTPSConnection,
}  # fmt: skip
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Address(Struct, frozen=True):
    """Where a server is asked."""

    scheme: str
    host: str
    port: int | None
    path: str

    @property
    def is_here(self) -> bool:
        """Whether it is this machine."""
        return self.host in _LOOPBACK

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return plain(f"{host}:{self.port}" if self.port else host)


def address_of(text: str) -> Address:
    """Read an address: ``http://127.0.0.1:8080``, ``localhost:8080``.

    Raises:
        RequestError: It is none.
    """
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in _SCHEMES or not parts.hostname or parts.username:
        raise RequestError(
            f"'{plain(text)}' is no address of a server",
            hint="Write for example http://127.0.0.1:8080.",
        )
    return Address(parts.scheme, parts.hostname, port, parts.path.rstrip("/").removesuffix("/v1"))


def asked(address: Address, path: str, body: object = None, seconds: float = 30.0) -> Any:
    """Ask for a JSON document; None where the server has no such page.

    Raises:
        RequestError: It does not answer, or not with JSON.
    """
    answer = b"".join(line for line, _ in _lines(address, path, body, seconds))
    if not answer:
        return None
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return None


def streamed(
    address: Address, path: str, body: object, seconds: float
) -> Iterator[tuple[dict[str, Any], float]]:
    """Ask for server-sent events; give each with the second at which it came.

    Raises:
        RequestError: As above.
    """
    for line, at in _lines(address, path, body, seconds):
        if line.startswith(b"data: {"):
            try:
                found = json.loads(line[6:])
            except (ValueError, RecursionError):
                continue
            yield found, at


def _lines(
    address: Address, path: str, body: object, seconds: float
) -> Iterator[tuple[bytes, float]]:
    """Give the lines of an answer as they come; none where the page is not there."""
    kind = _SCHEMES[address.scheme]
    connection = kind(address.host, address.port, timeout=_CONNECT_SECONDS)
    try:
        connection.connect()
        connection.sock.settimeout(seconds)
        content = None if body is None else json.dumps(body).encode()
        connection.request(
            "GET" if body is None else "POST",
            f"{address.path}{path}",
            content,
            {"Content-Type": "application/json"} if content else {},
        )
        with connection.getresponse() as answer:
            if answer.status != _GOOD:
                _refuse(answer, address, path, asking=body is not None)
                return
            read, until = 0, time.monotonic() + seconds
            while line := answer.readline(_MOST_BYTES):
                read += len(line)
                now = time.monotonic()
                if read > _MOST_BYTES or now > until:
                    raise RequestError(f"the server at {address} does not come to an end")
                yield line, now
    except (OSError, http.client.HTTPException) as bad:
        why = getattr(bad, "strerror", None) or bad or type(bad).__name__
        raise RequestError(
            f"no server answers at {address}: {why}",
            hint="Start it, or name its address: 'advisor measure run http://HOST:PORT'.",
        ) from None
    finally:
        connection.close()


def _refuse(answer: http.client.HTTPResponse, address: Address, path: str, *, asking: bool) -> None:
    """Tell a refusal of a question; a page that is not there is none.

    Raises:
        RequestError: The server's own words.
    """
    if not asking:
        return
    said = plain(answer.read(400).decode("utf-8", "replace").strip())
    raise RequestError(f"the server at {address} refuses {path} ({answer.status}): {said}")
