"""Another back end of the same runtime on the same card: Vulkan beside ROCm or SYCL."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.remedies.option import Base, Option, Remedy, cards_hold, make_option
from advisor.scenario.resolve import backends_of


def propose(base: Base, *_: object) -> Iterator[Option]:
    """What else the framework computes with on cards of this maker, where all lies on them."""
    scenario = base.scenario
    for backend in backends_of(scenario.gpu, scenario.framework):
        other = replace(scenario, backend=backend)
        if backend != scenario.backend and cards_hold(base, other):
            yield make_option(base, REMEDY, {"backend": backend}, other)


REMEDY = Remedy("change-backend", frozenset({"backend"}), "rebuild", propose)
