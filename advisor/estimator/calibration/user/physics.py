"""What a measured speed cannot be, and what it hardly is."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.errors import RequestError
from advisor.estimator import estimate_memory
from advisor.estimator.calibration.user.benchmark import Run
from advisor.estimator.kv_cache import kv_read_bytes
from advisor.estimator.speed import estimate_speed
from advisor.estimator.speed_step import CacheReads, reads_of
from advisor.estimator.weights import weights_of
from advisor.knowledge.types import Gpu, Knowledge
from advisor.runtimes.base import Weights
from advisor.scenario import Scenario
from advisor.scenario.figures import Figure, Memory
from advisor.units import GB, gib

MOST_OF_BANDWIDTH = 1.03
"""Cards run a little above their datasheet; llama-bench rows beyond this had another cause."""
FAR = 2.5
"""A speed this many times off the estimate says little about the card."""
_NAMED_WRONG = 1.25
_OTHER_MODEL = 0.03
"""Share of the parameters; llama.cpp counts a few tensors that others leave out."""
_TOO_LARGE = 0.10
_NO_DECIMAL = 100


def impossible(run: Run, scenario: Scenario, knowledge: Knowledge) -> Iterator[RequestError]:
    """Say why the figure cannot be of this setup.

    The model and the file have other sizes, memory does not hold it, or more was read or computed
    than the card can.
    """
    weights = weights_of(
        scenario.model, scenario.precision, scenario.framework, knowledge.ggml_types
    )
    yield from _other_model(run, scenario, weights)
    memory = estimate_memory(scenario, knowledge)
    deficit, usable = memory.deficit_bytes, memory.usable_bytes
    if deficit and usable and deficit > _TOO_LARGE * usable:
        yield RequestError(
            f"{_named(scenario)} needs {gib(deficit)} more than {_cards(scenario)} has, "
            "so part of it ran from system RAM",
            hint="Measure a setup that fits, or correct what is named.",
        )
    elif run.metric == "prefill_tok_s":
        yield from _too_much_arithmetic(run, scenario)
    else:
        yield from _too_much_read(run, scenario, memory, weights)


def pace(tok_s: float) -> str:
    """Print tokens per second without their unit."""
    return f"{tok_s:,.0f}" if tok_s >= _NO_DECIMAL else f"{tok_s:.1f}"


def _named(scenario: Scenario) -> str:
    return f"{scenario.model.name} in {scenario.precision.name}"


def _cards(scenario: Scenario) -> str:
    assert scenario.gpu
    return scenario.gpu.name if scenario.gpus == 1 else f"{scenario.gpus} x {scenario.gpu.name}"


def _other_model(run: Run, scenario: Scenario, weights: Weights) -> Iterator[RequestError]:
    model = scenario.model
    text_only = model.parameters - model.vision_parameters
    said = run.parameters
    if said and said > 0 and abs(said / text_only - 1) > _OTHER_MODEL:
        yield RequestError(
            f"the file's model has {said / 1e9:.2f} B parameters, {model.name} has "
            f"{text_only / 1e9:.2f} B",
            hint="Name the model that ran: --model.",
        )
        return
    stored = weights.profile.total_bytes - weights.profile.vision_bytes
    size = run.file_bytes
    if size and size > 0 and not 1 / _NAMED_WRONG < size / stored < _NAMED_WRONG:
        yield RequestError(
            f"the file's weights take {gib(size)}, {_named(scenario)} takes {gib(stored)}",
            hint="Name the format that ran: --precision.",
        )


def _too_much_read(
    run: Run, scenario: Scenario, memory: Memory, weights: Weights
) -> Iterator[RequestError]:
    """Hold what every step reads against the datasheet."""
    gpu = scenario.gpu
    if gpu is None or gpu.bandwidth_bytes_s is None:
        return
    cache = kv_read_bytes(scenario, scenario.depth_tokens)
    reads = reads_of(scenario, memory, weights, CacheReads(cache))
    steps = run.tok_s if run.metric == "decode_tok_s" else run.tok_s / scenario.batch
    read = steps * (reads.step_bytes(scenario.batch) + scenario.batch * cache)
    most = gpu.bandwidth_bytes_s * scenario.gpus
    if read > MOST_OF_BANDWIDTH * most:
        yield RequestError(
            f"{pace(run.tok_s)} tok/s of {_named(scenario)} would read {read / GB:,.0f} GB/s, "
            f"{_cards(scenario)} has {most / GB:,.0f}",
            hint="Was it another model, format or card, or with a draft model?",
        )


def _too_much_arithmetic(run: Run, scenario: Scenario) -> Iterator[RequestError]:
    """Hold two operations per active parameter and token against the card's highest peak."""
    peak = _peak_tflops(scenario.gpu)
    model = scenario.model
    done = 2 * (model.active_parameters - model.vision_parameters) * run.tok_s / 1e12
    if peak and done > MOST_OF_BANDWIDTH * peak * scenario.gpus:
        yield RequestError(
            f"{run.tok_s:,.0f} prompt tok/s of {_named(scenario)} would take {done:,.0f} TFLOPS, "
            f"{_cards(scenario)} has {peak * scenario.gpus:,.0f}",
            hint="Was it another model or card, or did a prefix cache answer?",
        )


def _peak_tflops(gpu: Gpu | None) -> float | None:
    """Give the highest arithmetic peak; None where matrix units are unknown or missing."""
    if gpu is None or gpu.fp16_tensor_tflops is None:
        return None
    peaks = (gpu.fp16_tensor_tflops, gpu.int8_tops, gpu.fp8_tflops, gpu.fp4_tflops)
    return max(peak for peak in peaks if peak is not None)


def unlikely(run: Run, scenario: Scenario, knowledge: Knowledge) -> Iterator[str]:
    """Say what is odd about a figure that is possible."""
    memory = estimate_memory(scenario, knowledge)
    if memory.deficit_bytes:
        yield (
            f"{_named(scenario)} is estimated {gib(memory.deficit_bytes)} too large for "
            f"{_cards(scenario)}: the figure is kept, and the estimate stays without a speed"
        )
        return
    figure = figure_for(run.metric, scenario, knowledge)
    modelled = None if figure is None else figure.modelled or figure.estimate
    if modelled and not 1 / FAR < run.tok_s / modelled < FAR:
        times = run.tok_s / modelled
        how = f"{times:.1f} times" if times > 1 else f"1/{1 / times:.1f} of"
        yield (
            f"{pace(run.tok_s)} tok/s is {how} the estimate ({pace(modelled)}): "
            "the figure is kept, and other models on this card do not follow it"
        )


def figure_for(metric: str, scenario: Scenario, knowledge: Knowledge) -> Figure | None:
    """Estimate what a metric measures; None where that is unknown or never estimated."""
    if metric == "total_throughput_tok_s":
        return None
    speed = estimate_speed(scenario, estimate_memory(scenario, knowledge), knowledge)
    if speed is None:
        return None
    return speed.prefill_tok_s if metric == "prefill_tok_s" else speed.decode_tok_s
