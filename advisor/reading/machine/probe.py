"""How a machine is asked: files below a root folder, tools by a runner; both can be fakes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import DecodeError, Struct, field, json

_SECONDS = 10.0
_MOST_BYTES = 4 << 20
_NO_SUCH = (FileNotFoundError, NotADirectoryError)


class Answer(Struct, frozen=True):
    """What a tool printed, or why it printed nothing."""

    text: str = ""
    problem: str = ""
    """``is not installed``, ``did not answer within 10 s``, ``failed: ...``; empty: it answered."""
    missing: bool = False


Run = Callable[[Sequence[str]], Answer]
NOT_THERE = Answer(problem="is not installed", missing=True)


def ask_tool(command: Sequence[str], seconds: float = _SECONDS) -> Answer:
    """Run a tool and give what it prints; never a shell, never longer than this."""
    import subprocess  # noqa: PLC0415 - 4 ms that only questions to this machine need

    try:
        done = subprocess.run(  # noqa: S603  fixed commands, no shell
            command, capture_output=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL
        )
    except _NO_SUCH:
        return NOT_THERE
    except subprocess.TimeoutExpired:
        return Answer(problem=f"did not answer within {seconds:g} s")
    except OSError as bad:
        return Answer(problem=f"cannot be run: {bad.strerror}")
    text, error = (said.decode("utf-8", "replace") for said in (done.stdout, done.stderr))
    if done.returncode == 0:
        return Answer(text or error)
    said = (error.strip() or text.strip()).splitlines()
    return Answer(text, f"failed: {said[0] if said else f'exit code {done.returncode}'}")


class Probe(Struct, frozen=True):
    """A machine that can be asked."""

    root: Path = Path("/")
    run: Run = ask_tool
    system: str = sys.platform
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def text(self, path: str) -> str | None:
        """Give a file's text, less spaces and zeros around it; None where it cannot be read."""
        try:
            with (self.root / path).open("rb") as file:
                return file.read(_MOST_BYTES).decode("utf-8", "replace").strip("\0 \t\r\n")
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        """Give the whole number that is all of a file, in decimals or 0x...; None without one."""
        try:
            return int(self.text(path) or "", 0)
        except ValueError:
            return None

    def paths(self, pattern: str) -> Sequence[str]:
        """Give the paths below the root that a pattern names, in order."""
        try:
            found = sorted(self.root.glob(pattern))
        except OSError:
            return []
        return [str(path.relative_to(self.root)) for path in found]


def as_json(text: str) -> object:
    """Read JSON that a tool printed; an empty object where it is none."""
    try:
        found: object = json.decode(text)
    except DecodeError:
        return {}
    return found


class Card(Struct, frozen=True, kw_only=True):
    """A card as the tools of its maker show it."""

    vendor: str
    name: str
    """As it was printed, or its numbers on the bus where no name was found."""
    source: str
    """The tool or file that showed it."""
    told_too: tuple[str, ...] = ()
    """Other names of it; the first tells more than the printed one."""
    one_of: tuple[str, ...] = ()
    """Names of the cards that its chip is sold in, where no name tells which."""
    memory_bytes: int | None = None
    """Of one that shares the memory of its machine: all of that memory."""
    free_bytes: int | None = None
    driver: str = ""
    compute: str = ""
    """CUDA 12.4, ROCm 6.2.0 ..."""
    power_limit_w: float | None = None
    power_default_w: float | None = None
    ecc: bool | None = None
    slices: tuple[str, ...] = ()
    """Profiles of its MIG slices: 3g.20gb."""
    used_by: tuple[str, ...] = ()
    """Programs that compute on it."""
    shares_memory: bool = False
    integrated: bool = False
    """A part of the processor."""


class Ram(Struct, frozen=True, kw_only=True):
    """System RAM."""

    total_bytes: int
    """What programs can have: less than is installed, as a part is kept from the system."""
    free_bytes: int | None = None
    type: str = ""
    """DDR5, LPDDR5X ..."""
    rate: int | None = None
    """MT/s that it runs at."""
    sticks: int | None = None
    source: str = ""
    """Where type and rate were read."""


class Found(Struct, frozen=True):
    """What one reader gives: cards, and sentences on what could not be read."""

    cards: tuple[Card, ...] = ()
    unread: tuple[str, ...] = ()


class Machine(Struct, frozen=True, kw_only=True):
    """All that was read."""

    system: str
    """Linux 6.8.0-45-generic, macOS 15.1 ..."""
    kind: str = ""
    """WSL 2, Jetson, container; empty for a plain computer."""
    product: str = ""
    cpu: str = ""
    sockets: int = 1
    ram: Ram | None = None
    cards: tuple[Card, ...] = ()
    unread: tuple[str, ...] = ()
    """What of the cards could not be read, in sentences."""
    ram_unread: tuple[str, ...] = ()
    """The same of the memory."""
    seen_alone: Mapping[str, str] = {}
    """Variables that hide cards from programs: ``CUDA_VISIBLE_DEVICES`` and its value."""
