"""Makers of cards with their back ends; the catalogue by a few figures, without its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from msgspec import Struct

from advisor.knowledge.types import Gpu, Knowledge, ModelRecord
from advisor.units import GIB


class CardRow(NamedTuple):
    """A card one can buy or rent, whose memory and release are known."""

    name: str
    vendor: str
    segment: str
    vram_bytes: int
    bandwidth_bytes_s: float | None
    released: str | None
    """Unknown only for machines that share their memory, which are all recent."""
    launch_price_usd: float | None
    unified_memory: bool | None


class ModelRow(NamedTuple):
    """A model whose size and release are known."""

    parameters: int
    name: str
    family: str
    modality: str
    released: str


def model_row(model: ModelRecord) -> ModelRow | None:
    """Pick the row of a model; None where size or release is unknown."""
    if not (model.parameters and model.released):
        return None
    return ModelRow(*(getattr(model, name) for name in ModelRow._fields))


def card_row(card: Gpu) -> CardRow | None:
    """Pick the row of a card; None where memory or release is unknown."""
    dated = card.released or card.unified_memory
    if not card.vram_bytes or not dated or card.not_for_sale:
        return None
    return CardRow(*(getattr(card, name) for name in CardRow._fields))


def family_key(model: ModelRecord) -> str:
    """Name the group of models that are siblings: one family, one kind of input."""
    return f"{model.family}|{model.modality}"


def kin_key(model: ModelRecord) -> str:
    """Name the models of one publisher that share a vocabulary size; empty where unknown."""
    inner = model.config.get("text_config")
    text = inner if isinstance(inner, Mapping) else model.config
    vocab = text.get("vocab_size") or model.config.get("vocab_size")
    publisher = (model.hf_id or "").partition("/")[0]
    return f"{publisher}|{vocab}" if publisher and vocab else ""


def groups(cards: Iterable[Gpu], models: Iterable[ModelRecord]) -> dict[str, object]:
    """Give the rows of the cards, and the models by family and by kin, to be stored."""
    families: dict[str, list[str]] = {}
    relatives: dict[str, list[str]] = {}
    sizes: list[ModelRow] = []
    for model in models:
        families.setdefault(family_key(model), []).append(model.name)
        relatives.setdefault(kin_key(model), []).append(model.name)
        if row := model_row(model):
            sizes.append(row)
    rows = [found for card in cards if (found := card_row(card))]
    return {"cards": rows, "families": families, "kin": relatives, "sized": sizes}


def kin(knowledge: Knowledge, name: str, hf_id: str | None, vocab: int) -> Sequence[str]:
    """List the models of the same publisher and vocabulary, the model itself among them."""
    publisher = (hf_id or "").partition("/")[0]
    known = knowledge.models.get(name)
    key = kin_key(known) if known else f"{publisher}|{vocab}" if publisher else ""
    stored = knowledge.index.get("kin")
    if not key:
        return ()
    if stored is None:
        return [m.name for m in knowledge.models.values() if kin_key(m) == key]
    return cast("Mapping[str, Sequence[str]]", stored).get(key, ())


def cards(knowledge: Knowledge) -> Sequence[CardRow]:
    """List the cards with known memory and release, in file order."""
    stored = knowledge.index.get("cards")
    if stored is None:
        rows = (card_row(card) for card in knowledge.gpus.values())
        return [row for row in rows if row is not None]
    return [CardRow(*row) for row in cast("Sequence[Sequence[object]]", stored)]  # type: ignore[arg-type]  # written by card_row


def sized(knowledge: Knowledge) -> Sequence[ModelRow]:
    """List the models of known size and release, in file order."""
    stored = knowledge.index.get("sized")
    if stored is None:
        rows = (model_row(model) for model in knowledge.models.values())
        return [row for row in rows if row is not None]
    return [ModelRow(*row) for row in cast("Sequence[Sequence[object]]", stored)]  # type: ignore[arg-type]  # written by model_row


def siblings(knowledge: Knowledge, family: str, modality: str) -> Sequence[str]:
    """List the models of a family and kind, in file order."""
    key = f"{family}|{modality}"
    stored = knowledge.index.get("families")
    if stored is None:
        return [m.name for m in knowledge.models.values() if family_key(m) == key]
    return cast("Mapping[str, Sequence[str]]", stored).get(key, ())


def can_have(knowledge: Knowledge, gpu: Gpu, size: int) -> bool:
    """Whether a card that shares its memory is sold with this much, as far as that is known."""
    if gpu.vram_sizes:
        return size in gpu.vram_sizes
    if gpu.vram_bytes is not None and not gpu.unified_memory:
        return False
    least, most = open_range(knowledge)
    if gpu.vram_bytes is not None:
        return min(least, gpu.vram_bytes) <= size <= gpu.vram_bytes
    return least <= size <= most


def open_range(knowledge: Knowledge) -> tuple[int, int]:
    """Give the smallest and the largest memory that a known machine shares, in bytes."""
    machines = [gpu for gpu in knowledge.gpus.values() if gpu.unified_memory]
    shared = [size for gpu in machines for size in sizes_of(gpu)]
    return min(shared, default=GIB), max(shared, default=1024 * GIB)


def sizes_of(gpu: Gpu) -> tuple[int, ...]:
    """Give the sizes a card is sold with, in bytes; none where not even the largest is known."""
    return gpu.vram_sizes or ((gpu.vram_bytes,) if gpu.vram_bytes else ())


class Backend(Struct, frozen=True):
    """What a runtime is built for."""

    name: str
    words: tuple[str, ...]
    """How benchmarks write it, in lower case; another ending may follow."""
    library: str = ""
    """Through which servers pass results between cards, where its buffers are published."""
    holds_rows: bool = False
    """It has a buffer for rows of a matrix (ggml's ``split_buffer_type``)."""
    sized: bool = False
    """What its driver holds follows from the card (policy ``cuda_...``)."""


class Maker(Struct, frozen=True):
    """A maker of cards."""

    backends: tuple[str, ...]
    """The usual one first."""
    words: frozenset[str]
    """Brands by which its cards go, in lower case."""
    pci: int
    """Its number on the bus."""
    by_capability: bool = False
    """Which formats a card computes in follows from its compute capability."""
    computes_in_formats: bool = False
    """Its cards compute in every format that they run, where nothing else is known."""
    one_memory: bool = False
    """All its chips share their memory with the processor and count their cores."""
    mostly_rented: bool = False
    """Most clouds rent its cards."""


BACKENDS: Mapping[str, Backend] = {
    backend.name: backend
    for backend in (
        Backend("CUDA", ("cuda",), "nccl", holds_rows=True, sized=True),
        Backend("ROCm", ("rocm", "hip", "rocwmma"), "rccl", holds_rows=True),
        Backend("Vulkan", ("vulkan",)),
        Backend("Metal", ("metal", "mtl")),
        Backend("SYCL", ("sycl",), holds_rows=True),
    )
}
MAKERS: Mapping[str, Maker] = {
    "NVIDIA": Maker(
        ("CUDA", "Vulkan"),
        frozenset({"nvidia", "geforce", "tesla"}),
        0x10DE,
        by_capability=True,
        mostly_rented=True,
    ),
    "AMD": Maker(
        ("ROCm", "Vulkan"),
        frozenset({"amd", "radeon", "instinct"}),
        0x1002,
        computes_in_formats=True,
    ),
    "Intel": Maker(("SYCL", "Vulkan"), frozenset({"intel", "arc"}), 0x8086),
    "Apple": Maker(("Metal", "Vulkan"), frozenset({"apple"}), 0x106B, one_memory=True),
}
BY_PCI: Mapping[int, str] = {maker.pci: name for name, maker in MAKERS.items()}
"""Number on the bus -> maker."""
MOSTLY_RENTED = next(name for name, maker in MAKERS.items() if maker.mostly_rented)
BACKEND_OF_WORD = {word: backend.name for backend in BACKENDS.values() for word in backend.words}
