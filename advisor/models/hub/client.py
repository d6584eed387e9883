"""Reading from the hub over HTTP, with a bound on everything a server can make us do.

Only this module knows httpx. Whatever goes wrong is one sentence; neither the token nor an
address behind a redirect (which may be signed) stands in any message.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from advisor.errors import RequestError
from advisor.files import __version__, with_extra
from advisor.models.hub.bounds import OFFLINE_HINT, Bounds, bind
from advisor.models.hub_names import Refused, refusal

if TYPE_CHECKING:
    import httpx

PUBLIC_ENDPOINT: Final = "https://huggingface.co"
MAX_TOTAL_BYTES: Final = 512 * 10**6
_CONNECT_SECONDS: Final = 10.0
_SILENCE_SECONDS: Final = 20.0
READ_SECONDS: Final = 300.0
"""For a model, with all its files, pauses and redirects."""
_MAX_ANSWERS: Final = 4_096
_MAX_TRIES: Final = 3
_MAX_WAIT_SECONDS: Final = 10.0
_MAX_REDIRECTS: Final = 5
_MAX_ADDRESS: Final = 8_192
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PARTIAL: Final = 206
_GOOD: Final = frozenset({200, _PARTIAL})
_RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504})
_TOKEN_SCHEMES: Final = frozenset({"https"})


class Piece(Struct, frozen=True):
    """Bytes of a file."""

    content: bytes
    total: int | None
    """Size of the whole file in bytes as the server states it."""


def endpoint() -> str:
    """Give the root of the hub in use: HF_ENDPOINT, or the public one.

    Raises:
        RequestError: HF_ENDPOINT is no web address.
    """
    stated = (os.environ.get("HF_ENDPOINT") or PUBLIC_ENDPOINT).strip().rstrip("/")
    try:
        address = urlsplit(stated)
        fits = address.scheme in {"http", "https"} and address.hostname and address.port != 0
        plain = address.username is None and not address.query and not address.fragment
    except ValueError:
        fits = plain = False
    if not fits or not plain or not (stated.isascii() and stated.isprintable()):
        raise RequestError(
            "HF_ENDPOINT is not the address of a hub", hint=f"Write it like {PUBLIC_ENDPOINT}."
        )
    return stated


class Client:
    """A connection to one hub; may be used by several threads.

    Raises:
        RequestError: The extra is not installed, or HF_TOKEN or a proxy setting is unusable.
    """

    def __init__(self, root: str, asked: str) -> None:
        self.root = root
        self._origin = _origin(root)
        self._token = _token()
        self._http = _open(asked)
        self._bounds = Bounds(asked, READ_SECONDS, MAX_TOTAL_BYTES, _MAX_ANSWERS)
        bind(self._http, self._bounds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def whole(self, path: str, what: str, most: int) -> bytes:
        """Read a file or an answer of at most ``most`` bytes.

        One longer than ``most`` bytes is refused.

        Raises:
            RequestError: It cannot be read, or is longer.
        """
        content = self._tried(what, lambda: self._piece(path, what, 0, most + 1, whole=True))
        if len(content.content) > most:
            raise RequestError(f"{what} is longer than {most:,} bytes, more than any model has")
        return content.content

    def piece(self, path: str, what: str, start: int, count: int) -> Piece:
        """Read up to ``count`` bytes from ``start``; fewer where the server gives fewer, never 0.

        A server that ignores the range and sends everything is cut short.

        Raises:
            RequestError: It cannot be read.
        """
        return self._tried(what, lambda: self._piece(path, what, start, count, whole=False))

    def _tried(self, what: str, read: Callable[[], Piece]) -> Piece:
        """Try again where waiting may help, a few times."""
        import httpx  # noqa: PLC0415

        for attempt in range(1, _MAX_TRIES + 1):
            wait = 0.5 * 2**attempt
            try:
                return read()
            except Refused as refused:
                if refused.status not in _RETRIED or attempt == _MAX_TRIES:
                    raise refused.error from None
                wait = refused.wait_seconds or wait
                if wait > _MAX_WAIT_SECONDS:
                    raise refused.error from None
            except httpx.TimeoutException as error:
                if attempt == _MAX_TRIES:
                    text = f"{_host(error)} did not answer in time when asked for {what}"
                    raise RequestError(text, hint=OFFLINE_HINT) from None
            except httpx.TransportError as error:
                if attempt == _MAX_TRIES or isinstance(
                    error, (httpx.ConnectError, httpx.ProxyError)
                ):
                    raise _broken(what, error) from None
            _sleep(self._bounds.left(wait))
        raise AssertionError

    def _piece(self, path: str, what: str, start: int, count: int, *, whole: bool) -> Piece:
        headers = {} if whole else {"Range": f"bytes={start}-{start + count - 1}"}
        with self._answer(f"{self.root}/{path}", what, headers) as answer:
            if answer.headers.get("Content-Encoding", "identity") != "identity":
                raise RequestError(f"the server packs {what} though it was asked not to")
            partial = answer.status_code == _PARTIAL and not whole
            total = _range_total(answer, what, start) if partial else _stated_length(answer)
            skipped = 0 if partial else start
            content = self._body(answer, skipped + count)[skipped:]
        if not content and not whole:
            raise RequestError(f"the server sends nothing of {what} from byte {start:,} on")
        return Piece(content[:count], total)

    def _body(self, answer: httpx.Response, most: int) -> bytes:
        """Read the body up to ``most`` bytes and leave the rest where it is."""
        parts: list[bytes] = []
        length = 0
        for part in answer.iter_raw():
            parts.append(part)
            length += len(part)
            if length >= most:
                break
            self._bounds.left()
        return b"".join(parts)

    @contextmanager
    def _answer(self, url: str, what: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """Ask, following redirects; the token goes to the hub alone."""
        seen: set[str] = set()
        while True:
            self._bounds.ask()
            sent = {**headers, **self._authorization(url)}
            with self._http.stream("GET", url, headers=sent) as answer:
                if answer.status_code in _GOOD:
                    yield answer
                    return
                if answer.status_code not in _REDIRECTS:
                    raise refusal(answer.status_code, answer.headers, what, self._token_state())
                location = answer.headers.get("Location", "")
            seen.add(url)
            url = _next(url, location, what)
            if url in seen or len(seen) > _MAX_REDIRECTS:
                raise RequestError(f"the server sends the request for {what} round in circles")

    def _authorization(self, url: str) -> Mapping[str, str]:
        if self._token and _origin(url) == self._origin and self._may_send_token():
            return {"Authorization": f"Bearer {self._token}"}
        return {}

    def _may_send_token(self) -> bool:
        return urlsplit(self.root).scheme in _TOKEN_SCHEMES

    def _token_state(self) -> str:
        if not self._token:
            return "none"
        return "sent" if self._may_send_token() else "withheld"


def _broken(what: str, error: httpx.TransportError) -> RequestError:
    """Say which part of a connection failed."""
    import httpx  # noqa: PLC0415

    if isinstance(error, httpx.ConnectError):
        cause = " ".join(str(error).split())[:120] or "no connection"
        text = f"cannot reach {_host(error)} for {what} ({cause})"
    elif isinstance(error, httpx.ProxyError):
        text = f"the proxy refuses the way to {_host(error)} for {what}"
    else:
        text = f"the connection to {_host(error)} broke while {what} was read"
    return RequestError(text, hint=OFFLINE_HINT)


def _host(error: httpx.TransportError) -> str:
    """Name the server that failed: the hub, or one it redirects to."""
    return error.request.url.netloc.decode()


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _open(asked: str) -> httpx.Client:
    try:
        import httpx  # noqa: PLC0415  an extra, and 60 ms
    except ImportError:
        raise RequestError(
            f"'{asked}' is not in the knowledge base",
            hint=f"Reading it from Hugging Face needs an extra. {with_extra('hub')}",
        ) from None
    headers = {"Accept-Encoding": "identity", "User-Agent": f"advisor/{__version__}"}
    timeout = httpx.Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS)
    try:
        return httpx.Client(headers=headers, timeout=timeout, follow_redirects=False)
    except (ImportError, ValueError, OSError, httpx.InvalidURL):
        raise RequestError(
            "the proxy or certificate settings of this machine cannot be used",
            hint="Look at HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE.",
        ) from None


def _token() -> str:
    """Give HF_TOKEN.

    Raises:
        RequestError: It holds what no token holds, and would spoil the request.
    """
    token = (os.environ.get("HF_TOKEN") or "").strip()
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise RequestError("HF_TOKEN holds characters that no token has", hint="Set it again.")
    return token


def _origin(url: str) -> tuple[str, str | None, int | None]:
    address = urlsplit(url)
    usual = 443 if address.scheme == "https" else 80
    return address.scheme, address.hostname, address.port or usual


def _next(url: str, location: str, what: str) -> str:
    """Give the address a redirect leads to.

    Raises:
        RequestError: It leads nowhere, or out of https.
    """
    try:
        target = urljoin(url, location)
        address = urlsplit(target)
        fits = bool(address.hostname) and address.port != 0 and address.username is None
    except ValueError:
        fits = False
    if not fits or not location or len(target) > _MAX_ADDRESS or not target.isascii():
        raise RequestError(f"the server redirects the request for {what} to no usable address")
    safe = {"https"} if urlsplit(url).scheme == "https" else {"http", "https"}
    if address.scheme not in safe:
        raise RequestError(f"the server redirects the request for {what} away from https")
    return target.partition("#")[0]


def _range_total(answer: httpx.Response, what: str, start: int) -> int | None:
    """Give the size of the file that a partial answer states, its place checked."""
    unit, _, stated = answer.headers.get("Content-Range", "").strip().partition(" ")
    place, _, total = stated.partition("/")
    if unit.lower() != "bytes" or place.split("-")[0].strip() != str(start):
        raise RequestError(f"the server sends another part of {what} than it was asked for")
    return _number(total)


def _stated_length(answer: httpx.Response) -> int | None:
    return _number(answer.headers.get("Content-Length", ""))


def _number(text: str) -> int | None:
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None  # noqa: PLR2004
