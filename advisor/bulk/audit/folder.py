"""Whether everything that a batch should have written is there, whole, and nothing else."""

from __future__ import annotations

import os
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from pathlib import Path
from zlib import crc32

from msgspec import Struct, field

from advisor.bulk.audit.pages import Finding
from advisor.bulk.batch.formats import kind_of, texts_of
from advisor.bulk.batch.manifest import Batch, Entry, read_record
from advisor.bulk.batch.store import (
    ERRORS,
    INDEX,
    SITE,
    WORK,
    entries,
    known_names,
    printable,
    record_of,
    sha256_of_lines,
)

_AT_ONCE = 2_000_000
"""Names of files held in memory at the same time."""


def check_folder(batch: Batch, tell: Callable[[int], None]) -> Iterator[Finding]:
    """Find what is missing, cut short, left over or foreign; contents are not read.

    ``tell`` is called with the number of shards looked at.
    """
    yield from _top(batch)
    missing = []
    for number in range(batch.shards):
        record = read_record(batch.root, number)
        if record is None:
            missing.append(number)
        else:
            yield from _altered(batch.root, number, record[0])
            yield from _sizes(batch.root, *record)
        tell(number + 1)
    yield from _unfinished(missing)
    if not missing:
        yield from _index(batch)
        yield from _foreign(batch)


def _top(batch: Batch) -> Iterator[Finding]:
    known = known_names(map(kind_of, batch.formats))
    for path in sorted(batch.root.iterdir()):
        if path.name == WORK:
            hint = "left by a run that was stopped, or is running; --resume clears it"
            yield Finding("unfinished", f"{WORK}/", hint)
        elif path.name not in known:
            mark = "/" if path.is_dir() else ""
            yield Finding("foreign", f"{printable(path.name)}{mark}", "not part of this batch")
        elif path.is_symlink():
            yield Finding("foreign", path.name, "a link, where the batch made a file or folder")


def _unfinished(missing: list[int]) -> Iterator[Finding]:
    for first, last in _spans(missing):
        count = last - first + 1
        which = f"shard {first}" if count == 1 else f"shards {first} to {last}"
        yield Finding(
            "unfinished",
            record_of(first),
            f"{which} not complete; finish with 'advisor batch ... --resume'",
        )


def _spans(numbers: list[int]) -> Iterator[tuple[int, int]]:
    if not numbers:
        return
    start = numbers[0]
    for one, following in pairwise(numbers):
        if following != one + 1:
            yield start, one
            start = following
    yield start, numbers[-1]


def _altered(root: Path, number: int, head: Entry) -> Iterator[Finding]:
    with (root / record_of(number)).open("rb") as lines:
        next(lines)
        if sha256_of_lines(lines) != head.get("sha256"):
            yield Finding("damaged", record_of(number), "its lines are not what was written")


def _sizes(root: Path, head: Entry, lines: list[Entry]) -> Iterator[Finding]:
    for file in _files(head, lines):
        path = str(file["path"])
        if not _inside(path):
            yield Finding("damaged", path, "a record names a file outside the folder")
            continue
        try:
            size = (root / path).stat().st_size
        except OSError:
            yield Finding("missing", path, "the record of its shard names it")
            continue
        if size != file["bytes"]:
            said = f"{size:,} bytes long, not {file['bytes']:,}"
            yield Finding("damaged", path, said)


def _inside(path: str) -> bool:
    return not path.startswith("/") and ".." not in path.split("/")


def _files(head: Entry, lines: Iterable[Entry]) -> Iterator[Entry]:
    """Name every whole file of a shard: its own, then those of its reports."""
    yield from head["files"]
    for line in lines:
        yield from (file for file in line.get("files", {}).values() if "sha256" in file)


def _index(batch: Batch) -> Iterator[Finding]:
    for name, failed in ((INDEX, False), (ERRORS, True)):
        expected = entries(batch.root, batch.shards, failed=failed)
        path = batch.root / name
        if not path.is_file():
            if not failed or next(expected, None):
                yield Finding("missing", name, "finish the batch with --resume")
            continue
        with path.open("rb") as lines:
            pairs = enumerate(zip_longest(lines, expected), start=1)
            wrong = next((at for at, (one, other) in pairs if one != other), None)
        if wrong is not None:
            yield Finding("damaged", name, f"line {wrong:,} is not what its shard says")


def failures(root: Path) -> int:
    """Count the scenarios without a report."""
    path = root / ERRORS
    if not path.is_file():
        return 0
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


def _foreign(batch: Batch) -> Iterator[Finding]:
    """Look for files that no record names, a part of all names at a time."""
    reports = int(batch.manifest["scenarios"]) * (len(texts_of(batch.formats)) or 1)
    parts = -(-reports // _AT_ONCE)
    folders = ("shards", *map(kind_of, batch.formats))
    for part in range(parts):
        known = {path for path in _named(batch) if crc32(path.encode()) % parts == part}
        for folder in folders:
            for path in _walk(batch.root, folder):
                name = path.encode("utf-8", "surrogateescape")
                if crc32(name) % parts == part and path not in known:
                    shown = printable(name.decode("utf-8", "replace"))
                    yield Finding("foreign", shown, "no record names it")


def _named(batch: Batch) -> Iterator[str]:
    for number in range(batch.shards):
        yield record_of(number)
        record = read_record(batch.root, number)
        if record is not None:
            yield from (str(file["path"]) for file in _files(*record))


def _walk(root: Path, folder: str) -> Iterator[str]:
    try:
        found = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        path = f"{folder}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(root, path)
        else:
            yield path


def site_of(batch: Batch) -> Path | None:
    """Give the site inside an output folder, if one was made there."""
    path = batch.root / SITE
    return path if path.is_dir() else None


_RUN, _BINS, _BAND = 5, 64, 4
_EMPTY = 0xFFFFFFFF
_SHIFT = 26
"""A hash has 32 bits; the upper six say which of the 64 bins it falls into."""
_LOOK_AT = 4
"""Texts of a band that a new one is held against."""
_WORD = re.compile(r"[\w.,:%/-]*\w|\S")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_MOST_WORDS = 4
"""A sentence has more words than this; shorter lines are labels."""


def runs(text: str) -> set[int]:
    """Hash every run of five words of a text."""
    words = _WORD.findall(text.casefold())
    last = max(len(words) - _RUN + 1, 1)
    return {crc32(" ".join(words[at : at + _RUN]).encode()) for at in range(last)}


def signature(found: Iterable[int]) -> array[int]:
    """Give the smallest hash of each bin."""
    bins = array("I", [_EMPTY]) * _BINS
    for value in found:
        place = value >> _SHIFT
        bins[place] = min(bins[place], value)
    return bins


def alike(one: Sequence[int], other: Sequence[int]) -> float:
    """Estimate how much two texts overlap, 0 to 1, from their signatures."""
    filled = same = 0
    for left, right in zip(one, other, strict=True):
        if left != _EMPTY or right != _EMPTY:
            filled += 1
            same += left == right
    return same / filled if filled else 1.0


def overlap(one: set[int], other: set[int]) -> float:
    """Give the share of runs that two texts have in common, 0 to 1 (Jaccard)."""
    return len(one & other) / (len(one | other) or 1)


def sentences(text: str) -> Iterator[str]:
    """Give the sentences of a text, code and table lines left out."""
    for piece in _SENTENCE.split(text):
        said = piece.strip(" *->#").strip()
        if len(said.split()) > _MOST_WORDS and not said.startswith(("|", "```")):
            yield said


class Alike(Struct):
    """Gathers signatures and joins what is alike into groups."""

    threshold: float
    names: list[str] = field(default_factory=list)
    pairs: list[tuple[float, int, int]] = field(default_factory=list)
    _signatures: list[array[int]] = field(default_factory=list)
    _bands: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    _parent: list[int] = field(default_factory=list)

    def add(self, name: str, bins: array[int]) -> None:
        """Take a text; joins it with those it is like."""
        number = len(self.names)
        self.names.append(name)
        self._signatures.append(bins)
        self._parent.append(number)
        seen: set[int] = set()
        for start in range(0, _BINS, _BAND):
            key = (start, hash(tuple(bins[start : start + _BAND])))
            others = self._bands.setdefault(key, [])
            seen.update(others[:_LOOK_AT])
            if len(others) < _LOOK_AT:
                others.append(number)
        for other in sorted(seen):
            share = alike(bins, self._signatures[other])
            if share >= self.threshold:
                self.pairs.append((share, other, number))
                self._parent[self._root(number)] = self._root(other)

    def _root(self, number: int) -> int:
        while self._parent[number] != number:
            self._parent[number] = self._parent[self._parent[number]]
            number = self._parent[number]
        return number

    def groups(self) -> list[list[str]]:
        """Give the groups of two and more, the largest first."""
        found: dict[int, list[str]] = {}
        for number, name in enumerate(self.names):
            found.setdefault(self._root(number), []).append(name)
        several = [sorted(group) for group in found.values() if len(group) > 1]
        return sorted(several, key=lambda group: (-len(group), group))

    def closest(self, most: int) -> list[tuple[str, str]]:
        """Name the closest pairs."""
        best = sorted(self.pairs, key=lambda pair: (-pair[0], pair[1], pair[2]))[:most]
        return [(self.names[one], self.names[other]) for _, one, other in best]


class Common(Struct):
    """What most texts share, over a sample of them."""

    texts: int = 0
    _runs: Counter[int] = field(default_factory=Counter)
    _sizes: list[int] = field(default_factory=list)
    _sentences: Counter[str] = field(default_factory=Counter)

    def add(self, found: Iterable[int], said: Iterable[str]) -> None:
        """Take the runs and sentences of one text."""
        several = set(found)
        self.texts += 1
        self._runs.update(several)
        self._sizes.append(len(several))
        self._sentences.update(set(said))

    def share(self) -> float | None:
        """Give the share of an average text that more than half of all texts have, too."""
        if self.texts < 2:  # noqa: PLR2004  one text shares nothing
            return None
        common = sum(count for count in self._runs.values() if 2 * count > self.texts)
        return common / (sum(self._sizes) or 1)

    def repeated(self, most: int) -> Mapping[str, float]:
        """Give the sentences that stand in most texts, with the share of texts."""
        ordered = sorted(self._sentences.items(), key=lambda pair: (-pair[1], pair[0]))
        return {text: count / self.texts for text, count in ordered[:most] if count > 1}
