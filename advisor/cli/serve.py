"""``advisor serve`` and ``mcp``: the questions over HTTP, and as tools of a language model."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from advisor.api.service import line
from advisor.api.service.workers import Answering, Setup, Workers
from advisor.cli.options import cores
from advisor.cli.report_output import takes_folders
from advisor.errors import RequestError
from advisor.files import with_extra
from advisor.knowledge.layers import UserFiles, stack
from advisor.units import UnitError, parse_quantity

if TYPE_CHECKING:
    from starlette.types import ASGIApp


_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_MOST_CONNECTIONS = 1_000


WorkersCount = Annotated[
    int | None,
    typer.Option(
        help="Processes that answer. (default: one for each processor)",
        min=1,
        max=256,
        show_default=False,
    ),
]
TimeLimit = Annotated[float, typer.Option(help="Seconds for one question.", min=0.1, max=3_600)]
AllowFiles = Annotated[
    bool,
    typer.Option(
        "--allow-files", help="Questions may name files of this machine and its card (local)."
    ),
]
AllowHub = Annotated[
    bool, typer.Option("--allow-hub", help="Read unknown models from Hugging Face.")
]
TrustedHosts = Annotated[
    list[str] | None, typer.Option(help="Another name under which it may be asked; repeatable.")
]


@takes_folders
def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen at; 0.0.0.0 is every one of this machine.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen at; 0 takes a free one.", min=0, max=65_535)
    ] = 8765,
    workers: WorkersCount = None,
    time_limit: TimeLimit = 30,
    body_limit: Annotated[str, typer.Option(help="The longest body of a question.")] = "1MB",
    allow_files: AllowFiles = False,
    allow_hub: AllowHub = False,
    trusted_host: TrustedHosts = None,
    *,
    user: UserFiles,
) -> None:
    """Answer questions over HTTP: JSON, pages, many lines at once; a page to ask from at /.

    Only this machine can ask unless --host says otherwise, and only by names. It stops at
    Ctrl-C or SIGTERM when what is under way is answered. The log is JSON on standard output.

    Example: advisor serve --port 8080 --workers 2
    """
    require("serve", "starlette", "uvicorn", "markdown_it")
    from advisor.api.service import app  # noqa: PLC0415  an extra

    limits, hosts = app.Limits(body_bytes=_bytes(body_limit)), hosts_of(host, trusted_host)
    setup = setup_of(user, files=allow_files, hub=allow_hub)
    lasting = not (allow_files or allow_hub)
    listen(
        lambda pool: app.application(pool, limits=limits, log=log, hosts=hosts, lasting=lasting),
        Place(host, port),
        setup,
        workers,
        time_limit,
    )


def setup_of(user: UserFiles, *, files: bool, hub: bool) -> Setup:
    """Say what a worker loads and may reach."""
    return Setup(
        rules=stack(user.rules),
        templates=stack(user.templates),
        knowledge=stack(user.knowledge),
        files=files,
        hub=hub,
    )


def hosts_of(host: str, others: list[str] | None = None) -> tuple[str, ...]:
    """Give the names under which a service may be asked; none: any."""
    return (*_LOOPBACK, *(others or ())) if host in _LOOPBACK else ()


class Place(NamedTuple):
    """Where a service listens."""

    host: str
    port: int
    path: str = ""


def listen(
    make: Callable[[Answering], ASGIApp],
    place: Place,
    setup: Setup,
    workers: int | None,
    time_limit: float,
    *,
    lifespan: Literal["on", "off"] = "off",
) -> None:
    """Answer with an application until a signal says stop.

    Args:
        make: Makes the application from whoever answers.
        place: Where to listen.
        setup: What the workers load.
        workers: How many; None: one for each processor.
        time_limit: Seconds for one question.
        lifespan: Whether the application is told of start and end.

    Raises:
        UserError: The place cannot be had, or a file of the setup is wrong.
    """
    with _listening(place.host, place.port) as listening:
        pool = Workers(setup, workers or cores(), time_limit)
        asyncio.run(_run(make, pool, listening, place.path, lifespan, 1 + int(2 * time_limit)))


def require(extra: str, *modules: str) -> None:
    """See that the packages of an extra are there.

    Raises:
        RequestError: One is not.
    """
    from importlib.util import find_spec  # noqa: PLC0415  for the commands of an extra

    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise RequestError(f"{', '.join(missing)} is not installed", hint=with_extra(extra))


def _bytes(text: str) -> int:
    hint = "Write a size, for example 1MB."
    try:
        size = parse_quantity(text)
    except UnitError as wrong:
        raise RequestError(f"--body-limit: {wrong}", hint=hint) from None
    if size.dimension not in {"memory", "count"} or size.value < 1:
        raise RequestError(f"--body-limit is '{text}'", hint=hint)
    return int(size.value)


def _listening(host: str, port: int) -> socket.socket:
    """Take the port at once, so that one in use is told before anything is loaded.

    Raises:
        RequestError: It cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # no delays, then
    try:
        if sys.platform != "win32":  # where two would listen at one port then
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(2_048)
    except OSError as bad:
        made.close()
        raise RequestError(
            f"cannot listen at {host} port {port}: {bad.strerror or bad}",
            hint="Name another --host or --port.",
        ) from None
    return made


async def _run(
    make: Callable[[Answering], ASGIApp],
    pool: Workers,
    listening: socket.socket,
    path: str,
    lifespan: Literal["on", "off"],
    stop_s: int,
) -> None:
    url = f"{_url(listening)}{path}"
    try:
        await pool.start()
        log(line("started", url=url, **pool.versions))
        sys.stderr.write(f"advisor answers at {url} (Ctrl-C stops it)\n")
        told = partial(line, "server")
        await _serve(make(pool), listening, lifespan, stop_s, lambda text: log(told(message=text)))
        log(line("stopped"))
    finally:
        await pool.stop()


async def _serve(
    app: ASGIApp,
    listening: socket.socket,
    lifespan: Literal["on", "off"],
    stop_s: int,
    told: Callable[[str], None],
) -> None:
    import uvicorn  # noqa: PLC0415  an extra

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan=lifespan,
        ws="none",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=stop_s,
    )
    logger = logging.getLogger("uvicorn.error")
    logger.propagate = False
    logger.addHandler(_Passing(told))
    for kind in (signal.SIGINT, signal.SIGTERM):  # the server raises them again at its end
        signal.signal(kind, lambda *_: None)
    await uvicorn.Server(config).serve(sockets=[listening])


class _Passing(logging.Handler):
    """Passes the server's own remarks on as lines of the log."""

    def __init__(self, told: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        self._told(record.getMessage())


def log(text: str) -> None:
    """Write a line of the log."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


_PATH = "/mcp"


@takes_folders
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
    *,
    user: UserFiles,
) -> None:
    """Offer the questions as tools to a language model (Model Context Protocol).

    A client starts it and talks over standard input and output; with --http it listens, to this
    machine alone unless --host says otherwise.

    Example: advisor mcp --http --port 8766
    """
    require("mcp", "mcp", "uvicorn")
    from advisor.api.service import tools  # noqa: PLC0415  an extra

    setup = setup_of(user, files=allow_files, hub=allow_hub)
    if http:
        place = Place(host, port, _PATH)
        make = partial(tools.over_http, host, place.path, hosts_of(host), log)
        listen(make, place, setup, workers, time_limit, lifespan="on")
    else:
        asyncio.run(tools.over_pipes(setup.session()))
