"""What a format costs in quality, as measured on the nearest size of model."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from advisor.scenario import support
from advisor.scenario.scenario import Scenario

_FULL_BITS = 16
_NEAR_IN_SIZE = log(3.0)


def quality_loss(scenario: Scenario) -> float | None:
    """Perplexity increase of weights and KV cache together, %; None when one is unknown."""
    weights = weights_loss(scenario)
    cache = scenario.kv_cache_k
    if weights is None or cache.bits >= _FULL_BITS:
        return weights
    return None if cache.quality_loss_percent is None else weights + cache.quality_loss_percent


def weights_loss(scenario: Scenario) -> float | None:
    """Perplexity increase of the weight format, %: of the nearest size measured, else at all."""
    if support.is_published(scenario.precision, scenario.model):
        return 0.0
    near = of_size(scenario.precision.quality_by_size, scenario.model.parameters)
    return scenario.precision.quality_loss_percent if near is None else near


def exam_loss(scenario: Scenario) -> float | None:
    """Points of MMLU that the weight format costs models of this size, %; None if unmeasured."""
    if support.is_published(scenario.precision, scenario.model):
        return 0.0
    return of_size(scenario.precision.exam_loss, scenario.model.parameters)


def of_size(measured: Sequence[tuple[float, float]], parameters: float) -> float | None:
    """The figure of the model nearest in size, if it is within a factor of three."""
    if not measured or not parameters:
        return None
    size, value = min(measured, key=lambda pair: abs(log(pair[0] / parameters)))
    return value if abs(log(size / parameters)) <= _NEAR_IN_SIZE else None
