"""Conclusions and records -> the result document, as far as it is figures: no sentence yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice.configuration import (
    EachCardDoc,
    GpuDoc,
    MemoryDoc,
    ModelDoc,
    ScenarioDoc,
    SetupDoc,
    SpeedDoc,
)
from advisor.advice.document import (
    Advice,
    After,
    Alternative,
    Before,
    NotRecommended,
    OptionDoc,
    OptionsDoc,
    Recommendation,
    ScoreTermDoc,
    Tradeoff,
    Verdict,
)
from advisor.knowledge.catalogue import default_backend
from advisor.knowledge.types import Framework
from advisor.remedies.assessment import loss_measured_on, quality_known
from advisor.remedies.search import dominators_in_kind
from advisor.runtimes.commands import Command, commands_for
from advisor.scenario import claimed_share, offloads, split_of, support, whole_key
from advisor.scenario.figures import certainty_of, sequences_at_once
from advisor.units import plain, typed

if TYPE_CHECKING:
    from advisor.advice.conclusions import BarredOption, Conclusions, RankedOption
    from advisor.advice.configuration import MemoryPicture
    from advisor.knowledge.layers import UserEntry
    from advisor.knowledge.types import Gpu
    from advisor.models.stored_tensors import Model
    from advisor.remedies.option import Option
    from advisor.scenario import Key, Scenario
    from advisor.scenario.figures import Limits, Memory, Span, Speed

SCHEMA_VERSION = 1
QUOTED_FACTS = (
    "fit.cause",
    "fit.gap",
    "gpu.bandwidth_class",
    "headroom.class",
    "host.ram_needed",
    "model.attention",
    "gpu.nvlink",
    "model.draft_head",
    "framework.left_card",
    "options.copies",
    "options.copy_gpus",
    "options.copy_batch",
    "model.four_bit_files",
    "model.told_windows",
    "weights.download",
    "weights.slow_kernels",
    "weights.library_size",
    "options.combination_fits",
    "options.dominated",
    "options.fitting",
    "options.largest_machine",
    "options.least_needed",
    "options.most_memory",
    "options.none_exists",
    "options.part_estimate",
    "options.part_high",
    "options.part_low",
    "options.part_ram",
    "options.smallest_format",
    "options.timed_framework",
    "options.timed_speed",
    "policy.roomy_ram",
    "speed.class",
    "weights.published",
    "workload.kind",
)
"""Facts outside the other keys that templates may name."""
_RUNS = ("fits", "tight")
_T = TypeVar("_T", bound=Struct)


def numbers_of(
    found: Conclusions, picture: MemoryPicture | None = None, *, reasons: bool = True
) -> Advice:
    """Put what was concluded as the document has it, its sentences empty."""
    speed = speed_doc(found.speed) if _speed_may_be_shown(found) else None
    before = Before(found.memory.required_bytes, speed.decode_tok_s if speed else None)
    made = found.provenance
    users = made.rules()
    return Advice(
        schema_version=SCHEMA_VERSION,
        request=dict(found.request.stated()),
        scenario=scenario_doc(found.scenario),
        memory=memory_doc(found.memory, found.limits),
        break_even=found.break_even,
        speed=speed,
        speed_full=speed_doc(found.speed_full) if speed else None,
        speculative_tok_s=_span(found.speed),
        verdict=Verdict(found.state, ""),
        commands=_commands(found.scenario, found.memory) if found.state in _RUNS else [],
        recommendations=[
            _recommendation(item, before, users.get(item.rule), found.scenario.framework)
            for item in found.recommendations
        ],
        notes=[],
        not_recommended=[
            _barred(item, users.get(item.rule), reasons=reasons) for item in found.not_recommended
        ],
        warnings=[plain(text) for text in found.warnings],
        missing=found.missing,
        facts={name: found.facts[name] for name in QUOTED_FACTS if name in found.facts},
        options=None,
        memory_picture=picture,
        provenance=made,
    )


def _speed_may_be_shown(found: Conclusions) -> bool:
    """A split that its RAM cannot hold does not start, so its speed needs RAM that is known."""
    known = not found.scenario.ram_assumed
    return found.state in _RUNS or (offloads(found.scenario) and known)


def read_as(kind: type[_T], record: object, **more: object) -> _T:
    """Copy the fields that a record has under the same names; ``more`` gives the others."""
    copied = {name: getattr(record, name) for name in kind.__struct_fields__ if name not in more}
    return kind(**copied, **more)


def scenario_doc(scenario: Scenario) -> ScenarioDoc:
    """Put the resolved request as the document has it."""
    form, framework, gpu = scenario.precision, scenario.framework, scenario.gpu
    low, high = scenario.ram_bandwidth_ends or (None, None)
    usual = scenario.backend == default_backend(gpu) if gpu and scenario.backend else None
    return read_as(
        ScenarioDoc,
        scenario,
        gpu=_gpu(gpu) if gpu else None,
        cards=[read_as(EachCardDoc, card, name=plain(card.name)) for card in scenario.cards],
        model=_model(scenario.model),
        precision=form.name,
        precision_quality_loss_percent=support.format_loss(form, scenario.model),
        precision_class_bits=form.class_bits,
        precision_nominal_bytes_per_weight=form.nominal_bytes_per_weight,
        kv_cache=_kv_name(scenario),
        kv_cache_k=scenario.kv_cache_k.name,
        kv_cache_v=scenario.kv_cache_v.name,
        framework=framework.name,
        framework_offloads=framework.cpu_offload,
        framework_memory_model=framework.memory_model,
        framework_memory_fraction=claimed_share(scenario),
        framework_split=split_of(scenario),
        backend_usual=usual,
        least_ram_bandwidth_bytes_s=low,
        most_ram_bandwidth_bytes_s=high,
        draft_model=_draft(scenario),
        read_as=[plain(text) for text in scenario.read_as],
    )


def setup_doc(scenario: Scenario) -> SetupDoc:
    """Put a configuration in its short form."""
    gpu, model = scenario.gpu, scenario.model
    return read_as(
        SetupDoc,
        scenario,
        gpu=plain(gpu.name) if gpu else None,
        gpu_vram_bytes=gpu.vram_bytes if gpu else None,
        gpu_bandwidth_bytes_s=gpu.bandwidth_bytes_s if gpu else None,
        model=plain(model.name),
        model_family=plain(model.family),
        model_parameters=model.parameters,
        precision=scenario.precision.name,
        kv_cache=_kv_name(scenario),
        framework=scenario.framework.name,
        framework_split=split_of(scenario),
        layers=model.shape.layers,
        draft_model=_draft(scenario),
    )


def _draft(scenario: Scenario) -> str | None:
    return plain(scenario.draft_model.name) if scenario.draft_model else None


def _kv_name(scenario: Scenario) -> str:
    keys, values = scenario.kv_cache_k.name, scenario.kv_cache_v.name
    return keys if keys == values else f"{keys}/{values}"


def _gpu(gpu: Gpu) -> GpuDoc:
    return read_as(GpuDoc, gpu, name=plain(gpu.name))


def _model(model: Model) -> ModelDoc:
    moe = model.shape.moe
    return read_as(
        ModelDoc,
        model,
        name=plain(model.name),
        family=plain(model.family),
        active_parameters=model.read_parameters,
        layers=model.shape.layers,
        experts=moe.experts if moe else None,
        experts_used=moe.used if moe else None,
    )


def memory_doc(memory: Memory, limits: Limits) -> MemoryDoc:
    """Put memory and its limits as the document has them."""
    room = memory.cache_room
    return read_as(
        MemoryDoc,
        memory,
        max_context_tokens=limits.max_context_tokens,
        max_batch=limits.max_batch,
        certainty=certainty_of(memory),
        cache_room_bytes=room.room_bytes if room else None,
        cache_tokens=room.tokens if room else None,
        cache_sequences=sequences_at_once(memory, limits),
        state_slots=room.state_slots if room else None,
    )


def speed_doc(speed: Speed | None) -> SpeedDoc | None:
    """Put a speed as the document has it."""
    return read_as(SpeedDoc, speed) if speed else None


def _span(speed: Speed | None) -> Span | None:
    return speed.speculative_tok_s if speed else None


def _commands(scenario: Scenario, memory: Memory, within: Framework | None = None) -> list[Command]:
    made = commands_for(scenario, memory, within)
    return [replace(command, text=typed(command.text)) for command in made]


def _recommendation(
    item: RankedOption, before: Before, entry: UserEntry | None, asked: Framework
) -> Recommendation:
    option = item.option
    return read_as(
        Recommendation,
        item,
        action=option.action,
        title="",
        text="",
        change=option.change,
        setup=setup_doc(option.scenario),
        before=before,
        after=_after(option),
        tradeoff=_tradeoff(option),
        commands=_commands(option.scenario, option.memory, asked),
        alternatives=[
            Alternative(other.change, setup_doc(other.scenario), _after(other))
            for other in item.alternatives
        ],
        speculative_tok_s=_span(option.speed),
        yours=entry,
        score_terms=[ScoreTermDoc(plain(term.text), term.points) for term in item.score_terms],
    )


def _after(option: Option) -> After:
    memory, speed = option.memory, option.speed if option.fits else None
    return read_as(
        After,
        memory,
        host_bytes=memory.host_weights_bytes
        + memory.host_kv_cache_bytes
        + memory.host_compute_bytes,
        fits=option.fits,
        margin=option.margin,
        decode_tok_s=speed.decode_tok_s if speed else None,
        aggregate_tok_s=speed.aggregate_tok_s if speed else None,
    )


def _tradeoff(option: Option) -> Tradeoff:
    loss, change = option.quality_loss_percent, option.quality_cost_percent
    known = "" if change is not None else quality_known(option.scenario, option.change)
    of = loss_measured_on(option.scenario)
    return Tradeoff(loss, change, option.cost_usd, option.effort, known, of)


def _barred(item: BarredOption, entry: UserEntry | None, *, reasons: bool) -> NotRecommended:
    option = item.option
    return NotRecommended(
        title="",
        action=option.action,
        change=option.change,
        rule=item.rule,
        yours=entry,
        reason=plain(item.reason),
        because=item.why() if reasons else (),
    )


def options_doc(options: Sequence[Option], barred: frozenset[str] = frozenset()) -> OptionsDoc:
    """Count what was tried and keep the what-ifs worth showing, the best of them marked.

    ``barred`` holds the keys of those that a rule advises against.
    """
    fitting = [option for option in options if option.fits]
    allowed = [option for option in fitting if option.key not in barred]
    pointless = frozenset(dominators_in_kind(allowed))
    left_out, best = pointless | _repeats(allowed), best_balanced(allowed)
    return OptionsDoc(
        tried=len(options),
        fitting=len(fitting),
        dominated=len(pointless),
        barred=len(fitting) - len(allowed),
        rows=[
            option_doc(option, best=option.key in best)
            for option in allowed
            if option.key not in left_out
        ],
    )


def option_doc(option: Option, *, best: bool = False) -> OptionDoc:
    """Put a what-if as the document has it."""
    return read_as(
        OptionDoc,
        option,
        setup=setup_doc(option.scenario),
        after=_after(option),
        tradeoff=_tradeoff(option),
        best=best,
    )


def _repeats(options: Iterable[Option]) -> frozenset[str]:
    """The keys of what-ifs that come to the same as an earlier one under another action."""
    first: dict[Key, str] = {}
    keys = [(option.key, whole_key(option.scenario)[0]) for option in options]
    return frozenset(key for key, same in keys if first.setdefault(same, key) != key)


def best_balanced(options: Iterable[Option]) -> frozenset[str]:
    """Keys of the fitting options that no other beats in quality, speed and cost together.

    Only those with all three figures can be compared; a change without a purchase costs nothing.
    """
    points = {o.key: p for o in options if o.fits and (p := _point(o)) is not None}
    return frozenset(
        key
        for key, point in points.items()
        if not any(
            other != point and all(a <= b for a, b in zip(other, point, strict=True))
            for other in points.values()
        )
    )


def _point(option: Option) -> tuple[float, float, float] | None:
    cost = option.cost_usd if option.effort == "purchase" else 0.0
    loss, speed = option.quality_loss_percent, option.speed
    if loss is None or speed is None or cost is None:
        return None
    return (loss, -speed.decode_tok_s.estimate, cost)
