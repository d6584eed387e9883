"""The same commands against the programs' own parsers, where those packages are installed.

They are not installed for the project; the tables of ``parsers.py`` stand in for them.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from advisor.runtimes.commands import commands_for
from tests.commands.test_programs import scenarios

Parse = Callable[[list[str]], object]


def vllm_parser() -> Parse:
    """The parser of ``vllm serve``; a machine without a card is taken as a processor."""
    pytest.importorskip("vllm")
    platforms: Any = importlib.import_module("vllm.platforms")
    platforms._current_platform = importlib.import_module("vllm.platforms.cpu").CpuPlatform()
    flexible = importlib.import_module("vllm.utils.argparse_utils").FlexibleArgumentParser
    make = importlib.import_module("vllm.entrypoints.common.cli_args").make_arg_parser
    return make(flexible(prog="vllm serve")).parse_args  # type: ignore[no-any-return]  # untyped


def sglang_parser() -> Parse:
    """The parser of ``sglang serve``."""
    arguments = pytest.importorskip("sglang.srt.server_args")
    parser = argparse.ArgumentParser(prog="sglang serve")
    arguments.ServerArgs.add_cli_args(parser)
    return parser.parse_args


@pytest.mark.parametrize(
    ("program", "parser"), [("vllm serve", vllm_parser), ("sglang serve", sglang_parser)]
)
def test_the_program_s_own_parser_takes_every_command(
    program: str, parser: Callable[[], Parse]
) -> None:
    parse = parser()
    texts = {c.text for s in scenarios() for c in commands_for(s) if c.program == program}
    assert len(texts) > 50
    for text in sorted(texts):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            try:
                parse(shlex.split(text)[2:])
            except SystemExit:
                pytest.fail(f"{text}\n{said.getvalue()}")
