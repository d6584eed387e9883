"""Makers of cards and the back ends that drive them: what holds for all cards of one, once."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


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
        by_capability=True,
        mostly_rented=True,
    ),
    "AMD": Maker(
        ("ROCm", "Vulkan"), frozenset({"amd", "radeon", "instinct"}), computes_in_formats=True
    ),
    "Intel": Maker(("SYCL", "Vulkan"), frozenset({"intel", "arc"})),
    "Apple": Maker(("Metal", "Vulkan"), frozenset({"apple"}), one_memory=True),
}
MOSTLY_RENTED = next(name for name, maker in MAKERS.items() if maker.mostly_rented)
BACKEND_OF_WORD = {word: backend.name for backend in BACKENDS.values() for word in backend.words}
