"""Request (what the user typed) -> Scenario (resolved and typed)."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from advisor.knowledge.types import Format, Framework, Gpu, KvType, Split

if TYPE_CHECKING:
    from advisor.models.model import Model

Prefer = Literal["balanced", "quality", "speed", "cost"]
Use = Literal["interactive", "batch", "none"]
"""How fast it has to be: read along, left to run, or of no matter."""


class Scenario(Struct, frozen=True):
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
    cpu_cores: int | None
    prefer: Prefer
    draft_model: Model | None = None
    """A small model that proposes tokens (speculative decoding)."""
    mtp: int = 0
    """Tokens that the model's own head proposes at once (multi-token prediction); 0: none."""
    use: Use = "interactive"
    cards: tuple[Gpu, ...] = ()
    """Every card in order where they are unequal; then ``gpu`` is the least of them in every
    figure. Empty: ``gpus`` equal cards."""
    split: Split | None = None
    """As stated; ``support.split_of`` says how the cards then share the model."""


_NAMES = Scenario.__struct_fields__


_RECORDS = ("gpu", "model", "precision", "kv_cache_k", "kv_cache_v", "framework", "draft_model")
_SPEED_ALONE = ("depth_tokens", "ram_bytes", "ram_bandwidth_bytes_s", "cpu_cores", "prefer", "use")
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


class Request(Struct, frozen=True):
    """What the user typed; None: not stated, the documented default applies."""

    gpu: str | None = None
    model: str | None = None
    precision: str | None = None
    context: int | None = None
    batch: int | None = None
    kv_cache: str | None = None
    kv_cache_k: str | None = None
    kv_cache_v: str | None = None
    framework: str | None = None
    backend: str | None = None
    gpus: int | None = None
    flash_attention: bool | None = None
    ubatch: int | None = None
    kv_unified: bool | None = None
    swa_full: bool | None = None
    gpu_layers: int | str | None = None
    cpu_experts: int | str | None = None
    logits_rows: int | None = None
    depth: int | None = None
    ram_gib: float | None = None
    ram_bandwidth_gb_s: float | None = None
    cpu_cores: int | None = None
    draft_model: str | None = None
    mtp: int | None = None
    config: str | None = None
    prefer: Prefer | None = None
    use: Use | None = None
    split: Split | None = None

    def stated(self) -> Mapping[str, object]:
        """The keys the user gave, in field order."""
        pairs = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: value for name, value in pairs if value is not None}
