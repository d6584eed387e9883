"""What a runtime is: a class for every family, behind one protocol, found by its memory model.

Servers and llama.cpp have modules; libraries, which keep a cache as it comes, and whisper.cpp,
whose cache is always the same, stand here.
Source: transformers 5.23.0 (``cache_utils.py``), checked row by row (tests/data).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from advisor.errors import KnowledgeError, did_you_mean
from advisor.runtimes.base import (
    FLOAT_BYTES,
    CacheShape,
    CardShare,
    Cells,
    Compute,
    Placement,
    Range,
    Runtime,
    Weights,
    up,
)
from advisor.runtimes.llamacpp import LlamaCpp
from advisor.runtimes.server import Sglang, TensorRt, Tgi
from advisor.runtimes.vllm import Vllm

if TYPE_CHECKING:
    from advisor.knowledge.types import Framework, KvType
    from advisor.models.shape import Mla, Shape
    from advisor.scenario import Scenario

_SLIDING_EXTRA_BYTES = 8
_HEAD_BYTES = 2
_WHISPER_TOKENS = 448
_FLOATS_OF_SOUND = 18_000
_MEL_BYTES = 128 * 30_000  # of large-v3; older models have 80 bands
_TRIES_AGAIN = 3
"""Caches more where whisper-server tries again at a higher temperature: one more, two to spare."""


class Transformers(Runtime):
    """Hugging Face transformers."""

    memory_model = "transformers"
    windowed = True
    cache_checked = True
    chunk_tokens = None

    def cached_heads(self, shape: Shape, layer: int) -> int:
        """Count every head of a Falcon with the new decoder: it repeats keys and values."""
        if shape.model_type == "falcon" and shape.config.get("new_decoder_architecture"):
            return shape.heads
        return super().cached_heads(shape, layer)

    def cells(self, scenario: Scenario, window: int, _policy: Mapping[str, float]) -> Cells:
        """Count the tokens; a window drops the token that is about to be replaced."""
        tokens, sequences = scenario.context_tokens, scenario.batch
        kept = min(tokens, max(window - 1, 0))
        full, slide = sequences * tokens, sequences * kept
        return Cells(full, slide, _SLIDING_EXTRA_BYTES, sequences, tokens, kept)

    def activations(
        self, scenario: Scenario, cache: CacheShape, cells: Cells, policy: Mapping[str, float]
    ) -> Range:
        """Add the whole prompt's keys and values of sliding layers, cut only afterwards.

        At most an output matrix, too, that a file holds beside the embedding it is tied to.
        """
        found = super().activations(scenario, cache, cells, policy)
        found += Range(0, 0, _head_again(scenario))
        if not cache.window:
            return found
        beyond = scenario.batch * scenario.context_tokens - cells.slide
        extra = max(beyond, 0) * cache.slide_sums[-1]
        return found + Range(extra, extra, extra)

    def shares(self, weights: Weights, free: Sequence[int]) -> tuple[int, ...]:
        """Give every card an even share and what does not fit to the last."""
        whole = weights.embedding + weights.layer_sums[-1] + weights.output
        even = -(-whole // len(free))
        first = [max(min(even, each), 1) for each in free[:-1]]
        return (*first, max(whole - sum(first), 1))


def _head_again(scenario: Scenario) -> int:
    shape = scenario.model.shape
    again = shape.tied and scenario.precision.head_again
    return _HEAD_BYTES * shape.vocab * shape.hidden if again else 0


_EXLLAMA_RINGS = frozenset(
    {"afmoe", "gpt_oss", "laguna", "mimo_v2", "muse_glimmer", "spark2_5", "step3p5", "step3p7"}
)


class ExLlama(Runtime):
    """ExLlamaV2 and ExLlamaV3."""

    memory_model = "exllama"
    page_tokens = 256
    plain_bits = 16

    def uses_window(self, shape: Shape) -> bool:
        """Whether ExLlamaV3 builds its sliding layers as ``SlidingAttention``.

        Source: ``architecture/`` of ExLlamaV3 1.6.5; others keep all tokens, and its decode kernel
        (``triton_paged.py``) reads them all.
        """
        return shape.model_type in _EXLLAMA_RINGS or shape.model_type.startswith("gemma4")

    def cells(self, scenario: Scenario, window: int, policy: Mapping[str, float]) -> Cells:
        """Count a ring of whole pages for each sequence: the window and two pages more."""
        found = super().cells(scenario, window, policy)
        ring = up(window + 2 * self.page_tokens, self.page_tokens) if window else 0
        return replace(found, slide=scenario.batch * ring, stream_slide=ring)

    def index_bytes(self, mla: Mla, _key: KvType) -> int:
        """Size a key of the index in 16 bits; where keys are merged, what weighs it and its share.

        Source: ``cache/mla.py`` of ExLlamaV3 1.6.5.
        """
        kept = 2 * mla.index_dim + mla.index_dim // mla.index_pool if mla.index_pool > 1 else 0
        return 2 * (kept or mla.index_dim)


class Mlx(Runtime):
    """MLX-LM."""

    memory_model = "mlx"
    page_tokens = 256
    windowed = True
    expands_latents = frozenset({"deepseek_v2", "minicpm3", "youtu_llm"})
    overheads = ()

    def index_bytes(self, mla: Mla, key: KvType) -> int:
        """Size a key of the index, with an empty value beside it (its ``deepseek_v32.py``)."""
        return 2 * super().index_bytes(mla, key)


class WhisperCpp(Runtime):
    """whisper.cpp: half a minute of sound, and the tokens of its decoder.

    Source: ``whisper_init_state`` in ``src/whisper.cpp`` of 1.9.3. Its own reports are in
    ``tests/data/whispercpp_memory.csv``; four buffers lie side by side.
    """

    memory_model = "whisper.cpp"
    page_tokens = 256
    cache_checked = True
    gguf_alone = True
    overheads = ()
    most_sequences = 1

    def cells(self, scenario: Scenario, window: int, policy: Mapping[str, float]) -> Cells:
        """Count the tokens of the model, whatever is asked for."""
        answer = replace(scenario, context_tokens=_tokens_of_answer(scenario))
        return super().cells(answer, window, policy)

    def compute(
        self,
        scenario: Scenario,
        cache: CacheShape,
        cells: Cells,
        _placement: Placement,
        _policy: Mapping[str, float],
    ) -> Compute:
        """Size the buffers, the padded keys of the encoder, and the cache of a second try."""
        shape = scenario.model.shape
        wide, tokens = shape.hidden, _tokens_of_answer(scenario)
        sound = up(shape.encoder_positions or 0, self.page_tokens)
        held = _FLOATS_OF_SOUND * wide * FLOAT_BYTES + 2 * sound * wide * _HEAD_BYTES
        held += _MEL_BYTES + FLOAT_BYTES * tokens * (shape.vocab + 2 * wide)
        again = _TRIES_AGAIN * cells.full * cache.full_sums[-1]
        return Compute(Range(held + again, held, held + again))

    def place_rest(
        self,
        _scenario: Scenario,
        cards: tuple[CardShare, ...],
        weights: Weights,
        _start: int,
        _holder: int | None,
    ) -> int:
        """Lay the one table that is read and written with on the card."""
        cards[0].weights += weights.output
        return 0


def _tokens_of_answer(scenario: Scenario) -> int:
    return scenario.model.trained_context_tokens or _WHISPER_TOKENS


_RUNTIMES: dict[str, Runtime] = {}


def register(runtime: Runtime) -> None:
    """Make a runtime known under its memory model."""
    _RUNTIMES[runtime.memory_model] = runtime


for _runtime in (LlamaCpp, Transformers, Vllm, Sglang, Tgi, TensorRt, ExLlama, Mlx, WhisperCpp):
    register(_runtime())


def runtime_of(framework: Framework) -> Runtime:
    """Give the runtime that sizes a framework.

    Raises:
        KnowledgeError: No runtime has its memory model.
    """
    kind = framework.memory_model
    found = _RUNTIMES.get(kind)
    if found is None:
        raise KnowledgeError(
            f"framework '{framework.name}': '{kind}' is not a valid 'memory_model'.",
            hint=did_you_mean(kind, _RUNTIMES) or f"It must be one of: {', '.join(_RUNTIMES)}.",
        )
    return found


def is_sized(framework: Framework) -> bool:
    """Whether a runtime sizes the framework; some are known by their speed alone."""
    return framework.memory_model in _RUNTIMES


def runtime_named(memory_model: str) -> Runtime:
    """Give the runtime of a memory model that is known to exist."""
    return _RUNTIMES[memory_model]


def memory_models() -> Sequence[str]:
    """List the memory models there are."""
    return tuple(_RUNTIMES)
