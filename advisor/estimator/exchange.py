"""What several cards of one machine exchange when every layer is split over them.

Each layer sums its results over the cards twice, after attention and after its feed-forward part.
One sum of ``n`` tokens takes

    start + per byte x (n x hidden width x 2 bytes)

with both figures by number of cards and by what joins them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from advisor.estimator.speed_fields import Curve, Fields
from advisor.units import MIB

if TYPE_CHECKING:
    from advisor.knowledge.types import Gpu
    from advisor.models.shape import Shape

_SUMS: Final = 2
_BYTES: Final = 2
_LANES: Final = 16
FITTED_WIDTH: Final = 5120
"""Hidden width of the models whose exchange was fitted."""


class Link(Struct, frozen=True):
    """What joins the cards of a machine, as a line of ``multi_gpu.links`` tells it."""

    fabric: bool
    """Whether it is for cards whose entry states a link of their own."""
    architectures: frozenset[str]
    """Empty: of any."""
    pcie_gen: int
    """0: of any."""
    segments: frozenset[str]
    start_s: Curve
    byte_s: Curve | None
    """None: fitted, as ``Exchange.fitted_s``."""
    prompt_gain: Curve | None
    """Prompts over one card's, measured; None: arithmetic shared out, and the exchange."""

    def joins(self, gpu: Gpu) -> bool:
        """Whether cards of this kind are joined so."""
        return (
            (not self.fabric or gpu.nvlink_bytes_s is not None)
            and (not self.architectures or gpu.architecture in self.architectures)
            and (not self.pcie_gen or gpu.pcie_gen == self.pcie_gen)
            and (not self.segments or gpu.segment in self.segments)
        )


class Exchange(Struct, frozen=True):
    """The links in their order, and what was fitted for those without a measured time."""

    links: tuple[Link, ...]
    fitted_s: Mapping[int, float]
    """Seconds of a further token per layer of ``FITTED_WIDTH``, by cards."""

    def link(self, gpu: Gpu) -> Link:
        """Give the first line that fits; the last fits all."""
        return next(one for one in self.links if one.joins(gpu))

    def start_s(self, gpu: Gpu, shape: Shape, cards: int) -> float:
        """Time the exchange of one pass of all layers, without what it moves."""
        return self.link(gpu).start_s.at(cards) * _SUMS * shape.layers

    def token_s(self, gpu: Gpu, shape: Shape, cards: int) -> float:
        """Time what each token of a pass adds."""
        per_byte = self.link(gpu).byte_s
        if per_byte is None:
            known = [n for n in self.fitted_s if n <= cards]
            fitted = self.fitted_s[max(known)] if known else 0.0
            return fitted * shape.layers * shape.hidden / FITTED_WIDTH
        narrow = _LANES / gpu.pcie_lanes if self.link(gpu).pcie_gen and gpu.pcie_lanes else 1.0
        moved = _SUMS * shape.layers * shape.hidden * _BYTES
        return per_byte.at(cards) * moved * narrow


def read_links(cards: Fields) -> tuple[Link, ...]:
    """Read ``multi_gpu.links``.

    Raises:
        KnowledgeError: A figure is missing or of the wrong kind.
    """
    return tuple(
        Link(
            fabric=line.flag("fabric"),
            architectures=frozenset(line.texts("architectures")),
            pcie_gen=int(line.number("pcie_gen")) if "pcie_gen" in line.found else 0,
            segments=frozenset(line.texts("segments")),
            start_s=line.curve("start_us", 1e-6),
            byte_s=line.curve("us_per_mib", 1e-6 / MIB) if "us_per_mib" in line.found else None,
            prompt_gain=line.curve("prompt_gain") if "prompt_gain" in line.found else None,
        )
        for line in cards.lines("links")
    )
