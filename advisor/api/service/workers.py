"""Processes that answer questions: each has rules and knowledge loaded, and answers one at a time.

A question that takes too long ends with its process; another takes its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import multiprocessing
import signal
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from threading import Lock
from typing import Protocol

import msgspec
from msgspec import Struct

from advisor.api import Session
from advisor.api.service import QUESTIONS
from advisor.api.service.answers import Answer, Asked, answer, failure, refusal
from advisor.errors import AdvisorError, EngineError, RequestError, UserError

_MOST_WAITING = 512
_LATER = "Ask again in a second."
_START_S = 120
_COLLECT_RARELY = (100_000, 20, 20)
"""As the command line has it: reports make few cycles."""
_FIRST = {"gpu": "RTX 4090", "model": "llama-3-8b", "precision": "Q8_0"}
"""Asked before anything else, so that nobody waits for what is loaded late."""


class Setup(Struct, frozen=True):
    """What a worker loads and may reach."""

    rules: tuple[Path, ...] = ()
    templates: tuple[Path, ...] = ()
    knowledge: tuple[Path, ...] = ()
    files: bool = False
    hub: bool = False

    def session(self) -> Session:
        """Load it.

        Raises:
            UserError: A file is wrong.
        """
        return Session(
            rules=self.rules or None,
            templates=self.templates or None,
            knowledge=self.knowledge or None,
            files=self.files,
            hub=self.hub,
        )


class Ready(Struct, frozen=True):
    """What a worker says when it has loaded."""

    versions: dict[str, str]
    names: dict[str, list[str]]
    refused: str = ""
    """Why it could not load."""
    bug: bool = False


class Answering(Protocol):
    """Whoever answers questions: processes, or a test in their place."""

    versions: dict[str, str]
    names: dict[str, list[str]]
    restarts: int

    async def ask(self, asked: Asked) -> Answer:
        """Answer one."""

    @property
    def waiting(self) -> int:
        """Questions that wait for a turn."""


def work(setup: Setup, pipe: Connection) -> None:
    """Answer the questions that come through a pipe until it is closed: a worker's whole life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told, and closes the pipe
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    gc.set_threshold(*_COLLECT_RARELY)
    try:
        session = setup.session()
        answer(session, Asked("advise", _FIRST))
        ready = Ready(dict(session.versions), dict(session.names))
    except AdvisorError as wrong:
        ready = Ready({}, {}, str(wrong), bug=not isinstance(wrong, UserError))
    pipe.send_bytes(msgspec.msgpack.encode(ready))
    decoder = msgspec.msgpack.Decoder(Asked)
    with contextlib.suppress(EOFError, OSError):
        while not ready.refused:
            asked = decoder.decode(pipe.recv_bytes())
            pipe.send_bytes(msgspec.msgpack.encode(answer(session, asked)))


class _Worker:
    """One process and the pipe to it; used by one thread at a time."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._process: SpawnProcess | None = None
        self._pipe: Connection
        self._changing, self._ended = Lock(), False

    def start(self) -> Ready:
        """Start the process and wait until it has loaded."""
        with self._changing:
            return self._started()

    def _started(self) -> Ready:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(self._setup, theirs), daemon=True)
        self._process.start()
        theirs.close()
        if not self._pipe.poll(_START_S):
            raise EngineError(f"a worker was not ready after {_START_S} s")
        return msgspec.msgpack.decode(self._pipe.recv_bytes(), type=Ready)

    def ask(self, asked: Asked, limit_s: float) -> Answer | None:
        """Answer; None where it takes too long or the process died: it is to be replaced."""
        try:
            self._pipe.send_bytes(msgspec.msgpack.encode(asked))
            if not self._pipe.poll(limit_s):
                return None
            return msgspec.msgpack.decode(self._pipe.recv_bytes(), type=Answer)
        except (EOFError, OSError):
            return None

    def restart(self) -> None:
        """Put another process in the place of this one."""
        with self._changing:
            self._stopped()
            if not self._ended:
                self._started()

    def died(self) -> bool:
        """Whether the process ended, by itself or from outside."""
        assert self._process
        with self._changing:  # of two threads that wait for a process only one learns of its end
            self._process.join(0.1 if self._pipe.closed or self._gone() else 0)
            return self._process.exitcode is not None

    def _gone(self) -> bool:
        """Whether nobody is at the other end of the pipe."""
        try:
            return self._pipe.poll(0)
        except (EOFError, OSError):
            return True

    def stop(self) -> None:
        """End the process for good, whatever it is at."""
        with self._changing:
            self._ended = True
            self._stopped()

    def _stopped(self) -> None:
        """End the process; whoever waits at the pipe is told by its end."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()


class Workers:
    """A fixed number of them; who asks waits for a turn."""

    def __init__(self, setup: Setup, count: int, limit_s: float) -> None:
        """Take note of them; ``start`` starts them."""
        self.versions: dict[str, str] = {}
        self.names: dict[str, list[str]] = {}
        self.restarts = 0
        self.waiting = 0
        self._limit_s = limit_s
        self._stopping = False
        self._every = [_Worker(setup) for _ in range(count)]
        self._idle: asyncio.Queue[_Worker] = asyncio.Queue()
        self._threads = ThreadPoolExecutor(count, "worker")
        self._slow = asyncio.Semaphore(max(1, count - 1))
        """One worker is kept for questions that are answered at once."""

    async def start(self) -> None:
        """Start all of them.

        Raises:
            UserError: A file of rules, texts or knowledge is wrong.
            EngineError: They do not start.
        """
        run = asyncio.get_running_loop().run_in_executor
        for ready in await asyncio.gather(*(run(self._threads, one.start) for one in self._every)):
            if ready.refused:
                raise (EngineError if ready.bug else UserError)(ready.refused)
            self.versions, self.names = ready.versions, ready.names
        for one in self._every:
            self._idle.put_nowait(one)

    async def ask(self, asked: Asked) -> Answer:
        """Answer a question, or tell why there is no time for it."""
        if self.waiting >= _MOST_WAITING:
            return refusal(RequestError("too many questions wait", hint=_LATER), 503)
        known = QUESTIONS.get(asked.question)
        slow = asked.lines is not None or (known is not None and known.slow)
        self.waiting += 1
        try:
            async with asyncio.timeout(self._limit_s):
                worker = await self._turn(slow=slow)
        except TimeoutError:
            return refusal(RequestError("all workers are busy", hint=_LATER), 503)
        finally:
            self.waiting -= 1
        return await asyncio.shield(asyncio.ensure_future(self._by(worker, asked, slow=slow)))

    async def _turn(self, *, slow: bool) -> _Worker:
        """Wait for a worker; slow questions never have the last one."""
        if not slow:
            return await self._idle.get()
        await self._slow.acquire()
        try:
            return await self._idle.get()
        except BaseException:
            self._slow.release()
            raise

    async def _by(self, worker: _Worker, asked: Asked, *, slow: bool) -> Answer:
        """Have a worker answer; one that does not is replaced before it gets the next question."""
        run = asyncio.get_running_loop().run_in_executor
        try:
            for _ in range(2):  # one that died may have been ended from outside
                found = await run(self._threads, worker.ask, asked, self._limit_s)
                if found is not None:
                    return found
                died = worker.died()
                if self._stopping:
                    break
                self.restarts += 1
                with contextlib.suppress(EngineError, EOFError, OSError):
                    await run(self._threads, worker.restart)
                if not died:
                    break
            return _lost(asked, self._limit_s, died=died)
        finally:
            self._idle.put_nowait(worker)
            if slow:
                self._slow.release()

    async def stop(self) -> None:
        """End all of them."""
        self._stopping = True
        await asyncio.gather(*(asyncio.to_thread(one.stop) for one in self._every))
        self._threads.shutdown()


def _lost(asked: Asked, limit_s: float, *, died: bool) -> Answer:
    if died:
        return failure(f"a worker died at {asked.question}: {asked.given!r:.500}")
    late = RequestError(f"no answer within {limit_s:g} s", hint="Ask for less at once.")
    return refusal(late, 504)
