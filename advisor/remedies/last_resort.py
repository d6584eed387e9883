"""The end of the search: the smallest thing on the largest machine, or the proof that none fits.

Only asked where nothing else that was tried fits. Every framework that knows the model is looked
at in its smallest format and cache, one sequence, the shortest useful context, on as many of the
largest cards of each maker as one machine holds, with what RAM may hold beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.estimator import estimate_memory
from advisor.estimator.limits import MOST_CARDS
from advisor.knowledge.catalogue import MAKERS
from advisor.knowledge.types import Format, Framework, Gpu
from advisor.models.stored_tensors import Model
from advisor.remedies.cards import current_cards
from advisor.remedies.combine import REMEDY as COMBINE
from advisor.remedies.kv_cache import BATCH, CONTEXT, smaller_caches, with_cache
from advisor.remedies.kv_cache import LAYERS_DEGREE as LAYERS
from advisor.remedies.option import Base, Option, Remedy, cards_hold, stored_bytes
from advisor.remedies.search import (
    Bounds,
    Plan,
    bounds,
    proved,
    ram_limit,
    solved,
    stretched,
    within_reach,
)
from advisor.scenario import support
from advisor.scenario.choices import runs
from advisor.scenario.resolve import backend_in
from advisor.scenario.support import without_lost_drafts


class Proof(Struct, frozen=True):
    """Why nothing helps: the least that was found to be needed, and the most there is."""

    least_needed_bytes: int
    most_memory_bytes: int
    """Of one machine's cards, as sold, with the RAM that may be used beside them."""
    format: str
    card: str
    cards: int


def _propose(base: Base, _: object, found: Mapping[str, Option]) -> Iterator[Option]:
    """The first of the smallest set-ups that fits, where neither the request nor another does."""
    if base.fits or any(within_reach(base, option) for option in found.values()):
        return
    limits = bounds(base)[-1]
    for plan in _smallest(base, limits):
        held = plan if cards_hold(base, plan.scenario) else None
        if held is None and LAYERS.applies(plan.scenario, limits):
            held = solved(base, plan, LAYERS, limits)
        if held is None:
            continue
        option = proved(base, REMEDY, held, steps=2)
        if within_reach(base, option):
            yield option
            return


def proof_of(base: Base, options: Sequence[Option]) -> Proof | None:
    """Why nothing helps, where nothing does; None where the request or an option fits."""
    if base.fits or any(within_reach(base, option) for option in options):
        return None
    limits = bounds(base)[-1]
    found = [_proof(base, plan, limits) for plan in _smallest(base, limits)]
    return min(found, key=lambda p: (p.least_needed_bytes, -p.most_memory_bytes), default=None)


def _proof(base: Base, plan: Plan, limits: Bounds) -> Proof:
    scenario = plan.scenario
    memory = estimate_memory(scenario, base.knowledge)
    assert scenario.gpu
    beside = ram_limit(base, limits) if LAYERS.applies(scenario, limits) else 0.0
    return Proof(
        least_needed_bytes=memory.required_bytes,
        most_memory_bytes=round((memory.capacity_bytes or 0) + beside),
        format=scenario.precision.name,
        card=scenario.gpu.name,
        cards=scenario.gpus,
    )


def _smallest(base: Base, limits: Bounds) -> Iterator[Plan]:
    """Every framework in its smallest format on the largest machine of every maker."""
    for card in _largest_cards(base):
        for framework in _frameworks(base):
            precision = _smallest_format(base, framework, card, limits)
            if precision:
                yield _stripped(base, _moved(base, framework, precision, card), limits)


def _frameworks(base: Base) -> Sequence[Framework]:
    own = base.scenario.framework
    others = [f for f in base.knowledge.frameworks.values() if f is not own]
    return [f for f in (own, *others) if f.sized]


def _largest_cards(base: Base) -> Sequence[Gpu]:
    largest: dict[str, Gpu] = {}
    for row in current_cards(base.knowledge):
        largest[row.vendor] = base.knowledge.gpus[row.name]
    asked = base.request.backend
    now = base.scenario.backend
    usable = [g for g in largest.values() if not asked or now in MAKERS[g.vendor].backends]
    return sorted(usable, key=lambda g: (-(g.vram_bytes or 0), g.name))


def _smallest_format(base: Base, framework: Framework, card: Gpu, limits: Bounds) -> Format | None:
    scenario = replace(base.scenario, framework=framework)
    formats = [
        f
        for name in framework.formats
        if (f := base.knowledge.formats[name]).offered
        and f.bits_per_weight is not None
        and limits.takes(f)
        and runs(base.knowledge, framework, f, card, scenario.model)
        and support.runs_kv(framework, scenario.kv_cache_k, card, scenario.model.shape)
        and support.runs_kv(framework, scenario.kv_cache_v, card, scenario.model.shape)
    ]
    return min(formats, key=lambda f: stored_bytes(base, scenario, f), default=None)


def _moved(base: Base, framework: Framework, precision: Format, card: Gpu) -> Plan:
    own = base.scenario
    flash = base.request.flash_attention
    count = _cards(framework, precision, own.model, card)
    scenario = replace(
        own,
        gpu=card,
        gpus=count,
        framework=framework,
        precision=precision,
        backend=backend_in(framework, card, base.request.backend and own.backend),
        flash_attention=framework.flash_attention is not False if flash is None else flash,
        gpu_layers=None,
        cpu_experts=0,
        cards=(),
    )
    scenario = without_lost_drafts(scenario)
    change: dict[str, object] = {"gpu": card.name, "gpus": count}
    change |= {"precision": precision.name, "framework": framework.name}
    return Plan(scenario, change, 3, "purchase")


def _cards(framework: Framework, precision: Format, model: Model, card: Gpu) -> int:
    if not framework.multi_gpu or card.unified_memory:
        return 1
    counts = range(MOST_CARDS, 0, -1)
    return next(n for n in counts if support.can_share(framework, precision, model, n))


def _stripped(base: Base, plan: Plan, limits: Bounds) -> Plan:
    for degree in (CONTEXT, BATCH):
        if degree.applies(plan.scenario, limits):
            plan = stretched(base, plan, degree, limits)
    kinds = smaller_caches(base, plan.scenario, limits)
    return with_cache(base, plan, kinds[-1]) if kinds else plan


REMEDY = Remedy(COMBINE.action, frozenset(), "purchase", _propose, joins=True)
