"""The HTTP application: what is asked, in which form, whether it is known, and the answer."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence

import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from advisor.api.service import FORMS, QUESTIONS, Log, Question, from_query, line, watch
from advisor.api.service.answers import Answer, Asked, read_object, refusal
from advisor.api.service.openapi import document, page_to_ask
from advisor.api.service.watch import MEDIA, Metrics, Watched, form_wanted
from advisor.api.service.workers import Answering
from advisor.errors import RequestError, UserError, did_you_mean
from advisor.files import code_sha256
from advisor.memo import Kept

_LENGTHS = ("short", "standard", "full")
NDJSON = "application/x-ndjson"
OK = 200
_MOST_KEPT = 2_000
"""Answers by name, packed to some 6 kB each: what was asked lately takes a tenth of its time."""
_OTHERS = ("/", "/bulk", "/openapi.json", "/health", "/metrics")


class Limits(Struct, frozen=True):
    """What one request may take."""

    body_bytes: int = 1_000_000
    body_s: float = 15
    """To send the body, and of /bulk the next piece of it."""


class Service:
    """The handlers, and what they share."""

    def __init__(self, workers: Answering, limits: Limits, log: Log, *, lasting: bool) -> None:
        """Answer with these workers."""
        self._lasting = lasting
        self.workers, self.limits, self.log = workers, limits, log
        self.metrics = Metrics()
        self._began = time.monotonic()
        self._code = code_sha256()
        self._openapi = msgspec.json.encode(document())
        self._page, self._policy = page_to_ask(workers.names)
        self._kept: Kept[str, Answer] = Kept(_MOST_KEPT)

    # ---- questions

    def handler(self, question: Question) -> Callable[[Request], object]:
        """Make the handler of a question."""

        async def handle(request: Request) -> Response:
            try:
                asked = await self._asked(question, request)
            except watch.RefusedBodyError as wrong:
                return _response(refusal(wrong, wrong.status))
            except UserError as wrong:
                return _response(refusal(wrong))
            if not self._lasting:
                return _response(await self._told(asked))
            tag = self._tag(asked)
            if request.method != "POST" and tag in _tags(request):
                return Response(status_code=304, headers=_named(tag))
            found = self._known(tag) or await self._learnt(asked, tag)
            return _response(found, _named(tag) if found.status == OK else {})

        return handle

    def _known(self, tag: str) -> Answer | None:
        kept = self._kept.get(tag)
        return kept and msgspec.structs.replace(kept, body=zlib.decompress(kept.body))

    async def _learnt(self, asked: Asked, tag: str) -> Answer:
        found = await self._told(asked)
        if found.status == OK:
            packed = zlib.compress(found.body, level=1)
            self._kept.put(tag, msgspec.structs.replace(found, body=packed))
        return found

    async def _told(self, asked: Asked) -> Answer:
        found = await self.workers.ask(asked)
        self._tell(found)
        return found

    async def _asked(self, question: Question, request: Request) -> Asked:
        """Read what is asked, from the query and the body.

        Raises:
            UserError: It cannot be read.
        """
        pairs = request.query_params.multi_items()
        how = {name: text for name, text in pairs if name in {"format", "length"}}
        stated = [(name, text) for name, text in pairs if name not in how]
        given = from_query(question, stated)
        if request.method == "POST":
            content = await watch.read(request, self.limits.body_bytes, self.limits.body_s)
            body = _body(question, request, content, self.limits.body_bytes)
            if twice := sorted(body.keys() & given.keys()):
                raise RequestError(f"query and body state {' and '.join(twice)}")
            given |= body
        form = form_wanted(question.forms, how.get("format"), request.headers.get("accept"))
        return Asked(question.name, given, form, _length(question, how.get("length", "")))

    def _tag(self, asked: Asked) -> str:
        """Name the answer by what it follows from; the same name, the same bytes."""
        parts = [self._code, dict(sorted(self.workers.versions.items())), asked.question]
        stated = sorted(asked.given.items())
        content = msgspec.json.encode([*parts, stated, asked.form, asked.length])
        return f'"{hashlib.sha256(content).hexdigest()[:32]}"'

    def _tell(self, found: Answer) -> None:
        if found.bug:
            self.log(line("bug", traceback=found.bug))

    # ---- many at once

    async def bulk(self, request: Request) -> Response:
        """Answer a line of JSON for each line, as they come; a wrong one fails alone."""
        name = request.query_params.get("question", "estimate")
        if name not in QUESTIONS:
            hint = did_you_mean(name, QUESTIONS) or f"Known: {', '.join(QUESTIONS)}."
            return _response(refusal(RequestError(f"no question is called '{name}'", hint=hint)))
        return watch.Streamed(self._bulk(name, request), NDJSON, self.limits.body_s)

    async def _bulk(self, name: str, request: Request) -> AsyncIterator[bytes]:
        most = 64 if name == "estimate" else 1
        try:
            async for lines in watch.lines(request, most, self.limits.body_s):
                self.metrics.lines[name] += len(lines)
                found = await self.workers.ask(Asked(name, {}, lines=lines))
                self._tell(found)
                yield found.body if found.status == OK else _each(found, lines)
        except watch.RefusedBodyError as wrong:
            yield _each(refusal(wrong), [b""])

    # ---- about the service

    async def page(self, _request: Request) -> Response:
        """Give the page to ask from."""
        policy = {"Content-Security-Policy": self._policy}
        return Response(self._page, headers=policy, media_type=FORMS["html"])

    async def openapi(self, _request: Request) -> Response:
        """Give the OpenAPI document."""
        return Response(self._openapi, media_type=FORMS["json"])

    async def health(self, _request: Request) -> Response:
        """Say that questions are answered, and on what."""
        now = {
            "status": "ok",
            "uptime_s": round(time.monotonic() - self._began, 1),
            "waiting": self.workers.waiting,
            **self.workers.versions,
        }
        return Response(msgspec.json.encode(now), media_type=FORMS["json"])

    async def counts(self, _request: Request) -> Response:
        """Give the counts for Prometheus."""
        gauges = {
            "uptime_seconds": ("Since the start.", time.monotonic() - self._began),
            "waiting": ("Questions that wait for a worker.", float(self.workers.waiting)),
            "worker_restarts_total": ("Workers replaced.", float(self.workers.restarts)),
        }
        return Response(
            self.metrics.text(gauges, self.workers.versions), headers={"content-type": MEDIA}
        )


def application(
    workers: Answering,
    *,
    limits: Limits | None = None,
    log: Log = lambda _line: None,
    hosts: Collection[str] = (),
    lasting: bool = True,
) -> ASGIApp:
    """Put the application together.

    ``lasting`` says that the same question has the same answer, as none reads a file or the hub.
    Without ``hosts`` any name will do.
    """
    service = Service(workers, limits or Limits(), log, lasting=lasting)
    asked = [
        Route(f"/{one.name}", service.handler(one), methods=["GET", "POST"])
        for one in QUESTIONS.values()
    ]
    routes = [
        *asked,
        Route("/", service.page),
        Route("/bulk", service.bulk, methods=["POST"]),
        Route("/openapi.json", service.openapi),
        Route("/health", service.health),
        Route("/metrics", service.counts),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _not_here})
    app.router.redirect_slashes = False
    paths = [f"/{name}" for name in QUESTIONS] + [*_OTHERS]
    return Watched(app, metrics=service.metrics, log=log, routes=paths, hosts=hosts)


async def _not_here(request: Request, wrong: Exception) -> Response:
    status = wrong.status_code if isinstance(wrong, HTTPException) else 500
    known = [f"/{name}" for name in QUESTIONS] + [*_OTHERS]
    path, headers = request.url.path[:200], dict(getattr(wrong, "headers", None) or {})
    if status == 405:  # noqa: PLR2004
        hint = f"It takes {headers.get('Allow', 'another method')}."
        told = RequestError(f"{path} does not take {request.method}", hint=hint)
    else:
        hint = did_you_mean(path, known) or f"There are {', '.join(known)}."
        told = RequestError(f"there is no {path}", hint=hint)
    return _response(refusal(told, status), headers)


def _response(found: Answer, headers: dict[str, str] | None = None) -> Response:
    more = dict(headers or {})
    if found.status == 503:  # noqa: PLR2004
        more["Retry-After"] = "1"
    return Response(found.body, found.status, more, media_type=found.media)


def _named(tag: str) -> dict[str, str]:
    return {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept"}


def _tags(request: Request) -> Sequence[str]:
    stated = request.headers.get("if-none-match", "")
    return [one.strip().removeprefix("W/") for one in stated.split(",")]


def _body(question: Question, request: Request, content: bytes, most: int) -> dict[str, object]:
    kind = request.headers.get("content-type", FORMS["json"]).partition(";")[0].strip().casefold()
    if kind == FORMS["json"]:
        return read_object(content, "the body", most=most)
    if kind == FORMS["text"] and question.text:
        return {question.text: content.decode("utf-8", "replace")}
    taken = [FORMS["json"], *([FORMS["text"]] if question.text else [])]
    raise watch.RefusedBodyError(
        f"a body of type {kind[:100]!r} is not read here",
        hint=f"Send {' or '.join(taken)}.",
        status=415,
    )


def _length(question: Question, text: str) -> str:
    if not text or (question.has_length and text in _LENGTHS):
        return text
    known = f"Known: {', '.join(_LENGTHS)}." if question.has_length else "Leave it out."
    raise RequestError(f"length '{text}' is none of this answer", hint=known)


def _each(found: Answer, lines: Sequence[bytes]) -> bytes:
    """Tell each line of a part that none of it was answered."""
    why = msgspec.json.decode(found.body)
    return (msgspec.json.encode({"id": None, "error": why}) + b"\n") * len(lines)
