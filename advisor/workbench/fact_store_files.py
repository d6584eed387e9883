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

from advisor.files import code_sha256, read_kept, user_cache_dir, write_kept
from advisor.knowledge import load_knowledge
from advisor.knowledge.layers import Stack
from advisor.knowledge.types import Knowledge
from advisor.workbench.columns import Column, row_numbers
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

    Args:
        count: Scenarios.
        origin: The knowledge.
        progress: Told now and then how far it is.

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


def near_facts(
    count: int, origin: Origin | None = None, *, progress: Progress | None = None
) -> FactStore:
    """Give the facts of a sample in which what a changed card or model is named in is worked out.

    Requests keep the facts that they had under other knowledge where neither they nor their
    what-ifs name a card or model that changed; all else in knowledge must be the same. So a card
    that became worth offering is not seen where it was not offered. Without such facts, and where
    facts are kept for this very knowledge, it is ``sampled_facts``.

    Args:
        count: Scenarios.
        origin: The knowledge.
        progress: Told now and then how far it is.

    Raises:
        UserError: The knowledge is wrong.
    """
    source = origin or Origin()
    known = source.knowledge()
    what, (entries, rest) = f"sample {count} {SEED}", _entries(known)
    exact, pointer = _path(what, known.sha256), _path(f"{what} near", rest)
    before = None if exact.is_file() else _pointed(pointer)
    if before is None:
        made, place = sampled_facts(count, source, progress=progress), exact
    else:
        place = _path(f"{what} near", known.sha256)
        made = _renewed(before, entries, known, source, progress)
        _write(place, made)
    content = json.dumps({"store": place.stem, "entries": entries}).encode()
    write_kept(pointer, pointer.stem, [content], "facts-*.bin", _KEPT)
    return made


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


def _pointed(pointer: Path) -> tuple[FactStore, Mapping[str, str]] | None:
    """Read the facts that were asked for last, and what cards and models were then."""
    content = read_kept(pointer, pointer.stem)
    try:
        found = json.loads(content or b"null")
        store = found and _read(pointer.with_name(f"{found['store']}.bin"))
        return (store, found["entries"]) if store else None
    except (ValueError, KeyError, TypeError):
        return None


def _renewed(
    before: tuple[FactStore, Mapping[str, str]],
    entries: Mapping[str, str],
    known: Knowledge,
    origin: Origin,
    progress: Progress | None,
) -> FactStore:
    """Ask again what names a changed entry, and for the first time what names an added one."""
    store, old = before
    changed = {name for name, was in old.items() if entries.get(name) != was}
    added = entries.keys() - old.keys()
    stale = naming(store, changed)
    named = (store.requests[number] for number in row_numbers(stale, len(store)))
    again = [g for g in named if g["gpu"] in known.gpus and g["model"] in known.models]
    points = islice(drawn(known), len(store)) if added else ()
    again += [given for given in points if given["gpu"] in added or given["model"] in added]
    new = _counted(_parts(again, known, origin, True), len(again), progress)
    return joined([part_without(store, stale), *new])


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
