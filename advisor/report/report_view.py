"""The result document -> placeholders: every number already text, empty where unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.knowledge.vendors import MAKERS
from advisor.remedies.offload import EXPERTS, LAYERS
from advisor.report import clauses
from advisor.report import figures as f
from advisor.report.figures import Strings, flag
from advisor.report.memory_view import memory_view, places_layers, split_of
from advisor.report.template_writer import SEED, variation
from advisor.report.unequal_cards import cards_named, disputed_figures, proof_view, unequal_view
from advisor.report.words import known, say
from advisor.scenario.settings import STATED
from advisor.units import plain

if TYPE_CHECKING:
    from advisor.advice.document import Advice, GpuDoc, ModelDoc

_BEYOND_NOMINAL = 0.02
"""Models and cards about which texts are kept."""
WRITES = frozenset({"text", "vision"})
"""What models take in that answer in text."""
_OFFLOADS = frozenset({LAYERS.action, EXPERTS.action})
LONG_CONTEXT_TOKENS = 8192
"""From here on sentences say for which part of a conversation a speed holds."""


def situation_view(doc: Advice) -> Strings:
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


def _seed(doc: Advice) -> str:
    """Hash what was asked; computed figures are left out, so better figures change no wording."""
    asked = doc.scenario
    cards = [card.name for card in asked.cards] or [asked.gpu.name if asked.gpu else ""]
    how = (asked.gpus, asked.precision, asked.kv_cache, asked.framework)
    much = (asked.context_tokens, asked.batch, asked.prefer)
    return variation([*cards, asked.model.name, *how, *much])


def _state(doc: Advice) -> Strings:
    state = doc.verdict.state
    return {
        "fit.state": state,
        "fit.runs": flag(state in {"fits", "tight"}),
        "options.recommended": flag(doc.recommendations),
        "fit.tight": flag(state == "tight"),
        "fit.offloadable": flag(state == "needs_offload" and places_layers(doc)),
    }


def _card(doc: Advice) -> Strings:
    gpu, gpus = doc.scenario.gpu, doc.scenario.gpus
    speed = str(doc.facts.get("gpu.bandwidth_class", "")).replace("_", " ")
    if gpu is not None and not doc.scenario.cards:
        return _card_texts(gpu, gpus, speed)
    base = _cards_word(gpu, gpus) | dict.fromkeys(_CARD_KEYS, "")
    if gpu is None:
        return base | {"gpu.cards": say("card.none")}
    return base | unequal_view(doc, gpu) | _market(gpu)


def _cards_word(gpu: GpuDoc | None, gpus: int) -> Strings:
    word = say("card.word.some" if gpus > 1 else "card.word")
    return {
        "request.gpus": f.count(gpus),
        "request.several_gpus": flag(gpus > 1),
        "gpu.word": say("card.word.shared") if gpu and gpu.unified_memory else word,
        "gpu.unequal_cards": "",
        "gpu.card_shares": "",
    }


def _card_texts(gpu: GpuDoc, gpus: int, speed: str) -> Strings:
    """Write about equal cards of one kind; reports on one card come again and again."""
    name, memory = gpu.name, f.size(gpu.vram_bytes)
    kind = say("memory.shared") if gpu.unified_memory else gpu.vram_type or ""
    return {
        **_cards_word(gpu, gpus),
        "gpu.cards": cards_named(name, gpus),
        "gpu.name": name,
        "gpu.vendor": gpu.vendor,
        "gpu.architecture": "" if MAKERS[gpu.vendor].one_memory else gpu.architecture,
        "gpu.vram": memory,
        "gpu.memory": say("memory.of", size=memory, kind=kind or say("memory.plain"))
        if memory
        else "",
        "gpu.memory_kind": kind,
        "gpu.bandwidth": f.quantity(gpu.bandwidth_bytes_s, "GB/s"),
        "gpu.bandwidth_class": speed,
        "gpu.cores": _cores(gpu.vendor, gpu.cores),
        "gpu.tensor_cores": f.count(gpu.tensor_cores),
        "gpu.fp16_compute": f.quantity(gpu.fp16_tensor_tflops_fp32acc, "TFLOPS"),
        "gpu.tdp": f.quantity(gpu.tdp_w, "W"),
        "gpu.tdp_all": f.quantity(gpu.tdp_w * gpus, "W") if gpu.tdp_w and gpus > 1 else "",
        "gpu.launch_price": f.dollars(gpu.launch_price_usd),
        "gpu.release_year": (gpu.released or "")[:4],
        "gpu.unified_memory": flag(gpu.unified_memory),
        "gpu.disputed_figures": disputed_figures(gpu),
        **_market(gpu),
    }


_CARD_KEYS = (
    "gpu.name", "gpu.vendor", "gpu.architecture", "gpu.vram", "gpu.memory", "gpu.memory_kind",
    "gpu.bandwidth",
    "gpu.bandwidth_class", "gpu.cores", "gpu.tensor_cores", "gpu.fp16_compute", "gpu.tdp",
    "gpu.tdp_all", "gpu.launch_price", "gpu.release_year", "gpu.unified_memory", "gpu.laptop",
    "gpu.datacenter", "gpu.disputed_figures",
)  # fmt: skip


def _market(gpu: GpuDoc) -> Strings:
    return {
        "gpu.laptop": flag(gpu.segment == "mobile"),
        "gpu.datacenter": flag(gpu.segment == "datacenter"),
    }


def _cores(vendor: str, cores: int | None) -> str:
    if not cores:
        return ""
    kind = vendor.casefold() if known("cores", vendor.casefold()) else "other"
    return say(f"cores.{kind}", n=f.count(cores))


def _model(doc: Advice) -> Strings:
    asked = doc.scenario
    return _model_texts(asked.model, asked.context_tokens)


def _model_texts(model: ModelDoc, context_tokens: int) -> Strings:
    """Write about a model; reports on one model follow one another."""
    label = model.label_parameters_b
    sparse = model.active_parameters < model.parameters
    return {
        "model.name": model.name,
        "model.family": model.family,
        "model.parameters": f.billions(model.parameters),
        "model.label_parameters": f.billions(label * 1e9) if label else "",
        "model.active_parameters": f.billions(model.active_parameters) if sparse else "",
        "model.moe": flag(model.experts),
        "model.experts": f.count(model.experts),
        "model.experts_used": f.count(model.experts_used),
        "model.layers": f.count(model.layers),
        "model.generates": flag(model.modality in WRITES),
        "model.transcribes": flag(model.modality == "audio"),
        "model.vision": flag(model.modality == "vision"),
        "model.vision_parameters": f.billions(model.vision_parameters or None),
        "model.image_cost": clauses.image_tokens(model.image_tokens),
        "model.images_held": clauses.images_held(model.image_tokens, context_tokens),
        "model.trained_context": f.count(model.trained_context_tokens),
        "model.licence": plain(model.licence or ""),
    }


def _request(doc: Advice) -> Strings:
    asked = doc.scenario
    trained = asked.model.trained_context_tokens
    bits = doc.memory.bits_per_weight
    return {
        "weights.format": asked.precision,
        "weights.bits_per_weight": f"{bits:.1f}" if bits else "",
        "weights.published": str(doc.facts.get("weights.published", "")).partition("_")[0],
        "weights.nominal": f.nominal(doc.memory.nominal_weights_gb),
        "weights.nominal_why": _nominal_why(doc),
        "weights.nominal_above": flag(_nominal_above(doc)),
        "weights.quality_loss": f.percent(asked.precision_quality_loss_percent),
        "request.context": f.count(asked.context_tokens),
        "request.context_beyond_training": flag(trained and asked.context_tokens > trained),
        "request.batch": f.count(asked.batch),
        "request.several_sequences": flag(asked.batch > 1),
        "request.kv_cache": asked.kv_cache,
        "request.flash_attention": flag(asked.flash_attention),
        "request.depth": f.count(asked.depth_tokens or None),
        "workload.kind": str(doc.facts.get("workload.kind", "")),
        "request.prefer": asked.prefer,
        "request.placement": split_of(doc),
        "framework.name": asked.framework,
        "framework.offloads": flag(asked.framework_offloads),
        "framework.places_layers": flag(places_layers(doc)),
        "request.split": asked.framework_split or "",
        "request.draft_name": asked.draft_model or "",
        "request.mtp_tokens": f.count(asked.mtp or None),
        "framework.backend": asked.backend or "",
        "framework.backend_unusual": flag(asked.backend_usual is False),
    }


def _nominal_above(doc: Advice) -> bool:
    """Whether the rule of thumb, which leaves things out, still says more than the full count."""
    nominal, full = doc.memory.nominal_weights_gb, doc.memory.required_bytes
    return nominal is not None and nominal * 1e9 > full and bool(_nominal_why(doc))


def _nominal_why(doc: Advice) -> str:
    memory, asked = doc.memory, doc.scenario
    label, exact = asked.model.label_parameters_b, asked.model.parameters
    if memory.nominal_weights_gb is None or not label:
        return ""
    reasons = []
    if abs(exact / (label * 1e9) - 1) > _BEYOND_NOMINAL:
        reasons.append(say("nominal.parameters", parameters=f.billions(exact)))
    nominal_bytes, bits = asked.precision_nominal_bytes_per_weight, memory.bits_per_weight
    if nominal_bytes and bits and abs(bits / (8 * nominal_bytes) - 1) > _BEYOND_NOMINAL:
        tower = asked.model.vision_parameters
        word = "nominal.bits.vision" if tower else "nominal.bits"
        reasons.append(say(word, format=asked.precision, bits=f"{bits:.1f}"))
    return f.listed(reasons)


def _speed(doc: Advice) -> Strings:
    speed = None if doc.memory.deficit_bytes else doc.speed
    figure = speed.decode_tok_s if speed else None
    together = speed.aggregate_tok_s if speed and doc.scenario.batch > 1 else None
    measured = figure is not None and figure.evidence == "measured"
    modelled = figure.modelled if figure else None
    return {
        "speed.known": flag(figure),
        "speed.decode": f.speed_range(figure),
        "speed.point": f.speed_point(figure),
        "speed.evidence": f.evidence(figure),
        "speed.measured": flag(measured),
        "speed.modelled": say("speed.point", speed=f.rate(modelled))
        if measured and modelled
        else "",
        "speed.prefill": f.speed_range(speed.prefill_tok_s) if speed else "",
        "speed.first_token": f.wait(speed.first_token_s) if speed else "",
        "speed.prompt": f.count(speed.prompt_tokens) if speed else "",
        "speed.few_cards": f.few_cards(speed.cards) if speed and not measured else "",
        "speed.aggregate": f.speed_range(together),
        "speed.when": _when(speed.depth_tokens) if speed else "",
        "speed.speculative": f.span(doc.speculative_tok_s) if figure else "",
        "speed.depth": f.count(speed.depth_tokens) if speed and speed.depth_tokens else "",
        "speed.class": known("feel", doc.facts.get("speed.class")) if figure else "",
        "speed.bound_by": say(f"bound.{speed.bound_by}") if speed else "",
    }


def _offloaded(doc: Advice) -> int | None:
    """What the best recommended offload puts into system RAM; None without one."""
    items = doc.recommendations
    return next((i.after.host_bytes for i in items if i.action in _OFFLOADS), None)


def _when(depth_tokens: int) -> str:
    if depth_tokens:
        return say("when.deep", tokens=f.count(depth_tokens))
    return say("when.start")


def _as_stated(doc: Advice) -> Strings:
    """The facts that are whole numbers as the user stated them."""
    values = {one.fact: getattr(doc.scenario, one.name, None) for one in STATED if one.fact}
    return {fact: f.count(n if isinstance(n, int | float) else None) for fact, n in values.items()}


def _host(doc: Advice) -> Strings:
    asked = doc.scenario
    needed = doc.facts.get("host.ram_needed")
    least = needed if isinstance(needed, float | int) and not isinstance(needed, bool) else None
    stated = asked.ram_bytes
    too_big, held = doc.verdict.state == "too_big", doc.memory.deficit_bytes == 0
    lacking = bool(stated and least and least > stated)
    alone = too_big and held and lacking
    return {
        "host.ram": f.size(stated),
        "host.ram_needed": f.amount(least) if places_layers(doc) or alone else "",
        "host.ram_offload": f.amount(_offloaded(doc)),
        "host.ram_short": flag(alone or (too_big and lacking and places_layers(doc))),
        "host.ram_alone": flag(alone),
        "host.ram_bandwidth": f.quantity(asked.ram_bandwidth_bytes_s, "GB/s"),
        **_as_stated(doc),
        "request.missing_figures": f.listed(
            [known("missing", name) or plain(name.replace("_", " ")) for name in doc.missing]
        ),
    }
