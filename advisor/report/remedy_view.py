"""What templates say of a recommendation beyond plain figures: what changes, and how much."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from advisor.knowledge.catalogue import TOGETHER
from advisor.knowledge.names import line_of
from advisor.remedies import is_uncertain, settings_of, told_by
from advisor.report import figures as f
from advisor.report import memory_view
from advisor.report.figures import counted, flag, known, say
from advisor.report.memory_view import copies, fewer_held, layers_of, released, runs, sequences_in
from advisor.report.views import View, article
from advisor.units import MIB, rate

if TYPE_CHECKING:
    from advisor.advice.configuration import SetupDoc
    from advisor.advice.document import Advice, Alternative, OptionDoc, Recommendation
    from advisor.scenario.figures import Figure

_SAME_SPEED = 0.03
_SMALL_LOSS = 1.0
_NOT_FREE = "line.fits-not", "line.filled"
_STEPS = ("ubatch", "max_num_batched_tokens")
_SHARING = "split", "stages"
_MEMORY = "text_only", *_STEPS[1:], "gpu_memory_utilization", "eager", *_SHARING


def caveats_of(told: Mapping[str, str]) -> list[str]:
    """Name the texts of templates/report that warn of a recommendation."""
    named = {"last_resort": "option.last_resort", "thin_margin": "option.thin"}
    return [name for name, placeholder in named.items() if told[placeholder]]


def _alternatives(doc: Advice, item: Recommendation) -> list[str]:
    """Name the runners-up by what sets them apart, with what they need and hold."""
    told = ((_told_apart(doc, item, other), _needed(doc, other)) for other in item.alternatives)
    return [say("alternative", change=change, required=needed) for change, needed in told]


def _needed(doc: Advice, other: Alternative) -> str:
    needed, ram = f.amount(other.after.required_bytes), _host_ram(other)
    aside = ram and say("line.ram", size=ram)
    return ", ".join(filter(None, (needed, aside, _held(doc, other))))


def _format_elsewhere(item: Recommendation, setup: SetupDoc) -> str:
    if setup.framework == item.setup.framework:
        return setup.precision
    return say("format.in", format=setup.precision, framework=setup.framework)


def _model_elsewhere(doc: Advice, setup: SetupDoc) -> str:
    if setup.precision == doc.scenario.precision:
        return setup.model
    return say("format.in", format=setup.model, framework=setup.precision)


def _told_apart(doc: Advice, item: Recommendation, other: Alternative) -> str:
    setup = other.setup
    by_setting = {
        "precision": _format_elsewhere(item, setup),
        "model": _model_elsewhere(doc, setup),
        "gpu": setup.gpu,
        "framework": setup.framework,
        "kv_cache": setup.kv_cache,
    }
    return by_setting.get(told_by(item.action)) or f.listed(changes(doc, other))


def _same_line(after: str, before: str) -> str:
    return line_of(after) if line_of(after) == line_of(before) and after != before else ""


def _second(doc: Advice, setup: SetupDoc) -> str:
    """The card that comes beside the request's own, where it is of another kind."""
    card = doc.scenario.gpu
    first, _, second = (setup.gpu or "").partition(TOGETHER)
    return second if card and first == card.name and not doc.scenario.cards else ""


def _at_hand(doc: Advice, setup: SetupDoc) -> int:
    """Count the cards of the request that the changed setup keeps."""
    each = doc.scenario.cards
    return sum(card.name == setup.gpu for card in each) or memory_view.all_cards(doc)


def _extra_cards(extra: int) -> str:
    return counted("extra", extra) if extra > 0 else ""


def _besides(doc: Advice, item: Recommendation, *, shared: bool = False) -> list[str]:
    """Say in words what a change brings beside its subject; apart, how it lies on these cards."""
    subject = settings_of(item.action)
    if not subject:
        return []
    setup, asked = item.setup, doc.scenario
    found = {**dict(differences(doc, setup)), **_of_memory(item)}
    if setup.context_tokens < asked.context_tokens:
        found["context"] = say("change.context.only", n=f.count(setup.context_tokens))
    if setup.batch < asked.batch:
        found["batch"] = counted("change.batch.only", setup.batch)
    apart = {"gpus", *_SHARING} if "gpus" not in subject else set[str]()
    beside = [(name in apart, words) for name, words in found.items() if name not in subject]
    return [words for is_apart, words in beside if is_apart is shared]


def _quality_change(doc: Advice, item: Recommendation) -> float | None:
    """Percent of perplexity that the change adds; None where it is not known."""
    asked, setup = doc.scenario, item.setup
    before = (asked.precision, asked.kv_cache, asked.model.name)
    alters = before != (setup.precision, setup.kv_cache, setup.model)
    return item.tradeoff.quality_change if alters else 0.0


def _quality_cost(doc: Advice, item: Recommendation) -> str:
    change = _quality_change(doc, item)
    return f.percent(change) if change is not None and change > 0 else ""


def _quality_gain(doc: Advice, item: Recommendation) -> str:
    change = _quality_change(doc, item)
    return f.percent(-change) if change is not None and change < 0 else ""


def _quality_small(doc: Advice, item: Recommendation) -> str:
    change = _quality_change(doc, item)
    return flag(change is not None and 0 < change <= _SMALL_LOSS)


def _layers(setup: SetupDoc) -> str:
    on_card, layers = setup.gpu_layers, setup.layers
    return "" if on_card is None or on_card > layers else layers_of(on_card, layers)


def _moved(doc: Advice, setup: SetupDoc, sign: int) -> str:
    """Say what a setup moves to the card (1) or to system RAM (-1), empty where nothing."""
    asked, most = doc.scenario, setup.layers + 1
    if setup.model != asked.model.name:
        return ""
    before, after = (
        most if n is None else min(n, most) for n in (asked.gpu_layers, setup.gpu_layers)
    )
    layers = sign * (after - before)
    experts = sign * (asked.cpu_experts - setup.cpu_experts)
    found = [counted("moved.layers", layers)] if layers > 0 else []
    return f.listed([*found, *([counted("moved.experts", experts)] if experts > 0 else [])])


def changes(doc: Advice, item: Recommendation | Alternative | OptionDoc) -> list[str]:
    """Say in words everything in which a what-if differs from the request."""
    said = counted("change.batch.told", item.setup.batch)
    told = {"batch": said} if "batch" in item.change else {}
    return [*{**told, **dict(differences(doc, item.setup)), **_of_memory(item)}.values()]


def _of_memory(item: Recommendation | Alternative | OptionDoc) -> dict[str, str]:
    change = {key: item.change[key] for key in _MEMORY if item.change.get(key)}
    return {key: say(f"change.{key}", n=_claimed(n) or f"{n:,}") for key, n in change.items()}


def differences(doc: Advice, setup: SetupDoc) -> Iterator[tuple[str, str]]:
    """Give what differs from the request and the words for it."""
    asked = doc.scenario
    card = asked.gpu.name if asked.gpu else None
    if (setup.gpu, setup.gpus) != (card, asked.gpus):
        more = setup.gpu == card or any(setup.gpu == c.name for c in asked.cards)
        together = setup.gpu or ""
        unequal = TOGETHER in together
        name = memory_view.cards_word(doc, setup.gpus) if more else "change.gpus"
        words = together if unequal else say(name, n=setup.gpus, card=together)
        yield "gpus" if more or unequal else "gpu", words
    if setup.model != asked.model.name:
        yield "model", say("change.model", model=setup.model)
    if setup.framework != asked.framework:
        yield "framework", say("change.framework", framework=setup.framework)
    if setup.precision != asked.precision:
        yield "precision", say("change.precision", format=setup.precision)
    if (kind := setup.kv_cache) != asked.kv_cache:
        yield "kv_cache", say("change.kv_cache", article=article(kind), type=kind)
    if setup.context_tokens != asked.context_tokens:
        yield "context", say("change.context", n=f.count(setup.context_tokens))
    yield from _smaller_differences(doc, setup)


def _smaller_differences(doc: Advice, setup: SetupDoc) -> Iterator[tuple[str, str]]:
    asked = doc.scenario
    if setup.batch != asked.batch:
        yield "batch", counted("change.batch", setup.batch)
    if setup.gpu_layers != asked.gpu_layers and (layers := _layers(setup)):
        where = "change.layers.some" if setup.gpus > 1 else "change.layers"
        yield "gpu_layers", say(where, layers=layers)
    if setup.cpu_experts != asked.cpu_experts and setup.cpu_experts:
        yield "cpu_experts", say("change.experts", n=setup.cpu_experts)
    if setup.draft_model and setup.draft_model != asked.draft_model:
        yield "draft_model", say("change.draft", model=setup.draft_model)
    if setup.mtp and setup.mtp != asked.mtp:
        yield "mtp", counted("change.mtp", setup.mtp)
    if not setup.mtp and asked.mtp:
        yield "mtp", say("change.no_mtp")
    if not setup.draft_model and asked.draft_model:
        yield "draft_model", say("change.no_draft")


def _headroom(item: Recommendation) -> str:
    """Print what stays free; empty where requests wait, as the cache takes what there is."""
    fits = item.after.fits and fewer_held(item.after, item.setup) is None
    return f.amount(item.after.headroom_bytes) if fits else ""


def _saved(item: Recommendation, sign: int) -> str:
    """Print what a change saves (1) or adds (-1), empty where it does the other."""
    saved = sign * (item.before.required_bytes - item.after.required_bytes)
    return f.amount(saved) if saved > 0 else ""


def _host_ram(item: Recommendation | Alternative) -> str:
    split = _layers(item.setup) or item.setup.cpu_experts
    return f.amount(item.after.host_bytes) if split else ""


def _held(doc: Advice, item: Recommendation | Alternative) -> str:
    """Say how many requests a server holds at once, where a change makes that another number."""
    held, batch = fewer_held(item.after, item.setup), item.setup.batch
    same = held == fewer_held(doc.memory, doc.scenario) and (runs(doc) or not held)
    if same or batch == 1 or not item.after.fits:
        return ""
    return say("line.held" if held else "line.held.all", n=f.count(held), all=f.count(batch))


def _claimed(n: object) -> str:
    return f.percent(100 * n) if isinstance(n, float) else n if isinstance(n, str) else ""


def _of(item: Recommendation) -> int:
    return sequences_in(item.after, item.setup)


def _point(item: Recommendation, figure: Figure | None) -> str:
    return f.of_each(f.speed_point(figure), _of(item), "speed.point.each")


def _speed_change(before: Figure | None, after: Figure | None) -> str:
    if not before or not after:
        return ""
    ratio = after.estimate / before.estimate if before.estimate else 1.0
    if abs(ratio - 1) <= _SAME_SPEED:
        return say("pace.same")
    return say("pace.faster" if ratio > 1 else "pace.slower")


def _priced_by_user(doc: Advice, item: Recommendation) -> str:
    """Say whether what has to be bought has a price of the user's."""
    bought = _second(doc, item.setup) or item.setup.gpu
    mine = (one for one in doc.provenance.yours if one.what == "gpu" and one.name == bought)
    fields = (one.stated_fields for one in mine if one.based_on or not one.replaces)
    priced = any(not found or "launch_price" in found for found in fields)
    return flag(priced and item.tradeoff.cost_usd is not None)


WRITERS: Mapping[str, Callable[[Advice, Recommendation], str]] = {
    "option.changes": lambda d, i: f.listed(changes(d, i)),
    "option.moved_back": lambda d, i: _moved(d, i.setup, 1),
    "option.moved_out": lambda d, i: _moved(d, i.setup, -1),
    "option.quality_cost": _quality_cost,
    "option.quality_gain": _quality_gain,
    "option.quality_small": _quality_small,
    "option.quality_same": lambda d, i: flag(_quality_change(d, i) == 0),
    "option.as_published": lambda d, i: flag(i.setup.precision.partition("_")[0] == released(d)),
    "option.quality_unknown": lambda d, i: flag(
        _quality_change(d, i) is None and i.after.weights_bytes <= d.memory.weights_bytes
    ),
    "option.other_count": lambda d, i: flag(i.setup.gpus != d.scenario.gpus),
    "option.several": lambda _, i: flag(i.setup.gpus > 1),
    "option.second_gpu": lambda d, i: _second(d, i.setup),
    "option.same_family": lambda d, i: flag(i.setup.model_family == d.scenario.model.family),
    "option.same_line": lambda d, i: _same_line(i.setup.model_family, d.scenario.model.family),
    "option.new_framework": lambda d, i: (
        i.setup.framework if i.setup.framework != d.scenario.framework else ""
    ),
    "option.step": lambda _, i: next((f"{i.change[k]:,}" for k in _STEPS if k in i.change), ""),
    "option.copies": lambda d, i: copies(d, i.setup),
    "option.stages": lambda _, i: str(i.change.get("stages", "")),
    "option.stage_cards": lambda _, i: str(i.setup.gpus // (i.change.get("stages") or 1)),
    "option.claimed": lambda _, i: _claimed(i.change.get("gpu_memory_utilization")),
    "option.usable_mib": lambda _, i: f"{(i.after.usable_bytes or 0) // MIB}",
    "option.backend": lambda _, i: str(i.change.get("backend", "")),
    "option.besides": lambda d, i: f.listed(_besides(d, i)),
    "option.sharing": lambda d, i: f.listed(_besides(d, i, shared=True)),
    "option.extra_cards": lambda d, i: _extra_cards(i.setup.gpus - _at_hand(d, i.setup)),
    "option.kv_article": lambda _, i: article(i.setup.kv_cache),
    "option.layers": lambda _, i: _layers(i.setup),
    "option.priced_by_user": _priced_by_user,
    "option.effort_words": lambda _, i: known("effort", i.tradeoff.effort) or i.tradeoff.effort,
    "option.last_resort": lambda _, i: flag(i.score <= 0),
    "option.headroom": lambda _, i: _headroom(i),
    "option.thin": lambda _, i: flag(i.after.margin == "thin" and bool(_headroom(i))),
    "option.deficit": lambda _, i: "" if i.after.fits else f.amount(i.after.deficit_bytes),
    "option.held": _held,
    "option.saved": lambda _, i: _saved(i, 1),
    "option.added": lambda _, i: _saved(i, -1),
    "option.host_ram": lambda _, i: _host_ram(i),
    "option.in_ram": lambda d, i: memory_view.in_ram(d, i.after, i.setup, _host_ram(i)),
    "option.decode_speed": lambda _, i: f.of_each(f.speed_range(i.after.decode_tok_s), _of(i)),
    "option.speed_point": lambda _, i: _point(i, i.after.decode_tok_s),
    "option.speculative": lambda _, i: f.of_each(f.span(i.speculative_tok_s), _of(i)),
    "option.speed_change": lambda _, i: _speed_change(i.before.decode_tok_s, i.after.decode_tok_s),
    "option.aggregate_speed": lambda _, i: (
        f.speed_range(i.after.aggregate_tok_s) if _of(i) > 1 else ""
    ),
    "option.alternatives": lambda d, i: f.listed(_alternatives(d, i)),
}
"""What is no plain figure of a change -> its text, from the document and the recommendation."""


class OptionView(View):
    """What templates may name of a recommendation, before and after."""

    __slots__ = ()
    of_option = True
    writers: ClassVar[Mapping[str, Callable[[Advice, Recommendation], str]]] = WRITERS


def _summary(s: OptionView, before: Figure | None) -> str:
    memory = f"{s['option.before_required'].removesuffix(' GiB')} -> {s['option.required']}"
    some = (".of" if s["option.other_count"] else ".some") if s["option.several"] else ""
    kind = "line.free" + some + ".thin" * bool(s["option.thin"])
    free = (room := s["option.headroom"]) and say(kind, size=room, n=s["option.gpus"])
    ram = s["option.in_ram"]
    point = _drafted(s) or s["option.speed_point"]
    changed = before is not None and not point.startswith(f.speed_point(before))
    speed = f"{rate(before.estimate)} -> {point}" if before and point and changed else point
    return ", ".join(part for part in (memory, free, ram, s["option.held"], speed) if part)


def _drafted(s: OptionView) -> str:
    """The span a draft model leads to, where the draft is what is recommended."""
    return s["option.speculative"] if is_uncertain(s["option.family"]) else ""


def _quality(s: OptionView) -> str:
    if s["option.quality_cost"]:
        share = s["option.quality_cost"]
        said = say("line.loss" if share[0].isdigit() else "line.loss.tiny", share=share)
        size = "" if settings_of(s["option.family"]) == {"kv_cache"} else s["option.quality_of"]
        return f"{said} {say('line.measured-on', one=article(size), size=size)}" if size else said
    if s["option.quality_gain"]:
        return say("line.gain", points=s["option.quality_gain"].removesuffix(" %"))
    return say("line.same" if s["option.quality_same"] else "line.unmeasured")


_LINES: Mapping[str, Callable[[OptionView, Figure | None], str]] = {
    "summary": _summary,
    "required": lambda s, _: s["option.required"],
    "headroom": lambda s, _: s["option.headroom"] or say(_NOT_FREE[not s["option.deficit"]]),
    "speed": lambda s, _: _drafted(s) or s["option.decode_speed"] or say("line.unknown"),
    "quality": lambda s, _: _quality(s),
    "loss": lambda s, _: (
        "" if s["option.quality_small"] or not s["option.quality_cost"] else _quality(s)
    ),
    "effort": lambda s, _: known("effort-kind", s["option.effort"]) or s["option.effort"],
    "cost": lambda s, _: s["option.cost"],
}


class RemedyFigures(View):
    """The figures of a remedy for tables and lists, from its placeholders and the speed before."""

    __slots__ = ()
    names = tuple(_LINES)
    writers: ClassVar[Mapping[str, Callable[[OptionView, Figure | None], str]]] = _LINES


class Remedy(Struct, frozen=True):
    """One recommendation as the views show it."""

    number: str
    title: str
    text: str
    """Empty where only title and figures are given."""
    brief: str
    """The same in a sentence or two, for where there is no room for the text."""
    also: str
    """Runners-up of the same kind, empty when there are none."""
    command: str
    unsaid: str
    """What the command cannot say, and why; empty when it says everything."""
    confidence: str
    rule: str
    yours: str
    """Where the rule stands when it is the user's own; else empty."""
    figures: RemedyFigures
    """Its figures in words: ``28.1 -> 15.3 GiB`` and the speed, what it costs, what it asks for."""
