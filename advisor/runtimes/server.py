"""What servers have in common, what a driver shows them, and each but vLLM."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from advisor.runtimes.base import FLOAT_BYTES, CacheShape, Cells, Compute, Range, Runtime
from advisor.scenario import sequences_of_a_rank, split_of
from advisor.scenario.capability import makes, repository_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.knowledge.types import Gpu, KvType
    from advisor.models.shape import Mla, Shape
    from advisor.runtimes.base import Placement
    from advisor.scenario import Scenario

SGLANG = "SGLang"
_PERCENT = 100
_BYTE = 8
_INDEX_BLOCK = 128
"""Elements of an index key, or of what it picks, that share a scale on servers."""


class Server(Runtime):
    """A runtime that fills its share of each card with cache and shards every tensor."""

    claims_memory = True
    reads_window = True
    by_layer = False
    scales_picked: ClassVar[bool] = False  # an FP8 latent of which an index picks tokens

    def images_at_once(self, scenario: Scenario, tokens: int, policy: Mapping[str, float]) -> int:
        """Count as many images of all prompts as one step has tokens for, one at least."""
        every = super().images_at_once(scenario, tokens, policy)
        return min(every, max(self.tokens_at_once(scenario, policy) // max(tokens, 1), 1))

    def communication(self, scenario: Scenario, policy: Mapping[str, float], found: Range) -> Range:
        """Give less where the cards have no fabric between them: fewer channels, no own buffers."""
        gpu = scenario.gpu
        fabric = gpu and gpu.nvlink_bytes_s and gpu.segment != "consumer"
        if scenario.backend != "CUDA" or gpu is None or fabric:
            return found
        return replace(found, central=round(policy["nccl_plain_bytes"]))

    def latent_bytes(self, mla: Mla, key: KvType) -> int:
        """Size a latent; one that an index picks, in FP8, as FlashMLA reads it (``fp8_ds_mla``).

        A float32 scale for every 128 elements, the key of position in 16 bits. Source:
        ``get_kv_cache_shape`` of vLLM's ``flashmla_sparse.py``, ``DSATokenToKVPool`` of SGLang.
        """
        if not (self.scales_picked and mla.index_layers and key.bits == _BYTE):
            return super().latent_bytes(mla, key)
        scales = mla.kv_lora_rank // _INDEX_BLOCK * FLOAT_BYTES
        return mla.kv_lora_rank + scales + 2 * mla.rope_dim

    def index_bytes(self, mla: Mla, _key: KvType) -> int:
        """Size a key of the index: one byte an element, with a float32 scale for every block.

        Source: ``DeepseekV32Indexer`` of vLLM, ``DSATokenToKVPool`` of SGLang.
        """
        held = mla.index_dim + mla.index_dim // _INDEX_BLOCK * FLOAT_BYTES
        return -(-held // mla.index_pool)


def shown_bytes(gpu: Gpu, capacity: int, policy: Mapping[str, float]) -> float:
    """Say how much of so large a card the driver shows to programs."""
    if gpu.unified_memory:
        return capacity
    kept = policy["driver_consumer_share" if gpu.segment == "consumer" else "driver_share"]
    return capacity * (1 - (kept + corrected_share(gpu, policy)) / _PERCENT)


def corrected_share(gpu: Gpu, policy: Mapping[str, float]) -> float:
    """Give the part of a card that error correction, or its maker's system, takes, per cent."""
    found = gpu.segment == "datacenter" and (gpu.vram_type or "").startswith("GDDR")
    own = policy.get(f"reserve_{gpu.vendor.casefold()}_share", 0.0)
    return own or policy["reserve_ecc_gddr_share"] * found


class TensorRt(Server):
    """TensorRT-LLM."""

    memory_model = "tensorrt-llm"
    shares_what_is_free = True
    chunk_tokens = 8192

    def uses_window(self, shape: Shape) -> bool:
        """Whether it keeps the window alone untold: of Gemma 4, whose layers differ in width.

        Source: ``_create_kv_cache_manager`` of its ``_torch/pyexecutor/_util.py``; for others
        ``resource_manager.py`` keeps the longest sequence in every layer.
        """
        return shape.model_type.startswith("gemma4")

    def told_windows(self, scenario: Scenario) -> str:
        """Write one period of ``max_attention_window``, which it repeats over the layers."""
        shape, whole = scenario.model.shape, scenario.context_tokens
        window = shape.window or whole
        if set(shape.layer_kinds) != set("FS") or window >= whole or self.uses_window(shape):
            return ""
        kinds = shape.layer_kinds
        period = next(n for n in range(2, len(kinds) + 1) if _repeats(kinds, n))
        return str([window if kind == "S" else whole for kind in kinds[:period]])


def _repeats(kinds: str, period: int) -> bool:
    return kinds[period:] == kinds[:-period]


class Tgi(Server):
    """TGI."""

    memory_model = "tgi"
    chunk_tokens = None


_SIZES = ("small", "medium", "large", "largest")
_EDGES = ("sglang_small_card_bytes", "sglang_medium_card_bytes", "sglang_large_prefill_card_bytes")
_CAPTURED = ((32, 4), (256, 16), (512, 32), (1024, 64), (4096, 256))
"""Prompt lengths it captures a graph for: up to the first every so many tokens, and so on."""
_CAPTURED_BEYOND = 512
_POOLED = frozenset(
    """
    beam diffusion_gemma embedding_gemma2 gemma4 gemma4_text gemma4_unified gpt_oss granite_swa
    granitemoe_swa iquest_q1 laguna llama4 llama4_text mellum mimo_v2 mimo_v2_flash muse_glimmer
    step3p5 step3p7
    """.split()  # noqa: SIM905  a table of words
)
"""Architectures whose sliding layers have a pool of their own: ``is_hybrid_swa_model`` of 0.5.23
(``configs/model_config.py``, line 2651); others keep every token in every layer."""
_POOL_TENTHS = 8
"""How much of the tokens of the other layers it holds, for later prompts to share
(``--swa-full-tokens-ratio``, ``HybridSWAPoolConfigurator``)."""
_STATES, _TRACKED = 3, 2
"""Recurrent states of a request: those that prompts may share, and what a step writes ahead."""
_TRACKS = frozenset(
    """
    bailing_hybrid bailing_moe_v3 falcon_h1 glm5_next granitemoehybrid inkling intern_s2_preview
    kimi_k3 kimi_linear minicpmv4_6 minicpmv4_7 nemotron_h nemotron_h_moe nemotron_h_omni
    nemotron_h_puzzle qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_next qwen4_exp
    """.split()  # noqa: SIM905  a table of words
)
"""Architectures that it schedules ahead with states (``_MAMBA_EXTRA_BUFFER_ARCHS``, line 405)."""


class Sglang(Server):
    """SGLang: it works out from card, prefill chunk and batch what stays out of its static share.

    Source: SGLang 0.5.23 (``arg_groups/memory_hook.py``, ``arg_groups/cuda_graph_hook.py``,
    ``KVCacheConfigurator._profile_available_bytes``); few printed logs were compared.
    """

    memory_model = "sglang"
    sees_card = True
    scales_picked = True
    overheads = ()
    captures_graphs = True
    prompt_chunk = 2048  # of smaller cards; ``event_loop_pp`` of managers/scheduler_pp_mixin.py

    def uses_window(self, shape: Shape) -> bool:
        """Whether sliding layers have a pool of their own."""
        return shape.model_type in _POOLED

    def cells(self, scenario: Scenario, window: int, policy: Mapping[str, float]) -> Cells:
        """Count a share of the tokens where layers slide; of states their slots and a spare one."""
        shape = scenario.model.shape
        found = super().cells(scenario, window, policy)
        slide = found.full * _POOL_TENTHS // 10 if self.uses_window(shape) else found.slide
        return replace(found, slide=slide, sequences=_states(shape) * scenario.batch + 1)

    def state_slots(self, scenario: Scenario) -> int | None:
        """Count those of a copy, or of all cards where attention alone is divided.

        Untold, 0.9 of what it gives to tokens goes to states (``--mamba-full-memory-ratio``).
        Source: ``_calculate_mamba_ratio`` and ``_handle_max_mamba_cache`` of 0.5.23
        (``mem_cache/kv_cache_configurator.py``, lines 3062 and 3303), ``arg_groups/overrides.py``.
        """
        copies = split_of(scenario) == "data"
        held = sequences_of_a_rank(scenario) if copies else scenario.batch
        return _states(scenario.model.shape) * held or None

    def lays_sixteen(self, scenario: Scenario) -> bool:
        """Say so of FP8: its loader packs no module before the whole checkpoint is read.

        Source: ``DefaultModelLoader.load_model`` of its ``model_loader/loader.py`` (0.5.23, line
        1010), ``Fp8LinearMethod.create_fp8_weight_``. vLLM's loader packs module by module.
        """
        framework, precision, model = scenario.framework, scenario.precision, scenario.model
        made = precision.family == "fp8" and makes(framework, precision, model)
        return made and repository_of(model, precision) is None

    def activations(
        self, scenario: Scenario, _cache: CacheShape, _cells: Cells, policy: Mapping[str, float]
    ) -> Range:
        """Give what it keeps out of its static share: as told, else by its own rule.

        Told to keep less than by its rule, it may run out at the first long prompt or picture.
        """
        own = self._reserve(scenario, policy)
        capacity = (scenario.gpu.vram_bytes or 0) if scenario.gpu else 0
        if scenario.gpu_memory_utilization and scenario.gpu and capacity:
            shown = shown_bytes(scenario.gpu, capacity, policy)
            told = round((1 - scenario.gpu_memory_utilization) * shown)
            return Range(told, told, max(told, own.central))
        return own

    def compute_beside(
        self,
        scenario: Scenario,
        cache: CacheShape,
        cells: Cells,
        placement: Placement,
        policy: Mapping[str, float],
    ) -> Compute:
        """Size the graphs of a second model: what stays out of the static share does so once."""
        whole = self.compute(scenario, cache, cells, placement, policy)
        graphs = round(self._graphs(scenario, self.tokens_at_once(scenario, policy), policy))
        return Compute(Range(graphs, 0, graphs), approximate=whole.approximate)

    def _reserve(self, scenario: Scenario, policy: Mapping[str, float]) -> Range:
        capacity = (scenario.gpu.vram_bytes or 0) if scenario.gpu else 0
        chunk = self.tokens_at_once(scenario, policy)
        ranks = 1 if split_of(scenario) == "data" else scenario.gpus
        reserve = (
            policy["sglang_reserve_base_bytes"]
            + policy["sglang_reserve_per_prefill_token_bytes"]
            * max(chunk, policy["sglang_prefill_min_tokens"])
            + policy["sglang_reserve_per_rank_bytes"] * ranks
            + self._graphs(scenario, chunk, policy)
        )
        low = reserve
        if capacity > policy["sglang_large_card_bytes"]:
            reserve = max(reserve, policy["sglang_large_card_reserve_bytes"])
        if scenario.model.vision_parameters:
            reserve += (capacity - reserve) * policy["sglang_vision_share"] / 100
        return Range(round(reserve), round(low) // 2, round(reserve))

    def tokens_at_once(self, scenario: Scenario, policy: Mapping[str, float]) -> int:
        """Count the tokens of a prefill chunk: as told, else they follow from the card."""
        if scenario.max_num_batched_tokens:
            return scenario.max_num_batched_tokens
        capacity = (scenario.gpu.vram_bytes or 0) if scenario.gpu else 0
        size = _SIZES[sum(capacity >= policy[edge] for edge in _EDGES)]
        return round(policy[f"sglang_prefill_tokens_{size}"])

    def _graphs(self, scenario: Scenario, chunk: int, policy: Mapping[str, float]) -> float:
        """Size its CUDA graphs of decode steps and of prompts, none in an eager start."""
        if scenario.eager:
            return 0.0
        sequences = min(scenario.batch, policy["sglang_decode_sequences"])
        decode = policy["sglang_reserve_per_decode_sequence_bytes"] * sequences
        if scenario.model.shape.mla:
            return decode + policy["sglang_latent_graph_bytes"]
        return decode + policy["sglang_prompt_graph_bytes"] * _captured(chunk)

    def capacity_steps(self, policy: Mapping[str, float]) -> tuple[int, ...]:
        """Give the sizes from which it computes more at once or reserves more."""
        edges = {round(policy[edge]) for edge in _EDGES}
        return tuple(sorted(edges | {round(policy["sglang_large_card_bytes"]) + 1}))

    def first_long_rank(self, ranks: int, rest: int) -> int:
        """Give the longer stages to the last ranks."""
        return ranks - rest


def _states(shape: Shape) -> int:
    """Count the recurrent states of a request, where prompts are shared."""
    return _STATES + _TRACKED * (shape.model_type in _TRACKS) if shape.recurrent else 0


def _captured(tokens: int) -> int:
    """Count the prompt lengths up to ``tokens`` for which it captures a graph."""
    found = start = 0
    for end, step in _CAPTURED:
        found += max(min(tokens, end) - start, 0) // step
        start = end
    return found + max(tokens - start, 0) // _CAPTURED_BEYOND
