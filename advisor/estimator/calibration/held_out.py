"""How far every figure is off when what it is about was held out of the fit.

Groups are held out whole: a configuration (card, backend, model and format, whoever measured it),
a card with all its configurations, or a source. Rows of one sweep never stand on both sides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from math import ceil, exp, log
from typing import Literal

from msgspec import Struct

from advisor.estimator.calibration.decode import fit_decode, fit_engines
from advisor.estimator.calibration.fit import fit_prefill
from advisor.estimator.calibration.fits import (
    Extra,
    Fitted,
    Material,
    Parts,
    batch_terms,
    fit_extra,
)
from advisor.estimator.calibration.runs import Run, unit_of
from advisor.estimator.speed_fields import Range
from advisor.estimator.speed_rates import MODELLED_FROM_GPUS
from advisor.estimator.speed_tables import Policy
from advisor.units import GIB

HeldOut = Literal["configuration", "card", "source", "model", "nothing"]
_FOLDS = 10


class Held(Struct, frozen=True):
    """One run and what was predicted of it without its group."""

    run: Run
    predicted: float
    """Tokens/s, over all streams."""
    held_out: HeldOut
    group: str
    kind: str
    """Decode, prefill, prompt offload, engine, batch, offload, layer split or tensor parallel."""
    cards: int = 0
    """Other measured cards of its architecture and backend, or of its engine."""
    known: bool = True
    """Whether its card stayed in the fit with other configurations."""

    @property
    def error(self) -> float:
        """Logarithm of predicted over measured."""
        return log(self.predicted / self.run.tok_s)


def validate(material: Material, fitted: Fitted) -> Sequence[Held]:
    """Predict every run without its group; refits start from ``fitted``."""
    found: list[Held] = []
    found += _single(material, fitted, "configuration", _fold)
    found += _single(material, fitted, "card", lambda run: run.card[0])
    found += _single(material, fitted, "source", lambda run: run.source)
    found += _models(material, fitted)
    found += _prompts(material, fitted, "configuration", _fold)
    found += _prompts(material, fitted, "card", lambda run: run.card[0])
    found += _prompts(material, fitted, "source", _source_of_splits(material))
    found += _engines(material, fitted, "configuration", _engine_fold)
    found += _engines(material, fitted, "card", lambda run: run.card[0])
    found += _extra(fitted.batch, material.batches, "batch", "configuration")
    found += _extra(fitted.offload, material.splits, "offload", "configuration")
    found += _extra(fitted.offload, material.splits, "offload", "source")
    found += _several_cards(material, fitted)
    return found


def is_small(run: Run, small_gib: float) -> bool:
    """Say whether a step reads so little that the host's share weighs."""
    return run.reads.step_bytes(1) < small_gib * GIB


def _fold(run: Run) -> str:
    return str(int(sha256("\0".join(run.configuration).encode()).hexdigest(), 16) % _FOLDS)


def _engine_fold(run: Run) -> str:
    return f"{run.scenario.model.name} {run.scenario.precision.name}"


def _groups(
    runs: Sequence[Run], group_of: Callable[[Run], str]
) -> Iterator[tuple[str, list[Run], list[Run]]]:
    for group in sorted({group_of(run) for run in runs}):
        rest = [run for run in runs if group_of(run) != group]
        yield group, rest, [run for run in runs if group_of(run) == group]


def _single(
    material: Material, fitted: Fitted, held_out: HeldOut, group_of: Callable[[Run], str]
) -> Iterator[Held]:
    for group, rest, out in _groups(material.single, group_of):
        model = fit_decode(rest, material.group_of, start=fitted.decode.fitted)
        for run in out:
            known = run.card in model.known
            name = "\0".join(run.configuration) if held_out == "configuration" else group
            cards = _cards_like(rest, run)
            speed = 1 / model.seconds(run)
            yield Held(run, speed, held_out, name, "decode", cards, known)


def _cards_like(runs: Iterable[Run], wanted: Run) -> int:
    if not wanted.architecture:
        return 0
    backend = wanted.card[1]
    return len({
        run.card[0]
        for run in runs
        if run.architecture == wanted.architecture and run.card[1] == backend
    })  # fmt: skip


def _source_of_splits(material: Material) -> Callable[[Run], str]:
    """Group runs by machine where its RAM was measured; all others are one group."""
    machines = {run.source for run in material.prompts if run.split}
    return lambda run: run.source if run.source in machines else ""


def _prompts(
    material: Material, fitted: Fitted, held_out: HeldOut, group_of: Callable[[Run], str]
) -> Iterator[Held]:
    start = fitted.prefill.values
    for group, rest, out in _groups(material.prompts, group_of):
        model = fit_prefill(rest, material.policy.falls, material.group_of, start=start)
        sizes = {unit_of(run, material.policy.falls) for run in rest}
        for run in out:
            known = run.card in model.known
            # With a card all that is known of its machine's RAM would go.
            if held_out != "configuration" and run.split != (held_out == "source"):
                continue
            if not known and unit_of(run, material.policy.falls) not in sizes:
                continue
            name = "\0".join(run.configuration) if held_out == "configuration" else group
            speed = run.prompt_tokens / model.seconds(run)
            kind = "prompt offload" if run.split else "prefill"
            yield Held(run, speed, held_out, name, kind, _cards_like(rest, run), known)


def _engines(
    material: Material, fitted: Fitted, held_out: HeldOut, group_of: Callable[[Run], str]
) -> Iterator[Held]:
    start = fitted.engines.values
    kept = [run for run in material.engines if run.scenario.framework.name in fitted.engines.cards]
    for group, rest, out in _groups(kept, group_of):
        model = fit_engines(rest, start=start)
        for run in out:
            engine = run.scenario.framework.name
            others = {r.card[0] for r in rest if r.scenario.framework.name == engine}
            if not others:
                continue
            known = run.card[0] in others
            speed = 1 / model.seconds(run)
            yield Held(run, speed, held_out, group, "engine", len(others), known)


def _extra(whole: Extra, runs: Sequence[Run], kind: str, held_out: HeldOut) -> Iterator[Held]:
    by_source = held_out == "source"
    named = (lambda run: run.source) if by_source else lambda run: "\0".join(run.configuration)
    for group, rest, out in _groups(runs, named):
        model = fit_extra(rest, whole.terms, start=whole.values)
        for run in out:
            seconds = model.seconds(run)
            if seconds is not None:
                yield Held(run, run.scenario.batch / seconds, held_out, group, kind)


def _models(material: Material, fitted: Fitted) -> Iterator[Held]:
    """Hold out whole models of engines with many streams, from the engine's own fit as well."""
    batches = [run for run in material.batches if not run.family]
    for name in sorted({run.scenario.model.name for run in batches}):
        alone = [run for run in material.engines if run.scenario.model.name != name]
        engines = fit_engines(alone, start=fitted.engines.values)
        parts = Parts(material.policy, fitted.decode, fitted.prefill, engines, fitted.tflops)
        rest = [run for run in material.batches if run.scenario.model.name != name]
        terms = batch_terms(parts)
        model = fit_extra(rest, terms, start=fitted.batch.values)
        for run in batches:
            seconds = model.seconds(run) if run.scenario.model.name == name else None
            if seconds is not None:
                yield Held(run, run.scenario.batch / seconds, "model", name, "batch")


def _several_cards(material: Material, fitted: Fitted) -> Iterator[Held]:
    """Compare with what is decided by hand: nothing is fitted, so nothing is held out."""
    parts = Parts(material.policy, fitted.decode, fitted.prefill, fitted.engines, fitted.tflops)
    for kind, runs in (
        ("layer split", material.layer_splits),
        ("tensor parallel", material.tensor_splits),
    ):
        for run in runs:
            slower = material.policy.layer_split.at(run.scenario.gpus) if run.family else 1.0
            alone = None if run.family else fitted.batch.seconds(run)
            speed = 1 / ((alone or parts.alone(run)) * slower)
            yield Held(run, speed, "nothing", "\0".join(run.configuration), kind)
    for run in material.layer_prompts:
        gain = _overlap(run, material.policy)
        speed = run.prompt_tokens / fitted.prefill.seconds(run, gain)
        yield Held(run, speed, "nothing", "\0".join(run.configuration), "prefill cards")


def _overlap(run: Run, policy: Policy) -> float:
    """Give how many cards' worth of arithmetic works at once on a prompt split by layer."""
    count = run.scenario.gpus
    batches = ceil(run.prompt_tokens / run.scenario.ubatch)
    overlap: float = (count * batches / (batches + count - 1)) ** policy.micro_batches_power
    return overlap / policy.layer_split.at(count)


def situation(held: Held, material: Material) -> str | None:
    """Name the range that a held-out prediction informs; None for none.

    These are the names that the estimator looks ranges up by.
    """
    run, policy = held.run, material.policy
    if held.held_out == "model":
        return "batch_tensor_parallel" if run.tensor else None
    if held.kind == "decode":
        return _decode_situation(held, policy.small_gib, policy.deep_tokens)
    if held.kind == "prefill":
        if run.moe:
            return "prefill_experts" if held.held_out == "configuration" else None
        if held.held_out == "configuration":
            return "prefill_card" if held.known else None
        return "prefill" if held.cards else "prefill_unmeasured"
    if held.kind in {"offload", "prompt offload"}:
        if held.held_out != "source" or held.kind != "offload":
            return "prefill_offload" if held.held_out == "source" else None
        return "offload_experts" if run.moe else "offload"
    if held.kind == "engine":
        engine = f"engine {run.scenario.framework.name}"
        return engine if held.held_out == "configuration" else None
    return held.kind.replace(" ", "_")


def _decode_situation(held: Held, small_gib: float, deep_tokens: float) -> str | None:
    """Name it; a known card is the reader's own machine, so its source was held out."""
    run = held.run
    near = held.held_out == "source"
    if held.held_out == "configuration" or (near and not held.known):
        return None
    if run.scenario.depth_tokens > deep_tokens:
        return "deep" if near else None
    if run.moe:
        return "moe_near" if near else "moe_unseen"
    size = "_small" if is_small(run, small_gib) else ""
    if near:
        return f"near{size}"
    return f"modelled{size}" if held.cards >= MODELLED_FROM_GPUS else "alone"


LEAST_GROUPS = 15
LEAST_CARDS = 3
"""Fewer groups or cards than these only widen a range, never narrow it."""
_TAILS = tuple(half / 200 for half in range(30, 1, -1))
"""Shares that a range leaves out at each end: the first with which the ranges of the other groups
hold four fifths of a group that was left out, as runs of one group err alike."""
_WANTED = 0.8


class Spread(Struct, frozen=True):
    """The range of one situation."""

    low: float
    high: float
    runs: int
    groups: int
    cards: int
    coverage: float
    """Share of runs inside the range that the other groups gave."""
    tail: float = 0.1


def by_situation(held: Sequence[Held], material: Material) -> Mapping[str, Sequence[Held]]:
    """Sort the predictions that inform a range."""
    found: dict[str, list[Held]] = defaultdict(list)
    for one in held:
        name = situation(one, material)
        if name is not None:
            found[name].append(one)
    return dict(sorted(found.items()))


def spreads_by_situation(held: Sequence[Held], material: Material) -> Mapping[str, Spread]:
    """Give the measured 80 % range of every situation."""
    return {name: spread_of(rows) for name, rows in by_situation(held, material).items()}


def spread_of(held: Sequence[Held]) -> Spread:
    """Give the range of one stratum and its coverage out of group."""
    ratios = ratios_of(held)
    for tail in _TAILS:
        coverage = ratios.coverage(tail)
        if coverage >= _WANTED:
            break
    low, high = ratios.ends(tail)
    cards = len({one.run.card[0] for one in held})
    return Spread(low, high, len(held), len(ratios.groups), cards, coverage, tail)


class Ratios(Struct, frozen=True):
    """Logarithms of measured over predicted by group, and what a run of each weighs."""

    groups: Mapping[str, Sequence[float]]
    weights: Mapping[str, float]

    def coverage(self, tail: float) -> float:
        """Give the share of runs inside the range that the other groups give."""
        inside = total = 0.0
        for group, rows in sorted(self.groups.items()):
            least, most = self.ends(tail, but=group)
            inside += self.weights[group] * sum(least <= exp(ratio) <= most for ratio in rows)
            total += self.weights[group] * len(rows)
        return inside / total

    def ends(self, tail: float, but: str | None = None) -> Range:
        """Take the conformal percentiles at both ends, without one group if it is named."""
        ordered = sorted(
            (ratio, self.weights[group])
            for group, rows in self.groups.items()
            if group != but
            for ratio in rows
        )
        if not ordered:
            return 1.0, 1.0
        # One more case, of unknown place, belongs to the whole.
        beyond = tail * (sum(weight for _, weight in ordered) + ordered[0][1])
        return exp(_from_end(ordered, beyond)), exp(_from_end(ordered[::-1], beyond))


def ratios_of(held: Sequence[Held]) -> Ratios:
    """Group the runs of one stratum.

    Where whole cards or machines were held out each weighs by the power 2/3 of its runs, as in the
    fit, so that neither the one with most runs nor one with a single odd run sets the range alone.
    """
    groups: dict[str, list[float]] = defaultdict(list)
    for one in held:
        groups[one.group].append(-one.error)
    whole = _are_whole(held)
    weights = {group: len(rows) ** (-1 / 3) if whole else 1.0 for group, rows in groups.items()}
    return Ratios(groups, weights)


def _are_whole(held: Iterable[Held]) -> bool:
    return all(one.held_out in {"card", "source"} for one in held)


def _from_end(ordered: Sequence[tuple[float, float]], beyond: float) -> float:
    """Give the value that leaves less than ``beyond`` of the weight before it."""
    passed = 0.0
    for ratio, weight in ordered:
        passed += weight
        if passed >= beyond:
            return ratio
    return ordered[-1][0]


_WITHIN = {
    "alone": "near",
    "modelled": "near",
    "modelled_small": "near_small",
    "moe_unseen": "moe_near",
}
"""What is known less of is never shown narrower: each range holds the one named."""


def fitted_ranges(
    spreads: Mapping[str, Spread], policy: Mapping[str, Range]
) -> Mapping[str, Range]:
    """Choose what replaces the ranges by judgement.

    Enough groups on enough cards replace a range; too few widen it at most. A figure always lies
    in its range.
    """
    chosen: dict[str, Range] = {}
    for name, spread in spreads.items():
        low, high = min(spread.low, 0.99), max(spread.high, 1.01)
        stated = policy.get(name)
        if spread.groups < LEAST_GROUPS or spread.cards < LEAST_CARDS:
            if stated is None:
                continue
            low, high = min(low, stated[0]), max(high, stated[1])
            if (low, high) == stated:
                continue
        chosen[name] = low, high
    for name, inner in _WITHIN.items():
        if name in chosen and inner in chosen:
            pair = chosen[name], chosen[inner]
            chosen[name] = min(low for low, _ in pair), max(high for _, high in pair)
    return chosen
