"""What takes more than printing a figure of the document: writers of a situation's texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

from advisor.knowledge.catalogue import ALONE, MAKERS
from advisor.report import figures as f
from advisor.report import memory_view as memory
from advisor.report import views
from advisor.report.figures import flag, known, say
from advisor.report.memory_view import places_layers, runs
from advisor.report.template_writer import SEED, variation
from advisor.report.views import View
from advisor.units import GIB, plain, rate, shell_word

if TYPE_CHECKING:
    from advisor.advice.configuration import EachCardDoc, GpuDoc, SpeedDoc
    from advisor.advice.document import Advice, Recommendation
    from advisor.report.memory_view import Writer
    from advisor.scenario.figures import Figure

_BEYOND_NOMINAL = 0.02
WRITES = frozenset({"text", "vision"})
"""What models take in that answer in text."""
_ALWAYS_SHOWN = 4
"""Remedies that a report has room for in any case (``prose``)."""
LONG_CONTEXT_TOKENS = 8192
"""From here on sentences say for which part of a conversation a speed holds."""
_OF_EQUAL_CARDS = frozenset({
    "gpu.vram", "gpu.memory", "gpu.memory_kind", "gpu.cores", "gpu.tensor_cores",
    "gpu.fp16_compute", "gpu.tdp_all", "gpu.launch_price", "gpu.release_year",
    "gpu.unified_memory",
})  # fmt: skip
"""What is not said of unequal cards, of which the document holds the least of each figure."""


def _seed(doc: Advice) -> str:
    """Hash what was asked; computed figures are left out, so better figures change no wording."""
    asked = doc.scenario
    cards = [card.name for card in asked.cards] or [asked.gpu.name if asked.gpu else ""]
    how = (asked.gpus, asked.precision, asked.kv_cache, asked.framework)
    much = (asked.context_tokens, asked.batch, asked.prefer)
    return variation([*cards, asked.model.name, *how, *much])


def _cards(doc: Advice) -> str:
    gpu, each = doc.scenario.gpu, doc.scenario.cards
    if gpu is None:
        return say("card.none")
    if not each:
        return memory.some_of(doc, gpu.name) or cards_named(gpu.name, doc.scenario.gpus)
    return f.listed([cards_named(run[0].name, len(run)) for run in _kinds(each)])


def _kinds(each: Sequence[EachCardDoc]) -> list[list[EachCardDoc]]:
    return [list(run) for _, run in groupby(each, key=lambda card: card.name)]


def cards_named(name: str, count: int) -> str:
    """Name one card or several equal ones: the GeForce RTX 4090, or 2 GeForce RTX 4090 cards."""
    return say("card.some", n=count, card=name) if count > 1 else say("card.the", card=name)


def _described(card: EachCardDoc, count: int) -> str:
    read = f.quantity(card.bandwidth_bytes_s, "GB/s")
    named, memory = cards_named(card.name, count), f.size(card.vram_bytes)
    told = say("card.each" if count > 1 else "card.with", card=named, memory=memory)
    return say("card.read", card=told, bandwidth=read) if read else told


def _cards_asked(doc: Advice) -> str:
    count, gpu = doc.request.get("gpus"), doc.scenario.gpu
    asked = str(doc.request.get("gpu", ""))
    if gpu and gpu.vendor == ALONE and gpu.vram_bytes:
        asked = f"{gpu.name}:{gpu.vram_bytes / GIB:g}GB"
    said = f"--gpu {shell_word(plain(asked))}"
    return f"{said} --gpus {count}" if count else said


def _unequal_cards(doc: Advice) -> str:
    kinds = _kinds(doc.scenario.cards) if doc.scenario.gpu else []
    return f.listed([_described(run[0], len(run)) for run in kinds])


def _card_shares(doc: Advice) -> str:
    """Say what each of several unequal cards holds."""
    held = doc.memory.per_gpu if doc.scenario.gpu and doc.scenario.cards else ()
    return f.listed(
        [
            say(
                "card.share",
                required=f.amount(card.required_bytes),
                card=card.name,
                usable=f.amount(card.usable_bytes),
            )
            for card in held
        ]
    )


def _card_word(doc: Advice) -> str:
    gpu = doc.scenario.gpu
    if gpu and gpu.unified_memory:
        return say("card.word.shared")
    return say("card.word.some" if doc.scenario.gpus > 1 else "card.word")


def _card_architecture(gpu: GpuDoc) -> str:
    return "" if MAKERS[gpu.vendor].one_memory else gpu.architecture


def _memory_kind(gpu: GpuDoc) -> str:
    shared = gpu.unified_memory and gpu.vendor != ALONE
    return say("memory.shared") if shared else gpu.vram_type or ""


def _card_memory(gpu: GpuDoc) -> str:
    size, kind = f.size(gpu.vram_bytes), _memory_kind(gpu)
    return say("memory.of", size=size, kind=kind or say("memory.plain")) if size else ""


def _cores(gpu: GpuDoc) -> str:
    if not gpu.cores:
        return ""
    vendor = gpu.vendor.casefold()
    kind = vendor if known("cores", vendor) else "other"
    return say(f"cores.{kind}", n=f.count(gpu.cores))


_POWER = "its power"


def _disputed(gpu: GpuDoc) -> str:
    """Name the figures on which sources differ, with their values."""
    return f.listed(
        [
            f"{_POWER if field == 'tdp' else field.replace('_', ' ')} "
            f"({plain(' or '.join(values))})"
            for field, values in gpu.disputed.items()
        ]
    )


_OF_CARD: Mapping[str, Callable[[GpuDoc], str]] = {
    "gpu.architecture": _card_architecture,
    "gpu.memory": _card_memory,
    "gpu.memory_kind": _memory_kind,
    "gpu.cores": _cores,
    "gpu.release_year": lambda gpu: (gpu.released or "")[:4],
    "gpu.laptop": lambda gpu: flag(gpu.segment == "mobile"),
    "gpu.datacenter": lambda gpu: flag(gpu.segment == "datacenter"),
    "gpu.disputed_figures": _disputed,
}


def _of_card(way: Callable[[GpuDoc], str]) -> Writer:
    """Write about the card, nothing without one."""
    return lambda doc: way(doc.scenario.gpu) if doc.scenario.gpu else ""


def _tdp_all(doc: Advice) -> str:
    gpu, gpus = doc.scenario.gpu, doc.scenario.gpus
    return f.quantity(gpu.tdp_w * gpus, "W") if gpu and gpu.tdp_w and gpus > 1 else ""


def _label(doc: Advice) -> str:
    label = doc.scenario.model.label_parameters_b
    return f.billions(label * 1e9) if label else ""


def _active(doc: Advice) -> str:
    model = doc.scenario.model
    sparse = model.active_parameters < model.parameters
    return f.billions(model.active_parameters) if sparse else ""


def _beyond_training(doc: Advice) -> bool:
    trained = doc.scenario.model.trained_context_tokens
    return bool(trained and doc.scenario.context_tokens > trained)


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


def _speed(doc: Advice) -> SpeedDoc | None:
    return None if doc.memory.deficit_bytes else doc.speed


def _decode(doc: Advice) -> Figure | None:
    speed = _speed(doc)
    return speed.decode_tok_s if speed else None


def _measured(doc: Advice) -> bool:
    figure = _decode(doc)
    return figure is not None and figure.evidence == "measured"


def _modelled(doc: Advice) -> str:
    figure = _decode(doc)
    modelled = figure.modelled if figure and _measured(doc) else None
    return say("speed.point", speed=rate(modelled)) if modelled else ""


def _when(speed: SpeedDoc) -> str:
    if speed.depth_tokens:
        return say("when.deep", tokens=f.count(speed.depth_tokens))
    return say("when.start")


_OF_SPEED: Mapping[str, Callable[[SpeedDoc], str]] = {
    "speed.known": flag,
    "speed.evidence": lambda speed: f.evidence(speed.decode_tok_s),
    "speed.prefill": lambda speed: f.speed_range(speed.prefill_tok_s),
    "speed.first_token": lambda speed: f.wait(speed.first_token_s),
    "speed.prompt": lambda speed: f.count(speed.prompt_tokens),
    "speed.when": _when,
    "speed.depth": lambda speed: f.count(speed.depth_tokens or None),
    "speed.bound_by": lambda speed: say(f"bound.{speed.bound_by}"),
}
"""What is said of a speed; nothing of one that needs more memory than there is."""


def _each(doc: Advice, text: str, name: str = "speed.each") -> str:
    return f.of_each(text, memory.sequences_in(doc.memory, doc.scenario), name)


def _of_full(way: Callable[[SpeedDoc], str]) -> Writer:
    """Write about the speed with a full context, nothing where that is not given."""
    return lambda doc: way(doc.speed_full) if doc.speed_full and _speed(doc) else ""


def _of_speed(way: Callable[[SpeedDoc], str]) -> Writer:
    """Write about the speed, nothing without one."""
    return lambda doc: way(speed) if (speed := _speed(doc)) else ""


_full_range = _of_full(lambda full: f.speed_range(full.decode_tok_s))


def _few_cards(doc: Advice) -> str:
    speed = _speed(doc)
    return f.few_cards(speed.cards) if speed and not _measured(doc) else ""


def _aggregate(doc: Advice) -> str:
    speed = _speed(doc)
    several = memory.sequences_in(doc.memory, doc.scenario) > 1
    return f.speed_range(speed.aggregate_tok_s) if speed and several else ""


def _offload(doc: Advice) -> Recommendation | None:
    """The best of the remedies that every report shows which leaves a part in system RAM."""
    shown = doc.recommendations[:_ALWAYS_SHOWN]
    return next((i for i in shown if i.setup.gpu_layers is not None or i.setup.cpu_experts), None)


def _of_offload(way: Callable[[Recommendation], str]) -> Writer:
    return lambda doc: way(found) if (found := _offload(doc)) else ""


def _ram_rest(doc: Advice) -> str:
    """What that change leaves of the stated RAM, where that is little for a system."""
    found = _offload(doc)
    return memory.ram_rest(doc, found.after) if found else ""


def _ram_needed(doc: Advice) -> float | None:
    needed = doc.facts.get("host.ram_needed")
    return needed if isinstance(needed, float | int) and not isinstance(needed, bool) else None


def _ram_lacks(doc: Advice) -> bool:
    """Whether the stated RAM is too little for what does not fit on the cards."""
    needed, stated = _ram_needed(doc), doc.scenario.ram_bytes
    return bool(doc.verdict.state == "too_big" and stated and needed and needed > stated)


def _ram_alone(doc: Advice) -> bool:
    return _ram_lacks(doc) and doc.memory.deficit_bytes == 0


def _missing(doc: Advice) -> str:
    names = [known("missing", name) or plain(name.replace("_", " ")) for name in doc.missing]
    return f.listed(names)


def _offloadable(doc: Advice) -> bool:
    return doc.verdict.state == "needs_offload" and places_layers(doc)


WRITERS: Mapping[str, Writer] = {
    **memory.WRITERS,
    **{name: _of_card(way) for name, way in _OF_CARD.items()},
    **{name: _of_speed(way) for name, way in _OF_SPEED.items()},
    SEED: _seed,
    "fit.state": lambda d: d.verdict.state,
    "fit.runs": lambda d: flag(runs(d)),
    "fit.tight": lambda d: flag(d.verdict.state == "tight"),
    "fit.offloadable": lambda d: flag(_offloadable(d)),
    "options.recommended": lambda d: flag(d.recommendations),
    "gpu.asked": _cards_asked,
    "gpu.cards": _cards,
    "gpu.unequal_cards": _unequal_cards,
    "gpu.card_shares": _card_shares,
    "gpu.word": _card_word,
    "gpu.tdp_all": _tdp_all,
    "gpu.linked": lambda d: flag("gpu.nvlink" in d.facts),
    "gpu.none": lambda d: flag(bool(d.scenario.gpu and d.scenario.gpu.vendor == ALONE)),
    "model.label_parameters": _label,
    "model.active_parameters": _active,
    "model.generates": lambda d: flag(d.scenario.model.modality in WRITES),
    "model.transcribes": lambda d: flag(d.scenario.model.modality == "audio"),
    "model.vision": lambda d: flag(d.scenario.model.modality == "vision"),
    "model.image_cost": lambda d: views.image_tokens(d.scenario.model.image_tokens),
    "model.images_held": lambda d: views.images_held(
        d.scenario.model.image_tokens, d.scenario.context_tokens
    ),
    "model.licence": lambda d: plain(d.scenario.model.licence or ""),
    "model.draft_head": lambda d: plain(str(d.facts.get("model.draft_head", ""))),
    "model.four_bit_files": lambda d: plain(str(d.facts.get("model.four_bit_files", ""))),
    "weights.download": lambda d: plain(str(d.facts.get("weights.download", ""))),
    "weights.published": memory.released,
    "weights.slow_kernels": lambda d: flag(bool(d.facts.get("weights.slow_kernels"))),
    "weights.nominal_why": _nominal_why,
    "weights.nominal_above": lambda d: flag(_nominal_above(d)),
    "request.all_gpus": lambda d: str(memory.all_cards(d)),
    "request.several_gpus": lambda d: flag(d.scenario.gpus > 1),
    "request.context_beyond_training": lambda d: flag(_beyond_training(d)),
    "request.several_sequences": lambda d: flag(d.scenario.batch > 1),
    "request.placement": memory.split_of,
    "request.missing_figures": _missing,
    "framework.places_layers": lambda d: flag(places_layers(d)),
    "framework.left_card": lambda d: flag(bool(d.facts.get("framework.left_card"))),
    "framework.backend_unusual": lambda d: flag(d.scenario.backend_usual is False),
    "speed.measured": lambda d: flag(_measured(d)),
    "speed.modelled": _modelled,
    "speed.few_cards": _few_cards,
    "speed.aggregate": _aggregate,
    "speed.decode": lambda d: _each(d, f.speed_range(_decode(d))),
    "speed.point": lambda d: _each(d, f.speed_point(_decode(d)), "speed.point.each"),
    "speed.full": lambda d: _each(d, _full_range(d)),
    "speed.first_token_full": _of_full(lambda full: f.wait(full.first_token_s)),
    "speed.prompt_full": _of_full(lambda full: f.count(full.prompt_tokens)),
    "speed.speculative": lambda d: _each(d, f.span(d.speculative_tok_s) if _decode(d) else ""),
    "speed.class": lambda d: known("feel", d.facts.get("speed.class")) if _decode(d) else "",
    "host.ram_needed": lambda d: (
        f.amount(_ram_needed(d)) if places_layers(d) or _ram_alone(d) else ""
    ),
    "host.ram_offload": _of_offload(lambda i: f.amount(i.after.host_bytes)),
    "host.ram_option": _of_offload(lambda i: str(i.rank)),
    "host.ram_rest": _ram_rest,
    "host.ram_short": lambda d: flag(_ram_alone(d) or (_ram_lacks(d) and places_layers(d))),
    "host.ram_alone": lambda d: flag(_ram_alone(d)),
}
"""What is no plain figure -> its text, from the document."""


class Situation(View):
    """What templates of all kinds may name, from the document."""

    __slots__ = ()
    writers: ClassVar[Mapping[str, Writer]] = WRITERS

    def __init__(self, doc: Advice) -> None:
        """Take the document."""
        super().__init__(doc)
        if doc.scenario.cards:
            self.update(dict.fromkeys(_OF_EQUAL_CARDS, ""))
