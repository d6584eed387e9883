"""A public list made of a CSV file: checked whole, sorted, written whole or not at all."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from math import isqrt
from pathlib import Path
from typing import Final

from msgspec import Struct, json

from advisor.errors import RequestError, Source, UserError, raise_problems
from advisor.files import data_dir, read_whole, table_rows, write_whole
from advisor.knowledge.index import models_published
from advisor.knowledge.merit import merits
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge, KvType, ModelRecord
from advisor.reading.public_list import (
    COLUMNS,
    NUMBERS,
    TEXTS,
    PublicModel,
    every,
    is_repository,
    sort_key,
)
from advisor.reading.public_list import FILE as PUBLIC
from advisor.reading.published import ELSEWHERE, FILE, RECORDED, is_packed, own_record, recorded_as

_PLAIN_FORMATS: Final = frozenset({"gguf", "safetensors"})
"""Words of the column ``format`` that say nothing of how the weights are stored."""
_NEEDED: Final = ("hf_id", "architecture")
_MOST: Final = 10**15
_MOST_TOLD: Final = 20


class Imported(Struct, frozen=True):
    """What a list held."""

    models: int
    newest: str
    """Release date of its youngest repository."""


def import_list(source: Path, target: Path, about: str) -> Imported:
    """Make a list of a CSV file with the columns of docs/public-list.md.

    Args:
        source: The CSV file, UTF-8, with a header; other columns are left out.
        target: Where the list goes; what stood there stays where this fails.
        about: Source, licence and date, one line.

    Raises:
        UserError: Everything that is wrong with the file, at once; or it cannot be written.
    """
    rows = _checked(_read(source), source)
    rows.sort(key=lambda row: sort_key(row["hf_id"]))
    head = (f"# {' '.join(about.split())}", "\t".join(COLUMNS))
    lines = ("\t".join(row[name] for name in COLUMNS) for row in rows)
    try:
        write_whole(target, [f"{line}\n".encode() for line in (*head, *lines)])
    except OSError as bad:
        raise RequestError(f"cannot write '{target}': {bad.strerror}.") from None
    return Imported(len(rows), max(row["release_date"] for row in rows))


def _read(source: Path) -> Sequence[Mapping[str, str | None]]:
    shown = Source(str(source))
    try:
        text = read_whole(source).decode("utf-8-sig")
        reader = csv.DictReader(text.splitlines(), strict=True)
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            raise RequestError(
                f"these columns are missing: {', '.join(missing)}", source=shown, hint=_HINT
            )
        rows = list(reader)
    except OSError as bad:
        raise RequestError(f"cannot read '{source}': {bad.strerror}.") from None
    except UnicodeDecodeError:
        raise RequestError("the file is not UTF-8", source=shown, hint=_HINT) from None
    except csv.Error as bad:
        raise RequestError(f"this is not CSV: {bad}", source=shown, hint=_HINT) from None
    if not rows:
        raise RequestError("the list holds no model", source=shown, hint=_HINT)
    return rows


_HINT: Final = "The columns are those of docs/public-list.md; the list in use stays as it was."


def _checked(rows: Sequence[Mapping[str, str | None]], source: Path) -> list[dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    problems: list[UserError] = []
    for line, row in enumerate(rows, start=2):
        cells = {name: (row.get(name) or "").strip() for name in COLUMNS}
        wrong = list(_wrong(cells))
        problems += [RequestError(text, source=Source(str(source), line)) for text in wrong]
        if cells["format"] in _PLAIN_FORMATS:
            cells["format"] = ""
        if not wrong:
            _strike_estimates(cells)
        key = cells["hf_id"].lower()
        if key not in found or _downloads(found[key]) < _downloads(cells):
            found[key] = cells
    _raise(problems, source)
    return list(found.values())


def _strike_estimates(cells: dict[str, str]) -> None:
    """Take out numbers of parameters that were counted nowhere: what the maker's formulas give.

    llmfit writes the first where a repository states no count, the second where it counts less
    than half of that (``_estimate_params_from_config`` and ``estimate_params_from_arch`` of its
    scripts/scrape_hf_models.py). No model has exactly so many: both leave the norms out. The first
    tells the hidden width where that stands under another key than the list's (``d_model``).
    """
    sizes = {name: int(cells[name] or 0) for name in NUMBERS}
    if sizes["active_parameters"] == _active_estimate(sizes):
        cells["active_parameters"] = ""
    stated, layers, vocab = (
        sizes[n] for n in ("parameters_raw", "num_hidden_layers", "vocab_size")
    )
    if not layers or not vocab:
        return
    if not sizes["hidden_size"] and (hidden := _square_width(stated, layers, vocab)):
        cells["hidden_size"] = f"{hidden}"
        sizes["hidden_size"] = hidden
    if sizes["hidden_size"] and stated in {*_plain_estimates(sizes), _estimate(sizes)}:
        cells["parameters_raw"] = ""


def _active_estimate(sizes: Mapping[str, int]) -> int:
    """Share out a mixture as llmfit does where it knows no better: a twentieth is always read."""
    stated, experts = sizes["parameters_raw"], sizes["num_experts"] or 1
    always = int(stated * 0.05)
    return always + (stated - always) // experts * sizes["active_experts"]


def _square_width(stated: int, layers: int, vocab: int) -> int:
    """Solve ``12 x layers x width^2 + vocab x width = stated``; 0 where no whole width does."""
    root = isqrt(vocab**2 + 48 * layers * stated)
    width, rest = divmod(root - vocab, 24 * layers)
    exact = 12 * layers * width**2 + vocab * width == stated
    return width if rest == 0 and exact else 0


def _plain_estimates(sizes: Mapping[str, int]) -> Iterator[int]:
    hidden, layers = sizes["hidden_size"], sizes["num_hidden_layers"]
    for width in (sizes["moe_intermediate_size"], 0):
        factor = (width / hidden) if width else 4.0
        whole = layers * hidden * hidden * (4 + 2 * factor) + sizes["vocab_size"] * hidden
        yield int(whole)


def _estimate(sizes: Mapping[str, int]) -> int:
    hidden, width = sizes["hidden_size"], sizes["moe_intermediate_size"]
    heads = sizes["num_attention_heads"] or 1
    head = sizes["head_dim"] or hidden // heads
    attention = 2 * hidden * head * (heads + (sizes["num_key_value_heads"] or heads))
    experts, shared = sizes["num_experts"], sizes["shared_expert_intermediate_size"]
    if experts and width:
        blocks = 3 * hidden * (experts * width + shared) + experts * hidden
    else:
        blocks = 3 * hidden * width or 4 * hidden * hidden
    return sizes["num_hidden_layers"] * (attention + blocks) + 2 * sizes["vocab_size"] * hidden


def _downloads(cells: Mapping[str, str]) -> int:
    """Of a repository that stands there twice, spelt in two ways, the more used one counts."""
    return int(cells["hf_downloads"]) if cells["hf_downloads"].isdigit() else 0


def _raise(problems: list[UserError], source: Path) -> None:
    """Tell all that is wrong; of a file that is wrong throughout the beginning."""
    more = len(problems) - _MOST_TOLD
    if more > 0:
        last = problems[_MOST_TOLD].source
        problems = problems[:_MOST_TOLD]
        at = last or Source(str(source))
        problems.append(RequestError(f"{more} more problems from here on", source=at))
    raise_problems(problems)


def _wrong(cells: Mapping[str, str]) -> Iterator[str]:
    for name in _NEEDED:
        if not cells[name]:
            yield f"{name} is missing"
    if cells["hf_id"] and not is_repository(cells["hf_id"]):
        yield f"hf_id is '{cells['hf_id'][:80]}', not publisher/name"
    for name in NUMBERS:
        text = cells[name]
        if text and not (text.isascii() and text.isdigit() and int(text) <= _MOST):
            yield f"{name} is '{text[:40]}', not a whole number up to 10^15"
    for name in (*TEXTS, "gguf_repos"):
        if not cells[name].isascii() or not cells[name].isprintable():
            yield f"{name} holds letters that are not ASCII"


_MANY: Final = 50_000
"""Downloads from which a repository is one that people look for."""


class Age(Struct, frozen=True):
    """One part of the knowledge."""

    what: str
    entries: int
    newest: str
    """Release of the youngest entry; empty where entries are not released."""
    undated: int
    seen: str
    """From when to when the figures are, or were read where their source has no date."""


_TABLES: Final = {
    "GGUF repositories": "gguf_repos.tsv",
    "other repositories": ELSEWHERE,
    "their formats": FILE,
    "repositories of a known model": RECORDED,
    "tags of Ollama": "ollama_tags.tsv",
    "prices of whole computers": "machine_prices.tsv",
}
_DATE: Final = re.compile(r"20\d\d-\d\d(?:-\d\d)?")


def ages(knowledge: Knowledge) -> Iterator[Age]:
    """Give every part with its youngest entry, and when its sources were seen."""
    records, cards = knowledge.models.values(), knowledge.gpus.values()
    yield _age("models", _seen(knowledge, records), [one.released for one in records])
    yield _age("cards", _seen(knowledge, cards), [one.released for one in cards])
    priced = [gpu for gpu in cards if gpu.launch_price_usd is not None]
    yield _age("prices of cards", _seen(knowledge, priced, "launch_price"))
    yield _age("weight formats", _seen(knowledge, knowledge.formats.values()))
    yield _age("cache types", _seen(knowledge, knowledge.kv_types.values()))
    yield _age("runtimes", _seen(knowledge, knowledge.frameworks.values()))
    for what, file in _TABLES.items():
        yield _age(what, _seen_in(file))
    kept = merits(knowledge)
    for board in kept.boards:
        figures = (one.seen for many in kept.figures.values() for one in many if one.board == board)
        yield _age(f"board {board}", list(figures))
    released = [public.release_date for public in every()]
    yield _age("public list", [_usual_date(PUBLIC)] * len(released), released)


def _age(what: str, seen: Sequence[str], released: Sequence[str | None] = ()) -> Age:
    days = [day for day in released or seen if day]
    dates = sorted({*seen} - {""})
    span = " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else ""
    newest = max(days, default="") if released else ""
    return Age(what, len(seen), newest, len(seen) - len(days), span)


def _seen(
    knowledge: Knowledge,
    records: Iterable[Gpu | ModelRecord | Format | KvType | Framework],
    field: str = "",
) -> list[str]:
    """Give the date of each record, or of a field of it: that of the newest of its sources."""
    dates = json.decode(knowledge.index["seen"], type=dict[str, str])
    named = (one.sources.get(field) or one.sources.get("", "") for one in records)
    return [max((dates.get(n, "") for n in names.split(", ")), default="") for names in named]


def _seen_in(file: str) -> list[str]:
    """Give the date of each line of a table: its last cell, else what its head says."""
    usual = _usual_date(file)
    return [row[-1] if _DATE.fullmatch(row[-1]) else usual for row in table_rows(file)]


def _usual_date(file: str) -> str:
    """Give the last date in the head of a table."""
    with (data_dir("knowledge") / file).open(encoding="utf-8") as lines:
        head = " ".join(takewhile(lambda line: line.startswith("#"), lines))
    return max(_DATE.findall(head), default="")


class Behind(Struct, frozen=True):
    """A family whose newest record is older than what its publisher has since published."""

    family: str
    newest: str
    """Release of its newest record."""
    since: Sequence[str]
    """Repositories of the list, the most downloaded first."""


def behind(knowledge: Knowledge) -> Iterator[Behind]:
    """Find families whose publisher has newer models of the same architecture and no record."""
    listed = [
        public
        for public in every()
        if _is_wanted(public) and not has_record(knowledge, public.hf_id)
    ]
    families: dict[str, list[ModelRecord]] = {}
    for record in knowledge.models.values():
        families.setdefault(record.family, []).append(record)
    for family, records in families.items():
        newest = max((record.released or "" for record in records), default="")
        kinds = {
            ((r.hf_id or "").partition("/")[0], str(r.config.get("model_type"))) for r in records
        }
        since = sorted(
            (public for public in listed
             if (public.hf_id.partition("/")[0], public.architecture) in kinds
             and newest and public.release_date > newest),
            key=lambda public: -(public.hf_downloads or 0),
        )  # fmt: skip
        if since:
            yield Behind(family, newest, [public.hf_id for public in since])


def _is_wanted(public: PublicModel) -> bool:
    return (public.hf_downloads or 0) >= _MANY and not is_packed(public) and not public.format


def without_record(knowledge: Knowledge, most: int) -> Sequence[PublicModel]:
    """List those of the most downloaded repositories that no record tells of.

    Args:
        knowledge: What is known.
        most: How many of the most downloaded are looked at.
    """
    ranked = sorted(every(), key=lambda public: -(public.hf_downloads or 0))[:most]
    return [public for public in ranked if not has_record(knowledge, public.hf_id)]


def has_record(knowledge: Knowledge, hf_id: str) -> bool:
    """Whether a repository has a record of its own, or one says that it holds a known model."""
    own = models_published(knowledge).get(hf_id.casefold())
    return bool(own or recorded_as(hf_id) or own_record(hf_id))
