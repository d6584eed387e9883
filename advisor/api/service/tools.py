"""The questions as tools of a language model: the Model Context Protocol, by its own SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from advisor.api import Session
from advisor.api.service import EXPLAIN, QUESTIONS, Log, Question, schema_named
from advisor.api.service.answers import BRIEF, Answer, Asked, answer
from advisor.api.service.watch import Metrics, Watched
from advisor.api.service.workers import Answering
from advisor.errors import RequestError, did_you_mean
from advisor.files import __version__

_TOOLS = {
    **{one.name.replace("-", "_"): one for one in (*QUESTIONS.values(), EXPLAIN)},
    "diagnose_log": QUESTIONS["diagnose"],
}
del _TOOLS["diagnose"]
TOOLS: Mapping[str, Question] = _TOOLS
"""Tool -> the question it asks."""
_COMMON = (
    "gpu", "model", "precision", "context", "batch", "framework", "kv_cache", "gpus", "ram", "use",
)  # fmt: skip
"""Settings that each tool lists by themselves; the others it takes as ``settings``."""
_INSTRUCTIONS = (
    "Tells whether a language model runs on a GPU, how well, and what to change. Figures are "
    "computed, not guessed: pass names as people say them ('RTX 4090', 'llama-3-8b'), and relay "
    "what is missing or unknown as such."
)
_WHOLE = "The whole document as JSON (up to 100 kB) instead of the short answer."


def tools() -> list[types.Tool]:
    """Describe the tools."""
    hints = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    return [
        types.Tool(
            name=name,
            description=f"{question.summary} A short answer with figures and commands.",
            input_schema=_input(question),
            annotations=hints,
        )
        for name, question in TOOLS.items()
    ]


def _input(question: Question) -> dict[str, Any]:
    """Describe what a tool takes, short enough to be read with every conversation."""
    own = [name for name in question.settings if name not in QUESTIONS["advise"].settings]
    shown = [name for name in (*own, *_COMMON) if name in question.settings]
    others = [name for name in question.settings if name not in shown]
    properties = {name: schema_named(name, question.settings[name]) for name in shown}
    return {
        "type": "object",
        "required": list(question.needed),
        "additionalProperties": False,
        "properties": {
            **properties,
            "settings": {
                "type": "object",
                "description": f"Any other setting by name: {', '.join(others)}.",
            },
            "whole": {"type": "boolean", "description": _WHOLE},
        },
    }


async def called(workers: Answering, name: str, given: Mapping[str, Any]) -> types.CallToolResult:
    """Answer a call of a tool.

    Raises:
        MCPError: There is no such tool.
    """
    if name not in TOOLS:
        hint = did_you_mean(name, TOOLS) or f"Known: {', '.join(TOOLS)}."
        raise MCPError(types.INVALID_PARAMS, f"no tool is called '{name}'. {hint}")
    stated = dict(given)
    whole, others = stated.pop("whole", False), stated.pop("settings", None)
    if others is not None and not isinstance(others, dict):
        return _said("settings is no object. Write {name: value}.", wrong=True)
    question = TOOLS[name]
    if question.slow:
        stated.setdefault("limit", 5)
    form = question.forms[0] if whole is True else BRIEF
    found = await workers.ask(Asked(question.name, {**(others or {}), **stated}, form))
    if found.status == 200:  # noqa: PLR2004  OK
        return _said(found.body.decode(), wrong=False)
    return _said(_told(found), wrong=True)


def _said(text: str, *, wrong: bool) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=wrong)


def _told(found: Answer) -> str:
    """Say what is wrong so that whoever called can mend it."""
    doc = msgspec.json.decode(found.body)
    each = (RequestError(one["message"], hint=one["hint"]) for one in doc["errors"] or [doc])
    return "\n".join(map(str, each))


def server_of(workers: Answering) -> Server[Any]:
    """Make the server."""

    async def listed(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools())

    async def call(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await called(workers, params.name, params.arguments or {})

    return Server(
        "advisor",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=call,
    )


def over_http(
    host: str, path: str, hosts: Collection[str], log: Log, workers: Answering
) -> Watched:
    """Make the application that offers the tools at a path, to whoever names one of the hosts."""
    app = server_of(workers).streamable_http_app(
        streamable_http_path=path, json_response=True, stateless_http=True, host=host
    )
    return Watched(app, metrics=Metrics(), log=log, routes=[path], hosts=hosts)


async def over_pipes(session: Session) -> None:
    """Offer the tools to one client, on standard input and output."""
    server = server_of(Inside(session))
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


class Inside:
    """Answers in this process, one question after the other: for one client on standard input."""

    def __init__(self, session: Session) -> None:
        """Answer from a session."""
        self.versions = dict(session.versions)
        self.names = dict(session.names)
        self.restarts = self.waiting = 0
        self._session, self._turn = session, asyncio.Lock()

    async def ask(self, asked: Asked) -> Answer:
        """Answer one, in a thread, so that the client is heard meanwhile."""
        async with self._turn:
            return await asyncio.to_thread(answer, self._session, asked)
