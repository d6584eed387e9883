"""Scenario: a request resolved and typed."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from advisor.knowledge.types import Format, Framework, Gpu, KvType
from advisor.scenario.settings import Prefer, Stated, Use

if TYPE_CHECKING:
    from advisor.models.stored_tensors import Model


class Scenario(Stated, frozen=True):
    """One fully specified situation; everything the estimator needs and nothing else.

    ``context_tokens`` is per sequence: memory holds ``batch`` sequences of it.
    """

    gpu: Gpu | None
    gpus: int
    model: Model
    precision: Format
    context_tokens: int
    batch: int
    kv_cache_k: KvType
    kv_cache_v: KvType
    framework: Framework
    backend: str | None
    """CUDA, ROCm, Vulkan, Metal, SYCL; None without a card."""
    flash_attention: bool
    ubatch: int
    kv_unified: bool
    swa_full: bool
    gpu_layers: int | None
    """Layers on the GPU, the output matrix counted as one; None: all."""
    cpu_experts: int
    """Layers whose experts stay in system RAM."""
    logits_rows: int
    depth_tokens: int
    ram_bytes: int | None
    ram_bandwidth_bytes_s: float | None
    prefer: Prefer
    draft_model: Model | None = None
    """A small model that proposes tokens (speculative decoding)."""
    mtp: int = 0
    """Tokens that the model's own head proposes at once (multi-token prediction); 0: none."""
    use: Use = "interactive"
    cards: tuple[Gpu, ...] = ()
    """Every card in order where they are unequal; then ``gpu`` is the least of them in every
    figure. Empty: ``gpus`` equal cards."""


_NAMES = Scenario.__struct_fields__


_RECORDS = ("gpu", "model", "precision", "kv_cache_k", "kv_cache_v", "framework", "draft_model")
_SPEED_ALONE = ("depth_tokens", "ram_bytes", "ram_bandwidth_bytes_s", "prefer", "use")
_records = attrgetter(*_RECORDS)
_LISTS = ("cards",)
_figures = attrgetter(*[name for name in _NAMES if name not in {*_RECORDS, *_LISTS}])
_any_context = attrgetter(
    *[n for n in _NAMES if n not in {*_RECORDS, *_LISTS, "context_tokens", "prefer", "use"}]
)
_sizes = attrgetter(*[n for n in _NAMES if n not in {*_RECORDS, *_LISTS, *_SPEED_ALONE}])

Key = tuple[object, ...]


def offloads(scenario: Scenario) -> bool:
    """Whether part of the model, layers or experts, is to stay in system RAM."""
    return scenario.gpu_layers is not None or scenario.cpu_experts > 0


def is_split(scenario: Scenario) -> bool:
    """Say whether the request itself leaves layers or experts in system RAM."""
    layers = scenario.gpu_layers
    return scenario.cpu_experts > 0 or (
        layers is not None and layers <= scenario.model.shape.layers
    )


def whole_key(scenario: Scenario) -> tuple[Key, Key]:
    """Give a key that only equal scenarios share, and the records that must be kept with it.

    Records count by identity, which holds only while they live.
    """
    records: Key = (*_records(scenario), *scenario.cards)
    return (*map(id, records), *_figures(scenario)), records


def any_context_key(scenario: Scenario) -> tuple[Key, Key]:
    """Give the like for what holds whatever the context and whatever is preferred."""
    records: Key = (*_records(scenario), *scenario.cards)
    return (*map(id, records), *_any_context(scenario)), records


def size_key(scenario: Scenario, gpu: Gpu | None) -> tuple[Key, Key]:
    """Give the like for what a scenario asks for, in which speed and most of the card are left out.

    Args:
        scenario: The situation.
        gpu: Its card, where what it asks for follows from the card as well.
    """
    records: Key = (gpu, *_records(scenario)[1:], *scenario.cards)
    return (*map(id, records), *_sizes(scenario)), records
