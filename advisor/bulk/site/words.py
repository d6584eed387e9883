"""Figures and settings as the pages print them, and the words of verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.bulk.site.catalogue import (
    CARD,
    Kind,
    Setting,
    Setup,
    Subject,
)
from advisor.bulk.site.page import State
from advisor.report import figures as f
from advisor.units import GIB, plain

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
        "speed": f"{f.rate(setup.speed[0])} tok/s" if setup.speed else "",
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
