"""What every what-if is built from, and how one is estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from advisor import support
from advisor.advice import Action, Effort, Option
from advisor.estimate.memory import estimate_memory
from advisor.estimate.result import Memory, Speed
from advisor.estimate.speed import estimate_speed
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge
from advisor.resolve import default_backend, default_context, formats_named
from advisor.scenario import Model, Request, Scenario

_FULL_BITS = 16


@dataclass(frozen=True, slots=True)
class Base:
    """The request, resolved and estimated."""

    request: Request
    scenario: Scenario
    memory: Memory
    speed: Speed | None
    knowledge: Knowledge

    @property
    def card_fits(self) -> bool:
        """Whether the request fits on its cards."""
        return self.memory.deficit_bytes == 0


def host_fits(scenario: Scenario, memory: Memory) -> bool:
    """Whether system RAM holds what lies there; unknown RAM counts as said to be needed."""
    needed = memory.host_weights_bytes + memory.host_kv_cache_bytes
    offloaded = scenario.gpu_layers is not None or scenario.cpu_experts > 0
    return not offloaded or scenario.ram_bytes is None or needed <= scenario.ram_bytes


def make_option(
    base: Base,
    action: Action,
    change: Mapping[str, object],
    scenario: Scenario,
    effort: Effort,
    *,
    cost_usd: float | None = None,
    memory: Memory | None = None,
) -> Option:
    """Estimate a changed scenario with the request's own estimator and complete its change."""
    estimated = memory or estimate_memory(scenario, base.knowledge)
    full = _completed(base, change, scenario)
    loss = quality_loss(scenario)
    before = quality_loss(base.scenario)
    same_model = scenario.model is base.scenario.model
    return Option(
        key=option_key(action, full),
        action=action,
        change=full,
        scenario=scenario,
        memory=estimated,
        speed=estimate_speed(scenario, estimated, base.knowledge),
        fits=estimated.deficit_bytes == 0 and host_fits(scenario, estimated),
        steps=1,
        quality_loss_percent=loss if same_model else None,
        quality_cost_percent=(
            None if loss is None or before is None or not same_model else round(loss - before, 6)
        ),
        cost_usd=cost_usd,
        effort=effort,
    )


def option_key(action: str, change: Mapping[str, object]) -> str:
    """A stable, readable identity: ``quantize precision=Q8_0``."""
    return " ".join([action, *(f"{key}={value}" for key, value in sorted(change.items()))])


def quality_loss(scenario: Scenario) -> float | None:
    """Perplexity increase of weights and KV cache together, %; None when one is unknown."""
    parts = (
        scenario.precision.quality_loss_percent,
        scenario.kv_cache_k.quality_loss_percent if scenario.kv_cache_k.bits < _FULL_BITS else 0.0,
    )
    return None if any(part is None for part in parts) else sum(part or 0.0 for part in parts)


def _completed(
    base: Base, change: Mapping[str, object], scenario: Scenario
) -> Mapping[str, object]:
    """Add the keys without which running the changed request would fall back to other defaults."""
    full = dict(change)
    request = base.request
    text = str(full.get("precision") or request.precision or "FP16")
    framework = scenario.framework
    if "framework" not in full:
        stated = base.scenario.framework if request.framework else None
        expected = _default_pair(base.knowledge, text, stated, scenario.gpu, scenario.model)
        if expected is None or expected[1] is not framework:
            full["framework"] = framework.name
            stated = framework
        expected = _default_pair(base.knowledge, text, stated, scenario.gpu, scenario.model)
    else:
        expected = _default_pair(base.knowledge, text, framework, scenario.gpu, scenario.model)
    if expected is None or expected[0] is not scenario.precision:
        full["precision"] = scenario.precision.name
    stated_context = request.context or default_context(scenario.model)
    if "context" not in full and stated_context != scenario.context_tokens:
        full["context"] = scenario.context_tokens
    if (
        scenario.gpu
        and "backend" not in full
        and scenario.backend
        != (base.scenario.backend if request.backend else default_backend(scenario.gpu))
    ):
        full["backend"] = scenario.backend
    return full


_pairs: dict[tuple[int, str, str, int, str, int], tuple[Format, Framework] | None] = {}


def _default_pair(
    knowledge: Knowledge, text: str, framework: Framework | None, gpu: Gpu | None, model: Model
) -> tuple[Format, Framework] | None:
    key = (
        id(knowledge),
        text,
        framework.name if framework else "",
        id(gpu),
        gpu.name if gpu else "",
        id(model),
    )
    if key not in _pairs:
        if len(_pairs) > 100_000:  # noqa: PLR2004  bounds memory in a long batch
            _pairs.clear()
        formats = formats_named(text, knowledge)
        _pairs[key] = support.first_pair(knowledge, formats, framework, gpu, model)
    return _pairs[key]
