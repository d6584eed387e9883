"""Every maker of cards and every back end is described once."""

from __future__ import annotations

from typing import get_args

from advisor.knowledge import load_knowledge
from advisor.knowledge.catalogue import BACKENDS, MAKERS
from advisor.knowledge.types import Vendor


def test_every_maker_is_described_and_driven() -> None:
    assert (*MAKERS,) == get_args(Vendor)
    assert {name for maker in MAKERS.values() for name in maker.backends} == {*BACKENDS}


def test_policy_sizes_what_a_named_library_takes() -> None:
    libraries = {backend.library for backend in BACKENDS.values()} - {""}
    policy = load_knowledge().policy
    assert all(f"{library}_communication_bytes" in policy for library in libraries)


def test_chips_of_one_memory_share_it_with_the_processor() -> None:
    for gpu in load_knowledge().gpus.values():
        if MAKERS[gpu.vendor].one_memory:
            assert gpu.unified_memory, gpu.name
            assert gpu.segment == "apple"
