"""What stands around every request: whose host it names, safe headers, a line of log, counts."""

from __future__ import annotations

import json
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from advisor.errors import RequestError
from advisor.service.answers import failure, refusal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


Log = Callable[[str], None]
"""Takes one line, without its end."""
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


def line(event: str, **told: object) -> str:
    """Write a line of the log: JSON with the time, what happened, and what is known of it."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": now, "event": event, **told}, default=str)


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

        Args:
            app: The application.
            metrics: Where requests are counted.
            log: Takes the lines of the log.
            routes: Paths that are counted by name.
            hosts: Names under which the service is asked; empty: any.
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
        """Write everything.

        Args:
            gauges: Name -> its help and value now.
            versions: What answers rest on.
        """
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
