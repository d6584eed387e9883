"""What a program is told at its start: settings that save memory, one or together, and drafts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import combinations, islice
from typing import Final

from msgspec.structs import replace

from advisor.knowledge.catalogue import MAKERS, kin, siblings
from advisor.knowledge.merit import FOR_IMAGES, purposes
from advisor.knowledge.types import Knowledge
from advisor.models import text_alone
from advisor.models.stored_tensors import Model
from advisor.remedies.assessment import attending_apart
from advisor.remedies.option import (
    Base,
    Effort,
    Option,
    Remedy,
    cards_hold,
    make_option,
    may_help,
    sized_record,
    tuned_like,
)
from advisor.remedies.search import Plan, bounds, smaller_caches, with_cache
from advisor.runtimes import runtime_of
from advisor.runtimes.commands import can_tell
from advisor.scenario import Scenario, claimed_share, support
from advisor.scenario.capability import asked, holds_head
from advisor.scenario.figures import margin_of
from advisor.scenario.support import DRAFT_SHARE, same_vocabulary

ASSISTANT: Final = "mtp"
"""Among the companions of a model: a head of its publisher's that drafts for it alone."""
_LIGHT_DRAFT = 1 / 25
_ALIKE = 10**8
"""Parameters within which of two drafts the newer one is taken."""


def _drafts(base: Base, *_: object) -> Iterator[Option]:
    """A relative small enough to draft for this model, where no head was trained for that."""
    scenario = base.scenario
    if not (base.fits and scenario.framework.speculative and scenario.draft_model is None):
        return
    if support.no_drafting(scenario) or ASSISTANT in scenario.model.companions:
        return
    if slow_drafter(scenario) or trained_head(scenario):
        return
    gguf = runtime_of(scenario.framework).gguf_alone
    reads_text = scenario.model.modality == "text" or (gguf and scenario.model.modality == "vision")
    if scenario.mtp or not reads_text or scenario.batch > 1:
        return
    draft = _draft_for(scenario, base.knowledge)
    if draft:
        other = replace(scenario, draft_model=draft)
        if not can_tell(other, "draft_model"):
            return
        yield make_option(base, DRAFT, {"draft_model": draft.name}, other)


def _head_drafts(base: Base, *_: object) -> Iterator[Option]:
    """The model's own head drafts (multi-token prediction), where the framework can run it."""
    scenario = base.scenario
    if not base.fits or scenario.draft_model or scenario.mtp or scenario.batch > 1:
        return
    if support.no_head(scenario.framework, scenario.model) or support.no_drafting(scenario):
        return
    gguf = runtime_of(scenario.framework).gguf_alone
    if gguf and not holds_head(scenario.model, scenario.precision):
        return
    tokens = int(base.knowledge.policy["mtp_tokens"])
    other = replace(scenario, mtp=tokens)
    effort: Effort = "download" if gguf else "setting"
    yield make_option(base, HEAD, {"mtp": tokens}, other, effort=effort)


def slow_drafter(scenario: Scenario) -> str:
    """Say in one clause why a second model drafts too slowly here to gain by; empty: it may."""
    row = asked(scenario.framework, "draft", "model", scenario.gpu, scenario.model.shape)
    return row.why if row and row.answer == "slow" else ""


def _draft_for(scenario: Scenario, knowledge: Knowledge) -> Model | None:
    """The largest of a twenty-fifth of the active parameters, else the smallest up to a fifth.

    Dense, without a recurrent state (drafts that are refused must be taken back), trained for the
    context that is asked for. One of the same family goes before the others: a tokenizer may
    change between families. In the tuning of the model where that is published too.
    """
    model = scenario.model
    small = [one for one in _small(scenario, knowledge) if _may_draft(one, scenario)]
    small.sort(key=lambda m: m.released or "", reverse=True)
    light = [m for m in small if m.active_parameters <= model.active_parameters * _LIGHT_DRAFT]
    for group, choice in ((light, max), (small, min)):
        own = [m for m in group if m.family == model.family]
        if own or group:
            found = choice(own or group, key=lambda m: m.active_parameters // _ALIKE)
            return tuned_like(found, model, knowledge)
    return None


def _small(scenario: Scenario, knowledge: Knowledge) -> Iterator[Model]:
    """Models of the family, or of the publisher with the same vocabulary, that read text.

    A GGUF file of a model that reads images holds its text part alone, and drafts like another.
    """
    model = scenario.model
    kinds = ("text", "vision") if runtime_of(scenario.framework).gguf_alone else ("text",)
    families = (model.family, f"{model.family} Distill")
    found = [n for one in families for kind in kinds for n in siblings(knowledge, one, kind)]
    for name in dict.fromkeys(
        [*found, *kin(knowledge, model.name, model.hf_id, model.shape.vocab)]
    ):
        other = sized_record(name, knowledge)
        if other and other.modality in kinds:
            yield other


def _may_draft(draft: Model, scenario: Scenario) -> bool:
    model, shape = scenario.model, draft.shape
    return (
        draft.active_parameters <= model.active_parameters * DRAFT_SHARE
        and shape.moe is None
        and shape.recurrent is None
        and same_vocabulary(draft, model, scenario.framework)
        and (draft.trained_context_tokens or 0) >= scenario.context_tokens
        and _is_of_its_line(draft, model)
        and purposes(draft.name) <= purposes(model.name)
    )


def _is_of_its_line(draft: Model, model: Model) -> bool:
    """Whether its tokens are likely the model's: of its family, of its generation, or as many.

    Another name's must be as many, padding included, and known to be of no later release: QwQ gave
    tokens of Qwen2.5 another meaning, Ministral 3 those of Devstral.
    """
    own, other = (_GENERATION.match(one.family) for one in (model, draft))
    if all(m.family.split()[0].lower() in m.name.lower() for m in (model, draft)):
        if own and other and own[1] == other[1]:
            return own[2] == other[2]
        if draft.family.startswith(model.family):
            return True
    as_many = draft.shape.vocab == model.shape.vocab
    return as_many and "" < (draft.released or "") <= (model.released or "~")


_GENERATION: Final = re.compile(r"([A-Za-z]+)[ -]?(\d+)")


def trained_head(scenario: Scenario) -> str | None:
    """Give the repository of a head that was trained to draft, where this runtime can use it."""
    heads, framework = scenario.model.companions, scenario.framework
    if support.no_drafting(scenario, head=True):
        return None
    runtime = runtime_of(framework)
    if runtime.gguf_alone:
        return heads.get(ASSISTANT)
    own = heads.get("speculators") or heads.get(ASSISTANT) if runtime.reads_speculators else None
    return heads.get("eagle3") or own


DRAFT = Remedy("speculative", frozenset({"draft_model"}), "download", _drafts, uncertain=True)
HEAD = Remedy(DRAFT.action, frozenset({"mtp"}), "setting", _head_drafts, uncertain=True)

# ---- what a program is told at its start

_SHARE = 0.95
"""The largest share that vLLM's own pages on memory propose."""
_TIGHT: Final = ("thin", "narrow")
_STEPS = (4096, 2048)
"""Tokens of a prompt at once; SGLang keeps no less for smaller steps."""
_MOST_TOGETHER, _MOST_SETS = 3, 2


def without_graphs(base: Base, *_: object) -> Iterator[Option]:
    """The same without CUDA graphs, where memory is short."""
    for plan in _eager(base, Plan(base.scenario)) if _is_short(base) else ():
        if may_help(base, plan.scenario):
            yield make_option(base, GRAPHS, plan.change, plan.scenario)


def _eager(_: Base, plan: Plan) -> Iterator[Plan]:
    own = plan.scenario
    other = replace(own, eager=True)
    captures = runtime_of(own.framework).captures_graphs
    if captures and not own.eager and can_tell(other, "eager"):
        yield plan.then(other, {"eager": True}, "setting")


def smaller_steps(base: Base, *_: object) -> Iterator[Option]:
    """The same with prompts read in steps small enough, where memory is short."""
    others = [*_in_steps(base, Plan(base.scenario))] if _is_short(base) else []
    roomy = (plan for plan in others if cards_hold(base, plan.scenario, roomy=True))
    plan = next(roomy, others[-1] if others else None)
    if plan and may_help(base, plan.scenario):
        yield make_option(base, STEPS, plan.change, plan.scenario)


def _in_steps(base: Base, plan: Plan) -> Iterator[Plan]:
    """Prompts read in smaller steps, where none were stated; the largest first."""
    own = plan.scenario
    runtime = runtime_of(own.framework)
    if base.request.max_num_batched_tokens is None and runtime.captures_graphs:
        most = runtime.tokens_at_once(own, base.knowledge.policy)
        for step in (step for step in _STEPS if step < most):
            other = replace(own, max_num_batched_tokens=step)
            yield plan.then(other, {"max_num_batched_tokens": step}, "setting")


def larger_share(base: Base, *_: object) -> Iterator[Option]:
    """The same with more of the card, where its profiling run is inside the share.

    SGLang keeps what it computes with outside, and nobody has measured how little that may be.
    """
    for plan in _with_share(base, Plan(base.scenario)):
        if may_help(base, plan.scenario):
            yield make_option(base, SHARE, plan.change, plan.scenario)


def _with_share(base: Base, plan: Plan) -> Iterator[Plan]:
    stated = base.request.gpu_memory_utilization is not None
    share = None if stated else _larger_share(base, plan.scenario)
    if share is not None:
        other = replace(plan.scenario, gpu_memory_utilization=share)
        yield plan.then(other, {"gpu_memory_utilization": share}, "setting")


def _larger_share(base: Base, scenario: Scenario) -> float | None:
    """Of a server's card the usual larger share; of a machine's one memory what can be spared."""
    gpu, share = scenario.gpu, claimed_share(scenario)
    if gpu and MAKERS[gpu.vendor].one_memory:
        return None if base.fits else _raised_share(base, gpu.vram_bytes or 0)
    if share is None or share >= _SHARE or (gpu and gpu.unified_memory):
        return None
    outside = runtime_of(scenario.framework).context_outside_share
    return _SHARE if outside and _is_short(base, _TIGHT) else None


def _raised_share(base: Base, memory: int) -> float | None:
    """How much of its memory a machine can spare; whole percents, and none if that is no more."""
    policy = base.knowledge.policy
    spared = 100 * (1 - policy["system_ram_bytes"] / memory) if memory else 0.0
    share = int(min(spared, policy["raised_limit_percent"])) / 100
    return share if share * memory > (base.memory.usable_bytes or 0) else None


def _is_short(base: Base, margins: Collection[str] = ("thin",)) -> bool:
    return not base.fits or margin_of(base.memory, base.knowledge.policy) in margins


def text_only(base: Base, *_: object) -> Iterator[Option]:
    """The same without its image reader, where memory is short."""
    for plan in _text_alone(base, Plan(base.scenario)) if _is_short(base) else ():
        yield make_option(base, TEXT_ONLY, plan.change, plan.scenario)


def _text_alone(base: Base, plan: Plan) -> Iterator[Plan]:
    """For text alone; none where images were asked for or the runtime cannot."""
    request, own = base.request, plan.scenario
    model = text_alone(own.model)
    if request.images or request.image_size or FOR_IMAGES.search(own.model.name):
        return
    other = replace(own, model=model, text_only=True)
    if model is not own.model and can_tell(other, "text_only"):
        yield plan.then(other, {"text_only": True}, "setting")


TEXT_ONLY = Remedy("text-only", frozenset({"text_only"}), "setting", text_only)
STEPS = Remedy("smaller-steps", frozenset({"max_num_batched_tokens"}), "setting", smaller_steps)
GRAPHS = Remedy("without-graphs", frozenset({"eager"}), "setting", without_graphs)
SHARE = Remedy("larger-share", frozenset({"gpu_memory_utilization"}), "setting", larger_share)


def text_alone_plans(base: Base) -> Sequence[Plan]:
    """The start of a combination without the image reader, where there is one."""
    return [*_text_alone(base, Plan(base.scenario))]


def share_plans(base: Base) -> Sequence[Plan]:
    """The start of a combination with a larger share of the memory, where there is one."""
    return [*_with_share(base, Plan(base.scenario))]


def small_step_plans(base: Base) -> Iterator[Plan]:
    """Starts of a combination with prompts in the smallest steps, then without images besides."""
    for start in (Plan(base.scenario), *text_alone_plans(base)):
        yield from [*_in_steps(base, start)][-1:]


def _one_at_a_time(base: Base, plan: Plan) -> Iterator[Plan]:
    """A server told of the one request that it is sized for, where it prepares for more."""
    own = plan.scenario
    if own.batch == 1 and not own.slots and runtime_of(own.framework).context_outside_share:
        other = replace(own, slots=1, logits_rows=base.request.logits_rows or 1)
        yield plan.then(other, {"batch": 1}, "setting")


def _smaller_cache(base: Base, plan: Plan) -> Iterator[Plan]:
    kinds = smaller_caches(base, plan.scenario, bounds(base)[0])
    yield from (with_cache(base, plan, kind) for kind in kinds[:1] if base.memory.kv_cache_bytes)


def _attends_apart(_: Base, plan: Plan) -> Iterator[Plan]:
    for other in attending_apart(plan.scenario):
        yield plan.then(other, {"split": other.split}, "setting")


Lever = Callable[[Base, Plan], Iterator[Plan]]
_LEVERS: Sequence[Lever] = (
    _one_at_a_time,
    _with_share,
    _attends_apart,
    _in_steps,
    _text_alone,
    _smaller_cache,
    _eager,
)
"""Settings that keep the weights as they are and save memory, what costs the least first."""


def together(base: Base) -> Sequence[Plan]:
    """The fewest settings that hold the very checkpoint with room, where no single one does."""
    own = Plan(base.scenario)

    def all_of(levers: Iterable[Lever]) -> Plan:
        plan = own
        for lever in levers:
            plan = [plan, *lever(base, plan)][-1]
        return plan

    def holds(levers: Iterable[Lever]) -> bool:
        return cards_hold(base, all_of(levers).scenario, roomy=True)

    levers = [lever for lever in _LEVERS if any(lever(base, own))]
    alone = [lever for lever in levers if holds([lever])] if holds(levers) else []
    if _one_at_a_time in alone:
        return [all_of([_one_at_a_time])]
    if not holds(levers) or alone not in ([], [_eager]):
        return []
    for most in range(2, _MOST_TOGETHER + 1):
        held = (some for some in combinations(levers, most) if holds(some))
        if found := [*map(all_of, islice(held, _MOST_SETS))]:
            return found
    return []
