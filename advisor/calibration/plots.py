"""Predicted against measured as SVG, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10

from advisor.calibration.held_out import Held

_SIZE, _LEFT, _TOP, _AXIS = 360, 56, 34, 300
_BAND = 0.3
_COLOURS = {
    "CUDA": "#2f7d32", "ROCm": "#b3261e", "Vulkan": "#7b3fa0", "Metal": "#455a64",
    "SYCL": "#0b63a5",
}  # fmt: skip


def scatter_svg(title: str, held: Sequence[Held]) -> str:
    """Draw one dot per run, coloured by backend, over a band of 30 % either way."""
    speeds = [speed for one in held for speed in (one.run.tok_s, one.predicted)]
    low, high = floor(log10(min(speeds))), ceil(log10(max(speeds)))
    return "\n".join((*_frame(title, low, high), *_dots(held, low, high), "</svg>")) + "\n"


def _place(speed: float, low: int, high: int) -> float:
    return _AXIS * (log10(speed) - low) / (high - low)


def _frame(title: str, low: int, high: int) -> Iterator[str]:
    height = _TOP + _AXIS + 44
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {height}" width="{_SIZE}"'
        f' height="{height}" font-family="sans-serif" font-size="11" role="img">'
    )
    yield f"<title>{title}</title>"
    yield f'<rect width="{_SIZE}" height="{height}" fill="#ffffff"/>'
    yield f'<text x="{_LEFT}" y="20" font-size="13" font-weight="bold">{title}</text>'
    upper = _AXIS * log10(1 + _BAND) / (high - low)
    lower = -_AXIS * log10(1 - _BAND) / (high - low)
    x, y = _LEFT, _TOP + _AXIS
    corners = (
        f"{x},{y - upper:.1f} {x + _AXIS - upper:.1f},{_TOP} {x + _AXIS},{_TOP}"
        f" {x + _AXIS},{_TOP + lower:.1f} {x + lower:.1f},{y} {x},{y}"
    )
    yield f'<polygon points="{corners}" fill="#e8eef4"/>'
    yield f'<line x1="{x}" y1="{y}" x2="{x + _AXIS}" y2="{_TOP}" stroke="#8899aa"/>'
    yield (
        f'<rect x="{x}" y="{_TOP}" width="{_AXIS}" height="{_AXIS}" fill="none" stroke="#444444"/>'
    )
    for power in range(low, high + 1):
        at = _AXIS * (power - low) / (high - low)
        label = f"{10.0**power:g}"
        yield f'<text x="{x + at:.1f}" y="{y + 15}" text-anchor="middle">{label}</text>'
        yield f'<text x="{x - 6}" y="{y - at + 4:.1f}" text-anchor="end">{label}</text>'
    yield f'<text x="{x + _AXIS / 2}" y="{y + 32}" text-anchor="middle">measured, tokens/s</text>'
    middle = _TOP + _AXIS / 2
    yield (
        f'<text x="14" y="{middle}" text-anchor="middle"'
        f' transform="rotate(-90 14 {middle})">predicted, tokens/s</text>'
    )


def _dots(held: Sequence[Held], low: int, high: int) -> Iterator[str]:
    shown = sorted(held, key=lambda one: (one.run.card[1], one.run.tok_s, one.predicted))
    for one in shown:
        x = _LEFT + _place(one.run.tok_s, low, high)
        y = _TOP + _AXIS - _place(one.predicted, low, high)
        colour = _COLOURS.get(one.run.card[1], "#444444")
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}" fill-opacity="0.6"/>'
    for place, backend in enumerate(sorted({one.run.card[1] for one in held})):
        y = _TOP + 14 + 14 * place
        yield f'<circle cx="{_LEFT + 10}" cy="{y - 4}" r="3" fill="{_COLOURS.get(backend)}"/>'
        yield f'<text x="{_LEFT + 18}" y="{y}">{backend}</text>'
