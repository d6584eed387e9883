"""A recommendation -> placeholders: what changes, and the figures before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from advisor.knowledge.cards import TOGETHER
from advisor.render import figures as f
from advisor.render.clauses import article
from advisor.render.figures import Strings, flag
from advisor.render.memory_view import layers_of
from advisor.render.wording import counted, known, say

if TYPE_CHECKING:
    from advisor.render.contract import Document, FigureDoc, RecommendationDoc, SetupDoc

_SAME_SPEED = 0.03
_SMALL_LOSS = 1.0


def option_view(doc: Document, item: RecommendationDoc) -> Strings:
    """Write a recommendation's figures out, before and after."""
    return {
        **_option_setup(doc, item),
        **_option_memory(item),
        **_option_speed(item),
        "option_alternatives": f.listed(_alternatives(doc, item)),
    }


def caveats_of(told: Strings) -> list[str]:
    """Name the texts of templates/report that warn of a recommendation."""
    named = {"last_resort": "option_last_resort", "thin_margin": "option_thin"}
    return [name for name, placeholder in named.items() if told[placeholder]]


def _alternatives(doc: Document, item: RecommendationDoc) -> list[str]:
    """Name the runners-up by what sets them apart, with what they need."""
    return [
        say(
            "alternative",
            change=_told_apart(doc, item, other["setup"]),
            required=f.amount(other["after"]["required_bytes"]),
        )
        for other in item["alternatives"]
    ]


def _format_elsewhere(item: RecommendationDoc, setup: SetupDoc) -> str:
    moved = setup["framework"] != item["setup"]["framework"]
    if not moved:
        return setup["precision"]
    return say("format.in", format=setup["precision"], framework=setup["framework"])


def _model_elsewhere(doc: Document, setup: SetupDoc) -> str:
    other = setup["precision"] != doc["scenario"]["precision"]
    if not other:
        return setup["model"]
    return say("format.in", format=setup["model"], framework=setup["precision"])


def _told_apart(doc: Document, item: RecommendationDoc, setup: SetupDoc) -> str:
    by_action = {
        "quantize": _format_elsewhere(item, setup),
        "smaller-model": _model_elsewhere(doc, setup),
        "upgrade-gpu": setup["gpu"],
        "cloud": setup["gpu"],
        "change-framework": setup["framework"],
        "quantize-kv": setup["kv_cache"],
    }
    return by_action.get(item["action"]) or f.listed(changes(doc, setup))


def _option_setup(doc: Document, item: RecommendationDoc) -> Strings:
    setup, cost = item["setup"], item["tradeoff"]
    effort = cost["effort"]
    return {
        "option_action": item["action"],
        "option_changes": f.listed(changes(doc, setup)),
        "option_format": setup["precision"],
        "option_quality_loss": f.percent(cost["quality"]),
        "option_moved_back": _moved(doc, setup, 1),
        "option_moved_out": _moved(doc, setup, -1),
        **_quality(cost["quality_change"] if _alters_answers(doc, setup) else 0.0),
        "option_kv_cache": setup["kv_cache"],
        "option_context": f.count(setup["context_tokens"]),
        "option_batch": f.count(setup["batch"]),
        "option_gpus": f.count(setup["gpus"]),
        "option_gpu": setup["gpu"] or "",
        "option_second_gpu": _second(doc, setup),
        "option_gpu_vram": f.size(setup["gpu_vram_bytes"]),
        "option_bandwidth": f.quantity(setup["gpu_bandwidth_bytes_s"], "GB/s"),
        "option_model": setup["model"],
        "option_same_family": flag(setup["model_family"] == doc["scenario"]["model"]["family"]),
        "option_parameters": f.billions(setup["model_parameters"]),
        "option_framework": setup["framework"],
        "option_new_framework": _new(setup["framework"], doc["scenario"]["framework"]),
        "option_besides": f.listed(_besides(doc, item)),
        "option_split": setup["framework_split"] or "",
        "option_extra_cards": _extra_cards(setup["gpus"] - _owned(doc, setup)),
        "option_kv_article": article(setup["kv_cache"]),
        "option_layers": _layers(setup),
        "option_cpu_experts": f.count(setup["cpu_experts"] or None),
        "option_draft_model": setup["draft_model"] or "",
        "option_mtp": f.count(setup["mtp"] or None),
        "option_cost": f.dollars(cost["cost_usd"]),
        "option_effort": known("effort", effort) or effort,
        "option_effort_kind": effort,
        "option_confidence": item["confidence"],
        "option_last_resort": flag(item["score"] <= 0),
    }


def _new(after: str, before: str) -> str:
    return after if after != before else ""


def _second(doc: Document, setup: SetupDoc) -> str:
    """The card that comes beside the request's own, where it is of another kind."""
    own = doc["scenario"]["gpu"]
    first, _, second = (setup["gpu"] or "").partition(TOGETHER)
    return second if own and first == own["name"] and not doc["scenario"]["cards"] else ""


def _owned(doc: Document, setup: SetupDoc) -> int:
    """Count the cards of the request that the changed setup keeps."""
    each = doc["scenario"]["cards"]
    return sum(card["name"] == setup["gpu"] for card in each) or doc["scenario"]["gpus"]


def _extra_cards(extra: int) -> str:
    if extra < 1:
        return ""
    return counted("extra", extra)


_OWN: Mapping[str, frozenset[str]] = {
    "quantize": frozenset({"precision"}),
    "quantize-kv": frozenset({"kv_cache"}),
    "shrink-context": frozenset({"context_tokens"}),
    "shrink-batch": frozenset({"batch"}),
    "grow-batch": frozenset({"batch"}),
    "offload-layers": frozenset({"gpu_layers"}),
    "offload-experts": frozenset({"cpu_experts"}),
    "add-gpus": frozenset({"gpus"}),
    "upgrade-gpu": frozenset({"gpu", "gpus"}),
    "smaller-model": frozenset({"model"}),
    "change-framework": frozenset({"framework", "precision"}),
    "speculative": frozenset({"draft_model", "mtp"}),
    "cloud": frozenset({"gpu", "gpus"}),
}
"""What the title and text of an action speak of."""


def _besides(doc: Document, item: RecommendationDoc) -> list[str]:
    """Say in words what a change brings beside its own subject."""
    own = _OWN.get(item["action"])
    if own is None:
        return []
    return [words for subject, words in differences(doc, item["setup"]) if subject not in own]


def _alters_answers(doc: Document, setup: SetupDoc) -> bool:
    asked = doc["scenario"]
    before = (asked["precision"], asked["kv_cache"], asked["model"]["name"])
    return before != (setup["precision"], setup["kv_cache"], setup["model"])


def _quality(change: float | None) -> Strings:
    lost, gained = change is not None and change > 0, change is not None and change < 0
    return {
        "option_quality_cost": f.percent(change) if lost else "",
        "option_quality_gain": f.percent(-change) if change and gained else "",
        "option_quality_small": flag(lost and change is not None and change <= _SMALL_LOSS),
        "option_quality_same": flag(change == 0),
        "option_quality_unknown": flag(change is None),
    }


def _layers(setup: SetupDoc) -> str:
    on_card, layers = setup["gpu_layers"], setup["layers"]
    return "" if on_card is None or on_card > layers else layers_of(on_card, layers)


def _moved(doc: Document, setup: SetupDoc, sign: int) -> str:
    """Say what a setup moves to the card (1) or to system RAM (-1), empty where nothing."""
    asked, most = doc["scenario"], setup["layers"] + 1
    if setup["model"] != asked["model"]["name"]:
        return ""
    before, after = (
        most if n is None else min(n, most) for n in (asked["gpu_layers"], setup["gpu_layers"])
    )
    layers = sign * (after - before)
    experts = sign * (asked["cpu_experts"] - setup["cpu_experts"])
    found = [counted("moved.layers", layers)] if layers > 0 else []
    return f.listed([*found, *([counted("moved.experts", experts)] if experts > 0 else [])])


def changes(doc: Document, setup: SetupDoc) -> list[str]:
    """Say in words everything in which a setup differs from the request."""
    return [words for _, words in differences(doc, setup)]


def differences(doc: Document, setup: SetupDoc) -> Iterator[tuple[str, str]]:
    """Give what differs from the request and the words for it."""
    asked = doc["scenario"]
    card = asked["gpu"]["name"] if asked["gpu"] else None
    if (setup["gpu"], setup["gpus"]) != (card, asked["gpus"]):
        more = setup["gpu"] == card or any(setup["gpu"] == c["name"] for c in asked["cards"])
        together = setup["gpu"] or ""
        unequal = TOGETHER in together
        words = together if unequal else say("change.gpus", n=setup["gpus"], card=together)
        yield "gpus" if more or unequal else "gpu", words
    if setup["model"] != asked["model"]["name"]:
        yield "model", say("change.model", model=setup["model"])
    if setup["framework"] != asked["framework"]:
        yield "framework", say("change.framework", framework=setup["framework"])
    if setup["precision"] != asked["precision"]:
        yield "precision", say("change.precision", format=setup["precision"])
    if setup["kv_cache"] != asked["kv_cache"]:
        kind = setup["kv_cache"]
        yield "kv_cache", say("change.kv_cache", article=article(kind), type=kind)
    if setup["context_tokens"] != asked["context_tokens"]:
        yield "context_tokens", say("change.context", n=f.count(setup["context_tokens"]))
    yield from _smaller_differences(doc, setup)


def _smaller_differences(doc: Document, setup: SetupDoc) -> Iterator[tuple[str, str]]:
    asked = doc["scenario"]
    if setup["batch"] != asked["batch"]:
        yield "batch", counted("change.batch", setup["batch"])
    if setup["gpu_layers"] != asked["gpu_layers"] and (layers := _layers(setup)):
        where = "change.layers.some" if setup["gpus"] > 1 else "change.layers"
        yield "gpu_layers", say(where, layers=layers)
    if setup["cpu_experts"] != asked["cpu_experts"] and setup["cpu_experts"]:
        yield "cpu_experts", say("change.experts", n=setup["cpu_experts"])
    if setup["draft_model"] and setup["draft_model"] != asked["draft_model"]:
        yield "draft_model", say("change.draft", model=setup["draft_model"])
    if setup["mtp"] and setup["mtp"] != asked["mtp"]:
        yield "mtp", counted("change.mtp", setup["mtp"])
    if not setup["mtp"] and asked["mtp"]:
        yield "mtp", say("change.no_mtp")
    if not setup["draft_model"] and asked["draft_model"]:
        yield "draft_model", say("change.no_draft")


def _option_memory(item: RecommendationDoc) -> Strings:
    before, after = item["before"]["required_bytes"], item["after"]
    saved = before - after["required_bytes"]
    fits, setup = after["fits"], item["setup"]
    split = _layers(setup) or setup["cpu_experts"]
    return {
        "option_fits": flag(fits),
        "option_required": f.amount(after["required_bytes"]),
        "option_headroom": f.amount(after["headroom_bytes"]) if fits else "",
        "option_thin": flag(after["margin"] == "thin"),
        "option_deficit": "" if fits else f.amount(after["deficit_bytes"]),
        "option_saved": f.amount(saved) if saved > 0 else "",
        "option_added": f.amount(-saved) if saved < 0 else "",
        "option_weights": f.amount(after["weights_bytes"]),
        "option_kv_cache_size": f.amount(after["kv_cache_bytes"]),
        "option_host_ram": f.amount(after["host_bytes"]) if split else "",
        "before_required": f.amount(before),
    }


def _option_speed(item: RecommendationDoc) -> Strings:
    before, after = item["before"]["decode_tok_s"], item["after"]["decode_tok_s"]
    together = item["after"]["aggregate_tok_s"] if item["setup"]["batch"] > 1 else None
    return {
        "option_speed": f.speed_range(after),
        "option_speed_point": f.speed_point(after),
        "option_speed_evidence": f.evidence(after),
        "option_speed_change": _speed_change(before, after),
        "option_aggregate": f.speed_range(together),
        "option_speculative": f.span(item["speculative_tok_s"]),
        "before_speed": f.speed_range(before),
    }


def _speed_change(before: FigureDoc | None, after: FigureDoc | None) -> str:
    if not before or not after:
        return ""
    ratio = after["estimate"] / before["estimate"] if before["estimate"] else 1.0
    if abs(ratio - 1) <= _SAME_SPEED:
        return say("pace.same")
    return say("pace.faster" if ratio > 1 else "pace.slower")
