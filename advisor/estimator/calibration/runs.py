"""Measured rows as runs of the estimator: the same scenario, its bytes and its arithmetic.

Sizes, layers and cache bytes come from the estimator's own functions, so that what is fitted is
what ``advise`` computes. Rows of one configuration and source become one run, their median.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf, log2
from statistics import median
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import UserError
from advisor.estimator import estimate_memory
from advisor.estimator.calibration.observations import Observation
from advisor.estimator.measured_speed import Measurement
from advisor.estimator.speed_prefill import card_size
from advisor.estimator.speed_rates import architecture_of
from advisor.estimator.speed_step import Reads, cache_reads, lanes_bytes_s, reads_of
from advisor.estimator.speed_tables import Policy
from advisor.estimator.weights import weights_of
from advisor.knowledge.catalogue import MAKERS
from advisor.knowledge.types import Format, Gpu, Knowledge
from advisor.models import model_from_record
from advisor.runtimes import is_sized, runtime_of
from advisor.runtimes.base import Weights
from advisor.scenario import Scenario, is_split, split_of
from advisor.scenario.figures import Memory

Metric = Literal["decode", "prefill"]
SHALLOW_TOKENS = 1024
_ROOM_TOKENS, _LEAST_CONTEXT = 256, 4096
_SIZES, _UNKNOWN_SIZE_TFLOPS = (0.7, 1.3), 100.0
_MOST_FILLED, _MOST_FILLED_SELF_REPORTED = 0.93, 0.78
_MOST_EFFICIENCY = 1.03
_LEAST_POWER = 2 / 3
"""Of a card's power: an RTX 3090 (350 W) loses 4 % of one stream at 250 W and 19 % at 220 W."""
_FINER, _FINER_SINCE = "Q8_0", "2025-09"
"""What dynamic recipes of mixtures that came since hold besides experts; see SOURCE.md."""
_ASSUMED_RAM_BYTES_S = 89.6e9
"""Two channels of DDR5-5600: the laptop behind the split runs states 64 GB of DDR5 alone."""
_IN_RAM = Memory(0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, None, (), 0, 0, (), None)
"""A memory with all of the cache on the card."""


class Run(Struct, frozen=True):
    """One configuration of one source."""

    scenario: Scenario
    reads: Reads
    metric: Metric
    tok_s: float
    """Median; over all streams when decoding."""
    prompt_tokens: int
    prompts: float
    """Prompt tokens that were read for each token written, over all streams."""
    architecture: str
    line: str
    """The line of the architecture, empty for one that stands alone."""
    source: str
    raw: bool
    served: bool
    """Whether its program sampled and sent each token, with no pace of its own for all it does."""
    tensor: bool
    overlapped: bool
    """Whether its engine prepares layers while the card reads."""
    older: bool
    """Whether its build read prompts, or launched experts, with other kernels than today's."""
    plain: bool
    """Whether it ran without flash attention."""
    limited: bool
    """Whether its one card was held so far below its power that it loses speed."""
    program: str
    """The program, where it is of the llama.cpp family and had an engine of its own by then."""
    date: str
    outside: str
    """Format of what lies outside the experts."""
    rows: tuple[str, ...]
    """Ids of the carried rows behind it."""

    @property
    def card(self) -> tuple[str, str]:
        """Card and backend."""
        assert self.scenario.gpu
        return self.scenario.gpu.name, self.scenario.backend or ""

    @property
    def configuration(self) -> tuple[str, str, str, str]:
        """What is held out together, whoever measured it."""
        scenario = self.scenario
        return (*self.card, scenario.model.name, scenario.precision.name)

    @property
    def family(self) -> bool:
        """Whether the llama.cpp family ran it."""
        framework = self.scenario.framework
        return is_sized(framework) and runtime_of(framework).one_engine

    @property
    def moe(self) -> bool:
        """Whether the model is a mixture of experts."""
        return self.scenario.model.shape.moe is not None

    @property
    def further(self) -> float:
        """Tokens of a step besides the first: of other streams, and of prompts read meanwhile."""
        return self.scenario.batch * (1 + self.prompts) - 1

    @property
    def deep(self) -> bool:
        """Whether the cache was longer than a short conversation."""
        return self.scenario.depth_tokens > SHALLOW_TOKENS

    @property
    def split(self) -> bool:
        """Whether weights lay in system RAM."""
        return is_split(self.scenario)


class Runs(Struct, frozen=True):
    """All runs, and rows that gave none, counted by reason."""

    kept: Sequence[Run]
    dropped: Mapping[str, int]


def runs_of(observations: Iterable[Observation], knowledge: Knowledge, policy: Policy) -> Runs:
    """Build one run per configuration and source."""
    groups: dict[tuple[object, ...], list[tuple[Observation, Run]]] = {}
    dropped: Counter[str] = Counter()
    for observation in observations:
        try:
            made = _run(observation, knowledge, policy)
        except UserError:
            made = "the estimator does not know the model's shape well enough"
        if isinstance(made, str):
            dropped[made] += 1
        else:
            groups.setdefault(_key(observation, made), []).append((observation, made))
    return Runs([_median(group) for group in groups.values()], dict(dropped))


def scenario_of(measured: Measurement, knowledge: Knowledge) -> Scenario:
    """Put a measurement as the scenario it was taken in, F16 cache and everything on the card.

    Raises:
        KeyError: A name is not in the knowledge base.
        UserError: The model cannot be sized.
    """
    depth, made = measured.depth_tokens or 0, measured.gen_tokens or 0
    needed = depth + (measured.prompt_tokens or 0) + made + _ROOM_TOKENS
    return Scenario(
        gpu=knowledge.gpus[measured.gpu],
        gpus=measured.gpus,
        model=model_from_record(knowledge.models[measured.model], knowledge),
        precision=knowledge.formats[measured.precision],
        context_tokens=max(_LEAST_CONTEXT, needed),
        batch=measured.batch,
        kv_cache_k=knowledge.kv_types["f16"],
        kv_cache_v=knowledge.kv_types["f16"],
        framework=knowledge.frameworks[measured.framework],
        backend=measured.backend,
        flash_attention=True,
        ubatch=512,
        kv_unified=True,
        swa_full=False,
        gpu_layers=None,
        cpu_experts=0,
        logits_rows=measured.batch,
        depth_tokens=depth + made // 2,
        ram_bytes=None,
        ram_bandwidth_bytes_s=_ASSUMED_RAM_BYTES_S,
        prefer="balanced",
    )


def sized(gpu: Gpu, falls: float) -> tuple[str, float]:
    """Give the unit and size that a card's share counts on; unknown sizes stand for themselves."""
    unit, size = card_size(gpu, falls)
    return (f"none {gpu.name}", _UNKNOWN_SIZE_TFLOPS) if size is None else (unit, size)


def unit_of(run: Run, falls: float) -> tuple[str, str]:
    """Name the backend and the unit that a run's card counts in."""
    assert run.scenario.gpu
    return run.card[1], sized(run.scenario.gpu, falls)[0]


def is_prompt(run: Run) -> bool:
    """Say whether a run belongs to the fit of prompts."""
    scenario = run.scenario
    one = scenario.gpus == scenario.batch == 1
    return run.metric == "prefill" and run.family and one and (not run.split or is_copied(run))


def is_copied(run: Run) -> bool:
    """Say whether weights lie in system RAM and it is known how they come to the card."""
    gpu = run.scenario.gpu
    return run.split and gpu is not None and lanes_bytes_s(gpu) is not None


def _run(observation: Observation, knowledge: Knowledge, policy: Policy) -> Run | str:
    measured, conditions = observation.measured, observation.conditions
    metric: Metric = "prefill" if measured.metric == "prefill_tok_s" else "decode"
    if reason := observation.unfit(metric):
        return reason
    scenario = _with_conditions(scenario_of(measured, knowledge), observation, knowledge)
    weights = _weights(scenario, scenario.precision, knowledge)
    memory = estimate_memory(scenario, knowledge) if is_split(scenario) else _IN_RAM
    reads = reads_of(scenario, memory, weights, cache_reads(scenario, policy.by_head))
    text_bytes = weights.profile.total_bytes - weights.profile.vision_bytes
    stated = observation.size_ratio(text_bytes)
    ratio = stated or 1.0
    if metric == "decode" and not _SIZES[0] <= ratio <= _SIZES[1]:
        return "the stated size differs by more than 30 % from that of the format"
    outside = _outside(observation, scenario, knowledge)
    finer = _weights(scenario, outside, knowledge)
    reads = _scaled(scenario, reads, weights, finer, stated and (stated - 1) * text_bytes)
    per_stream = measured.metric == "decode_tok_s" and metric == "decode"
    tok_s = measured.tok_s * (measured.batch if per_stream else 1)
    reason = _implausible(observation, scenario, reads, ratio * text_bytes, tok_s)
    if reason and metric == "decode":
        return reason
    assert scenario.gpu
    architecture, name = architecture_of(policy.matches, scenario.gpu), scenario.framework.name
    own = _is_before(measured.date, policy.own_pace.get(name, ""))
    before = policy.older_experts.get((scenario.precision.name, scenario.backend))
    if metric == "prefill":
        before = policy.older_prompts.get((architecture, scenario.backend))
    return Run(
        scenario=scenario,
        reads=reads,
        metric=metric,
        tok_s=tok_s,
        prompt_tokens=measured.prompt_tokens or 0,
        prompts=observation.prompts_between,
        architecture=architecture,
        line=policy.lines.get(architecture, ""),
        source=observation.source,
        raw=observation.raw,
        served=(conditions.served or name in policy.own_pace) and not own,
        tensor=conditions.tensor,
        overlapped=name in policy.overlapped,
        older=_is_before(measured.date, before or ""),
        plain=not observation.flash,
        limited=scenario.gpus == 1
        and (conditions.power_w or inf) < _LEAST_POWER * (scenario.gpu.tdp_w or 0),
        program=name if own else "",
        date=measured.date,
        outside=outside.name,
        rows=(observation.row,),
    )


def _is_before(date: str, limit: str) -> bool:
    """Say whether a stated date is before another; a year alone means its end."""
    return bool(date) and f"{date}-12"[: len(limit)] < limit


def _with_conditions(
    scenario: Scenario, observation: Observation, knowledge: Knowledge
) -> Scenario:
    conditions, layers = observation.conditions, scenario.model.shape.layers
    placed = conditions.gpu_layers
    placed = placed if placed is not None and placed <= layers else None
    experts = conditions.cpu_experts
    if experts and placed is not None:
        experts += layers + 1 - placed
    cache = knowledge.kv_types[conditions.cache or "f16"]
    prefill = observation.measured.metric == "prefill_tok_s"
    depth = observation.measured.depth_tokens or 0
    # Some tables give the prompt itself as the depth.
    before = 0 if depth == observation.measured.prompt_tokens else depth
    return replace(
        scenario,
        kv_cache_k=cache,
        kv_cache_v=cache,
        ubatch=conditions.ubatch or scenario.ubatch,
        flash_attention=not prefill or observation.flash,
        gpu_layers=placed,
        cpu_experts=min(experts, layers),
        depth_tokens=before if prefill else scenario.depth_tokens,
        ram_bandwidth_bytes_s=conditions.ram_bytes_s or scenario.ram_bandwidth_bytes_s,
    )


def _scaled(
    scenario: Scenario, reads: Reads, weights: Weights, finer: Weights, more: float | None
) -> Reads:
    """Take the stated size, which is ``more`` than ours; None where no tool printed it.

    Other recipes of one format differ by some per cent; dynamic ones are ``finer`` outside their
    experts, which are the rest of the file. Files of GPT-OSS differ in what is not in experts.
    """
    profile, experts, plain = weights.profile, weights.expert_sums[-1], _outside_bytes(weights)
    more_bytes = more or 0.0
    fine = max(plain, _outside_bytes(finer))
    if fine > plain:
        share = 1.0 if more is None else (experts + more + plain - fine) / experts
        return _resized(reads, fine / plain, share)
    if scenario.precision.name == "MXFP4_MOE":
        return replace(reads, gpu_bytes=reads.gpu_bytes + max(more_bytes, 0.0))
    ratio = 1 + more_bytes / (profile.total_bytes - profile.vision_bytes)
    return _resized(reads, ratio, ratio)


def _resized(reads: Reads, outside: float, experts: float) -> Reads:
    return replace(
        reads,
        gpu_bytes=reads.gpu_bytes * outside,
        gpu_expert_bytes=reads.gpu_expert_bytes * experts,
        host_bytes=reads.host_bytes * outside,
        host_expert_bytes=reads.host_expert_bytes * experts,
    )


def _weights(scenario: Scenario, precision: Format, knowledge: Knowledge) -> Weights:
    return weights_of(scenario.model, precision, scenario.framework, knowledge.ggml_types)


def _outside(observation: Observation, scenario: Scenario, knowledge: Knowledge) -> Format:
    """Give the format of what lies outside the experts."""
    model = scenario.model
    finer = observation.dynamic and model.shape.moe and (model.released or "") >= _FINER_SINCE
    return knowledge.formats[_FINER] if finer else scenario.precision


def _outside_bytes(weights: Weights) -> int:
    found = weights.layer_sums[-1] - weights.expert_sums[-1]
    return found + weights.profile.output_bytes + weights.profile.other_bytes


def _implausible(
    observation: Observation, scenario: Scenario, reads: Reads, weights: float, tok_s: float
) -> str:
    gpu = scenario.gpu
    assert gpu
    if gpu.bandwidth_bytes_s is None:
        return "the card's bandwidth is not known"
    share = _MOST_FILLED_SELF_REPORTED if observation.self_reported else _MOST_FILLED
    room = share * (gpu.vram_bytes or 0) * scenario.gpus
    if not is_split(scenario) and room and not MAKERS[gpu.vendor].one_memory and weights > room:
        return (
            f"the weights take more than {_MOST_FILLED:.0%} of the card"
            f" ({_MOST_FILLED_SELF_REPORTED:.0%} where self-reported), so some may lie in RAM"
        )
    streams = scenario.batch
    read = reads.gpu_bytes + reads.touched(streams) * reads.gpu_expert_bytes
    read += streams * reads.gpu_cache_bytes
    in_turn = split_of(scenario) == "layer" and not observation.conditions.tensor
    at_once = 1 if in_turn else scenario.gpus
    if tok_s / streams * read > _MOST_EFFICIENCY * gpu.bandwidth_bytes_s * at_once:
        return "more than 103 % of the card's bandwidth: wrong label or undeclared speculation"
    return ""


def _key(observation: Observation, run: Run) -> tuple[object, ...]:
    scenario = run.scenario
    return (
        run.metric, run.configuration, scenario.gpus, run.tensor, scenario.batch,
        scenario.kv_cache_k.name, scenario.gpu_layers, scenario.cpu_experts, run.source,
        "family" if run.family else scenario.framework.name, scenario.ram_bandwidth_bytes_s,
        depth_step(scenario.depth_tokens), round((observation.stated_bytes or 0) / 2**28),
        (run.prompt_tokens, scenario.ubatch) if run.metric == "prefill" else scenario.ubatch
        if run.split else 0,
    )  # fmt: skip


def depth_step(tokens: int) -> int:
    """Sort depths into steps of a factor 1.4 beyond a short conversation."""
    return 0 if tokens <= SHALLOW_TOKENS else round(2 * log2(tokens / SHALLOW_TOKENS))


def _median(group: Sequence[tuple[Observation, Run]]) -> Run:
    """Take the run in the middle: of the newest build, with flash attention where both were run."""
    rows = [observation.row for observation, _ in group]
    newest = max(observation.build for observation, _ in group)
    group = [pair for pair in group if pair[0].build == newest]
    with_flash = [pair for pair in group if pair[0].conditions.flash is not False] or group
    middle = median(run.tok_s for _, run in with_flash)
    nearest = min(with_flash, key=lambda pair: (abs(pair[1].tok_s - middle), pair[0].row))[1]
    return replace(
        nearest,
        tok_s=middle,
        date=max(run.date for _, run in with_flash),
        rows=tuple(sorted(rows)),
    )
