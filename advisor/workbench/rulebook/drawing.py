"""Pictures as SVG: boxes in columns, ordered so that few arrows cross.

The layout is the usual one for layered graphs (Sugiyama, Tagawa and Toda 1981) without its first
step, since callers give the columns: every column is sorted by the mean place of each box's
neighbours, from left to right and back, a fixed number of times. Equal means keep their order, so
that the same rules give the same bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

from advisor.workbench.rulebook.blocks import Node, Picture

_LETTER, _HEIGHT, _STEP, _MARGIN, _PAD = 6.7, 20, 26, 12, 9
_GAP, _WIDEST_GAP = 80, 240
_SWEEPS = 12
STYLE = """
.graph { --box: #f6f8fa; --line: #57606a; --ink: #1b1f24; --arrow: #8c959f; --mark: #0969da;
  --conclude: #ddf4ff; --recommend: #dafbe1; --veto: #ffebe9; --note: #fff8c5;
  --concluded: #eaeef2; }
@media (prefers-color-scheme: dark) { .graph { --box: #161b22; --line: #8b949e; --ink: #e6edf3;
  --arrow: #6e7681; --mark: #58a6ff; --conclude: #0c2d4a; --recommend: #12301c; --veto: #4a1a17;
  --note: #3b3213; --concluded: #30363d; } }
.graph text { font: 11px ui-monospace, Menlo, Consolas, monospace; fill: var(--ink); }
.graph rect { fill: var(--box); stroke: var(--line); stroke-width: 1; }
.graph .conclude rect { fill: var(--conclude); } .graph .recommend rect { fill: var(--recommend); }
.graph .veto rect { fill: var(--veto); } .graph .note rect { fill: var(--note); }
.graph .concluded rect { fill: var(--concluded); } .graph .more rect { stroke-dasharray: 3 3; }
.graph .centre rect { stroke: var(--mark); stroke-width: 2.5; }
.graph path { fill: none; stroke: var(--arrow); stroke-width: 1; stroke-opacity: .55; }
.graph .counted { stroke-dasharray: 4 3; }
.graph g:hover > path { stroke: var(--mark); stroke-opacity: 1; stroke-width: 1.6; }
.graph a:hover rect { stroke: var(--mark); stroke-width: 2; }
"""
Address = Callable[[str, str], str]
"""Gives the address of a page and anchor, as seen from the picture."""


def svg(picture: Picture, address: Address | None = None, *, style: bool = True) -> str:
    """Draw a picture.

    Args:
        picture: What to draw.
        address: Where boxes lead to; without it they lead nowhere.
        style: Whether the picture brings its colours; a page that has them does without.
    """
    columns = _ordered(picture)
    boxes, width, height = _placed(columns)
    name = escape(picture.name, quote=True)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc">'
    )
    shown = [
        opening,
        f'<title id="{name}-title">{escape(picture.title)}</title>',
        f'<desc id="{name}-desc">{escape(picture.description)}</desc>',
        *([f"<style>{STYLE}</style>"] if style else []),
        *_drawn(picture, boxes, address),
        "</svg>",
    ]
    return "\n".join(shown) + "\n"


def _ordered(picture: Picture) -> list[list[Node]]:
    columns = [list(column) for column in picture.columns if column]
    beside: dict[str, list[str]] = defaultdict(list)
    for start, end in picture.arrows:
        beside[start].append(end)
        beside[end].append(start)
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        order = range(1, len(columns)) if forward else range(len(columns) - 2, -1, -1)
        for number in order:
            passed = columns[:number] if forward else columns[number + 1 :]
            places = {
                node.name: (at + 0.5) / len(column)
                for column in passed
                for at, node in enumerate(column)
            }
            columns[number] = _sorted(columns[number], beside, places)
    return columns


def _sorted(
    column: list[Node], beside: Mapping[str, list[str]], places: Mapping[str, float]
) -> list[Node]:
    def mean(at: int) -> float:
        near = [places[name] for name in beside[column[at].name] if name in places]
        return sum(near) / len(near) if near else (at + 0.5) / len(column)

    means = [mean(at) for at in range(len(column))]
    return [column[at] for at in sorted(range(len(column)), key=lambda at: (means[at], at))]


_Box = tuple[Node, float, float, float]
"""With left edge, upper edge and width."""


def _placed(columns: Sequence[Sequence[Node]]) -> tuple[dict[str, _Box], int, int]:
    tallest = max((len(column) for column in columns), default=0)
    boxes: dict[str, _Box] = {}
    left, gap = float(_MARGIN), min(_GAP + 2 * tallest, _WIDEST_GAP)
    for column in columns:
        wide = max(len(node.name) for node in column) * _LETTER + 2 * _PAD
        step = _STEP * min(max(tallest / len(column), 1.0), 2.0)
        top = _MARGIN + (tallest * _STEP - len(column) * step) / 2
        for at, node in enumerate(column):
            boxes[node.name] = (node, left, top + at * step + (step - _HEIGHT) / 2, wide)
        left += wide + gap
    return boxes, round(left - gap + _MARGIN), tallest * _STEP + 2 * _MARGIN


def _drawn(picture: Picture, boxes: Mapping[str, _Box], address: Address | None) -> Iterator[str]:
    """Draw each rule in one group with its arrows, so that they light up together, then facts.

    Rules further to the right come first: their arrows then pass below what stands before them.
    """
    facts = {"fact", "concluded"}
    arrows: dict[str, list[str]] = defaultdict(list)
    for start, end in picture.arrows:
        if start in boxes and end in boxes:
            owner = end if boxes[start][0].kind in facts else start
            dashed = (start, end) in picture.dashed
            arrows[owner].append(_arrow(boxes[start], boxes[end], dashed=dashed))
    for name, box in reversed(list(boxes.items())):
        if box[0].kind not in facts:
            yield "<g>"
            yield from arrows.pop(name, ())
            yield _box(box, picture, address)
            yield "</g>"
    yield from (path for paths in arrows.values() for path in paths)
    for box in boxes.values():
        if box[0].kind in facts:
            yield _box(box, picture, address)


def _arrow(start: _Box, end: _Box, *, dashed: bool) -> str:
    x1, y1 = start[1] + start[3], start[2] + _HEIGHT / 2
    x2, y2 = end[1], end[2] + _HEIGHT / 2
    bend = max((x2 - x1) / 2, 30)
    points = ((x1, y1), (x1 + bend, y1), (x2 - bend, y2), (x2, y2))
    start_at, *curve = (f"{x:.0f} {y:.0f}" for x, y in points)
    kind = ' class="counted"' if dashed else ""
    return f'<path{kind} d="M{start_at}C{" ".join(curve)}"/>'


def _box(box: _Box, picture: Picture, address: Address | None) -> str:
    node, x, y, wide = box
    marked = " centre" if node.name == picture.centre else ""
    drawn = (
        f'<g class="{node.kind}{marked}"><title>{escape(node.help or node.name)}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{_HEIGHT}" '
        f'rx="{_radius(node)}"/>'
        f'<text x="{x + _PAD:.0f}" y="{y + 14:.0f}">{escape(node.name)}</text></g>'
    )
    if not address or not node.page:
        return drawn
    return f'<a href="{escape(address(node.page, node.anchor), quote=True)}">{drawn}</a>'


def _radius(node: Node) -> int:
    """Facts are round, rules have corners."""
    return _HEIGHT // 2 if node.kind in {"fact", "concluded"} else 3
