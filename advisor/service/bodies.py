"""The body of a request, within its limits of size and time, and the form of answer it wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from advisor.errors import RequestError
from advisor.service.answers import MOST_LINE
from advisor.service.questions import FORMS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send


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

    Args:
        forms: Those there are, the usual one first.
        named: What the query says.
        accept: The header; the higher ``q``, then the more exact, then the earlier form counts.

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
