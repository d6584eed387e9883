"""Makes the built-in public list, and sizes all of it: shares, what fails, wrong models.

    python benchmarks/public_list.py --import FILE.csv --about "source, licence, date"
    python benchmarks/public_list.py               prints Markdown for docs/public-list.md
    python benchmarks/public_list.py --failures 20 with the most downloaded that cannot be sized
    python benchmarks/public_list.py --experts     what a token reads of known mixtures, by widths

Ends with 1 where a repository that is not packed has other parameters than the list by over 1 %.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from advisor.errors import UserError
from advisor.files import data_dir
from advisor.knowledge import load_knowledge
from advisor.models.stored_tensors import Model
from advisor.reading.public_config import is_mixture, read_by_widths
from advisor.reading.public_import import import_list
from advisor.reading.public_list import FILE, PublicModel, every
from advisor.reading.public_made import SAME_WITHIN, stored_masks
from advisor.reading.public_sizing import model_of
from advisor.reading.published import is_packed

BUILT_IN = data_dir("knowledge") / FILE
RECENT = "2026-05"
SIZED = ("its own record", "a known shape or its own, proved", "packed", "approximate")


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
    if model.origin == "knowledge":
        return SIZED[0]
    if any("approximate" in note for note in model.notes):
        return SIZED[3]
    return SIZED[2] if is_packed(public) else SIZED[1]


def wrong(public: PublicModel, model: Model | str) -> bool:
    """Whether it has other parameters than the list, less what files may hold besides."""
    if isinstance(model, str) or is_packed(public) or model.origin == "knowledge":
        return False
    shape, stated = model.shape, public.parameters_raw
    if not stated:
        return False
    layer = shape.counts.layers[-1] + 2 * shape.hidden**2 if shape.counts else 0
    twice = shape.counts.embedding if shape.counts and shape.tied else 0
    beside = (0, shape.mtp_layers * layer, stored_masks(shape), twice)
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


def main() -> int:
    """Do what the flags ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--import", dest="source", type=Path)
    parser.add_argument("--about", default="")
    parser.add_argument("--failures", type=int, default=0)
    parser.add_argument("--experts", action="store_true")
    asked = parser.parse_args()
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
