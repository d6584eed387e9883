"""``advisor mcp``: the questions as tools of a language model."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.options import KnowledgeFolder, RulesFolder, TemplatesFolder
from advisor.cli.serve import (
    AllowFiles,
    AllowHub,
    Place,
    TimeLimit,
    WorkersCount,
    hosts_of,
    listen,
    log,
    require,
    setup_of,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from advisor.service.workers import Answering

_PATH = "/mcp"


def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Streamable HTTP at /mcp instead of standard input.")
    ] = False,
    host: Annotated[str, typer.Option(help="With --http: address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="With --http: port to listen at; 0 takes a free one.", max=65_535)
    ] = 8766,
    workers: WorkersCount = None,
    time_limit: TimeLimit = 30,
    allow_files: AllowFiles = False,
    allow_hub: AllowHub = False,
    rules: RulesFolder = None,
    templates: TemplatesFolder = None,
    knowledge: KnowledgeFolder = None,
) -> None:
    """Offer the questions as tools to a language model (Model Context Protocol).

    A client starts it and talks over standard input and output; with --http it listens, to this
    machine alone unless --host says otherwise.

    Example: advisor mcp --http --port 8766
    """
    require("mcp", "mcp", "uvicorn")
    setup = setup_of(rules, templates, knowledge, files=allow_files, hub=allow_hub)
    if http:
        place = Place(host, port, _PATH)
        listen(partial(_over_http, host), place, setup, workers, time_limit, lifespan="on")
    else:
        from advisor.service.tools import Inside  # noqa: PLC0415  an extra

        asyncio.run(_over_pipes(Inside(setup.session())))


def _over_http(host: str, workers: Answering) -> ASGIApp:
    from advisor.service.metrics import Metrics  # noqa: PLC0415  an extra
    from advisor.service.tools import server_of  # noqa: PLC0415
    from advisor.service.watch import Watched  # noqa: PLC0415

    app = server_of(workers).streamable_http_app(
        streamable_http_path=_PATH, json_response=True, stateless_http=True, host=host
    )
    return Watched(app, metrics=Metrics(), log=log, routes=[_PATH], hosts=hosts_of(host))


async def _over_pipes(workers: Answering) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415  an extra

    from advisor.service.tools import server_of  # noqa: PLC0415

    server = server_of(workers)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())
