"""How much memory a card can have that shares it with its machine."""

from __future__ import annotations

from advisor.knowledge.types import Gpu, Knowledge
from advisor.units import GIB


def can_have(knowledge: Knowledge, gpu: Gpu, size: int) -> bool:
    """Whether a card that shares its memory is sold with this much, as far as that is known."""
    if gpu.vram_sizes:
        return size in gpu.vram_sizes
    least, most = open_range(knowledge)
    if gpu.vram_bytes is not None:
        return bool(gpu.unified_memory) and min(least, gpu.vram_bytes) <= size <= gpu.vram_bytes
    return least <= size <= most


def open_range(knowledge: Knowledge) -> tuple[int, int]:
    """Give the smallest and the largest memory that a known machine shares, in bytes."""
    machines = [gpu for gpu in knowledge.gpus.values() if gpu.unified_memory]
    shared = [size for gpu in machines for size in sizes_of(gpu)]
    return min(shared, default=GIB), max(shared, default=1024 * GIB)


def sizes_of(gpu: Gpu) -> tuple[int, ...]:
    """Give the sizes a card is sold with, in bytes; none where not even the largest is known."""
    return gpu.vram_sizes or ((gpu.vram_bytes,) if gpu.vram_bytes else ())
