"""One decode step: the bytes it reads, where they lie, and the time that takes."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.estimate.result import BoundBy, Memory
from advisor.estimate.speed_rates import Rate
from advisor.estimate.speed_tables import Tables
from advisor.estimate.weights import Weights
from advisor.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Reads:
    """Bytes that decoding reads; cache bytes are per sequence."""

    gpu_bytes: float
    """Weights of every step, routed experts aside."""
    gpu_expert_bytes: float
    """All routed experts on the card."""
    gpu_cache_bytes: float
    host_bytes: float
    host_expert_bytes: float
    host_cache_bytes: float
    experts: int
    experts_used: int

    def touched(self, sequences: int) -> float:
        """Share of the routed experts that one step is expected to read.

        Every sequence picks its own; independent picks leave ``(1 - used / experts)`` to the
        power of ``sequences`` untouched.
        """
        if not self.experts:
            return 0.0
        return 1.0 - (1.0 - self.experts_used / self.experts) ** sequences

    def step_bytes(self, sequences: int) -> float:
        """All weight bytes of one step, card and system RAM."""
        experts = self.gpu_expert_bytes + self.host_expert_bytes
        return self.gpu_bytes + self.host_bytes + self.touched(sequences) * experts


@dataclass(frozen=True, slots=True)
class Step:
    """One decode step of a batch."""

    seconds: float
    bound_by: BoundBy


def is_split(scenario: Scenario) -> bool:
    """Say whether the request itself leaves layers or experts in system RAM."""
    layers = scenario.gpu_layers
    return scenario.cpu_experts > 0 or (
        layers is not None and layers <= scenario.model.shape.layers
    )


def reads_of(scenario: Scenario, memory: Memory, weights: Weights, cache_bytes: float) -> Reads:
    """Split what one token reads between card and system RAM.

    The last layers and the output matrix go to the card first, the output counted as one layer;
    the input embedding is a lookup, not a read.

    Args:
        scenario: What is run.
        memory: Says which share of the cache lies in system RAM.
        weights: The model's weights by layer.
        cache_bytes: Cache that one token of one sequence reads.
    """
    layers = len(weights.layer_sums) - 1
    wanted = layers + 1 if scenario.gpu_layers is None else min(scenario.gpu_layers, layers + 1)
    start = min(layers + 1 - wanted, layers)
    split = max(start, min(scenario.cpu_experts, layers))
    dense, experts = weights.layer_sums, weights.expert_sums
    host = float(dense[start] - experts[start])
    card = float(dense[-1] - experts[-1]) - host + weights.profile.other_bytes
    if wanted:
        card += weights.profile.output_bytes
    else:
        host += weights.profile.output_bytes
    cache_all = memory.kv_cache_bytes + memory.host_kv_cache_bytes
    off_card = cache_bytes * memory.host_kv_cache_bytes / cache_all if cache_all else 0.0
    return Reads(
        gpu_bytes=card,
        gpu_expert_bytes=experts[-1] - experts[split],
        gpu_cache_bytes=cache_bytes - off_card,
        host_bytes=host,
        host_expert_bytes=experts[split],
        host_cache_bytes=off_card,
        experts=weights.profile.experts,
        experts_used=weights.profile.experts_used,
    )


def step_time(scenario: Scenario, tables: Tables, rate: Rate, reads: Reads, sequences: int) -> Step:
    """Time one step of ``sequences`` streams from overhead and reads; no compute limit."""
    layers = scenario.model.shape.layers
    overhead = rate.overhead_s + ((rate.moe_overhead_s or 0.0) if reads.experts else 0.0)
    launch = overhead * layers
    cards, exchange, slower = _cards(scenario, tables)
    bandwidth = scenario.gpu.bandwidth_bytes_s if scenario.gpu else None
    assert bandwidth is not None
    touched = reads.touched(sequences)
    card = reads.gpu_bytes + touched * reads.gpu_expert_bytes + sequences * reads.gpu_cache_bytes
    stream = card / (cards * bandwidth * rate.efficiency)
    offload = _offload_s(scenario, tables, reads, sequences)
    busy = max(launch, stream) if rate.overlapped else launch + stream
    seconds = (busy + offload + exchange * layers) * slower / rate.scale
    return Step(seconds, _largest(launch + exchange * layers, stream, offload))


def _cards(scenario: Scenario, tables: Tables) -> tuple[int, float, float]:
    """Give the cards that read at once, the exchange per layer (s), and the layer-split factor."""
    gpu, count = scenario.gpu, scenario.gpus
    if gpu is None or count == 1:
        return 1, 0.0, 1.0
    if scenario.framework.multi_gpu[0] == "layer":
        return 1, 0.0, tables.layer_split.at(count)
    link = tables.pcie_s if gpu.nvlink_bytes_s is None else tables.nvlink_s
    return count, link.at(count), 1.0


def prefill_gain(scenario: Scenario, tables: Tables) -> float:
    """Give prefill over one card's: a layer split computes one prompt card after card."""
    gpu, count = scenario.gpu, scenario.gpus
    if gpu is None or count == 1:
        return 1.0
    if scenario.framework.multi_gpu[0] == "layer":
        return 1.0 / tables.layer_split.at(count)
    linked = gpu.nvlink_bytes_s is not None
    return (tables.nvlink_prefill if linked else tables.pcie_prefill).at(count)


def _offload_s(scenario: Scenario, tables: Tables, reads: Reads, sequences: int) -> float:
    if scenario.ram_bandwidth_bytes_s is None:
        return 0.0
    dense = reads.host_bytes + sequences * reads.host_cache_bytes
    experts = reads.touched(sequences) * reads.host_expert_bytes
    return (
        dense / tables.ram_efficiency + experts / tables.ram_efficiency_experts
    ) / scenario.ram_bandwidth_bytes_s


def _largest(overhead: float, stream: float, offload: float) -> BoundBy:
    if offload > max(overhead, stream):
        return "offload"
    return "overhead" if overhead > stream else "bandwidth"
