"""Everything that is fitted to the carried measurements, each fit over those before it.

More streams and weights in system RAM come on top of one stream on one card, whose parameters are
held fixed; what drafts bring is read as pairs and not fitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from statistics import median

from msgspec import Struct

from advisor.errors import KnowledgeError, Source
from advisor.estimator.calibration import fit as prompts
from advisor.estimator.calibration.dataset import Row, speculation_rows, speed_rows
from advisor.estimator.calibration.decode import (
    DecodeModel,
    EngineModel,
    fit_decode,
    fit_engines,
    is_engine_run,
    is_single,
)
from advisor.estimator.calibration.fit import (
    Case,
    GroupOf,
    PrefillModel,
    Prior,
    Priors,
    Term,
    Values,
    fit,
    fit_prefill,
    predict,
    weight_of,
)
from advisor.estimator.calibration.observations import Observation, observations
from advisor.estimator.calibration.runs import Run, is_prompt, runs_of
from advisor.estimator.speed_fields import FITTED_WIDTH, is_looked_up
from advisor.estimator.speed_prefill import Reached, reached_by_engine, token_seconds, work_of
from advisor.estimator.speed_rates import PACKED, stored_bits
from advisor.estimator.speed_tables import Policy, format_group, read_policy
from advisor.knowledge.types import Knowledge

priors = Priors(
    {
        "arithmetic": Prior(0.5, 0.7),
        "arithmetic of experts": Prior(0.5, 0.7),
        "arithmetic of backend": Prior(1, 0.5),
        "arithmetic of experts of backend": Prior(1, 0.5),
        "arithmetic of servers": Prior(0.7, 0.3),
        "packed experts": Prior(1.0, 1.0),
        "exchange": Prior(20e-6, 1.0),
        "dense": Prior(0.65, 0.2),
        "dense beside experts": Prior(0.5, 0.3),
        "experts": Prior(0.55, 0.3),
        "hand over": Prior(100e-6, 0.7),
        "unpack": Prior(1 / 150e9, 0.7),
        "unpack by table": Prior(1, 0.4),
        "machine": Prior(1, 0.15),
    }
)

OF_BACKEND = ("arithmetic of backend", "arithmetic of experts of backend")
"""What a backend's dense matrices and experts reach of that."""


class Extra(Struct, frozen=True):
    """Fitted parameters over fixed ones."""

    values: Values
    terms: Callable[[Run], tuple[Term, ...] | None]

    def seconds(self, run: Run) -> float | None:
        """Predict one step of the whole batch; None where a figure is missing."""
        found = self.terms(run)
        return None if found is None else predict(found, self.values, priors)


def fit_extra(
    runs: Sequence[Run],
    terms: Callable[[Run], tuple[Term, ...] | None],
    *,
    start: Values | None = None,
) -> Extra:
    """Fit the parameters of the terms."""
    cases = []
    counts = Counter(run.source for run in runs if run.split)
    for run in runs:
        found = terms(run)
        if found is not None:
            weight = weight_of(counts[run.source]) if run.split else 1.0
            cases.append(Case(found, run.scenario.batch / run.tok_s, weight))
    return Extra(fit(cases, priors, width=0.12, start=start), terms)


def arithmetic_of(engine: str) -> tuple[str, str]:
    """Name what a further stream's dense matrices and experts reach of a prompt's throughput.

    Few tokens at a time go through other kernels of llama.cpp than prompts do, dense ones slower,
    experts faster; engines with batches in view use the same.
    """
    if engine == "family":
        return "arithmetic:family", "arithmetic of experts:family"
    return "arithmetic of servers", "arithmetic of servers"


def batch_terms(parts: Parts) -> Callable[[Run], tuple[Term, ...] | None]:
    """Write a step of several streams: reads, and the arithmetic and exchange of each further one.

    Where output was counted while prompts were read, their tokens are further ones too.
    The exchange is fitted where the link has no measured time.
    """

    def terms(run: Run) -> tuple[Term, ...] | None:
        scenario, reached = run.scenario, parts.reached(run)
        if reached is None:
            return None
        more, cards = run.further, scenario.gpus if run.tensor else 1
        dense, experts = token_seconds(work_of(scenario.model), reached)
        found = [Term(parts.alone(run), ())]
        names = zip(arithmetic_of("family" if run.family else ""), OF_BACKEND, strict=True)
        for one, (name, kind) in zip((dense, experts), names, strict=True):
            own = [(f"{kind}:{run.card[1]}", -1.0)] if run.family else []
            found.append(Term(more * one / cards, ((name, -1.0), *own)))
        found += _packed_experts(run, cards, parts.policy)
        gpu = scenario.gpu
        if cards > 1 and gpu and parts.policy.exchange.link(gpu).byte_s is None:
            shape = scenario.model.shape
            layers = more * shape.layers * shape.hidden / FITTED_WIDTH
            found.append(Term(layers, ((f"exchange:{cards}", 1.0),)))
        return tuple(found)

    return terms


def _packed_experts(run: Run, cards: int, policy: Policy) -> Iterator[Term]:
    """Write what reading experts of 4 bits takes more where their kernels are not the engine's."""
    scenario, reads = run.scenario, run.reads
    assert scenario.gpu
    assert scenario.gpu.bandwidth_bytes_s
    if _is_packed_apart(run, policy):
        read = reads.touched(scenario.batch) * reads.gpu_expert_bytes
        name = f"packed experts:{scenario.backend}"
        yield Term(read / (cards * scenario.gpu.bandwidth_bytes_s), ((name, 1.0),))


def _is_packed_apart(run: Run, policy: Policy) -> bool:
    packed = run.reads.gpu_expert_bytes and stored_bits(run.scenario.precision) == PACKED
    return bool(packed) and not run.family and run.scenario.backend in policy.packed_experts


def offload_terms(alone: Callable[[Run], float]) -> Callable[[Run], tuple[Term, ...] | None]:
    """Write a step with weights in system RAM: the card's part (``alone``), then what lies in RAM.

    How much slower or faster than others a machine works on the latter is fitted and not told.
    """

    def terms(run: Run) -> tuple[Term, ...] | None:
        bandwidth = run.scenario.ram_bandwidth_bytes_s
        if bandwidth is None:
            return None
        reads = run.reads
        dense = reads.host_bytes + reads.host_cache_bytes
        experts = reads.touched(1) * reads.host_expert_bytes
        name = "dense beside experts" if run.moe else "dense"
        own = (f"machine:{run.source}", 1.0)
        tables = [("unpack by table", 1.0)] * is_looked_up(run.scenario.precision.name)
        return (
            Term(alone(run), ()),
            Term(dense / bandwidth, ((name, -1.0), own)),
            Term(experts / bandwidth, (("experts", -1.0), own)),
            Term(dense + experts, (("unpack", 1.0), *tables, own)),
            Term(float(reads.host_expert_layers), (("hand over", 1.0), own)),
        )

    return terms


SITUATIONS = ("draft_model", "mtp", "mtp_small")


class Pairs(Struct, frozen=True):
    """The pairs of one situation."""

    factors: Sequence[float]
    """Speed with drafts over the plain speed, every pair."""
    cards: int
    """Cards behind the carried rows among them."""
    elsewhere: int
    """Pairs that are quoted with a source of their own."""

    @property
    def low(self) -> float:
        """The slowest."""
        return min(self.factors)

    @property
    def middle(self) -> float:
        """The median."""
        return median(self.factors)

    @property
    def high(self) -> float:
        """The fastest."""
        return max(self.factors)


def pairs_of_situations() -> Mapping[str, Pairs]:
    """Read the pairs of every situation.

    Raises:
        KnowledgeError: A line names a row that is not carried, or nothing with a source.
    """
    rows = {row["id"]: row for row in speed_rows()}
    found: dict[str, list[tuple[float, str]]] = {name: [] for name in SITUATIONS}
    for number, line in enumerate(speculation_rows(), start=2):
        at = Source("speculation.csv", number)
        if line["situation"] not in found:
            raise KnowledgeError(f"there is no situation '{line['situation']}'", source=at)
        plain, card = _speed(line, "plain", rows, at)
        drafting, _ = _speed(line, "drafting", rows, at)
        found[line["situation"]].append((drafting / plain, card))
    return {name: _pairs(listed) for name, listed in found.items() if listed}


def _pairs(listed: Sequence[tuple[float, str]]) -> Pairs:
    cards = {card for _, card in listed if card}
    elsewhere = sum(not card for _, card in listed)
    return Pairs([factor for factor, _ in listed], len(cards), elsewhere)


def _speed(line: Row, key: str, rows: Mapping[str, Row], at: Source) -> tuple[float, str]:
    """Give the tokens/s and the card: of a carried row, or as quoted with a source."""
    stated = line[key]
    row = rows.get(stated)
    if row is not None:
        return float(row["value"]), row["gpu"]
    try:
        speed = float(stated)
    except ValueError:
        raise KnowledgeError(f"there is no row '{stated}' in speed.csv.gz", source=at) from None
    if speed <= 0 or not line["source"]:
        raise KnowledgeError(f"'{key}' needs a speed above 0 and a source", source=at)
    return speed, ""


class Material(Struct, frozen=True):
    """What the fits work on."""

    policy: Policy
    group_of: GroupOf
    single: Sequence[Run]
    prompts: Sequence[Run]
    layer_prompts: Sequence[Run]
    """Prompts over several cards that take whole layers."""
    engines: Sequence[Run]
    batches: Sequence[Run]
    """Several streams; and one, where its experts are read by kernels that only these tell of."""
    splits: Sequence[Run]
    layer_splits: Sequence[Run]
    tensor_splits: Sequence[Run]
    dropped: Mapping[str, int]
    """Rows of the carried file that are not used, by reason."""
    rows: int
    rounded: Sequence[Run]
    observed: Sequence[Observation]
    """The named rows that the runs were made of, and more."""

    def known(self) -> Iterable[Run]:
        """Every run of every kind that may be shown as measured."""
        for runs in (
            self.single, self.prompts, self.engines, self.batches, self.splits,
            self.layer_splits, self.tensor_splits, self.rounded,
        ):  # fmt: skip
            yield from runs


class Fitted(Struct, frozen=True):
    """Everything that was fitted."""

    decode: DecodeModel
    prefill: PrefillModel
    engines: EngineModel
    batch: Extra
    offload: Extra
    tflops: Mapping[tuple[str, str], float]
    """What measured cards reach while they read a prompt."""


def material_of(knowledge: Knowledge) -> Material:
    """Read, name, filter and sort the carried measurements."""
    policy = read_policy(knowledge.calibration)
    found = observations(knowledge)
    runs = runs_of(found.kept, knowledge, policy)
    dropped = Counter(found.dropped) + Counter(runs.dropped)
    vague = {one.row for one in found.kept if one.conditions.rounded}
    kept = [run for run in runs.kept if not vague & {*run.rows}]
    decode = [run for run in kept if run.metric == "decode"]
    whole = [run for run in decode if not run.split]
    alone = [run for run in whole if run.scenario.batch == 1 and run.scenario.gpus > 1]
    several = [run for run in whole if run.scenario.batch > 1]
    since, engines = policy.since, [run for run in whole if is_engine_run(run)]
    apart = [run for run in engines if _is_packed_apart(run, policy)]
    recent = [run for run in engines if run.date >= since.get(run.scenario.framework.name, "")]
    layered = [run for run in kept if run.family and run.scenario.gpus > 1 and not run.tensor]
    return Material(
        policy=policy,
        group_of=cache(partial(format_group, knowledge.calibration)),
        single=[run for run in whole if is_single(run)],
        prompts=[run for run in kept if is_prompt(run)],
        layer_prompts=[run for run in layered if run.metric == "prefill" and not run.split],
        engines=[run for run in recent if run not in apart],
        batches=[*(run for run in several if run.scenario.gpus == 1 or run.tensor), *apart],
        splits=[
            run
            for run in decode
            if run.split and run.scenario.gpus == run.scenario.batch == 1 and run.family
        ],
        layer_splits=[run for run in alone if run.family and not run.tensor],
        tensor_splits=[run for run in alone if not run.family and run.tensor],
        dropped=dict(sorted(dropped.items(), key=lambda item: (-item[1], item[0]))),
        rows=sum(dropped.values()) + sum(len(run.rows) for run in runs.kept),
        rounded=[run for run in runs.kept if vague & {*run.rows}],
        observed=found.kept,
    )


def fit_all(material: Material) -> Fitted:
    """Fit everything on everything."""
    decode = fit_decode(material.single, material.group_of)
    prefill = fit_prefill(material.prompts, material.policy.falls, material.group_of)
    engines = fit_engines(material.engines)
    tflops = prompts.card_tflops(prefill, material.prompts)
    parts = Parts(material.policy, decode, prefill, engines, tflops)
    return Fitted(
        decode=decode,
        prefill=prefill,
        engines=engines,
        batch=fit_extra(material.batches, batch_terms(parts)),
        offload=fit_extra(material.splits, offload_terms(parts.alone)),
        tflops=tflops,
    )


class Parts(Struct, frozen=True):
    """What a step of several streams or a split one is built on."""

    policy: Policy
    decode: DecodeModel
    prefill: PrefillModel
    engines: EngineModel
    tflops: Mapping[tuple[str, str], float]

    def alone(self, run: Run) -> float:
        """Time overheads and reads of the card, seconds."""
        if run.family:
            return self.decode.seconds(run)
        scenario = run.scenario
        assert scenario.gpu
        reads = self.engines.seconds(run, self.policy.cache_share)
        if not run.tensor:
            return reads
        gpu, shape, exchange = scenario.gpu, scenario.model.shape, self.policy.exchange
        moved = exchange.token_s(gpu, shape, scenario.gpus) * run.further
        return reads + exchange.start_s(gpu, shape, scenario.gpus) + moved

    def reached(self, run: Run) -> Reached | None:
        """Give the arithmetic of one card, as ``advise`` sees it."""
        scenario, policy = run.scenario, self.policy
        assert scenario.gpu
        if not run.family:
            tables = policy.engine_prefill
            found = reached_by_engine(tables, scenario.gpu, scenario.precision, 0.0)
            if found is not None:
                return found
        tflops = self.tflops.get(run.card)
        if tflops is None:
            return None
        values, backend = self.prefill.values, run.card[1]
        experts = prompts.priors.factor(values, "experts")
        experts *= prompts.priors.factor(values, f"experts of backend:{backend}")
        return Reached(tflops * self.prefill.packed(run), "", experts, 1.0, 0.0)
