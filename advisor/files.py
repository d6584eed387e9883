"""Files: the built-in folders, what is compiled from them and kept, and files that are written.

Compiled rules and knowledge are parsed once, then read back as JSON, keyed by content. The
wheel carries the built-in ones; overlays go to the user's cache folder. A cache that cannot be
read or written costs time, never correctness.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal, TextIO, TypeVar

from msgspec import json

from advisor.errors import RequestError, UserError

__version__ = "0.1.0"
Kind = Literal["rules", "templates", "knowledge"]
_PACKAGE = Path(__file__).resolve().parent


def data_dir(kind: Kind) -> Path:
    """Find the built-in folder."""
    packaged = _PACKAGE / "data" / kind
    return packaged if packaged.is_dir() else _PACKAGE.parent / kind


def read_tree(folder: Path, suffixes: Iterable[str]) -> Mapping[str, bytes]:
    """Read every file below ``folder`` with one of the suffixes, by sorted relative POSIX path.

    What is hidden, such as ``.git`` and ``.venv``, is nobody's rule or template.
    """
    wanted = tuple(suffixes)
    paths = (p for p in folder.rglob("*") if p.suffix in wanted and p.is_file())
    named = sorted((p.relative_to(folder).as_posix(), p) for p in paths)
    return {name: p.read_bytes() for name, p in named if "/." not in f"/{name}"}


def overlaid(kind: Kind, folder: Path | None, suffixes: Iterable[str]) -> Mapping[str, bytes]:
    """Read the built-in files and lay the user's over them: a file of the same path replaces.

    Raises:
        UserError: The user's folder is missing or cannot be read.
    """
    wanted = tuple(suffixes)
    files = dict(read_tree(data_dir(kind), wanted))
    if folder is None:
        return files
    if not folder.is_dir():
        raise UserError(f"there is no folder '{folder}'.", hint=f"Name a folder with {kind}.")
    try:
        files.update(read_tree(folder, wanted))
    except OSError as bad:
        raise UserError(f"cannot read '{bad.filename}': {bad.strerror}.") from None
    return dict(sorted(files.items()))


def digest(files: Mapping[str, bytes]) -> str:
    """Hash names and contents, SHA-256, hexadecimal."""
    total = hashlib.sha256()
    for name, content in files.items():
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


_Form = TypeVar("_Form")
_PACKAGED = _PACKAGE / "data" / "compiled"
_KEPT = 8


def user_cache_dir() -> Path:
    """The folder for this version's compiled overlays (``ADVISOR_CACHE_DIR`` overrides)."""
    if stated := os.environ.get("ADVISOR_CACHE_DIR"):
        return Path(stated)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "advisor" / __version__


def compiled(kind: str, sha256: str, build: Callable[[], _Form], form: type[_Form]) -> _Form:
    """Give the compiled form of files with this hash, building it at most once.

    Args:
        kind: ``rules`` or ``knowledge``; part of the file name.
        sha256: Hash of the files' names and contents.
        build: Parses and validates; what it gives is stored as JSON.
        form: The type that the JSON is read back as.

    Returns:
        What JSON makes of it, the same on the first call as on later ones.
    """
    decoder = json.Decoder(form)
    found = _read(_PACKAGED / f"{kind}-{sha256[:32]}.json", decoder)
    if found is not None:
        return found
    kept = user_cache_dir() / f"{kind}-{sha256[:32]}-{_code()}.json"
    found = _read(kept, decoder)
    if found is not None:
        return found
    made = json.encode(build())
    _write(kept, made)
    return decoder.decode(made)


@cache
def _code() -> str:
    """Tell states of the code apart, so that an edited parser never reads an older one's work.

    Kept: three asks a start, 2 ms each.
    """
    return hashlib.sha256(repr(list(_states(_PACKAGE))).encode()).hexdigest()[:12]


def _states(folder: Path | str) -> Iterator[tuple[str, int, int]]:
    for entry in os.scandir(folder):
        if entry.name.endswith(".py"):
            state = entry.stat()
            yield entry.path, state.st_size, state.st_mtime_ns
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _states(entry.path)


def code_sha256() -> str:
    """Hash the contents of the program: what it worked out is stale once any of it changed."""
    return digest(read_tree(_PACKAGE, [".py"]))


def _read(path: Path, decoder: json.Decoder[_Form]) -> _Form | None:
    try:
        return decoder.decode(path.read_bytes())
    except (OSError, ValueError):
        return None


def _write(path: Path, made: bytes) -> None:
    import tempfile  # noqa: PLC0415 - 5 ms that a warm cache does not need

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False, suffix=".tmp") as file:
            file.write(made)
        Path(file.name).replace(path)
        _prune(path)
    except OSError:
        return


def _prune(newest: Path) -> None:
    """Keep the files of this kind that were written last."""
    kind = newest.name.partition("-")[0]
    written = sorted(newest.parent.glob(f"{kind}-*.json"), key=lambda path: path.stat().st_mtime)
    for path in written[:-_KEPT]:
        path.unlink(missing_ok=True)


@contextmanager
def opened(out: Path, *, source: Path | None = None) -> Iterator[TextIO]:
    """Open a file for results; on any failure what stood there stays as it was.

    Args:
        out: The file; a pipe or device is written to directly.
        source: The file that is being read, which must be another.

    Raises:
        RequestError: It cannot be written, or is the file that is being read.
    """
    _check(out, source)
    try:
        with _direct(out) if _is_special(out) else _beside(out) as file:
            yield file
    except OSError as bad:
        raise RequestError(f"cannot write '{out}': {bad.strerror}.") from None


def _check(out: Path, source: Path | None) -> None:
    if out.is_dir():
        raise RequestError(f"cannot write '{out}': it is a folder.", hint="Name a file in it.")
    if not out.exists():
        return
    if source is not None and source.exists() and out.samefile(source):
        raise RequestError(f"'{out}' is the file that is read", hint="Name another file.")
    if not os.access(out, os.W_OK):
        raise RequestError(f"cannot write '{out}': it is write-protected.")


def _is_special(out: Path) -> bool:
    """Tell pipes and devices, which cannot be replaced."""
    return out.exists() and not out.is_file()


@contextmanager
def _direct(out: Path) -> Iterator[TextIO]:
    with out.open("w", encoding="utf-8", newline="\n") as file:
        yield file


@contextmanager
def _beside(out: Path) -> Iterator[TextIO]:
    """Write under another name in the same folder, and rename at the end."""
    target = out.resolve()
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("x", encoding="utf-8", newline="\n") as file:
            yield file
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
