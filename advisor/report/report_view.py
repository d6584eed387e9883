"""The result document -> placeholders: every number already text, empty where unknown."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, cast

from advisor.remedies.offload import EXPERTS, LAYERS
from advisor.report import clauses
from advisor.report import figures as f
from advisor.report.figures import Strings, flag
from advisor.report.memory_view import memory_view, places_layers, split_of
from advisor.report.proof import proof_view
from advisor.report.unequal_cards import cards_named, disputed_figures, unequal_view
from advisor.report.variants import SEED, variation
from advisor.report.words import Words, known, say, words

if TYPE_CHECKING:
    from advisor.report.contract import Document, GpuDoc, ModelDoc

_BEYOND_NOMINAL = 0.02
_KEPT = 1_024
"""Models and cards about which texts are kept."""
WRITES = frozenset({"text", "vision"})
"""What models take in that answer in text."""
_OFFLOADS = frozenset({LAYERS.action, EXPERTS.action})
LONG_CONTEXT_TOKENS = 8192
"""From here on sentences say for which part of a conversation a speed holds."""


def situation_view(doc: Document) -> Strings:
    """Write every scenario figure out, for templates of all kinds."""
    return {
        SEED: _seed(doc),
        **_state(doc),
        **_card(doc),
        **_model(doc),
        **_request(doc),
        **memory_view(doc),
        **_speed(doc),
        **_host(doc),
        **proof_view(doc),
    }


def _seed(doc: Document) -> str:
    """Hash what was asked; computed figures are left out, so better figures change no wording."""
    asked = doc["scenario"]
    cards = [card["name"] for card in asked["cards"]] or [
        asked["gpu"]["name"] if asked["gpu"] else ""
    ]
    how = (asked["gpus"], asked["precision"], asked["kv_cache"], asked["framework"])
    much = (asked["context_tokens"], asked["batch"], asked["prefer"])
    return variation([*cards, asked["model"]["name"], *how, *much])


def _state(doc: Document) -> Strings:
    state = doc["verdict"]["state"]
    return {
        "state": state,
        "runs": flag(state in {"fits", "tight"}),
        "has_remedies": flag(doc["recommendations"]),
        "tight": flag(state == "tight"),
        "offloadable": flag(state == "needs_offload" and places_layers(doc)),
    }


def _card(doc: Document) -> Strings:
    gpu, gpus = doc["scenario"]["gpu"], doc["scenario"]["gpus"]
    speed = str(doc["facts"].get("gpu.bandwidth_class", "")).replace("_", " ")
    if gpu is not None and not doc["scenario"]["cards"]:
        disputed = tuple((field, tuple(values)) for field, values in gpu["disputed"].items())
        fields = tuple(item for item in gpu.items() if item[0] != "disputed")
        return _card_texts(words(), fields, disputed, gpus, speed)
    base = _cards_word(gpu, gpus) | dict.fromkeys(_CARD_KEYS, "")
    if gpu is None:
        return base | {"cards": say("card.none")}
    return base | unequal_view(doc, gpu) | _market(gpu)


def _cards_word(gpu: GpuDoc | None, gpus: int) -> Strings:
    word = say("card.word.some" if gpus > 1 else "card.word")
    return {
        "request_gpus": f.count(gpus),
        "several_cards": flag(gpus > 1),
        "card_word": say("card.word.shared") if gpu and gpu["unified_memory"] else word,
        "unequal_cards": "",
        "card_shares": "",
    }


@lru_cache(maxsize=_KEPT)
def _card_texts(
    _words: Words,
    fields: tuple[tuple[str, object], ...],
    disputed: tuple[tuple[str, tuple[str, ...]], ...],
    gpus: int,
    speed: str,
) -> Strings:
    """Write about equal cards of one kind; reports on one card come again and again."""
    gpu = cast("GpuDoc", {**dict(fields), "disputed": dict(disputed)})
    name, memory = gpu["name"], f.size(gpu["vram_bytes"])
    kind = say("memory.shared") if gpu["unified_memory"] else gpu["vram_type"] or ""
    return {
        **_cards_word(gpu, gpus),
        "cards": cards_named(name, gpus),
        "gpu_name": name,
        "gpu_vendor": gpu["vendor"],
        "gpu_architecture": "" if gpu["vendor"] == "Apple" else gpu["architecture"],
        "gpu_vram": memory,
        "gpu_memory": say("memory.of", size=memory, kind=kind or say("memory.plain"))
        if memory
        else "",
        "gpu_memory_kind": kind,
        "gpu_bandwidth": f.quantity(gpu["bandwidth_bytes_s"], "GB/s"),
        "gpu_bandwidth_class": speed,
        "gpu_cores": _cores(gpu["vendor"], gpu["cores"]),
        "gpu_tensor_cores": f.count(gpu["tensor_cores"]),
        "gpu_compute": f.quantity(gpu["fp16_tensor_tflops_fp32acc"], "TFLOPS"),
        "gpu_tdp": f.quantity(gpu["tdp_w"], "W"),
        "gpu_tdp_all": f.quantity(gpu["tdp_w"] * gpus, "W") if gpu["tdp_w"] and gpus > 1 else "",
        "gpu_launch_price": f.dollars(gpu["launch_price_usd"]),
        "gpu_release_year": (gpu["released"] or "")[:4],
        "gpu_unified_memory": flag(gpu["unified_memory"]),
        "gpu_disputed": disputed_figures(gpu),
        **_market(gpu),
    }


_CARD_KEYS = (
    "gpu_name", "gpu_vendor", "gpu_architecture", "gpu_vram", "gpu_memory", "gpu_memory_kind",
    "gpu_bandwidth",
    "gpu_bandwidth_class", "gpu_cores", "gpu_tensor_cores", "gpu_compute", "gpu_tdp",
    "gpu_tdp_all", "gpu_launch_price", "gpu_release_year", "gpu_unified_memory", "gpu_laptop",
    "gpu_datacenter", "gpu_disputed",
)  # fmt: skip


def _market(gpu: GpuDoc) -> Strings:
    return {
        "gpu_laptop": flag(gpu["segment"] == "mobile"),
        "gpu_datacenter": flag(gpu["segment"] == "datacenter"),
    }


def _cores(vendor: str, cores: int | None) -> str:
    if not cores:
        return ""
    kind = vendor.casefold() if known("cores", vendor.casefold()) else "other"
    return say(f"cores.{kind}", n=f.count(cores))


def _model(doc: Document) -> Strings:
    asked = doc["scenario"]
    return _model_texts(words(), tuple(asked["model"].items()), asked["context_tokens"])


@lru_cache(maxsize=_KEPT)
def _model_texts(
    _words: Words, fields: tuple[tuple[str, object], ...], context_tokens: int
) -> Strings:
    """Write about a model; reports on one model follow one another."""
    model = cast("ModelDoc", dict(fields))
    label = model["label_parameters_b"]
    sparse = model["active_parameters"] < model["parameters"]
    return {
        "model_name": model["name"],
        "model_family": model["family"],
        "model_parameters": f.billions(model["parameters"]),
        "model_label": f.billions(label * 1e9) if label else "",
        "model_active_parameters": f.billions(model["active_parameters"]) if sparse else "",
        "model_moe": flag(model["experts"]),
        "model_experts": f.count(model["experts"]),
        "model_experts_used": f.count(model["experts_used"]),
        "model_layers": f.count(model["layers"]),
        "model_generates": flag(model["modality"] in WRITES),
        "model_transcribes": flag(model["modality"] == "audio"),
        "model_vision": flag(model["modality"] == "vision"),
        "model_vision_parameters": f.billions(model["vision_parameters"] or None),
        "model_image_tokens": clauses.image_tokens(model["image_tokens"]),
        "model_images_held": clauses.images_held(model["image_tokens"], context_tokens),
        "model_trained_context": f.count(model["trained_context_tokens"]),
        "model_licence": f.plain(model["licence"] or ""),
    }


def _request(doc: Document) -> Strings:
    asked = doc["scenario"]
    trained = asked["model"]["trained_context_tokens"]
    bits = doc["memory"]["bits_per_weight"]
    return {
        "weights_format": asked["precision"],
        "weights_bits": f"{bits:.1f}" if bits else "",
        "weights_published": str(doc["facts"].get("weights.published", "")).partition("_")[0],
        "weights_nominal": f.nominal(doc["memory"]["nominal_weights_gb"]),
        "weights_nominal_why": _nominal_why(doc),
        "weights_nominal_above": flag(_nominal_above(doc)),
        "weights_quality_loss": f.percent(asked["precision_quality_loss_percent"]),
        "request_context": f.count(asked["context_tokens"]),
        "request_context_beyond": flag(trained and asked["context_tokens"] > trained),
        "request_batch": f.count(asked["batch"]),
        "request_several": flag(asked["batch"] > 1),
        "request_kv_cache": asked["kv_cache"],
        "request_flash_attention": flag(asked["flash_attention"]),
        "request_depth": f.count(asked["depth_tokens"] or None),
        "request_kind": str(doc["facts"].get("workload.kind", "")),
        "request_prefer": asked["prefer"],
        "request_split": split_of(doc),
        "framework_name": asked["framework"],
        "framework_offloads": flag(asked["framework_offloads"]),
        "framework_places_layers": flag(places_layers(doc)),
        "framework_split": asked["framework_split"] or "",
        "request_draft_model": asked["draft_model"] or "",
        "request_mtp": f.count(asked["mtp"] or None),
        "backend": asked["backend"] or "",
        "backend_unusual": flag(asked["backend_usual"] is False),
    }


def _nominal_above(doc: Document) -> bool:
    """Whether the rule of thumb, which leaves things out, still says more than the full count."""
    nominal, full = doc["memory"]["nominal_weights_gb"], doc["memory"]["required_bytes"]
    return nominal is not None and nominal * 1e9 > full and bool(_nominal_why(doc))


def _nominal_why(doc: Document) -> str:
    memory, asked = doc["memory"], doc["scenario"]
    label, exact = asked["model"]["label_parameters_b"], asked["model"]["parameters"]
    if memory["nominal_weights_gb"] is None or not label:
        return ""
    reasons = []
    if abs(exact / (label * 1e9) - 1) > _BEYOND_NOMINAL:
        reasons.append(say("nominal.parameters", parameters=f.billions(exact)))
    nominal_bytes, bits = asked["precision_nominal_bytes_per_weight"], memory["bits_per_weight"]
    if nominal_bytes and bits and abs(bits / (8 * nominal_bytes) - 1) > _BEYOND_NOMINAL:
        tower = asked["model"]["vision_parameters"]
        word = "nominal.bits.vision" if tower else "nominal.bits"
        reasons.append(say(word, format=asked["precision"], bits=f"{bits:.1f}"))
    return f.listed(reasons)


def _speed(doc: Document) -> Strings:
    speed = None if doc["memory"]["deficit_bytes"] else doc["speed"]
    figure = speed["decode_tok_s"] if speed else None
    together = speed["aggregate_tok_s"] if speed and doc["scenario"]["batch"] > 1 else None
    measured = figure is not None and figure["evidence"] == "measured"
    modelled = figure["modelled"] if figure else None
    return {
        "speed_known": flag(figure),
        "speed_decode": f.speed_range(figure),
        "speed_point": f.speed_point(figure),
        "speed_evidence": f.evidence(figure),
        "speed_measured": flag(measured),
        "speed_modelled": say("speed.point", speed=f.rate(modelled))
        if measured and modelled
        else "",
        "speed_prefill": f.speed_range(speed["prefill_tok_s"]) if speed else "",
        "speed_first_token": f.wait(speed["first_token_s"]) if speed else "",
        "speed_prompt": f.count(speed["prompt_tokens"]) if speed else "",
        "speed_few_cards": f.few_cards(speed["cards"]) if speed and not measured else "",
        "speed_aggregate": f.speed_range(together),
        "speed_when": _when(speed["depth_tokens"]) if speed else "",
        "speed_speculative": f.span(doc["speculative_tok_s"]) if figure else "",
        "speed_depth": f.count(speed["depth_tokens"]) if speed and speed["depth_tokens"] else "",
        "speed_feel": known("feel", doc["facts"].get("speed.class")) if figure else "",
        "bound_by": say(f"bound.{speed['bound_by']}") if speed else "",
    }


def _offloaded(doc: Document) -> int | None:
    """What the best recommended offload puts into system RAM; None without one."""
    items = doc["recommendations"]
    return next((i["after"]["host_bytes"] for i in items if i["action"] in _OFFLOADS), None)


def _when(depth_tokens: int) -> str:
    if depth_tokens:
        return say("when.deep", tokens=f.count(depth_tokens))
    return say("when.start")


def _host(doc: Document) -> Strings:
    asked = doc["scenario"]
    needed = doc["facts"].get("host.ram_needed")
    least = needed if isinstance(needed, float | int) and not isinstance(needed, bool) else None
    stated = asked["ram_bytes"]
    too_big, held = doc["verdict"]["state"] == "too_big", doc["memory"]["deficit_bytes"] == 0
    lacking = bool(stated and least and least > stated)
    alone = too_big and held and lacking
    return {
        "host_ram": f.size(stated),
        "host_ram_needed": f.amount(least) if places_layers(doc) or alone else "",
        "host_ram_offload": f.amount(_offloaded(doc)),
        "host_ram_short": flag(alone or (too_big and lacking and places_layers(doc))),
        "host_ram_alone": flag(alone),
        "host_ram_bandwidth": f.quantity(asked["ram_bandwidth_bytes_s"], "GB/s"),
        "host_cpu_cores": f.count(asked["cpu_cores"]),
        "missing_figures": f.listed(
            [known("missing", name) or f.plain(name.replace("_", " ")) for name in doc["missing"]]
        ),
    }
