"""Files: the built-in folders, what is compiled from them and kept, and files that are written.

Compiled rules and knowledge are parsed once, then read back as JSON, keyed by content. The
wheel carries the built-in ones; overlays go to the user's cache folder. What is kept is data,
sealed with a checksum of what it is and holds: a damaged file is as none. A cache that cannot be
read or written costs time, never correctness; one that others can write to is refused.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, reduce
from importlib import import_module
from io import FileIO
from pathlib import Path
from typing import Literal, TextIO, TypeVar
from zlib import crc32

from msgspec import json

from advisor.errors import RequestError, UserError

try:  # the interpreter's own: hashlib loads OpenSSL, 4 MB, for the same digest
    sha256 = import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
except ImportError:
    from hashlib import sha256

__version__ = "0.2.0"
DISTRIBUTION = "llm-gpu-advisor"  # on a package index `advisor` is somebody else's
Kind = Literal["rules", "templates", "knowledge"]
_PACKAGE = Path(__file__).resolve().parent
_MOST_BYTES = 32_000_000
"""Of a file of rules, texts, knowledge or a plan; the largest here has 0.2 MB."""


def real(path: Path) -> Path:
    """Where a path leads; a link to itself leads to itself, where ``resolve`` raises."""
    return Path(os.path.realpath(path))


def data_dir(kind: Kind) -> Path:
    """Find the built-in folder."""
    return packaged(kind, kind)


@cache
def table_rows(file: str) -> Sequence[Sequence[str]]:
    """Cut a table of the built-in knowledge into rows of cells, remarks left out."""
    lines = (data_dir("knowledge") / file).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def packaged(name: str, checkout: str) -> Path:
    """Find a folder that the wheel carries, or where a checkout has the same files."""
    found = _PACKAGE / "data" / name
    return found if found.is_dir() else _PACKAGE.parent / checkout


def read_tree(folder: Path, suffixes: Collection[str], *but: str) -> Mapping[str, bytes]:
    """Read every file below ``folder`` with one of the suffixes, by sorted relative POSIX path.

    What is hidden is nobody's rule or template, nor what begins with ``but``; a file is its folder.
    """
    paths, top = ([folder], folder.parent) if folder.is_file() else (folder.rglob("*"), folder)
    found = [p for p in paths if p.suffix in suffixes and p.is_file()]
    named = sorted((p.relative_to(top).as_posix(), p) for p in found)
    wanted = (one for one in named if "/." not in f"/{one[0]}" and not one[0].startswith(but))
    return {name: read_whole(p) for name, p in wanted}


def read_whole(path: Path) -> bytes:
    """Read a file of the user's that should be small, after a look at its size.

    Raises:
        UserError: It is larger than any file of rules, texts, knowledge or a plan.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= _MOST_BYTES:
            return file.read(size or _MOST_BYTES)  # a pipe has no size
    raise UserError(
        f"'{path}' is larger than {_MOST_BYTES // 10**6} MB.",
        hint="Name another file, or split it.",
    )


def hashed(content: bytes) -> str:
    """Hash a content, SHA-256, hexadecimal."""
    return str(sha256(content).hexdigest())


def digest(files: Mapping[str, bytes]) -> str:
    """Hash names and contents, SHA-256, hexadecimal."""
    total = sha256()
    for name, content in files.items():
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return str(total.hexdigest())


_Form = TypeVar("_Form")
_PACKAGED = _PACKAGE / "data" / "compiled"
_KEPT = 8
_SEAL = 4  # bytes


def user_cache_dir() -> Path:
    """The folder for this version's compiled overlays (``ADVISOR_CACHE_DIR`` overrides)."""
    own = "LOCALAPPDATA", "Local", "Caches", "XDG_CACHE_HOME", ".cache"
    return Path(os.environ.get("ADVISOR_CACHE_DIR") or f"{base_dir(*own)}/{__version__}")


def with_extra(name: str) -> str:
    """Say how to install what an optional part needs."""
    return f"Install it: pip install '{DISTRIBUTION}[{name}]'."


def user_data_dir() -> Path:
    """The folder for what the user adds (``ADVISOR_DATA_DIR`` overrides)."""
    return Path(user_data_folder())


def user_data_folder() -> str:
    """Give the same as a text, which takes less time."""
    own = "APPDATA", "Roaming", "Application Support", "XDG_DATA_HOME", ".local/share"
    return os.environ.get("ADVISOR_DATA_DIR") or base_dir(*own)


def base_dir(windows: str, roaming: str, mac: str, linux: str, usual: str) -> str:
    """Give the user's folder for this program: on Windows and Linux where a variable says."""
    home = os.path.expanduser("~")  # noqa: PTH111  as a text
    stated = os.environ.get({"win32": windows, "darwin": ""}.get(sys.platform, linux))
    folder = {"win32": f"AppData/{roaming}", "darwin": f"Library/{mac}"}.get(sys.platform, usual)
    if home == "~" and not stated:
        raise RuntimeError("no home folder is known")
    return f"{stated or f'{home}/{folder}'}/advisor"


def compiled(
    kind: str, sha256: str, build: Callable[[], _Form], form: type[_Form], most: int = _KEPT
) -> _Form:
    """Give the compiled form of files with this hash, building it at most once.

    Args:
        kind: ``rules`` or ``knowledge``; part of the file name.
        sha256: Hash of the files' names and contents.
        build: Parses and validates; what it gives is stored as JSON.
        form: The type that the JSON is read back as.
        most: Files of this kind that are kept.

    Returns:
        What JSON makes of it, the same on the first call as on later ones.
    """
    decoder, what = json.Decoder(form), f"{kind}-{sha256[:32]}"
    if (found := _decoded(_packaged(what), decoder)) is not None:
        return found
    kept = user_cache_dir() / f"{what}-{_code()}.json"
    if (found := _decoded(read_kept(kept, what), decoder)) is not None:
        return found
    made = json.encode(build())
    write_kept(kept, what, [made], f"{kind}-*.json", most)
    return decoder.decode(made)


def _packaged(what: str) -> bytes | None:
    with suppress(OSError), (_PACKAGED / f"{what}.json").open("rb", buffering=0) as file:
        return _unsealed(file, what)
    return None


def _decoded(content: bytes | None, decoder: json.Decoder[_Form]) -> _Form | None:
    with suppress(ValueError):
        return None if content is None else decoder.decode(content)
    return None


@cache  # 1.11 of an advice, 1.04 of reports
def _code() -> str:
    """Tell states of the code apart, so that an edited parser never reads an older one's work.

    Kept: three asks a start, 2 ms each.
    """
    return hashed(repr(list(_states(_PACKAGE))).encode())[:12]


def _states(folder: Path | str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                state = entry.stat()
                yield entry.path, state.st_size, state.st_mtime_ns
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _states(entry.path)


def code_sha256() -> str:
    """Hash the contents of the program: what it worked out is stale once any of it changed."""
    return digest(read_tree(_PACKAGE, [".py"]))


def seal(what: str, parts: Iterable[bytes]) -> bytes:
    """Give the checksum that stands before what is kept: of its name and its content."""
    total = reduce(lambda total, part: crc32(part, total), parts, crc32(f"{what}\0".encode()))
    return total.to_bytes(_SEAL)


def _unsealed(file: FileIO, what: str) -> bytes | None:
    """Give what was sealed; None where a byte of it changed, or where it is something else."""
    sealed, body = file.read(_SEAL), file.read()  # a buffer would hold all of it twice
    return body if seal(what, [body]) == sealed else None


def read_kept(path: Path, what: str) -> bytes | None:
    """Read a file of a cache; None where there is none, or none that is whole.

    ``what`` is the name it was sealed with.

    Raises:
        UserError: Others can write it or its folder.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        held = os.open(path, flags)
    except OSError:
        return None
    if not stat.S_ISREG((state := os.fstat(held)).st_mode) or state.st_size > 8 * _MOST_BYTES:
        os.close(held)
        return None
    with os.fdopen(held, "rb", buffering=0) as file:
        refuse_shared(path, state)
        refuse_shared(path.parent)
        with suppress(OSError):
            return _unsealed(file, what)
    return None


def _make_private(folder: Path) -> None:
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
    if not folder.is_dir():
        folder.mkdir()


def refuse_shared(path: Path, found: os.stat_result | None = None) -> None:
    """Refuse a file or folder of what is kept that others own or may write to (POSIX).

    Raises:
        UserError: Whose it is, and what to do.
    """
    if sys.platform == "win32":
        return
    try:
        found = found or path.stat()
    except OSError:
        return
    why = ""
    if found.st_uid not in {0, os.geteuid()}:
        why, mend = "belongs to another user", ""
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        why, mend = "can be written by others", f"run 'chmod go-w {path}' "
    if why:
        place = "ADVISOR_DATA_DIR" if path.is_relative_to(user_data_dir()) else "ADVISOR_CACHE_DIR"
        raise UserError(
            f"'{path}' {why}, so what it holds is not believed",
            hint=f"Delete it, {mend}or name a folder of your own with {place}.",
        )


def write_whole(path: Path, parts: Iterable[bytes], *, size: int | None = None) -> None:
    """Write a file whole or not at all, its folder too, for nobody else.

    Args:
        path: The file; what stood there stays where this fails.
        parts: Its content.
        size: With it the rest up to so many bytes is a hole, and all is on the disk at the end.

    Raises:
        OSError: It cannot be written.
    """
    import tempfile  # noqa: PLC0415 - 5 ms that a warm cache does not need

    _make_private(path.parent)
    part: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
            part = Path(file.name)
            file.writelines(parts)
            if size is not None:
                from advisor.disk import flush  # noqa: PLC0415 - as above

                file.truncate(size)
                flush(file)
        part.replace(path)
    except BaseException:
        if part is not None:
            part.unlink(missing_ok=True)
        raise


def write_kept(path: Path, what: str, parts: Sequence[bytes], alike: str, most: int) -> None:
    """Write a sealed file of a cache and remove the oldest that match ``alike`` beyond ``most``.

    What cannot be written costs time later and nothing else.

    Raises:
        UserError: Others can write the folder.
    """
    refuse_shared(path.parent)
    with suppress(OSError):
        write_whole(path, [seal(what, parts), *parts])
        remove_oldest(path.parent.glob(alike), most)
        _remove_leftovers(path.parent)


def remove_oldest(found: Iterable[Path], most: int) -> None:
    """Keep the ``most`` youngest of some files or folders of a cache.

    Raises:
        OSError: One cannot be removed.
    """
    by_age = sorted(found, key=lambda one: one.stat().st_mtime)
    for old in by_age[: max(len(by_age) - most, 0)]:
        _remove(old)


_LEFTOVER = re.compile(r"tmp\w{8}\.tmp|templates-[\d.]+-(?:\w+-)?\d+")
"""Writes that were killed, and the folders of compiled templates of earlier versions."""
_UNFINISHED_S = 3_600


def _remove_leftovers(folder: Path) -> None:
    with os.scandir(folder) as entries:
        left = [entry for entry in entries if _LEFTOVER.fullmatch(entry.name)]
    for old in (one for one in left if time.time() - one.stat().st_mtime > _UNFINISHED_S):
        _remove(Path(old.path))


def _remove(old: Path) -> None:
    if old.is_dir() and not old.is_symlink():
        import shutil  # noqa: PLC0415 - seldom

        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink(missing_ok=True)


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
    special = out.exists() and not out.is_file()  # a pipe or device cannot be replaced
    try:
        with out.open("w", encoding="utf-8", newline="\n") if special else _beside(out) as file:
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


@contextmanager
def _beside(out: Path) -> Iterator[TextIO]:
    """Write under another name in the same folder, and rename at the end."""
    target = Path(os.path.realpath(out))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("x", encoding="utf-8", newline="\n") as file:
            yield file
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
