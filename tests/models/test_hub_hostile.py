"""A hub that means harm: whatever it sends, a read ends soon, in one sentence, and keeps nothing."""

# ruff: noqa: E501 - modes stand side by side

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from advisor.errors import UserError
from advisor.models.hub import client, fetch
from tests.models.hub_server import FakeHub, Handler
from tests.models.test_hub import TINY, folder, hub, publish_safetensors

__all__ = ["folder", "hub"]
pytestmark = pytest.mark.loopback
SECONDS = 0.5
OK, PART = b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 206 Partial Content\r\n"
LONG = b"x" * 60_000


def drip(start: bytes, again: bytes, wait: float = 0.02) -> Callable[[], Iterator[bytes]]:
    def sent() -> Iterator[bytes]:
        yield start
        while True:
            time.sleep(wait)
            yield again

    return sent


def flood(start: bytes, again: bytes) -> Callable[[], Iterable[bytes]]:
    return lambda: itertools.chain([start], itertools.repeat(again))


def body(content: bytes) -> bytes:
    return OK + f"Content-Length: {len(content)}\r\n\r\n".encode() + content


def listing(**changes: object) -> bytes:
    made = {"sha": "0" * 40, "siblings": [{"rfilename": "config.json", "size": 10}], **changes}
    return body(json.dumps(made).encode())


def names(*found: object) -> bytes:
    return listing(siblings=[{"rfilename": name, "size": 4} for name in found])


EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS: dict[str, Callable[[], Iterable[bytes]]] = {
    "status line drips": drip(b"HTTP/1.1", b" "),
    "header bytes drip": drip(OK + b"X: ", b"x"),
    "headers drip": drip(OK, b"X-A: b\r\n"),
    "header lines without end": flood(OK, b"X-A: b\r\n" * 500),
    "header value without end": flood(OK + b"X: ", LONG),
    "status line without end": flood(b"HTTP/1.1 200 ", LONG),
    "103 without end": flood(b"", EARLY * 100),
    "103 drips": drip(b"", EARLY),
    "100 without end": flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "102 drips": drip(b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "empty lines without end": flood(b"", b"\r\n" * 1_000),
    "nothing at all": drip(b"", b""),
    "body drips": drip(OK + b"Content-Length: 100000\r\n\r\n", b" "),
    "body without length drips": drip(OK + b"\r\n", b" "),
    "body without end": flood(OK + b"\r\n", LONG),
    "chunks without end": flood(CHUNKED, b"ea60\r\n" + LONG + b"\r\n"),
    "chunks drip": drip(CHUNKED, b"1\r\nx\r\n"),
    "chunk size drips": drip(CHUNKED, b"0"),
    "chunk extension without end": flood(CHUNKED + b"1;", LONG),
    "trailers drip": drip(CHUNKED + b"0\r\n", b"X: y\r\n"),
    "trailers without end": flood(CHUNKED + b"0\r\n", b"X: y\r\n" * 500),
    "stops in the headers": drip(OK + b"Content-Len", b"", 5),
    "stops in the body": drip(OK + b"Content-Length: 900\r\n\r\n{", b"", 5),
}
"""What never comes to an end by itself."""
DEEP = b"[" * 100_000
ONCE: dict[str, bytes] = {
    "no HTTP": b"220 smtp ready\r\n",
    "HTTP/0.9": b"<html>",
    "HTTP/9.9": b"HTTP/9.9 200 OK\r\n\r\n{}",
    "NUL bytes": bytes(5_000),
    "no status": b"HTTP/1.1\r\n\r\n",
    "odd status": b"HTTP/1.1 999 \x1b[2J\r\nContent-Length: 0\r\n\r\n",
    "negative status": b"HTTP/1.1 -1 x\r\n\r\n",
    "escapes in the reason": b"HTTP/1.1 404 \x1b]0;x\x07\r\nContent-Length: 0\r\n\r\n",
    "hangs up": b"",
    "hangs up in the headers": OK + b"Content-Length: 5",
    "hangs up in the body": OK + b"Content-Length: 500\r\n\r\n{",
    "negative length": OK + b"Content-Length: -1\r\n\r\n{}",
    "length of 400 digits": OK + b"Content-Length: " + b"9" * 400 + b"\r\n\r\n{}",
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "chunk size of 400 digits": CHUNKED + b"f" * 400 + b"\r\n",
    "chunk size no number": CHUNKED + b"zz\r\n",
    "unknown transfer": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "packed": OK + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08",
    "bomb announced": OK + b"Content-Encoding: br\r\nContent-Length: 1\r\n\r\n\x01",
    "switches protocol": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nhello",
    "no content": b"HTTP/1.1 204 No\r\n\r\n",
    "redirect to a file": b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
    "redirect to itself": b"HTTP/1.1 302 Found\r\nLocation: ?\r\nContent-Length: 0\r\n\r\n",
    "redirect to nothing": b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n",
    "redirect of escapes": b"HTTP/1.1 302 Found\r\nLocation: http://\x1b[2J/\r\nContent-Length: 0\r\n\r\n",
    "redirect of 60,000 letters": b"HTTP/1.1 302 Found\r\nLocation: /" + LONG + b"\r\n\r\n",
    "redirect to port 99999": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:99999/\r\nContent-Length: 0\r\n\r\n",
    "pause of a year": b"HTTP/1.1 429 Wait\r\nRetry-After: 31536000\r\nContent-Length: 0\r\n\r\n",
    "pause again and again": b"HTTP/1.1 503 Wait\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n",
    "error code of escapes": b"HTTP/1.1 401 No\r\nX-Error-Code: \x1b[31m\r\nContent-Length: 0\r\n\r\n",
    "empty": body(b""),
    "not JSON": body(b"<html>sign in</html>"),
    "deep JSON": body(DEEP),
    "JSON of bad bytes": body(b'{"sha": "\xff\xfe"}'),
    "number of 100,000 digits": body(b'{"sha": ' + b"9" * 100_000 + b"}"),
    "not a number": body(b'{"sha": NaN, "siblings": Infinity}'),
    "a list": body(b"[]"),
    "null": body(b"null"),
    "commit climbs": listing(sha="../" * 13 + "x"),
    "commit of escapes": listing(sha="\x1b" * 40),
    "commit a number": listing(sha=10**39),
    "files no list": listing(siblings={"a": 1}),
    "files of numbers": listing(siblings=[1, None, [], "x"]),
    "no files": listing(siblings=[]),
    "names climb": names("../../../x", "/etc/passwd", "a/../../b", "..", "~/.bashrc", "C:\\x", "a\\..\\b"),
    "names of escapes": names("\x1b[2J.gguf", "a\nb.gguf", "\u202egguf.x", "\x00.gguf"),
    "names of formulas": names("=cmd|' /C calc'!A0.gguf", "<script>.gguf"),
    "names no text": names(1, None, [], {}),
    "a name of 60,000 letters": names("x" * 60_000 + ".gguf"),
    "sizes lie": listing(siblings=[{"rfilename": "model.safetensors", "size": s} for s in (-1, 10**30, "4", 1e99, True)]),
}  # fmt: skip
"""What comes at once and is no answer of a hub."""


def sending(parts: Iterable[bytes]) -> Callable[[Handler], bool]:
    def fault(handler: Handler) -> bool:
        handler.close_connection = True
        for part in parts:
            handler.wfile.write(part)
        return True

    return fault


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "READ_SECONDS", SECONDS)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr(client, "_TOKEN_SCHEMES", frozenset({"http"}))


def refused(tmp_path: Path) -> str:
    started = time.monotonic()
    with pytest.raises(UserError) as caught:
        fetch(TINY, offline=False)
    assert time.monotonic() - started < SECONDS + 5
    message = str(caught.value)
    assert message.isprintable()
    assert "hf_secret" not in message
    assert len(message) < 400
    left = [p for p in (tmp_path / "cache").rglob("*") if p.is_file() and "tiny" not in p.parts]
    assert not left
    return message


def test_there_are_enough() -> None:
    assert 2 * len(ENDLESS) + len(ONCE) >= 46


@pytest.mark.parametrize("mode", ENDLESS)
@pytest.mark.parametrize("where", ["listing", "file"])
def test_what_never_ends_is_ended(
    hub: FakeHub, folder: Path, tmp_path: Path, mode: str, where: str
) -> None:
    publish_safetensors(hub, folder)

    def fault(handler: Handler) -> bool:
        wanted = ("/resolve/" in handler.path) == (where == "file")
        return wanted and sending(ENDLESS[mode]())(handler)

    hub.fault = fault
    refused(tmp_path)


@pytest.mark.parametrize("mode", ONCE)
def test_what_is_no_answer_is_refused(hub: FakeHub, tmp_path: Path, mode: str) -> None:
    hub.fault = sending([ONCE[mode]])
    refused(tmp_path)


@pytest.mark.parametrize("step", [1, 7])
def test_a_file_given_byte_by_byte_is_refused(
    hub: FakeHub, folder: Path, tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_safetensors(hub, folder)
    monkeypatch.setattr(client, "_MAX_ANSWERS", 40)
    monkeypatch.setattr(client, "READ_SECONDS", 30)

    def fault(handler: Handler) -> bool:
        if (stated := handler.headers.get("Range")) is None:
            return False
        held = hub.models[TINY]["model.safetensors"]
        start = int(stated.removeprefix("bytes=").partition("-")[0])
        handler.stream(206, held, start, min(start + step, held.size))
        return True

    hub.fault = fault
    assert "more pieces than any model has" in refused(tmp_path)


def test_pauses_count_too(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_sleep", time.sleep)
    hub.fault = sending([ONCE["pause again and again"]])
    assert "was not complete after" in refused(tmp_path)


def test_bytes_are_counted_where_they_arrive(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_TOTAL_BYTES", 20_000)
    monkeypatch.setattr(client, "READ_SECONDS", 30)
    hub.fault = sending(ENDLESS["103 without end"]())
    assert "more than 20,000 bytes were read" in refused(tmp_path)
