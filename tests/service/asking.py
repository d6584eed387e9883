"""The service in this process: the application over a session that answers at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import httpx

from advisor.api import Session
from advisor.api.service.answers import Answer, Asked, answer
from advisor.api.service.app import Limits, application


@cache
def session(*, files: bool = False) -> Session:
    return Session(files=files)


class Here:
    """Answers where the workers would."""

    def __init__(self, own: Session | None = None) -> None:
        self.session = own or session()
        self.versions = dict(self.session.versions)
        self.names = dict(self.session.names)
        self.restarts = self.waiting = 0
        self.asked: list[Asked] = []

    async def ask(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        return answer(self.session, asked)


class Service:
    """Few words for what a program does."""

    def __init__(self, workers: Any = None, **how: Any) -> None:
        self.log: list[str] = []
        self.workers = workers or Here()
        self.app = application(self.workers, log=self.log.append, **how)

    def ask(self, method: str, path: str, **sent: Any) -> httpx.Response:
        return asyncio.run(self._ask(method, path, **sent))

    async def _ask(self, method: str, path: str, **sent: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, **sent)

    def get(self, path: str, *, accept: str = "*/*", **query: Any) -> httpx.Response:
        return self.ask("GET", path, params=query, headers={"accept": accept})

    def post(self, path: str, body: Any, **sent: Any) -> httpx.Response:
        return self.ask("POST", path, json=body, **sent)

    def bulk(self, text: bytes, **query: Any) -> list[str]:
        return self.ask("POST", "/bulk", content=text, params=query).text.splitlines()


async def slowly(part: bytes) -> AsyncIterator[bytes]:
    yield part
    await asyncio.sleep(5)


LIMITS = Limits
