"""Makes the built-in public list, and sizes all of it: shares, what fails, wrong models.

    python benchmarks/public_list.py --import FILE.csv --about "source, licence, date"
    python benchmarks/public_list.py               prints Markdown for docs/public-list.md
    python benchmarks/public_list.py --failures 20 with the most downloaded that cannot be sized
    python benchmarks/public_list.py --records 300 adds records of what proves itself, says the rest
    python benchmarks/public_list.py --experts     what a token reads of known mixtures, by widths

Ends with 1 where a repository that is not packed has other parameters than the list by over 1 %.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median

from advisor.errors import UserError
from advisor.files import data_dir
from advisor.knowledge import load_knowledge
from advisor.models.stored_tensors import Model
from advisor.reading.public_config import is_mixture, read_by_widths
from advisor.reading.public_import import has_record, import_list, without_record
from advisor.reading.public_list import FILE, PublicModel, every
from advisor.reading.public_made import SAME_WITHIN, Fit, stored_masks
from advisor.reading.public_sizing import best_of, fits_of, model_of
from advisor.reading.published import (
    OWN,
    RECORDED,
    is_draft,
    is_packed,
)

BUILT_IN = data_dir("knowledge") / FILE
RECENT = "2026-05"
LIST, SEEN, EXACT, NOT_STATED = "the public list", "2026-10", 1e-4, 4096
SIZED = ("a record", "a known shape or its own, proved", "packed", "approximate")


def sized(public: PublicModel) -> Model | str:
    """Give the model, or why there is none."""
    try:
        return model_of(public, load_knowledge())
    except UserError as error:
        return str(error)


def answer(public: PublicModel, model: Model | str) -> str:
    """Say how a repository was answered."""
    if isinstance(model, str):
        if not public.num_hidden_layers or not public.hidden_size:
            return "refused: packed, and no shape in the list"
        return "refused: packed, or a part of a model"
    if has_record(load_knowledge(), public.hf_id):
        return SIZED[0]
    if any("approximate" in note for note in model.notes):
        return SIZED[3]
    return SIZED[2] if is_packed(public) else SIZED[1]


def wrong(public: PublicModel, model: Model | str) -> bool:
    """Whether it has other parameters than the list, less what files may hold besides."""
    if isinstance(model, str) or is_packed(public) or has_record(load_knowledge(), public.hf_id):
        return False
    shape, stated = model.shape, public.parameters_raw
    if not stated:
        return False
    layer = shape.counts.layers[-1] + 2 * shape.hidden**2 if shape.counts else 0
    twice = shape.counts.embedding if shape.counts and shape.tied else 0
    beside = (0, shape.mtp_layers * layer, *stored_masks(shape), twice)
    return all(abs(model.parameters + more - stated) > SAME_WITHIN * stated for more in beside)


def table(rows: list[tuple[PublicModel, str]]) -> Iterator[str]:
    """Give the lines of a table: answers, repositories, shares of the downloads."""
    total = sum(public.hf_downloads or 0 for public, _ in rows) or 1
    count = Counter(how for _, how in rows)
    downloads = Counter[str]()
    for public, how in rows:
        downloads[how] += public.hf_downloads or 0
    yield "| answered by | repositories | downloads |"
    yield "|---|---:|---:|"
    refused = sorted(how for how in count if how not in SIZED)
    for how in (*SIZED, *refused):
        yield f"| {how} | {count[how]:,} | {100 * downloads[how] / total:.1f} % |"
    models, taken = sum(count[how] for how in SIZED), sum(downloads[how] for how in SIZED)
    yield f"| **sized** | **{models:,}** | **{100 * taken / total:.1f} %** |"
    proved = sum(downloads[how] for how in SIZED[:3])
    yield f"| **of them exactly** | | **{100 * proved / total:.1f} %** |"


def read_exactly(public: PublicModel) -> float:
    """Count the parameters that a token reads of a mixture by its proved shape; 0: not proved."""
    model = sized(public)
    if isinstance(model, str) or any("approximate" in note for note in model.notes):
        return 0.0
    moe, counts = model.shape.moe, model.shape.counts
    if not moe or not counts or not model.shape.described or is_packed(public):
        return 0.0
    idle = sum(counts.experts) * (1 - moe.used / moe.experts)
    return sum(counts.layers) - idle + (counts.output or counts.embedding)


def experts() -> Iterator[str]:
    """Give the lines of a table: the most downloaded proved mixture of each architecture."""
    best: dict[str, tuple[PublicModel, float, float]] = {}
    for public in sorted(every(), key=lambda one: -(one.hf_downloads or 0)):
        if public.architecture in best or not is_mixture(public):
            continue
        read = read_by_widths(public, public.parameters_raw or 0)
        if read and (exact := read_exactly(public)):
            best[public.architecture] = (public, read, exact)
    off = sorted(read / exact - 1 for _, read, exact in best.values())
    half = median(map(abs, off))
    yield f"{len(off)} architectures: half within {half:.1%}, {off[0]:+.0%} to {off[-1]:+.0%}\n"
    yield "| repository | of | by widths | exactly | off |\n|---|---:|---:|---:|---:|"
    for public, read, exact in sorted(best.values(), key=lambda row: row[1] / row[2]):
        sizes = (f"{size / 1e9:.3g}" for size in (public.parameters_raw or 0, read, exact))
        yield f"| {public.hf_id} | {' | '.join(sizes)} | {read / exact - 1:+.0%} |"


_LEAST_LAYERS = 0.4
"""Share of the parameters that the text part has at least, where the rest is taken for towers."""


def add_records(wanted: Iterable[PublicModel]) -> Iterator[str]:
    """Write what proves itself of some repositories into the two files; give what does not."""
    for public in wanted:
        model = sized(public)
        if not isinstance(model, str) and (name := _held_record(public, model)):
            held = model.held_format or ""
            cells = (public.hf_id, name, held, LIST, SEEN)
            _append(RECORDED, "\t".join(cells))
        elif record := _own_record(public, model):
            _append(OWN, f"{public.hf_id}\t{json.dumps(record, separators=(',', ':'))}")
        else:
            yield public.hf_id


def _append(file: str, line: str) -> None:
    with (data_dir("knowledge") / file).open("a", encoding="utf-8") as out:
        out.write(f"{line}\n")


def _held_record(public: PublicModel, model: Model) -> str:
    """Name the record that it is sized as."""
    found = re.search(rf"{re.escape(public.hf_id)} is sized as (\S+): the public", model.sized_as)
    return found[1] if found else ""


def _counts(public: PublicModel, best: Fit) -> bool:
    """Whether somebody counted it, or it keeps no cache and all its sizes are stated."""
    return bool(public.parameters_raw) or best.shape.role == "encoder"


def _own_record(public: PublicModel, model: Model | str) -> dict[str, object]:
    """Make a record of the shape that its parameters prove; empty where they do not."""
    best = best_of(fits_of(public, load_knowledge()))
    if best is None or isinstance(model, str) or is_draft(public) or not best.total:
        return {}
    if best.off >= EXACT and (is_packed(public) or not _counts(public, best)):
        return {}
    stated = public.parameters_raw or model.parameters
    vision = best.shape.counts.vision if best.shape.counts else 0
    beside = 0 if best.off <= SAME_WITHIN or not public.parameters_raw else stated - best.total
    wrapped = bool(best.shape.outer_type)
    if beside and (vision or not wrapped or beside < 0 or best.total < _LEAST_LAYERS * stated):
        return {}
    told = "exact" if best.off < EXACT else "by its widths, which the list states; not counted"
    if beside:
        told = "the text part is counted, and what its files hold beside it is taken for towers"
    elif EXACT <= best.off <= SAME_WITHIN:
        told = f"the shape makes {best.off:.2%} fewer or more than the list counts"
    config, context = {**best.config}, public.context_length
    if context == NOT_STATED:
        config.pop("max_position_embeddings", None)
    lent = {
        "trained_context": context if context != NOT_STATED else None,
        "native_formats": model.native_formats,
        "native_dtype": model.native_dtype,
    }
    own = {"released": public.release_date, "licence": public.license}
    said = {"notes": " ".join(model.notes)}
    beside_it = {"vision_parameters": beside, "active_parameters": model.active_parameters}
    return {
        "model": public.name,
        "hf_id": public.hf_id,
        "aliases": [],
        "family": _family(public, best),
        "modality": model.modality,
        "config": config,
        "verified": told,
        "parameters": best.total + beside,
        **{key: value for key, value in (lent | own | said).items() if value},
        **(beside_it if beside else {}),
        "sources": dict.fromkeys(("config", "parameters", "licence", "released"), "public-list"),
    }


def _family(public: PublicModel, best: Fit) -> str:
    """Name the family of the known model of the same publisher, else the architecture."""
    record = best.record
    if record and (record.hf_id or "").partition("/")[0] == public.hf_id.partition("/")[0]:
        return record.family
    return public.architecture


def main() -> int:
    """Do what the flags ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--import", dest="source", type=Path)
    parser.add_argument("--about", default="")
    parser.add_argument("--failures", type=int, default=0)
    parser.add_argument("--experts", action="store_true")
    parser.add_argument("--records", type=int, default=0)
    asked = parser.parse_args()
    if asked.records:
        print(*add_records(without_record(load_knowledge(), asked.records)), sep="\n")
        return 0
    if asked.experts:
        print(*experts(), sep="\n")
        return 0
    if asked.source:
        print(import_list(asked.source, BUILT_IN, asked.about))
        BUILT_IN.chmod(0o644)
        return 0
    found = [(public, sized(public)) for public in every()]
    rows = [(public, answer(public, model)) for public, model in found]
    recent = [row for row in rows if row[0].release_date >= RECENT]
    for title, part in (("all", rows), (f"released since {RECENT}", recent)):
        print(f"\n{title}: {len(part):,} repositories\n", *table(part), sep="\n")
    bad = [public.hf_id for public, model in found if wrong(public, model)]
    print(f"\n{len(bad)} wrong models", *bad[:20])
    failed = [(public, model) for public, model in found if isinstance(model, str)]
    failed.sort(key=lambda pair: -(pair[0].hf_downloads or 0))
    for public, why in failed[: asked.failures]:
        print(f"{public.hf_downloads:>10,} {public.architecture:20} {why}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
