"""One decode step: the bytes it reads, where they lie, and the time that takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import ceil, inf

from msgspec import Struct

from advisor.estimator.kv_cache import grown_read_bytes, kv_read_bytes
from advisor.estimator.speed_fields import ByHead
from advisor.estimator.speed_prefill import (
    Reached,
    prompt_seconds,
    token_seconds,
    work_of,
)
from advisor.estimator.speed_rates import Rate
from advisor.estimator.speed_tables import Tables
from advisor.knowledge.types import Gpu
from advisor.models.stored_tensors import Model
from advisor.runtimes import runtime_of
from advisor.runtimes.base import Weights
from advisor.scenario import Scenario, is_split, pipeline_ranks, split_of
from advisor.scenario.figures import BoundBy, Memory

_LANE_BYTES_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9}
"""What a lane of PCI Express carries by generation: transfers less the line code (PCI-SIG)."""
_PLAIN_BITS = 16


class Layers(Struct, frozen=True):
    """Layers of a model by what they launch."""

    all: float
    """A mixer, a feed-forward block and a shared expert make half a one each."""
    experts: int
    recurrent: int
    """With a recurrent state; a short convolution launches no more than attention does."""


class CacheReads(Struct, frozen=True):
    """What one token of one sequence reads of the cache, and what it unpacks of that."""

    bytes: float
    unpacked_bytes: float = 0.0
    """Of values of few bits that are unpacked once, at 16 bits each."""
    by_head: float = 0.0
    """Values that every head unpacks which reads them, times those heads, over shading units."""


class Reads(Struct, frozen=True):
    """Bytes that decoding reads; cache bytes are per sequence."""

    gpu_bytes: float
    """Weights of every step, routed experts aside."""
    gpu_expert_bytes: float
    """All routed experts on the card."""
    gpu_cache_bytes: float
    host_bytes: float
    host_expert_bytes: float
    host_cache_bytes: float
    host_expert_layers: int
    """Layers on the card whose experts lie in system RAM."""
    experts: int
    experts_used: int
    gpu_unpacked_bytes: float = 0.0
    gpu_by_head: float = 0.0
    """As of ``CacheReads``, of the cache on the card."""

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


class Step(Struct, frozen=True):
    """One decode step of a batch."""

    seconds: float
    bound_by: BoundBy
    least_s: float
    """The roofline: every byte once at the full bandwidth of where it lies."""


def layers_of(model: Model) -> Layers:
    """Count the layers of a model by what they launch, once per model."""
    shape = model.shape
    halves = 2 * shape.layers - shape.layer_kinds.count("N") - shape.ffn_kinds.count("-")
    experts = shape.ffn_kinds.count("E")
    shared = experts if shape.moe and shape.moe.shared_width else 0
    return Layers((halves + shared) / 2, experts, work_of(model).recurrent)


def cache_reads(scenario: Scenario, rule: ByHead) -> CacheReads:
    """Work out what a token reads of the cache at the depth of a scenario.

    Raises:
        RequestError: A figure of the architecture is missing.
    """
    read = kv_read_bytes(scenario, scenario.depth_tokens)
    kinds, shape = (scenario.kv_cache_k, scenario.kv_cache_v), scenario.model.shape
    packed = sum(kind.bits < _PLAIN_BITS for kind in kinds)
    if not packed or not runtime_of(scenario.framework).one_engine:
        return CacheReads(read)
    grown = grown_read_bytes(scenario, scenario.depth_tokens)
    values = 8 * grown * packed / sum(kind.bits for kind in kinds)
    gpu = scenario.gpu
    if gpu and gpu.cores and rule.holds(gpu, scenario.backend, shape):
        heads = shape.heads / (shape.kv_heads or 1)
        return CacheReads(read, by_head=values * heads / gpu.cores)
    return CacheReads(read, unpacked_bytes=values * _PLAIN_BITS / 8)


def reads_of(scenario: Scenario, memory: Memory, weights: Weights, cache: CacheReads) -> Reads:
    """Split what one token reads between card and system RAM.

    The last layers and the output matrix go to the card first, the output counted as one layer;
    the input embedding is a lookup, not a read.

    ``memory`` says which share of the cache lies in system RAM.
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
    off_card = memory.host_kv_cache_bytes / cache_all if cache_all else 0.0
    return Reads(
        gpu_bytes=card,
        gpu_expert_bytes=experts[-1] - experts[split],
        gpu_cache_bytes=cache.bytes * (1 - off_card),
        host_bytes=host,
        host_expert_bytes=experts[split],
        host_cache_bytes=cache.bytes * off_card,
        host_expert_layers=split - start,
        experts=weights.profile.experts,
        experts_used=weights.profile.experts_used,
        gpu_unpacked_bytes=cache.unpacked_bytes * (1 - off_card),
        gpu_by_head=cache.by_head * (1 - off_card),
    )


def step_time(scenario: Scenario, tables: Tables, rate: Rate, reads: Reads, sequences: int) -> Step:
    """Time one step of ``sequences`` streams.

    Every further stream adds its cache, the arithmetic of one token and its share of the exchange
    between cards, never more than a step of its own. The stages of a server's pipeline work on
    different streams (vLLM 0.33.0 v1/engine/core.py:208, SGLang 0.5.23 scheduler_pp_mixin.py).
    """
    sequences = -(-sequences // pipeline_ranks(scenario))
    layers = layers_of(scenario.model)
    cards, slower = _cards(scenario, tables)
    bandwidth = scenario.gpu.bandwidth_bytes_s if scenario.gpu else None
    assert bandwidth is not None
    weights_s = 1 / (cards * bandwidth * rate.efficiency)
    reach = rate.cache_efficiency * (rate.latent_cache if scenario.model.shape.mla else 1.0)
    cache_s = reads.gpu_cache_bytes / (cards * bandwidth * reach)
    unpack_s = _unpacking_s(scenario, tables, rate, reads, bandwidth * reach) / cards
    launch = (
        rate.overhead_s * layers.all
        + rate.expert_overhead_s * layers.experts
        + rate.recurrent_overhead_s * layers.recurrent
        + rate.serving_s
    )
    start, token = _exchange(scenario, tables, cards)
    experts = reads.gpu_expert_bytes / rate.expert_efficiency
    stream = (reads.gpu_bytes + reads.touched(sequences) * experts) * weights_s
    busy = max(launch, stream) if rate.overlapped else launch + stream
    share = rate.batch.cache_share or reach
    cache = cache_s * (1 + (sequences - 1) * min(1.0, reach / share)) + sequences * unpack_s
    more = 0.0
    if sequences > 1:
        one = (reads.gpu_bytes + reads.touched(1) * experts) * weights_s
        alone = (launch + one + cache_s + unpack_s + start) * slower
        further = _further_stream_s(scenario, rate, cards)
        more = (sequences - 1) * min(further, alone)
    exchanged = start + token * (sequences - 1)
    offload = _offload_s(scenario, tables, reads, sequences)
    seconds = ((busy + cache + exchanged) * slower + more) / rate.scale + offload
    least = _roofline_s(scenario, reads, sequences, cards * bandwidth)
    by = _largest(launch, stream + cache, more, exchanged, offload)
    return Step(max(seconds, least), by, least)


def _unpacking_s(
    scenario: Scenario, tables: Tables, rate: Rate, reads: Reads, bytes_s: float
) -> float:
    """Time unpacking the cache of one sequence, on one card's arithmetic."""
    if not reads.gpu_by_head:
        return reads.gpu_unpacked_bytes * rate.unpacked / bytes_s
    kinds = (scenario.kv_cache_k, scenario.kv_cache_v)
    packed = [kind.name for kind in kinds if kind.bits < _PLAIN_BITS]
    types = sum(tables.family.cache_types.get(name, 1.0) for name in packed) / len(packed)
    return reads.gpu_by_head * types * rate.unpacked_by_head_s


def _roofline_s(scenario: Scenario, reads: Reads, sequences: int, bandwidth: float) -> float:
    touched = reads.touched(sequences)
    card = reads.gpu_bytes + touched * reads.gpu_expert_bytes + sequences * reads.gpu_cache_bytes
    host = reads.host_bytes + touched * reads.host_expert_bytes + sequences * reads.host_cache_bytes
    ram = scenario.ram_bandwidth_bytes_s
    return card / bandwidth + (host / ram if ram else 0.0)


def _cards(scenario: Scenario, tables: Tables) -> tuple[int, float]:
    """Give the cards that read at once, and the layer-split factor."""
    if scenario.gpu is None or scenario.gpus == 1:
        return 1, 1.0
    if split_of(scenario) == "layer":
        return 1, tables.layer_split.at(scenario.gpus)
    stages = pipeline_ranks(scenario)
    return scenario.gpus // stages, tables.layer_split.at(stages) if stages > 1 else 1.0


def _exchange(scenario: Scenario, tables: Tables, cards: int) -> tuple[float, float]:
    """Give the time that cards exchange in a step of one stream, and for each further one."""
    gpu, shape, exchange = scenario.gpu, scenario.model.shape, tables.exchange
    if gpu is None or cards == 1:
        return 0.0, 0.0
    return exchange.start_s(gpu, shape, cards), exchange.token_s(gpu, shape, cards)


def _further_stream_s(scenario: Scenario, rate: Rate, cards: int) -> float:
    """Time what one more stream adds to a step besides its cache and the exchange."""
    batch = rate.batch
    if rate.prefill is None:
        one = rate.overhead_s * scenario.model.shape.layers
        return one / batch.most_gain
    dense, experts = token_seconds(work_of(scenario.model), rate.prefill)
    return (dense / batch.arithmetic + experts / batch.expert_arithmetic) / cards


def micro_batch_copy_s(
    scenario: Scenario, tables: Tables, reached: Reached, reads: Reads
) -> float | None:
    """Time what each micro-batch of a prompt copies out of system RAM; None where not known."""
    if not is_split(scenario):
        return 0.0
    lanes = lanes_bytes_s(scenario.gpu) if scenario.gpu and reached.family else None
    if lanes is None or scenario.ram_bandwidth_bytes_s is None:
        return None
    shares, dense, experts = tables.prefill, reads.host_bytes, reads.host_expert_bytes
    sent = dense / shares.copied + experts / shares.copied_experts
    return sent * copied_s(lanes, scenario.ram_bandwidth_bytes_s)


def lanes_bytes_s(gpu: Gpu) -> float | None:
    """Give what the lanes of a card carry; None where it has none of its own, or unknown ones."""
    carried = _LANE_BYTES_S.get(gpu.pcie_gen or 0, 0.0) * (gpu.pcie_lanes or 0)
    return carried if carried and not gpu.unified_memory else None


def copied_s(lanes: float, ram: float) -> float:
    """Bound the time of copying a byte of RAM to the card: by its lanes, or by three bus passes.

    The memory is pageable: its bytes are read, written to where the card may fetch them, fetched.
    """
    return max(1 / lanes, 3 / ram)


def prompt_s(
    scenario: Scenario, tables: Tables, reached: Reached, reads: Reads, tokens: int
) -> tuple[float, float]:
    """Time reading a prompt of so many tokens into an empty cache, on all cards.

    Returns:
        What it takes, and how many times faster no card can be: each micro-batch reads what it
        touches of the weights once.
    """
    batches = ceil(tokens / scenario.ubatch)
    least = _read_s(scenario, reads, tokens)
    copy = micro_batch_copy_s(scenario, tables, reached, reads) or 0.0
    seconds = max(_computed_s(scenario, tables, reached, tokens), least) + copy * batches
    return seconds, seconds / least if least else inf


def _read_s(scenario: Scenario, reads: Reads, tokens: int) -> float:
    """Time reading the weights on the cards at full bandwidth, once for every micro-batch."""
    bandwidth = scenario.gpu.bandwidth_bytes_s if scenario.gpu else None
    assert bandwidth is not None
    small = runtime_of(scenario.framework).micro_batches
    at_once = min(tokens, scenario.ubatch) if small else tokens
    touched = reads.touched(at_once) * reads.gpu_expert_bytes
    once = (reads.gpu_bytes + touched) / (bandwidth * scenario.gpus)
    return once * ceil(tokens / at_once)


def _computed_s(scenario: Scenario, tables: Tables, reached: Reached, tokens: int) -> float:
    gpu, count, work = scenario.gpu, scenario.gpus, work_of(scenario.model)
    time = partial(
        prompt_seconds,
        work,
        reached,
        tokens,
        0,
        ubatch=scenario.ubatch,
        flash=scenario.flash_attention,
    )
    if gpu is None or count == 1:
        return time()
    if split_of(scenario) == "layer":
        overlap = _overlap(scenario, tables, count, tokens)
        return time(cards=overlap / tables.layer_split.at(count))
    count, slower = _cards(scenario, tables)
    slower /= _overlap(scenario, tables, pipeline_ranks(scenario), tokens)
    measured = tables.exchange.link(gpu).prompt_gain
    if measured is not None:
        return time(cards=measured.at(count)) * slower
    start, token = _exchange(scenario, tables, count)
    traded = start * ceil(tokens / scenario.ubatch) + token * tokens
    return (time(cards=count) + traded) * slower


def _overlap(scenario: Scenario, tables: Tables, stages: int, tokens: int) -> float:
    """Count the stages that work at once, on different parts of one prompt."""
    runtime = runtime_of(scenario.framework)
    told = scenario.max_num_batched_tokens if runtime.prompt_chunk else None
    chunk = scenario.ubatch if runtime.micro_batches else told or runtime.prompt_chunk or tokens
    batches = ceil(tokens / chunk)
    found: float = (stages * batches / (batches + stages - 1)) ** tables.micro_batches_power
    return found


def _offload_s(scenario: Scenario, tables: Tables, reads: Reads, sequences: int) -> float:
    if scenario.ram_bandwidth_bytes_s is None:
        return 0.0
    offload = tables.offload
    dense = reads.host_bytes + sequences * reads.host_cache_bytes
    experts = reads.touched(sequences) * reads.host_expert_bytes
    reached = offload.ram_efficiency_beside_experts if reads.experts else offload.ram_efficiency
    moved = dense / reached + experts / offload.ram_efficiency_experts
    worked = (dense + experts) * offload.unpacking_s(scenario.precision.name)
    worked += offload.hand_over_s * reads.host_expert_layers
    return moved / scenario.ram_bandwidth_bytes_s + worked


def rough_parts(scenario: Scenario, tables: Tables, rate: Rate, reads: Reads) -> Iterator[str]:
    """Name what makes a figure rough: each has a range of its own."""
    if scenario.depth_tokens > tables.deep_tokens:
        yield "deep"
        if reads.gpu_unpacked_bytes or reads.gpu_by_head:
            known = scenario.backend in tables.by_head.measured
            yield "packed_cache" if known else "packed_cache_unmeasured"
    if scenario.batch > 1:
        yield "batch" if rate.prefill else "batch_unmeasured"
    if scenario.gpus > 1:
        tensor = split_of(scenario) == "tensor"
        if tensor:
            yield "batch_tensor_parallel" if scenario.batch > 1 else "tensor_parallel"
        if not tensor or pipeline_ranks(scenario) > 1:
            yield "layer_split"
    if is_split(scenario):
        yield "offload_experts" if scenario.cpu_experts else "offload"


def _largest(
    overhead: float, stream: float, arithmetic: float, exchanged: float, offload: float
) -> BoundBy:
    by: dict[BoundBy, float] = {
        "bandwidth": stream,
        "overhead": overhead,
        "compute": arithmetic,
        "exchange": exchanged,
        "offload": offload,
    }
    return max(by, key=by.__getitem__)
