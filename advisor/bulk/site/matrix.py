"""The fit matrix: cards in rows, models in columns, cut into parts that fit on a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from advisor.bulk.batch.formats import folder_names
from advisor.bulk.batch.store import File
from advisor.bulk.site.catalogue import CARD, MODEL, Kind, Setting, Setup, Shown, Subject
from advisor.bulk.site.page import State, in_parts
from advisor.report import figures as f
from advisor.units import GIB, counted, plain, rate

Row = Mapping[str, object]
_OWN_KEYS = ("precision", "context", "gpus", "batch", "framework")
_FORMS: Mapping[str, str] = {
    "context": "{:,} tokens",
    "gpus": "{} cards",
    "batch": "{} sequences",
    "kv_cache": "KV cache {}",
    "ram_gib": "{:g} GiB of RAM",
    "prefer": "{} first",
}
_GIGA = 1e9
_GIB = 2**30
_MEMORY_GIB = (8, 12, 16, 24, 32, 48, 80, 128)
_BILLIONS = (1, 3, 7, 13, 30, 70, 200)


def setting_text(setting: Setting) -> str:
    """Write what is asked for beside card and model: ``Q4_K_M, 4,096 tokens``."""
    given = dict(setting)
    first = [key for key in _OWN_KEYS if key in given]
    rest = [key for key in given if key not in _OWN_KEYS]
    return ", ".join(_said(key, given[key]) for key in [*first, *rest]) or "as it comes"


def _said(key: str, value: object) -> str:
    if key in {"precision", "framework"}:
        return plain(str(value))
    form = _FORMS.get(key)
    if form is None or not isinstance(value, int | float | str):
        return plain(f"{key.replace('_', ' ')} {value}")
    try:
        return plain(form.format(value))
    except ValueError:
        return plain(f"{key.replace('_', ' ')} {value}")


def setup_text(setup: Setup) -> str:
    """Write a setup, the format and context always named."""
    given = dict(setup.setting)
    given.setdefault("precision", setup.precision)
    given.setdefault("context", setup.context_tokens)
    return setting_text(tuple(given.items()))


def setup_row(setup: Setup, words: Mapping[str, State]) -> dict[str, object]:
    """Give the cells of a table about one setup, with values to sort by."""
    state, spare = words[setup.state], spare_bytes(setup)
    return {
        "state": setup.state,
        "state_rank": str(state.rank),
        "symbol": state.symbol,
        "word": state.word,
        "setup": setup_text(setup),
        "format": plain(setup.precision),
        "needs": f.amount(setup.required_bytes),
        "needs_value": gib(setup.required_bytes),
        "spare": spare_text(setup),
        "spare_value": "" if spare is None else gib(spare),
        "speed": f"{rate(setup.speed[0])} tok/s" if setup.speed else "",
        "speed_value": f"{setup.speed[0]:.2f}" if setup.speed else "",
        "advice": plain(setup.advice),
    }


def spare_bytes(setup: Setup) -> int | None:
    """Give what is free on the fullest card, negative where that much is missing."""
    if setup.deficit_bytes:
        return -setup.deficit_bytes
    return setup.headroom_bytes


def spare_text(setup: Setup) -> str:
    """Write what is free or missing; empty where the card's memory is unknown."""
    if setup.deficit_bytes:
        return f"{f.amount(setup.deficit_bytes)} missing"
    return f"{f.amount(setup.headroom_bytes)} free" if setup.headroom_bytes is not None else ""


def gib(count_bytes: float) -> str:
    """Write bytes as a bare number of GiB."""
    return f"{count_bytes / _GIB:.2f}".rstrip("0").rstrip(".")


def size_text(subject: Subject, kind: str) -> str:
    """Write the memory of a card or the parameters of a model."""
    if not subject.size:
        return "not known"
    return f.size(subject.size) if kind == "card" else f.billions(subject.size)


def size_value(subject: Subject, kind: str) -> str:
    """Give the number that lists are sorted and filtered by: GiB, or billions of parameters."""
    return gib(subject.size) if kind == "card" else f"{subject.size / _GIGA:.3f}"


def facts(subject: Subject, kind: str) -> list[tuple[str, str]]:
    """Give the figures of a card or model that its page shows; unknown ones left out."""
    found = _card_facts(subject.known) if kind == "card" else _model_facts(subject.known)
    return [(label, plain(text)) for label, text in found if text]


def _card_facts(known: Mapping[str, object]) -> list[tuple[str, str]]:
    def figure(key: str) -> float | None:
        value = known.get(key)
        return value if isinstance(value, int | float) else None

    kind = known.get("vram_type")
    memory = f.size(figure("vram_bytes"))
    price = figure("launch_price_usd")
    return [
        ("Vendor", str(known.get("vendor") or "")),
        ("Memory", f"{memory} {kind}" if memory and kind else memory),
        ("Bandwidth", f.quantity(figure("bandwidth_bytes_s"), "GB/s")),
        ("Architecture", str(known.get("architecture") or "")),
        ("FP16 matrix throughput", _tflops(figure("fp16_tensor_tflops_fp32acc"))),
        ("Board power", f.quantity(figure("tdp_w"), "W")),
        ("Released", str(known.get("released") or "")),
        ("Launch price", f.dollars(price)),
    ]


def _tflops(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f} TFLOPS"


def _model_facts(known: Mapping[str, object]) -> list[tuple[str, str]]:
    total, active = known.get("parameters"), known.get("active_parameters")
    context, experts = known.get("trained_context_tokens"), known.get("experts")
    used = known.get("experts_used")
    sparse = active if experts and isinstance(active, int | float) and active != total else None
    return [
        ("Family", str(known.get("family") or "")),
        ("Parameters", f.billions(total if isinstance(total, int | float) else None)),
        ("Used for each token", f.billions(sparse)),
        ("Experts", f"{used} of {experts} a layer" if experts and used else ""),
        ("Trained context", f"{context:,} tokens" if isinstance(context, int) else ""),
        ("Layers", str(known.get("layers") or "")),
        ("Licence", str(known.get("licence") or "")),
        ("On Hugging Face", str(known.get("hf_id") or "")),
    ]


def sizes_for(kind: Kind, subjects: Sequence[Subject]) -> list[Row]:
    """Give the steps of the filter by memory or by parameters that tell subjects apart."""
    largest = max((one.size for one in subjects), default=0)
    if kind is CARD:
        known = [n for n in _MEMORY_GIB if n * GIB <= largest]
        return [{"value": str(n), "name": f"{n} GiB"} for n in known]
    known = [n for n in _BILLIONS if n * _GIGA <= largest]
    return [{"value": str(n), "name": f"{n} billion"} for n in known]


_ROWS, _COLUMNS = 24, 16
"""The most of a part; a page of that many cells stays well below its largest size."""
_MOST_SETTINGS = 24
"""With more setups than this only the matrix of the best ones is made."""
Cells = Mapping[tuple[str, str], Setup]


class Matrix(Struct, frozen=True):
    """One matrix; ``path`` is of its first part, from the folder of the site."""

    heading: str
    setting: str
    path: str
    cells: Cells


class _Part(Struct, frozen=True):
    rows: Sequence[Subject]
    columns: Sequence[Subject]
    at: tuple[int, int]
    of: tuple[Sequence[Sequence[Subject]], Sequence[Sequence[Subject]]]
    """All blocks of rows and all blocks of columns."""


def matrices(shown: Shown) -> list[Matrix]:
    """Give the matrix of the best setups, and one for each setting if they are few."""
    catalogue = shown.catalogue
    found = [Matrix("What runs where", "", "matrix.html", catalogue.best)]
    if not 1 < len(catalogue.settings) <= _MOST_SETTINGS:
        return found
    texts = {setting: setting_text(setting) for setting in catalogue.settings}
    slugs = folder_names(sorted(set(texts.values())))
    for setting, text in texts.items():
        cells = _cells_of(shown, setting)
        found.append(Matrix(f"What runs where: {text}", text, f"matrix/{slugs[text]}.html", cells))
    return found


def _cells_of(shown: Shown, setting: Setting) -> Cells:
    return {
        pair: setup
        for pair, setups in shown.catalogue.pairs.items()
        for setup in setups
        if setup.setting == setting
    }


def matrix_pages(shown: Shown) -> Iterator[File]:
    """Make every part of every matrix."""
    every = matrices(shown)
    for matrix in every:
        for part in _parts(shown):
            yield _page(shown, matrix, part, every)


def _parts(shown: Shown) -> Iterator[_Part]:
    rows, columns = _blocks(shown.catalogue.cards, _ROWS), _blocks(shown.catalogue.models, _COLUMNS)
    for down, some in enumerate(rows):
        for across, few in enumerate(columns):
            yield _Part(some, few, (down, across), (rows, columns))


def _blocks(subjects: Sequence[Subject], most: int) -> list[Sequence[Subject]]:
    """Cut into blocks of nearly the same length."""
    count = -(-len(subjects) // most)
    size = -(-len(subjects) // count)
    return [subjects[start : start + size] for start in range(0, len(subjects), size)]


def _part_path(matrix: Matrix, down: int, across: int) -> str:
    stem = matrix.path.removesuffix(".html")
    return matrix.path if not down and not across else f"{stem}-{down + 1}-{across + 1}.html"


def _page(shown: Shown, matrix: Matrix, part: _Part, every: Sequence[Matrix]) -> File:
    path = _part_path(matrix, *part.at)
    root = "../" * path.count("/")
    settings = [
        {
            "name": other.setting or "the best setup of each pair",
            "href": "" if other is matrix else f"{root}{_part_path(other, *part.at)}",
        }
        for other in every
    ]
    several = len(part.of[0]) * len(part.of[1])
    number = part.at[0] * len(part.of[1]) + part.at[1] + 1
    context = {
        "heading": matrix.heading,
        "part": f"{number} of {several}",
        "setting": matrix.setting,
        "settings": settings if len(every) > 1 else [],
        "legend": shown.site.legend(),
        "matrix": table(shown, matrix, part, root),
        **shown.counts(),
    }
    return in_parts([part], lambda _part, _at, _of: shown.site.page(
        path, "matrix_page", context, section="matrix", trail=[("Matrix", "")]
    ))[0]  # fmt: skip


def table(shown: Shown, matrix: Matrix, part: _Part, root: str) -> str:
    """Make one part of a matrix with its filters."""
    columns = [
        {"name": one.name, "href": f"{root}model/{one.slug}.html", "group": one.group}
        for one in part.columns
    ]
    return shown.site.piece("matrix", {
        "pager": _pager(matrix, part, root),
        "groups": sorted({one.group for one in part.rows}),
        "families": sorted({one.group for one in part.columns}),
        "sizes": sizes_for(CARD, part.rows),
        "states": list(shown.site.words.values()),
        "columns": columns,
        "rows": [_row(shown, matrix, one, part.columns, root) for one in part.rows],
    })  # fmt: skip


def _row(shown: Shown, matrix: Matrix, one: Subject, columns: Sequence[Subject], root: str) -> Row:
    cells = (matrix.cells.get((one.key, model.key)) for model in columns)
    return {
        "name": one.name,
        "href": f"{root}card/{one.slug}.html",
        "group": one.group,
        "gib": gib(one.size),
        "size": size_text(one, CARD.word),
        "cells": [_cell(shown, setup, root) if setup else {"state": ""} for setup in cells],
    }


def _cell(shown: Shown, setup: Setup, root: str) -> Row:
    words = shown.site.words[setup.state]
    return {
        "state": setup.state,
        "symbol": words.symbol,
        "word": words.word,
        "format": plain(setup.precision),
        "href": f"{root}{shown.pair_path(setup)}",
    }


def _pager(matrix: Matrix, part: _Part, root: str) -> list[Row]:
    """Link the other blocks of cards at these models, and of models at these cards."""
    rows, columns = part.of
    down, across = part.at
    lines: list[Row] = []
    if len(rows) > 1:
        items = [
            _link(matrix, (at, across), part.at, _span(block), root)
            for at, block in enumerate(rows)
        ]
        lines.append({"name": "Cards:", "items": items})
    if len(columns) > 1:
        items = [
            _link(matrix, (down, at), part.at, _span(block), root)
            for at, block in enumerate(columns)
        ]
        lines.append({"name": "Models:", "items": items})
    return lines


def _link(
    matrix: Matrix, at: tuple[int, int], now: tuple[int, int], name: str, root: str
) -> dict[str, str]:
    return {"name": name, "href": "" if at == now else f"{root}{_part_path(matrix, *at)}"}


def _span(block: Sequence[Subject]) -> str:
    """Name a block by its groups: ``NVIDIA``, ``Gemma to Llama 3``."""
    first, last = block[0], block[-1]
    if first.group == last.group:
        return f"{first.group}, {first.name} to {last.name}" if len(block) > 1 else first.name
    return f"{first.group} to {last.group}"


def start_page(shown: Shown, scripts: Sequence[str]) -> File:
    """Make the start page: the search, and the matrix or the first part of it."""
    first = next(_parts(shown))
    whole = Matrix("What runs where", "", "matrix.html", shown.catalogue.best)
    context = {
        "legend": shown.site.legend(),
        "matrix": table(shown, whole, first, ""),
        **shown.counts(),
    }
    return shown.site.page("index.html", "start", context, scripts=scripts)


def search_entries(shown: Shown) -> Iterator[Mapping[str, str]]:
    """Give what the search finds: every card, then every model."""
    for kind in (CARD, MODEL):
        for one in shown.of_kind(kind):
            setups = shown.setups(kind, one)
            fitting = sum(setup.runs for setup in setups)
            other = "model" if kind is CARD else "card"
            said = f"{fitting} of {counted(len(setups), other)} fit"
            if kind is MODEL:
                said = f"fits on {fitting} of {counted(len(setups), other)}"
            yield {
                "name": one.name,
                "href": f"{kind.folder}/{one.slug}.html",
                "note": f"{one.group}, {size_text(one, kind.word)}, {said}",
            }
