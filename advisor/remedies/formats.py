"""What-ifs about how weights and cache are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from advisor.commands import can_tell
from advisor.knowledge.types import Format, Framework, KvType
from advisor.remedies.baseline import Base, cards_hold, make_option, may_help, whole_if_held
from advisor.remedies.format_choice import Pair, families_elsewhere, worth_having
from advisor.remedies.option import Option
from advisor.scenario import support
from advisor.scenario.scenario import Scenario
from advisor.scenario.speculation import without_lost_drafts
from advisor.scenario.splits import can_split


def quantize_options(base: Base) -> Iterator[Option]:
    """Other weight formats: of the present framework all worth having, the best of others.

    Both directions: a smaller format to fit, a larger one where there is room for quality.
    """
    yield from _own_formats(base)
    if not base.request.framework:
        yield from _other_families(base)


def _own_formats(base: Base) -> Iterator[Option]:
    """From the largest down; desperate formats are left out once a gentle one fits."""
    scenario, policy = base.scenario, base.knowledge.policy
    gentle_fits = False
    for precision in _candidates(base):
        loss = precision.quality_loss_percent
        if gentle_fits and loss is not None and loss > policy["desperate_above_percent"]:
            continue
        other = whole_if_held(base, replace(scenario, precision=precision))
        option = make_option(base, "quantize", {"precision": precision.name}, other, "download")
        gentle = loss is not None and loss <= policy["gentle_up_to_percent"]
        gentle_fits = gentle_fits or (option.fits and gentle)
        yield option


def _candidates(base: Base) -> Sequence[Format]:
    """Other formats, the largest first; none larger where the present one does not fit."""
    formats = worth_having(base.scenario, base.knowledge)
    present = base.scenario.precision
    if not base.card_fits and present in formats:
        formats = formats[: formats.index(present)]
    return [f for f in reversed(formats) if f is not present]


def _other_families(base: Base) -> Iterator[Option]:
    """Of each format family that another framework runs: its largest format that fits."""
    for family in families_elsewhere(base.scenario, base.knowledge):
        option = _first_fitting(base, family)
        if option:
            yield option


def _first_fitting(base: Base, family: Sequence[Pair]) -> Option | None:
    smallest = None
    for precision, framework in family:
        other = in_framework(base, framework, precision)
        if other is None:
            continue
        smallest = other
        if cards_hold(base, other):
            option = _elsewhere(base, other)
            if option.fits:
                return option
    return _elsewhere(base, smallest) if smallest else None


def _elsewhere(base: Base, other: Scenario) -> Option:
    change = {"precision": other.precision.name, "framework": other.framework.name}
    return make_option(base, "quantize", change, other, "rebuild")


def in_framework(base: Base, framework: Framework, precision: Format) -> Scenario | None:
    """The request in another framework; None where its cache type or cards cannot follow."""
    scenario = base.scenario
    for kind in (scenario.kv_cache_k, scenario.kv_cache_v):
        if not support.runs_kv(framework, kind, scenario.gpu):
            return None
    places = framework.places_layers
    flash = base.request.flash_attention
    other = replace(
        scenario,
        framework=framework,
        precision=precision,
        flash_attention=framework.flash_attention is not False if flash is None else flash,
        gpu_layers=scenario.gpu_layers if places else None,
        cpu_experts=scenario.cpu_experts if places and framework.expert_offload else 0,
    )
    other = without_lost_drafts(other)
    return other if can_split(other) else None


def kv_cache_options(base: Base) -> Iterator[Option]:
    """Smaller element types for the KV cache, one per number of bits, where there is one."""
    scenario = base.scenario
    if not (base.memory.kv_cache_bytes or base.memory.host_kv_cache_bytes):
        return
    seen: set[int] = set()
    for name in scenario.framework.kv_types:
        kind = base.knowledge.kv_types[name]
        if int(kind.bits) in seen:
            continue
        if kind.bits < scenario.kv_cache_k.bits and can_cache(scenario, kind):
            seen.add(int(kind.bits))
            other = replace(scenario, kv_cache_k=kind, kv_cache_v=kind)
            if not may_help(base, other):
                continue
            yield make_option(base, "quantize-kv", kv_change(base, kind), other, "setting")


def kv_change(base: Base, kind: KvType) -> dict[str, object]:
    """The keys that ask for a cache type, as the request asked for its own."""
    if base.request.kv_cache_k or base.request.kv_cache_v:
        return {"kv_cache_k": kind.name, "kv_cache_v": kind.name}
    return {"kv_cache": kind.name}


def can_cache(scenario: Scenario, kind: KvType) -> bool:
    """Whether the runtime can keep its cache in this type here, and its command can say so."""
    flash_ok = scenario.flash_attention or not kind.needs_flash_attention
    if not (flash_ok and support.runs_kv(scenario.framework, kind, scenario.gpu)):
        return False
    return can_tell(replace(scenario, kv_cache_k=kind, kv_cache_v=kind), "kv_cache")
