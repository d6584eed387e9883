"""Tokens per second: how long one decode step takes, from what it has to read.

One step of ``batch`` sequences takes

    overheads of its layers + weights / (bandwidth x efficiency)
        + batch x cache / (bandwidth x efficiency of the cache)
        + (batch - 1) x arithmetic of one token
        + what lies in system RAM / (RAM bandwidth x its efficiency)

with the parameters of knowledge/calibration.yaml and calibration-fitted.yaml;
docs/decisions/0005-speed-model.md says where they come from, docs/speed-accuracy.md how good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from advisor.estimator.measured_speed import Measured, times, with_measured
from advisor.estimator.placement import splits_by_layer
from advisor.estimator.speed_fields import Range, joined_range
from advisor.estimator.speed_prefill import Reached
from advisor.estimator.speed_rates import Rate, Speeds, speeds_of
from advisor.estimator.speed_step import (
    Reads,
    cache_reads,
    micro_batch_copy_s,
    prompt_s,
    reads_of,
    rough_parts,
    step_time,
)
from advisor.estimator.weights import weights_of
from advisor.knowledge.types import Knowledge
from advisor.runtimes import runtime_of
from advisor.runtimes.base import Weights
from advisor.scenario import (
    Scenario,
    is_alone,
    is_split,
    on_machines,
    reading_at,
    sequences_of_a_rank,
    split_of,
    with_batch,
)
from advisor.scenario.capability import slow_weights
from advisor.scenario.figures import Evidence, Figure, Memory, Span, Speed
from advisor.units import GIB, plain


def speed_of_unequal(
    scenario: Scenario, memory: Memory, one_kind: Callable[[Scenario], Speed | None]
) -> Speed | None:
    """Estimate a scenario of unequal cards.

    The weights on each card are its share of the work; ``one_kind`` estimates a scenario of equal
    cards.

    Gives None where the speed of one of the cards is unknown.
    """
    kinds = {gpu.name: gpu for gpu in scenario.cards}
    speeds = {name: one_kind(replace(scenario, gpu=gpu, cards=())) for name, gpu in kinds.items()}
    shares = _shares(memory) if splits_by_layer(scenario) else None
    found = [(speed, shares[name] if shares else 0.0) for name, speed in speeds.items() if speed]
    if len(found) < len(kinds):
        return None
    slowest = min((speed for speed, _ in found), key=lambda speed: speed.decode_tok_s.estimate)
    if shares is None:
        return replace(
            slowest,
            decode_tok_s=_rough(slowest.decode_tok_s),
            prefill_tok_s=_extreme([speed.prefill_tok_s for speed, _ in found], min),
            aggregate_tok_s=_extreme([speed.aggregate_tok_s for speed, _ in found], min),
            first_token_s=_extreme([speed.first_token_s for speed, _ in found], max),
        )
    return replace(
        slowest,
        decode_tok_s=_joined([(speed.decode_tok_s, share) for speed, share in found]),
        prefill_tok_s=_joined_or_none([(speed.prefill_tok_s, share) for speed, share in found]),
        aggregate_tok_s=_joined_or_none([(speed.aggregate_tok_s, share) for speed, share in found]),
        first_token_s=_summed([(speed.first_token_s, share) for speed, share in found]),
    )


def _shares(memory: Memory) -> dict[str, float]:
    """Give the part of the weights that lies on the cards of each name."""
    held = dict[str, int]()
    for card in memory.per_gpu:
        held[card.name] = held.get(card.name, 0) + card.weights_bytes
    whole = sum(held.values())
    return {name: size / whole if whole else 1 / len(held) for name, size in held.items()}


def _rough(figure: Figure) -> Figure:
    return Figure(figure.estimate, figure.low, figure.high, "extrapolated")


def _joined(parts: Sequence[tuple[Figure, float]]) -> Figure:
    """Add up the times of the shares: tokens/s go by their harmonic mean."""
    return Figure(
        1 / sum(share / figure.estimate for figure, share in parts),
        1 / sum(share / figure.low for figure, share in parts),
        1 / sum(share / figure.high for figure, share in parts),
        "extrapolated",
    )


def _joined_or_none(parts: Sequence[tuple[Figure | None, float]]) -> Figure | None:
    known = [(figure, share) for figure, share in parts if figure is not None]
    return _joined(known) if len(known) == len(parts) else None


def _summed(parts: Sequence[tuple[Figure | None, float]]) -> Figure | None:
    """Add up waiting times, which every card has its share of."""
    known = [(figure, share) for figure, share in parts if figure is not None]
    if len(known) < len(parts):
        return None
    return Figure(
        sum(share * figure.estimate for figure, share in known),
        sum(share * figure.low for figure, share in known),
        sum(share * figure.high for figure, share in known),
        "extrapolated",
    )


def _extreme(figures: Sequence[Figure | None], pick: Callable[..., Figure]) -> Figure | None:
    known = [figure for figure in figures if figure is not None]
    if len(known) < len(figures):
        return None
    return _rough(pick(known, key=lambda figure: figure.estimate))


_TIMED_SPLITS = frozenset({"layer", "tensor", "data"})
"""Splits that measurements were published of, and copies, each as fast as one card."""
_UNTIMED = {
    "row": "speed of a split by rows",
    "dp-attention": "speed of attention data parallel",
}
_GENERATES = frozenset({"text", "vision"})


def estimate_speed(scenario: Scenario, memory: Memory, knowledge: Knowledge) -> Speed | None:
    """Estimate decode, prefill and aggregate speed at the scenario's depth.

    Decode is one stream's of ``batch``. A server computes as many sequences together as it holds.

    The parameters are in ``calibration`` of the knowledge.

    Returns:
        None without a card, when the scenario does not fit, for models that do not generate
        text, and where a figure is unknown (``missing_inputs`` names it).

    Raises:
        KnowledgeError: calibration.yaml is wrong.
        RequestError: A figure of the architecture is missing.
    """
    if memory.deficit_bytes or not _can_decode(scenario):
        return None
    if memory.held_sequences is not None:
        scenario = with_batch(scenario, min(memory.held_sequences, scenario.batch))
    speeds = speeds_of(knowledge)
    found = _plain_speed(scenario, memory, speeds, knowledge)
    if found is None or speeds is None or not (scenario.mtp or scenario.draft_model):
        return found
    return _with_drafts(scenario, found, speeds, knowledge)


def _plain_speed(
    scenario: Scenario, memory: Memory, speeds: Speeds | None, knowledge: Knowledge
) -> Speed | None:
    if scenario.cards:
        return speed_of_unequal(
            scenario, memory, lambda one: estimate_speed(one, memory, knowledge)
        )
    if split_of(scenario) == "data":
        alone = with_batch(replace(scenario, gpus=1, split=None), sequences_of_a_rank(scenario))
        one = _plain_speed(alone, memory, speeds, knowledge)
        return one and replace(one, aggregate_tok_s=times(one.decode_tok_s, scenario.batch))
    rate = rate_of(scenario, speeds)
    if speeds is None or rate is None:
        return None
    weights = weights_of(
        scenario.model, scenario.precision, scenario.framework, knowledge.ggml_types
    )
    found, tables = _speed(scenario, memory, speeds, rate, weights), speeds.tables
    if speeds.user is None:
        return found
    spread, most_apart = tables.ranges["own"], tables.measured_depth_tokens
    return with_measured(scenario, speeds.user, found, spread=spread, most_apart=most_apart)


def missing_inputs(scenario: Scenario, knowledge: Knowledge | None = None) -> tuple[str, ...]:
    """Name the unknown figures that keep the scenario from having a speed.

    With ``knowledge`` engines, backends and formats without calibration are named too.

    Returns:
        Fact names, or in words what nobody has measured; empty when nothing
        is missing or when speed does not apply (no card, no text generation).
    """
    if scenario.gpu is None or scenario.model.modality not in _GENERATES:
        return ()
    missing = []
    if scenario.model.shape.role != "decoder":
        missing.append("calibration of models with an encoder")
    if scenario.model.shape.reads_unknown:
        missing.append("model.active_parameters")
    if scenario.gpu.bandwidth_bytes_s is None:
        missing.append("gpu.bandwidth")
    if is_split(scenario) and scenario.ram_bandwidth_bytes_s is None:
        missing.append("host.ram_bandwidth")
    if scenario.gpus > 1 and not scenario.framework.multi_gpu:
        missing.append("framework.multi_gpu")
    missing += _untimed(scenario)
    if runtime_of(scenario.framework).lacks_graphs(scenario):
        missing.append("speed of a server without CUDA graphs")
    kinds = [replace(scenario, gpu=gpu, cards=()) for gpu in scenario.cards] or [scenario]
    if knowledge and any(rate_of(one, speeds_of(knowledge)) is None for one in kinds):
        missing.append(f"how fast {scenario.framework.name} computes on {scenario.backend}")
    return tuple(missing)


def _untimed(scenario: Scenario) -> Iterator[str]:
    """Name what nobody has timed of several cards, or machines."""
    if on_machines(scenario):
        yield "speed of several machines"
    if (split := split_of(scenario)) in _UNTIMED:
        yield _UNTIMED[split]


def _with_drafts(scenario: Scenario, speed: Speed, speeds: Speeds, knowledge: Knowledge) -> Speed:
    """Add the span that a draft model or the model's own head may lead to.

    Speculation can lose, so the span contains the plain figure, which never includes it. It is as
    wide as the plain range and that of the measured pairs together, taken as independent.
    """
    spans = speeds.tables.speculation
    low, high = spans["mtp" if scenario.mtp else "draft_model"]
    if scenario.mtp and _is_small(scenario, speeds, knowledge):
        low = min(low, spans["mtp_small"][0])
    at, one = speed.decode_tok_s, speed.decode_tok_s.estimate
    least, most = joined_range((at.low / one, at.high / one), (low, high))
    return replace(speed, speculative_tok_s=Span(one * least, one * most))


def _is_small(scenario: Scenario, speeds: Speeds, knowledge: Knowledge) -> bool:
    """Whether a token reads so little that the host sets the pace, that of drafts included."""
    weights = weights_of(
        scenario.model, scenario.precision, scenario.framework, knowledge.ggml_types
    )
    share = scenario.model.active_parameters / scenario.model.parameters
    return weights.profile.total_bytes * share < speeds.tables.small_gib * GIB


def _can_decode(scenario: Scenario) -> bool:
    gpu = scenario.gpu
    return (
        gpu is not None
        and gpu.bandwidth_bytes_s is not None
        and scenario.model.modality in _GENERATES
        and scenario.model.shape.role == "decoder"
        and not scenario.model.shape.reads_unknown
        and (scenario.gpus == 1 or split_of(scenario) in _TIMED_SPLITS)
        and not on_machines(scenario)
        and not runtime_of(scenario.framework).lacks_graphs(scenario)
        and (scenario.ram_bandwidth_bytes_s is not None or not is_split(scenario))
    )


def rate_of(scenario: Scenario, speeds: Speeds | None) -> Rate | None:
    """Give what the scenario's card reaches, None where engine or format have no figures."""
    if speeds is None or scenario.gpu is None or scenario.backend is None:
        return None
    by, of, model = scenario.framework, scenario.precision, scenario.model
    slow = slow_weights(by, of, scenario.gpu, model, scenario.backend)
    moe = model.shape.moe is not None
    return speeds.rate(scenario.gpu, scenario.backend, by, of, moe=moe, slow=slow)


def _speed(
    scenario: Scenario, memory: Memory, speeds: Speeds, rate: Rate, weights: Weights
) -> Speed:
    batch = scenario.batch
    cache = cache_reads(scenario, speeds.tables.by_head)
    reads = reads_of(scenario, memory, weights, cache)
    step = step_time(scenario, speeds.tables, rate, reads, batch)
    evidence, spread = _trust(scenario, speeds, rate, reads)
    spread = spread[0], min(spread[1], step.seconds / step.least_s)
    spread = _with_ram(
        scenario, spread, lambda one: step_time(one, speeds.tables, rate, reads, batch).seconds
    )
    if scenario.model.guesses_experts:
        evidence = "extrapolated"
        spread = joined_range(spread, speeds.tables.ranges["experts_estimated"])
    decode = _figure(1 / step.seconds, spread, evidence)
    aggregate = decode if batch == 1 else _figure(batch / step.seconds, spread, evidence)
    measured = speeds.measured.find(scenario, speeds.tables.measured_depth_tokens)
    if measured is not None:
        low, high = speeds.tables.ranges["measured"]
        apart = low, max(min(high, batch / step.least_s / measured.tok_s), 1.0)
        decode = _published(measured, measured.tok_s / batch, apart, decode)
        aggregate = decode if batch == 1 else _published(measured, measured.tok_s, apart, aggregate)
    prefill, first, prompt = _prompt(scenario, speeds, rate, reads, step.seconds)
    return Speed(
        depth_tokens=scenario.depth_tokens,
        decode_tok_s=decode,
        prefill_tok_s=prefill,
        aggregate_tok_s=aggregate,
        bound_by=step.bound_by,
        first_token_s=first,
        prompt_tokens=prompt,
        cards=rate.cards,
    )


def _published(measured: Measured, speed: float, spread: Range, modelled: Figure) -> Figure:
    source = f"{measured.source}, {measured.date}" if measured.date else measured.source
    return Figure(
        speed, speed * spread[0], speed * spread[1], "measured", plain(source), modelled.estimate
    )


def _prompt(
    scenario: Scenario, speeds: Speeds, rate: Rate, reads: Reads, step_s: float
) -> tuple[Figure | None, Figure | None, int]:
    """Estimate prompt tokens/s and seconds to a first token: the whole prompt and one step."""
    usual, reached = speeds.tables.prefill.prompt_tokens, rate.prefill
    tokens = scenario.depth_tokens or usual
    tables = speeds.tables
    if reached is None or micro_batch_copy_s(scenario, tables, reached, reads) is None:
        return None, None, tokens

    def time(one: Scenario) -> float:
        return prompt_s(one, tables, reached, reads, usual)[0]

    low, high = _with_ram(scenario, _prefill_range(scenario, speeds, reached), time)
    seconds, gain = prompt_s(scenario, tables, reached, reads, usual)
    whole, gain_of_all = seconds, gain
    if tokens != usual:
        whole, gain_of_all = prompt_s(scenario, tables, reached, reads, tokens)
    return (
        _figure(usual / seconds, (low, min(high, gain)), "extrapolated"),
        _figure(whole + step_s, (1 / min(high, gain_of_all), 1 / low), "extrapolated"),
        tokens,
    )


def _prefill_range(scenario: Scenario, speeds: Speeds, reached: Reached) -> Range:
    names = [reached.range_name]
    if scenario.model.shape.moe:
        names.append("prefill_experts")
    if is_split(scenario):
        names.append("prefill_offload")
    if scenario.gpus > 1:
        by_layer = split_of(scenario) == "layer"
        names.append("prefill_cards" if by_layer else "prefill_tensor")
    return _widest(speeds, names)


def _trust(scenario: Scenario, speeds: Speeds, rate: Rate, reads: Reads) -> tuple[Evidence, Range]:
    """Give the tier and the 80 % range: the widest of all that applies."""
    tables = speeds.tables
    names, evidence = list(rate.ranges), rate.evidence
    if scenario.model.shape.moe:
        near = evidence == "near"
        names[0] = "moe_near" if near else "moe_unseen"
        evidence = "near" if near else "extrapolated"
    elif reads.step_bytes(1) < tables.small_gib * GIB:
        names[0] = rate.small_range
    rough = list(rough_parts(scenario, tables, rate, reads))
    spread = _widest(speeds, [*names, *rough])
    return ("extrapolated" if rough else evidence), spread


def _with_ram(scenario: Scenario, spread: Range, time: Callable[[Scenario], float]) -> Range:
    """Widen a range by what the bandwidth of the RAM may be, taken as independent of the rest."""
    if scenario.ram_bandwidth_ends is None or not (is_split(scenario) or is_alone(scenario)):
        return spread
    least, most = (time(reading_at(scenario, end)) for end in scenario.ram_bandwidth_ends)
    seconds = time(scenario)
    return joined_range(spread, (seconds / least, seconds / most))


def _widest(speeds: Speeds, names: list[str]) -> Range:
    key = tuple(names)
    found = speeds.widest.get(key)
    if found is None:
        ends = [speeds.tables.ranges[name] for name in names]
        found = speeds.widest[key] = (min(low for low, _ in ends), max(high for _, high in ends))
    return found


def _figure(estimate: float, spread: Range, evidence: Evidence) -> Figure:
    return Figure(estimate, estimate * spread[0], estimate * spread[1], evidence)
