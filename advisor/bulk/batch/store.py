"""The output folder: files appear whole or not at all, and survive a power cut.

A shard's files are written into a folder of their own under ``.work``, flushed to the disk
(many at once: one flush takes milliseconds, hundreds together hardly longer), and renamed into
place, the shard's record last. Whoever finds a record finds everything it names.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from advisor.disk import alone, flush, flush_files, flush_folders
from advisor.errors import RequestError

SITE_MANIFEST = "site.jsonl"
"""A line about the site, then one for each of its files."""
MOST_PAGE_BYTES = 100_000


class File(Struct, frozen=True):
    """One file of the output folder."""

    path: str
    """From the output folder, with forward slashes."""
    content: bytes


def place_of(kind: str, number: int, suffix: str) -> str:
    """Name a file that a shard has one of: ``jsonl/000/000012.jsonl``."""
    return f"{kind}/{number // 1000:03d}/{number:06d}.{suffix}"


def record_of(number: int) -> str:
    """Name the record of a shard; where it stands, the shard is complete."""
    return place_of("shards", number, "jsonl")


def described(file: File) -> Mapping[str, object]:
    """Give path, size and hash of a file, as indexes and records hold them."""
    digest = hashlib.sha256(file.content).hexdigest()
    return {"path": file.path, "bytes": len(file.content), "sha256": digest}


def sha256_of(path: Path) -> str | None:
    """Hash a file; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def sha256_of_lines(lines: Iterable[bytes]) -> str:
    """Hash the lines of a record that follow its first."""
    found = hashlib.sha256()
    for line in lines:
        found.update(line)
    return found.hexdigest()


MANIFEST, INDEX, ERRORS = "manifest.json", "index.jsonl", "errors.jsonl"
WORK, SITE, _TOKEN, _STOP = ".work", "site", "token", "stop"


def known_names(kinds: Iterable[str]) -> frozenset[str]:
    """Name everything that lies in an output folder with these kinds of formats."""
    return frozenset({MANIFEST, INDEX, ERRORS, WORK, SITE, "shards", *kinds})


class Head(Struct, frozen=True):
    """The first line of a shard's record."""

    scenarios: int
    reports: int
    failed: int
    bugs: int


def write_files(root: Path, number: int, files: Iterable[File]) -> int:
    """Write a shard's files; the last one is its record. Gives the bytes written.

    Raises:
        OSError: The disk is full, the folder is gone or may not be written. What was there
            stays; the shard is not complete.
    """
    holder = Path(tempfile.mkdtemp(prefix=f"{number:06d}-", dir=root / WORK))
    try:
        moves, total = [], 0
        for place, file in enumerate(files):
            temporary = holder / str(place)
            temporary.write_bytes(file.content)
            moves.append((temporary, root / file.path))
            total += len(file.content)
        flush_files(root, [temporary for temporary, _ in moves])
        _move(root, moves)
    finally:
        shutil.rmtree(holder, ignore_errors=True)
    return total


def write_one(root: Path, name: str, chunks: Iterable[bytes]) -> None:
    """Write one file of the folder itself, whole or not at all."""
    temporary = root / WORK / name
    with temporary.open("wb") as out:
        for chunk in chunks:
            out.write(chunk)
        flush(out)
    _move(root, [(temporary, root / name)])


def _move(root: Path, moves: Iterable[tuple[Path, Path]]) -> None:
    """Rename into place; the last file only when all the others are on the disk."""
    *first, (record, target) = moves
    for folder in {path.parent for _, path in first} | {target.parent}:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
    for temporary, path in first:
        temporary.replace(path)
    if first:
        flush_folders(root, {path.parent for _, path in first})
    record.replace(target)
    flush_folders(root, {target.parent})


def read_head(root: Path, number: int, *, files: bool = False, verify: bool = False) -> Head | None:
    """Read what a record says of its shard; None where the shard is missing or damaged.

    ``files`` looks for every file that the record names, and whether its own lines are unchanged;
    ``verify`` reads those files too, and sees that they are what was written.
    """
    try:
        with (root / record_of(number)).open("rb") as record:
            head = json.loads(next(record))
            lines = list(record) if files else []
        rest = [json.loads(line) for line in lines]
        unchanged = not files or head["sha256"] == sha256_of_lines(lines)
        found = Head(head["scenarios"], head["reports"], head["failed"], head["bugs"])
        named = [*head["files"], *(file for entry in rest for file in _named(entry))]
    except (OSError, ValueError, StopIteration, LookupError, TypeError, AttributeError):
        return None
    if files and (len(rest) != found.scenarios or not unchanged):
        return None
    is_right = _as_written if verify else _is_there
    return found if not files or all(is_right(root, file) for file in named) else None


def _named(entry: dict[str, dict[str, dict[str, object]]]) -> Iterator[dict[str, object]]:
    return (file for file in entry.get("files", {}).values() if "sha256" in file)


def _is_there(root: Path, file: dict[str, object]) -> bool:
    try:
        return (root / str(file["path"])).stat().st_size == file["bytes"]
    except OSError:
        return False


def _as_written(root: Path, file: dict[str, object]) -> bool:
    return sha256_of(root / str(file["path"])) == file["sha256"]


def entries(root: Path, shards: int, *, failed: bool) -> Iterator[bytes]:
    """Give the index lines, or the lines of failures, of every shard in order."""
    for number in range(shards):
        with (root / record_of(number)).open("rb") as lines:
            reports = json.loads(next(lines))["reports"]
            for place, line in enumerate(lines):
                if (place >= reports) is failed:
                    yield line


def finish(root: Path, shards: int) -> None:
    """Write the index of all shards, and the failures if there are any; clear up."""
    write_one(root, INDEX, entries(root, shards, failed=False))
    failures = entries(root, shards, failed=True)
    if first := next(failures, None):
        write_one(root, ERRORS, (line for part in ([first], failures) for line in part))
    else:
        (root / ERRORS).unlink(missing_ok=True)
    shutil.rmtree(root / WORK, ignore_errors=True)


def prepare(root: Path, token: str) -> None:
    """Make the folder ready to be written: an empty ``.work`` with the token of this run."""
    shutil.rmtree(root / WORK, ignore_errors=True)
    (root / WORK).mkdir()
    (root / WORK / _TOKEN).write_text(token, encoding="ascii")


def sees(root: Path, token: str) -> bool:
    """Whether this machine sees the output folder of a run."""
    try:
        return (root / WORK / _TOKEN).read_text(encoding="ascii") == token
    except OSError:
        return False


def ask_to_stop(root: Path) -> None:
    """Tell workers to begin no further shard."""
    (root / WORK / _STOP).touch()


def asked_to_stop(root: Path) -> bool:
    """Whether no further shard is to be begun."""
    return (root / WORK / _STOP).exists()


def make_folder(root: Path, what: str) -> None:
    """Make a folder and those above it, unless it is there.

    Raises:
        RequestError: A file stands there, or it cannot be made.
    """
    hint = f"Name a folder for {what}."
    try:
        if root.exists() and not root.is_dir():
            raise RequestError(f"'{root}' is not a folder", hint=hint)
        root.mkdir(parents=True, exist_ok=True)
    except OSError as bad:
        raise RequestError(
            f"cannot make the folder '{root}': {_why(root, bad)}", hint=hint
        ) from None


def _why(root: Path, bad: OSError) -> str:
    """Name the nearest folder above that is there; the error tells of one that is not."""
    for above in root.parents:
        try:
            if above.is_dir():
                return f"it cannot stand in '{above}' ({bad.strerror})"
            if above.exists():
                return f"'{above}' is not a folder"
        except OSError:
            continue
    return str(bad.strerror)


def check_folder(root: Path, kinds: Iterable[str], *, resume: bool) -> None:
    """Make the output folder, or see that it may be used.

    Raises:
        RequestError: Something else lies there, or an earlier batch does.
    """
    make_folder(root, "the reports")
    names = {path.name for path in root.iterdir()}
    if MANIFEST in names and not resume:
        hint = "Go on with it (--resume), or name another folder."
        raise RequestError(f"'{root}' holds a batch already", hint=hint)
    if MANIFEST not in names and names - {WORK}:
        found = ", ".join(map(printable, sorted(names)[:3]))
        hint = "Name a folder that is empty or does not exist yet."
        raise RequestError(f"'{root}' is not empty and holds no batch ({found})", hint=hint)
    if strange := sorted(names - known_names(kinds)):
        hint = "Move it out of the folder."
        shown = printable(strange[0])
        raise RequestError(f"'{root}' holds '{shown}', which no batch wrote", hint=hint)


def printable(name: str) -> str:
    """Write the name of a file so that it stays on one line."""
    return name if name.isprintable() else repr(name)[1:-1]


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Keep a second run out of the folder.

    Raises:
        RequestError: Another run is writing there.
    """
    try:
        with alone(root, wait=False):
            yield
    except BlockingIOError:
        hint = "Wait for it, or stop it first."
        raise RequestError(f"another run is writing into '{root}'", hint=hint) from None
