"""Fact stores: worked out once by several processes, then read back from the user's cache.

A store is named by what it depends on: the knowledge, the program, and the sample.
Rules and templates are not among them, so an edited rule finds its facts ready. For searches whose
finds are tried again, an edited card or model costs the requests that name it (``near_facts``).
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import cast

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from advisor.files import code_sha256, read_kept, user_cache_dir, write_kept
from advisor.knowledge import load_knowledge
from advisor.knowledge.layers import Stack
from advisor.knowledge.types import Knowledge
from advisor.workbench.columns import Column, Mask, row_numbers
from advisor.workbench.fact_store import (
    SEED,
    FactStore,
    Given,
    Part,
    drawn,
    joined,
    naming,
    part_of,
    part_without,
)

Progress = Callable[[int, int], None]
"""Told how many scenarios are done, and of how many."""

_LAYOUT = 1
_KEPT = 12
_CHUNK = 250
_ALONE = 400
"""Up to so many scenarios no process is started."""
_MOST_REFUSED = 20
"""Of so many requests at least one is expected to be answered."""
_AT_ONCE = 250
"""After an edit so many are asked again in one run, which takes seconds; the rest in later ones."""
_MOST_OWED = 0.2
"""The share of a sample that may be left for later runs; of more, all are asked at once."""


class Origin(Struct, frozen=True):
    """Where facts come from, and how they are worked out."""

    folder: Stack = None
    """Knowledge folders; the built-in one by default."""
    alone: bool = False
    """Whether the first of them stands in the place of the built-in one."""
    workers: int | None = None
    """Processes; by default as many as there are processors."""

    def knowledge(self) -> Knowledge:
        """Load what is known.

        Raises:
            UserError: A file is wrong.
        """
        return load_knowledge(self.folder, alone=self.alone)


def sampled_facts(
    count: int, origin: Origin | None = None, *, progress: Progress | None = None
) -> FactStore:
    """Give the facts of a sample of the catalogue, from the cache or worked out now.

    Raises:
        UserError: The knowledge is wrong.
    """
    source = origin or Origin()
    known = source.knowledge()
    return _kept(
        f"sample {count} {SEED}",
        known,
        lambda: joined(list(_sampled(count, known, source, progress))),
    )


class _Near(Struct, frozen=True):
    """Facts that were worked out under some knowledge, and what they rest on."""

    place: Path
    store: FactStore
    entries: Mapping[str, str]
    """Digest of every card and model."""
    owed: Sequence[Given] = ()
    """Requests that are to be asked again and were not yet: the store is without them."""


def near_facts(
    count: int,
    origin: Origin | None = None,
    *,
    whole: bool = False,
    progress: Progress | None = None,
) -> FactStore:
    """Give the facts of a sample in which what a changed card or model is named in is worked out.

    Requests keep the facts that they had under other knowledge where neither they nor their
    what-ifs name a card or model that changed; all else in knowledge must be the same. So a card
    that became worth offering is not seen where it was not offered. What is named in more requests
    than are asked at once leaves some out, which later runs ask. Without such facts, and where
    facts are kept for this very knowledge, it is ``sampled_facts``.

    ``whole`` leaves none out.

    Raises:
        UserError: The knowledge is wrong.
    """
    source = origin or Origin()
    known = source.knowledge()
    what, (entries, rest) = f"sample {count} {SEED}", _entries(known)
    exact, pointer = _path(what, known.sha256), _path(f"{what} near", rest)
    before = None if exact.is_file() else _pointed(pointer)
    if before is None:
        store = sampled_facts(count, source, progress=progress)
        now = _Near(exact, store, entries)
    else:
        asking = (known, source, progress)
        now = _renewed(before, entries, _path(f"{what} near", known.sha256), asking, whole=whole)
    kept = {"store": now.place.stem, "entries": entries, "owed": now.owed}
    write_kept(pointer, pointer.stem, [json.dumps(kept).encode()], "facts-*.bin", _KEPT)
    return now.store


def _entries(known: Knowledge) -> tuple[dict[str, str], str]:
    """Give a digest of every card and model, and one of all else that facts follow from."""
    tables = (known.gpus, known.models)
    entries = {name: _digest(record) for table in tables for name, record in table.items()}
    speeds = known.user_speeds.sha256 if known.user_speeds else None
    others = (known.ggml_types, known.formats, known.kv_types, known.frameworks)
    rest = (others, known.policy, known.calibration, known.second_cards, speeds)
    return entries, _digest(rest)


def _digest(content: object) -> str:
    written = encode(content, order="deterministic", enc_hook=dict)
    return hashlib.sha256(written).hexdigest()[:32]


def _pointed(pointer: Path) -> _Near | None:
    content = read_kept(pointer, pointer.stem)
    try:
        found = json.loads(content or b"null")
        place = found and pointer.with_name(f"{found['store']}.bin")
        store = place and _read(place)
        return _Near(place, store, found["entries"], found["owed"]) if store else None
    except (ValueError, KeyError, TypeError):
        return None


def _renewed(
    before: _Near,
    entries: Mapping[str, str],
    place: Path,
    asking: tuple[Knowledge, Origin, Progress | None],
    *,
    whole: bool,
) -> _Near:
    """Ask again what names a changed entry, and for the first time what names an added one."""
    known, origin, progress = asking
    stale, again = _outdated(before, entries, known)
    if not stale and not again:
        return replace(before, entries=entries)
    total = len(before.store) + len(before.owed)
    few = len(again) <= _MOST_OWED * total and not whole
    at_once = _AT_ONCE if few else len(again)
    new = _counted(_parts(again[:at_once], known, origin, True), len(again[:at_once]), progress)
    made = joined([part_without(before.store, stale), *new])
    _write(place, made)
    return _Near(place, made, entries, again[at_once:])


def _outdated(
    before: _Near, entries: Mapping[str, str], known: Knowledge
) -> tuple[Mask, list[Given]]:
    """Mark what names a changed entry, and list what to ask: first what asks about that entry."""
    store, old = before.store, before.entries
    changed = {name for name, was in old.items() if entries.get(name) != was}
    added = entries.keys() - old.keys()
    stale = naming(store, changed)
    named = (store.requests[number] for number in row_numbers(stale, len(store)))
    points = islice(drawn(known), len(store) + len(before.owed)) if added else ()
    asked = [*named, *before.owed]
    asked += [given for given in points if given["gpu"] in added or given["model"] in added]
    again = [g for g in asked if g["gpu"] in known.gpus and g["model"] in known.models]
    edited = changed | added
    again.sort(key=lambda g: (edited.isdisjoint((g["gpu"], g["model"])), str(g["model"])))
    return stale, again


def facts_of(
    requests: Sequence[Given], origin: Origin, *, progress: Progress | None = None
) -> FactStore:
    """Give the facts of these very requests, without those that are refused.

    Raises:
        UserError: The knowledge is wrong.
    """
    known = origin.knowledge()
    text = json.dumps([dict(given) for given in requests])
    named = hashlib.sha256(text.encode()).hexdigest()
    return _kept(
        f"requests {named}",
        known,
        lambda: joined(
            list(_counted(_parts(requests, known, origin, False), len(requests), progress))
        ),
    )


def store_of(requests: Sequence[Given], knowledge: Knowledge) -> FactStore:
    """Work out the facts of a few requests here and now, without those that are refused."""
    return joined([part_of(requests, knowledge, easing=False, most=len(requests))])


def _kept(what: str, known: Knowledge, make: Callable[[], FactStore]) -> FactStore:
    path = _path(what, known.sha256)
    found = _read(path)
    if found is None:
        found = make()
        _write(path, found)
    return found


def _path(what: str, knowledge: str) -> Path:
    text = f"{_LAYOUT} {knowledge} {code_sha256()} {what}"
    name = hashlib.sha256(text.encode()).hexdigest()[:32]
    return user_cache_dir() / f"facts-{name}.bin"


def _sampled(
    count: int, known: Knowledge, origin: Origin, progress: Progress | None
) -> Iterator[Part]:
    """Ask in rounds, each for as many as are missing, and one by one at the end."""
    points = drawn(known)
    done = 0
    while count - done > _ALONE:
        before = done
        missing = count - done
        for part in _parts(list(islice(points, missing)), known, origin, True):
            done += len(part.requests)
            if progress:
                progress(done, count)
            yield part
        if done - before < missing // _MOST_REFUSED:
            break
    rest = islice(points, (count - done) * _MOST_REFUSED)
    yield part_of(rest, known, easing=True, most=count - done)


def _counted(parts: Iterator[Part], count: int, progress: Progress | None) -> Iterator[Part]:
    done = 0
    for part in parts:
        done += len(part.requests) + part.refused
        if progress:
            progress(done, count)
        yield part


def _parts(
    requests: Sequence[Given],
    known: Knowledge,
    origin: Origin,
    easing: bool,  # noqa: FBT001
) -> Iterator[Part]:
    """Work in chunks in which a model comes many times, as its sizes are worked out once."""
    ordered = sorted(requests, key=lambda given: str(given["model"]))
    chunks = [ordered[i : i + _CHUNK] for i in range(0, len(ordered), _CHUNK)]
    workers = min(origin.workers or os.cpu_count() or 1, len(chunks))
    if workers == 1 or len(ordered) <= _ALONE:
        yield from (part_of(c, known, easing=easing, most=len(c)) for c in chunks)
        return
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - only here
    from multiprocessing import get_context  # noqa: PLC0415

    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(partial(_worker_part, origin, easing), chunks)


def _worker_part(origin: Origin, easing: bool, chunk: Sequence[Given]) -> Part:  # noqa: FBT001
    return part_of(chunk, origin.knowledge(), easing=easing, most=len(chunk))


def _write(path: Path, store: FactStore) -> None:
    """Write a header of JSON and then the columns; what cannot be written costs time later."""
    blobs: list[bytes] = []
    header = {
        "requests": [dict(given) for given in store.requests],
        "starts": list(store.starts),
        "refused": store.refused,
        "columns": {name: _column_form(column, blobs) for name, column in store.columns.items()},
    }
    head = zlib.compress(json.dumps(header, separators=(",", ":")).encode(), 1)
    start = len(head).to_bytes(8, "little") + head
    write_kept(path, path.stem, [start, *blobs], "facts-*.bin", _KEPT)


def _column_form(column: Column, blobs: list[bytes]) -> list[object]:
    numbers = isinstance(column.values, array)
    parts = [column.values.tobytes()] if isinstance(column.values, array) else []
    packed = [zlib.compress(part, 1) for part in [*parts, *column.planes]]
    blobs.extend(packed)
    values = None if numbers else list(column.values)
    return [values, [len(part) for part in packed]]


def _read(path: Path) -> FactStore | None:
    content = read_kept(path, path.stem)
    if content is None:
        return None
    try:
        size = int.from_bytes(content[:8], "little")
        header = json.loads(zlib.decompress(content[8 : 8 + size]))
        columns, place = {}, 8 + size
        for name, (values, sizes) in header["columns"].items():
            parts = []
            for length in sizes:
                parts.append(zlib.decompress(content[place : place + length]))
                place += length
            columns[name] = _column(values, parts)
        os.utime(path)
    except (OSError, ValueError, KeyError, TypeError, zlib.error):
        return None
    requests = cast("list[Mapping[str, object]]", header["requests"])
    return FactStore(requests, array("I", header["starts"]), columns, header["refused"])


def _column(values: list[str | bool] | None, parts: list[bytes]) -> Column:
    if values is None:
        numbers = array("d")
        numbers.frombytes(parts[0])
        return Column(numbers, tuple(parts[1:]))
    return Column(tuple(values), tuple(parts))
