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
