"""The tools of a language model, called by the protocol's own client."""

from __future__ import annotations

import asyncio
import json
import random
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")
from mcp import Client, MCPError, StdioServerParameters

from advisor.api import Session
from advisor.api.service.answers import MOST
from advisor.api.service.tools import TOOLS, Inside, server_of
from advisor.cli.app import application
from tests.published_schemas import problems, schema
from tests.service.asking import Here, session
from tests.service.contract import GOOD

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "mcp.md").read_text("utf-8")
PHI = {"gpu": "RTX 4090", "model": "phi-3-medium", "precision": "fp16"}
CALLS: dict[str, dict[str, Any]] = {
    "advise": {**PHI, "settings": {"ram": "64GB"}},
    "estimate": PHI,
    "models_for": {"gpu": "RTX 4070", "purpose": "code"},
    "gpus_for": {"model": "qwen3-8b", "vendor": "NVIDIA"},
    "check_command": {"command": "vllm serve Qwen/Qwen3-32B-AWQ", "gpu": "RTX 3090"},
    "diagnose_log": {
        "log": "CUDA out of memory. Tried to allocate 2.00 GiB", "gpu": "T4", "model": "llama-3-8b",
    },
    "explain": PHI,
}  # fmt: skip


def call(name: str, given: dict[str, Any], workers: Any = None) -> tuple[bool, str]:
    async def called() -> tuple[bool, str]:
        async with Client(server_of(workers or Here())) as client:
            got = await client.call_tool(name, given)
            return got.is_error, got.content[0].text  # type: ignore[union-attr]

    return asyncio.run(called())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools_say_what_they_take(mode: str) -> None:
    async def listed() -> list[Any]:
        async with Client(server_of(Here()), mode=mode) as client:
            return (await client.list_tools()).tools

    tools = asyncio.run(listed())
    assert {tool.name for tool in tools} == set(CALLS) == set(TOOLS)
    for tool in tools:
        assert len(json.dumps(tool.input_schema)) < 4_000, "read with every conversation"
        assert tool.description
        assert tool.annotations.read_only_hint
        stated = tool.input_schema["properties"]
        assert set(tool.input_schema["required"]) <= set(stated)
        assert all(one.get("description") or one.get("anyOf") for one in stated.values())


@pytest.mark.parametrize("name", CALLS)
def test_an_answer_is_short_and_the_whole_document_comes_on_request(name: str) -> None:
    wrong, text = call(name, CALLS[name])
    assert (wrong, len(text) <= MOST) == (False, True), text
    wrong, whole = call(name, {**CALLS[name], "whole": True})
    assert not wrong
    if name == "explain":
        assert "quantize-to-fit" in whole
        return
    found = schema(TOOLS[name].document)
    assert problems(json.loads(whole), found, found["$defs"]) == []


def test_an_answer_has_the_verdict_the_figures_and_the_remedies_with_commands() -> None:
    _, text = call("advise", CALLS["advise"])
    for part in (
        "Verdict: needs_offload. ", "Needs 27.0 GiB, usable 23.2 GiB, missing 3.8 GiB.",
        "1. Use Q8_0 weights.", "$ llama-server -m", "{'precision': 'Q8_0'}", "Keep 33 of 41",
    ):  # fmt: skip
        assert part in text
    _, text = call("check_command", CALLS["check_command"])
    assert "It does not start" in text
    assert "A command that starts: vllm serve" in text


def test_random_answers_stay_short() -> None:
    drawn, inside = random.Random(3), Here()
    for _ in range(15):
        given = {name: drawn.choice(GOOD[name]) for name in ("gpu", "model", "context")}
        _, text = call(drawn.choice(("advise", "explain", "estimate")), given, inside)
        assert len(text) <= MOST
        assert text.endswith("\n") or "unknown" in text or "cannot" in text or "not" in text


def test_one_rule_is_explained_with_what_it_lacks() -> None:
    _, text = call("explain", {**PHI, "rule": "quantize-for-room"})
    assert "It stays silent" in text
    assert "fit.state is needs_offload (needed: is tight)" in text
    wrong, text = call("explain", {**PHI, "rule": "quantise-for-room"})
    assert (wrong, "Did you mean 'quantize-for-room'" in text) == (True, True)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("advise", {"gpu": "RTX 4091", "model": "phi-3-mini"}, "GeForce RTX 4090"),
        ("advise", {"gpu": "RTX 4090"}, "model must be stated"),
        ("advise", {**PHI, "settings": {"contextt": 1}}, "Did you mean 'context'"),
        ("advise", {**PHI, "settings": 3}, "settings is no object"),
        ("advise", {**PHI, "settings": {"config": "/etc/passwd"}}, "files of this machine"),
        ("advise", {"gpu": "local", "model": "phi-3-mini"}, "'local'"),
        ("estimate", {"model": "/etc/passwd"}, "files of this machine"),
        ("models_for", {"gpu": 3}, "not a name"),
        ("diagnose_log", {"log": ""}, "empty"),
    ],
)
def test_what_is_wrong_is_a_result_that_can_be_mended(
    name: str, given: dict[str, Any], said: str
) -> None:
    wrong, text = call(name, given)
    assert wrong
    assert said in text
    assert "Traceback" not in text


def test_an_unknown_tool_is_an_error_of_the_protocol() -> None:
    async def called() -> None:
        async with Client(server_of(Here())) as client:
            with pytest.raises(MCPError, match="Did you mean 'advise'"):
                await client.call_tool("advice", {})

    asyncio.run(called())


def test_a_bug_is_told_without_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Session(files=False)
    monkeypatch.setattr(broken, "advise", lambda **_: 1 / 0)
    wrong, text = call("advise", PHI, Here(broken))
    assert (wrong, "bug in advisor" in text, "Zero" in text) == (True, True, False)


def test_it_talks_over_standard_input() -> None:
    own = StdioServerParameters(
        command=sys.executable, args=["-m", "advisor", "mcp"], cwd=str(ROOT)
    )

    async def asked() -> str:
        async with Client(own) as client:
            got = await client.call_tool("estimate", PHI)
            return str(got.content[0].text)  # type: ignore[union-attr]

    assert "Needs 27.0 GiB" in asyncio.run(asked())


def test_one_question_at_a_time_is_answered_inside() -> None:
    async def asked() -> list[int]:
        inside = Inside(session())
        server = server_of(inside)
        async with Client(server) as client:
            found = await asyncio.gather(*(client.call_tool("estimate", PHI) for _ in range(4)))
        return [len(one.content) for one in found]

    assert asyncio.run(asked()) == [1, 1, 1, 1]


def test_the_page_says_how_a_client_starts_it() -> None:
    for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL):
        (server,) = json.loads(block)["mcpServers"].values()
        application([*server["args"]]) if server.get("command") == "advisor" else server["url"]
        assert server.get("args", ["mcp"])[0] == "mcp"
    for name in TOOLS:
        assert f"`{name}`" in PAGE
    for line in re.findall(r"^advisor .*$", PAGE, re.MULTILINE):
        application(shlex.split(line, comments=True)[1:])
