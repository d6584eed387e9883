"""All fits over the carried measurements, each over the results of those before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from advisor.calibration import prefill as prompts
from advisor.calibration.decode import DecodeModel, GroupOf, fit_decode, is_single
from advisor.calibration.engines import EngineModel, fit_engines, is_engine_run
from advisor.calibration.extras import Extra, batch_terms, fit_extra, offload_terms
from advisor.calibration.observations import Observation, observations
from advisor.calibration.prefill import PrefillModel, fit_prefill, is_prompt
from advisor.calibration.runs import Run, runs_of
from advisor.estimate.speed_prefill import Reached, reached_by_engine
from advisor.estimate.speed_tables import Policy, format_group, read_policy
from advisor.knowledge.types import Knowledge


class Material(Struct, frozen=True):
    """What the fits work on."""

    policy: Policy
    group_of: GroupOf
    single: Sequence[Run]
    prompts: Sequence[Run]
    engines: Sequence[Run]
    batches: Sequence[Run]
    splits: Sequence[Run]
    layer_splits: Sequence[Run]
    tensor_splits: Sequence[Run]
    dropped: Mapping[str, int]
    """Rows of the carried file that are not used, by reason."""
    rows: int
    observed: Sequence[Observation]
    """The named rows that the runs were made of, and more."""

    def known(self) -> Iterable[Run]:
        """Every run of every kind."""
        for runs in (
            self.single, self.prompts, self.engines, self.batches, self.splits,
            self.layer_splits, self.tensor_splits,
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

    def tok_s(self, run: Run) -> float | None:
        """Predict a run of any kind, over all streams; None where a figure is missing."""
        if run.metric == "prefill":
            return run.prompt_tokens / self.prefill.seconds(run)
        if run.split:
            seconds = self.offload.seconds(run)
        elif run.scenario.batch > 1:
            seconds = self.batch.seconds(run)
        else:
            seconds = self.decode.seconds(run) if run.family else self.engines.seconds(run)
        return None if seconds is None else run.scenario.batch / seconds


def material_of(knowledge: Knowledge) -> Material:
    """Read, name, filter and sort the carried measurements."""
    policy = read_policy(knowledge.calibration)
    found = observations(knowledge)
    runs = runs_of(found.kept, knowledge, policy)
    dropped = Counter(found.dropped) + Counter(runs.dropped)
    kept = runs.kept
    decode = [run for run in kept if run.metric == "decode"]
    whole = [run for run in decode if not run.split]
    alone = [run for run in whole if run.scenario.batch == 1 and run.scenario.gpus > 1]
    return Material(
        policy=policy,
        group_of=lambda name: format_group(knowledge.calibration, name),
        single=[run for run in whole if is_single(run)],
        prompts=[run for run in kept if is_prompt(run)],
        engines=[run for run in whole if is_engine_run(run)],
        batches=[
            run
            for run in whole
            if run.scenario.batch > 1 and (run.scenario.gpus == 1 or run.tensor)
        ],
        splits=[
            run
            for run in decode
            if run.split and run.scenario.gpus == run.scenario.batch == 1 and run.family
        ],
        layer_splits=[run for run in alone if run.family and not run.tensor],
        tensor_splits=[run for run in alone if not run.family and run.tensor],
        dropped=dict(sorted(dropped.items(), key=lambda item: (-item[1], item[0]))),
        rows=sum(dropped.values()) + sum(len(run.rows) for run in kept),
        observed=found.kept,
    )


def fit_all(material: Material) -> Fitted:
    """Fit everything on everything."""
    decode = fit_decode(material.single, material.group_of)
    prefill = fit_prefill(material.prompts, material.policy.falls)
    engines = fit_engines(material.engines)
    tflops = prompts.card_tflops(prefill, material.prompts)
    parts = Parts(material.policy, decode, prefill, engines, tflops)
    return Fitted(
        decode=decode,
        prefill=prefill,
        engines=engines,
        batch=fit_extra(material.batches, batch_terms(parts.alone, parts.reached)),
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
        linked = scenario.gpu.nvlink_bytes_s is not None
        link = self.policy.nvlink_s if linked else self.policy.pcie_s
        exchange = link.at(scenario.gpus) if run.tensor else 0.0
        return self.engines.seconds(run) + exchange * scenario.model.shape.layers

    def reached(self, run: Run) -> Reached | None:
        """Give the arithmetic of one card, as ``advise`` sees it."""
        scenario, policy = run.scenario, self.policy
        assert scenario.gpu
        if not run.family:
            tables = policy.engine_prefill
            return reached_by_engine(tables, scenario.gpu, scenario.precision, 0.0)
        tflops = self.tflops.get(run.card)
        if tflops is None:
            return None
        values, backend = self.prefill.values, run.card[1]
        experts = prompts.factor(values, "experts")
        experts *= prompts.factor(values, f"experts of backend:{backend}")
        return Reached(tflops, "", experts, 1.0, 0.0)
