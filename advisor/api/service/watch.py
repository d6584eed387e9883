"""What stands around every request: whose host it names, safe headers, a line of log, counts."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from advisor.api.service import FORMS, Log, line
from advisor.api.service.answers import MOST_LINE, failure, refusal
from advisor.errors import RequestError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
_POLICY = b"content-security-policy"
_NO_SCRIPTS = (
    b"default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
)
OTHER = "other"
"""The route of what is none."""


class Watched:
    """An application with all this around it."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        log: Log,
        routes: Collection[str],
        hosts: Collection[str],
    ) -> None:
        """Put it around.

        Paths in ``routes`` are counted by name. Without ``hosts`` any name will do.
        """
        self._app, self._metrics, self._log = app, metrics, log
        self._routes, self._hosts = frozenset(routes), frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, sent = time.perf_counter(), _Sent(send)
        self._metrics.in_flight += 1
        try:
            if self._is_strange(scope):
                await _refuse_host(sent)
            else:
                await self._app(scope, receive, sent)
        except Exception:  # noqa: BLE001  the last line of defence
            self._log(line("bug", path=scope["path"], traceback=traceback.format_exc()))
            if not sent.status:
                await _say(sent, failure("").body, 500)
        finally:
            self._metrics.in_flight -= 1
            self._note(scope, sent, time.perf_counter() - began)

    def _note(self, scope: Scope, sent: _Sent, seconds: float) -> None:
        path: str = scope["path"]
        route = path if path in self._routes else OTHER
        self._metrics.note(route, _method(scope), sent.status, seconds)
        self._log(
            line(
                "request",
                method=scope["method"],
                path=path[:200],
                status=sent.status,
                ms=round(seconds * 1e3, 2),
                bytes=sent.bytes,
                client=(scope.get("client") or ("",))[0],
            )
        )

    def _is_strange(self, scope: Scope) -> bool:
        """Whether a page of somebody else may have sent a browser here."""
        if not self._hosts:
            return False
        stated = {k: v.decode("latin-1") for k, v in scope["headers"] if k in {b"host", b"origin"}}
        origin = stated.get(b"origin")
        names = [stated.get(b"host", ""), *([origin.rpartition("/")[2]] if origin else [])]
        return any(_without_port(name) not in self._hosts for name in names)


def _without_port(host: str) -> str:
    name, _, port = host.rpartition(":")
    return (name if port.isdecimal() else host).strip("[]").casefold()


_METHODS = frozenset({"GET", "HEAD", "POST"})


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in _METHODS else OTHER


class _Sent:
    """Passes an answer on, and remembers its status and size."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.bytes = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), *_HEADERS]
            if _POLICY not in dict(headers):
                headers.append((_POLICY, _NO_SCRIPTS))
            message = {**message, "headers": headers}
        else:
            self.bytes += len(message.get("body", b""))
        await self._send(message)


async def _refuse_host(send: Send) -> None:
    wrong = RequestError(
        "this host name, or the page that asks, is not known here",
        hint="Ask 127.0.0.1 or localhost, or start with --trusted-host NAME.",
    )
    await _say(send, refusal(wrong, 421).body, 421)


async def _say(send: Send, body: bytes, status: int) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the classes of durations, seconds."""
MEDIA = "text/plain; version=0.0.4; charset=utf-8"


@dataclass
class Metrics:
    """Counts since the start."""

    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """Route, method and status -> requests."""
    classes: Counter[tuple[str, float]] = field(default_factory=Counter)
    """Route and upper bound -> requests in this class."""
    seconds: Counter[str] = field(default_factory=Counter)
    """Route -> seconds, all requests together."""
    lines: Counter[str] = field(default_factory=Counter)
    """Question -> lines of ``/bulk``."""
    in_flight: int = 0

    def note(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that is answered."""
        self.requests[route, method, status] += 1
        self.seconds[route] += seconds  # type: ignore[assignment]  # a counter takes any number
        bound = next((one for one in _BOUNDS if seconds <= one), float("inf"))
        self.classes[route, bound] += 1

    def text(self, gauges: Mapping[str, tuple[str, float]], versions: Mapping[str, str]) -> str:
        """Write everything."""
        labels = ",".join(f'{name}="{value}"' for name, value in versions.items())
        lines = [
            *_head("advisor_info", "gauge", "What answers rest on."),
            f"advisor_info{{{labels}}} 1",
            *_head("advisor_requests_total", "counter", "Requests that were answered."),
            *(
                f'advisor_requests_total{{route="{route}",method="{method}",status="{status}"}} {n}'
                for (route, method, status), n in sorted(self.requests.items())
            ),
            *_head("advisor_bulk_lines_total", "counter", "Lines of /bulk."),
            *(
                f'advisor_bulk_lines_total{{question="{question}"}} {n}'
                for question, n in sorted(self.lines.items())
            ),
            *_head("advisor_request_seconds", "histogram", "Time from a request to its answer."),
            *self._histogram(),
        ]
        for name, (said, value) in {**gauges, "in_flight": _in_flight(self.in_flight)}.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [*_head(f"advisor_{name}", kind, said), f"advisor_{name} {value:g}"]
        return "\n".join(lines) + "\n"

    def _histogram(self) -> Iterator[str]:
        name = "advisor_request_seconds"
        for route in sorted({route for route, _ in self.classes}):
            total = 0
            for bound in (*_BOUNDS, float("inf")):
                total += self.classes[route, bound]
                shown = "+Inf" if bound == float("inf") else f"{bound:g}"
                yield f'{name}_bucket{{route="{route}",le="{shown}"}} {total}'
            yield f'{name}_sum{{route="{route}"}} {self.seconds[route]:.6f}'
            yield f'{name}_count{{route="{route}"}} {total}'


def _in_flight(count: int) -> tuple[str, float]:
    return "Requests that are being answered.", count


def _head(name: str, kind: str, said: str) -> tuple[str, str]:
    return f"# HELP {name} {said}", f"# TYPE {name} {kind}"


class RefusedBodyError(RequestError):
    """A body that is not read, with its status of HTTP."""

    def __init__(self, message: str, *, status: int, hint: str = "") -> None:
        """Say why."""
        super().__init__(message, hint=hint)
        self.status = status


async def read(request: Request, most: int, limit_s: float) -> bytes:
    """Read a whole body.

    Args:
        request: The request.
        most: Bytes at most.
        limit_s: Seconds for all of it.

    Raises:
        RefusedBodyError: It is too long, or comes too slowly.
    """
    held, size = list[bytes](), 0
    try:
        async with asyncio.timeout(limit_s):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise RefusedBodyError(
                        f"the body is longer than {most:,} bytes", status=413, hint="Send less."
                    )
                held.append(part)
    except TimeoutError:
        raise RefusedBodyError(f"the body took longer than {limit_s:g} s", status=408) from None
    return b"".join(held)


async def lines(request: Request, most: int, limit_s: float) -> AsyncIterator[list[bytes]]:
    """Read lines as they come, those that are there together; blank ones are left out.

    Of a line that is too long only its beginning is kept, which is too long as well.

    Args:
        request: The request.
        most: Lines at once.
        limit_s: Seconds until the next part has to come.

    Raises:
        RefusedBodyError: Nothing came for too long.
    """
    rest, parts = b"", request.stream()
    while (part := await _next(parts, limit_s)) is not None:
        *whole, rest = (rest + part).split(b"\n")
        rest = rest[: MOST_LINE + 1]
        for some in _some(whole, most):
            yield some
    if rest.strip():
        yield [rest]


async def _next(parts: AsyncIterator[bytes], limit_s: float) -> bytes | None:
    try:
        async with asyncio.timeout(limit_s):
            return await anext(parts, None)
    except TimeoutError:
        message = f"nothing came for {limit_s:g} s"
        raise RefusedBodyError(message, status=408, hint="Send the next line sooner.") from None


def _some(whole: list[bytes], most: int) -> Iterator[list[bytes]]:
    kept = [one[: MOST_LINE + 1] for one in whole if one.strip()]
    yield from (kept[at : at + most] for at in range(0, len(kept), most))


class Streamed(Response):
    """An answer that is sent while the body is still being read.

    The usual one of the library listens for the end of the connection meanwhile, which takes the
    body away.
    """

    def __init__(self, parts: AsyncIterator[bytes], media: str, limit_s: float) -> None:
        """Send these parts, each within a time."""
        super().__init__(media_type=media)
        del self.headers["content-length"]
        self._parts, self._limit_s = parts, limit_s

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send them; who stops reading or goes away gets no more."""
        head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(head)
        try:
            async for part in self._parts:
                async with asyncio.timeout(self._limit_s):
                    await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except (TimeoutError, ClientDisconnect):
            return


def form_wanted(forms: Sequence[str], named: str | None, accept: str | None) -> str:
    """Give the form.

    The usual form is the first; in ``accept`` the higher ``q``, then the more exact, then the
    earlier form counts.

    Raises:
        RefusedBodyError: None of them is wanted (406).
    """
    if named is not None:
        if named in forms:
            return named
        raise _none_of(forms, f"'{named[:100]}' is no format of this answer")
    ranges = _ranges(accept or "*/*")
    found = max(forms, key=lambda form: _wanted(FORMS[form], ranges), default="json")
    if _wanted(FORMS[found], ranges) <= 0:
        raise _none_of(forms, "none of the types that are accepted can be given")
    return found


def _none_of(forms: Sequence[str], message: str) -> RefusedBodyError:
    known = ", ".join(f"{form} ({FORMS[form]})" for form in forms)
    return RefusedBodyError(message, status=406, hint=f"There are {known}.")


def _ranges(accept: str) -> dict[str, float]:
    """Read media ranges and how much each is wanted; what cannot be read is left out."""
    found: dict[str, float] = {}
    for part in accept.split(","):
        name, *parameters = (piece.strip().casefold() for piece in part.split(";"))
        weight = next((one[2:] for one in parameters if one.startswith("q=")), "1")
        try:
            found[name] = min(max(float(weight), 0.0), 1.0)
        except ValueError:
            continue
    return found


def _wanted(media: str, ranges: dict[str, float]) -> float:
    """How much a type is wanted: the most exact range that covers it says so."""
    for name in (media, f"{media.partition('/')[0]}/*", "*/*"):
        if name in ranges:
            return ranges[name]
    return 0.0
