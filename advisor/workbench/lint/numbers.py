"""Numbers in a template's sentences that nothing near them gives a unit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.scenario.settings import STATED

if TYPE_CHECKING:
    from jinja2 import nodes

_TOKENS = ("tokens", "token")
_SEQUENCES = ("sequences", "sequence", "request", "conversation", "stream", "user")
_CARDS = ("cards", "card", "gpu", "of", "x")
_LAYERS = ("layers", "layer")
_EXPERTS = ("experts", "expert")

BARE: Mapping[str, Sequence[str]] = {
    "gpu.release_year": ("as the year", "in", "since", "from", "year"),
    "gpu.tensor_cores": ("tensor cores", "tensor"),
    "request.gpus": _CARDS,
    "model.experts": _EXPERTS,
    "model.experts_used": _EXPERTS,
    "model.layers": _LAYERS,
    "model.images_held": ("images", "image", "of"),
    "model.trained_context": _TOKENS,
    "weights.bits_per_weight": ("bits", "bit"),
    "request.context": _TOKENS,
    "request.batch": _SEQUENCES,
    "memory.cache_tokens": _TOKENS,
    "memory.cache_sequences": _SEQUENCES,
    "memory.server_starts": _SEQUENCES,
    "memory.max_context": _TOKENS,
    "memory.max_batch": _SEQUENCES,
    "memory.high_mib": ("in MiB", "mib"),
    "break_even.context": _TOKENS,
    "break_even.fewer": _SEQUENCES,
    "break_even.batch": _SEQUENCES,
    "break_even.gpus": _CARDS,
    "speed.prompt": _TOKENS,
    "speed.depth": _TOKENS,
    **{one.fact: one.counts for one in STATED if one.fact},
    "option.context": _TOKENS,
    "option.batch": _SEQUENCES,
    "option.gpus": _CARDS,
    "option.layers": _LAYERS,
    "option.cpu_experts": _LAYERS,
}
"""Placeholder -> what to write behind it, then beginnings of words, one of which has to stand near
it in its sentence."""
_BEFORE, _AFTER = 5, 4
"""Words in which a unit counts as near."""
_END = re.compile(r"[.!?:](?=\s)")
_TITLE_LINE = re.compile(r"\A\s*# [^\n]*")
_ALONE = re.compile(r"(?<![\w.,/-])(\d+(?:[.,]\d+)*)(?=\s*(?:[.,;:!?)]\s|[.,;:!?)]?\Z))")
_MARK, _OTHER, _WORD = "\ue000", "{}", "_"
_DIGIT = re.compile(r"(?<![A-Za-z])\d")
_LINKS = frozenset({"to", "and", "or", "of", "than", "instead", "by", "from", "", "/"})
"""Between two numbers that share a unit: 8 of 64 experts, 4 instead of 8 sequences."""
_ARTICLES = frozenset({"the", "these", "those", "its"})
_BESIDE = frozenset({"of", "x", "in", "since", "from"})


class Bare(Struct, frozen=True):
    """A number without a unit."""

    line: int
    word: str
    """The placeholder, or the number as it is written."""
    hint: str
    written: bool = False
    """Whether it stands in the text itself."""


def numbers_without_unit(tree: nodes.Template) -> Iterator[Bare]:
    """Find placeholders that are bare numbers, and written numbers, without a word for them."""
    from jinja2 import nodes  # noqa: PLC0415 - start-up

    for output in tree.find_all(nodes.Output):
        for item in output.nodes:
            if isinstance(item, nodes.TemplateData):
                yield from _written(item)
                continue
            for name in (item, *item.find_all(nodes.Name)):
                if isinstance(name, nodes.Name) and not _is_near(tree, name):
                    hint = f"Write for example '{{{{ {name.name} }}}} {BARE[name.name][0]}'."
                    yield Bare(name.lineno, name.name, hint)


def _written(data: nodes.TemplateData) -> Iterator[Bare]:
    for match in _ALONE.finditer(data.data):
        before = data.data[: match.start()].split()
        if before and before[-1] != before[-1].lower():
            continue  # part of a name: RTX 4090
        line = data.lineno + data.data.count("\n", 0, match.start())
        hint = "Say what it counts, or take a placeholder, which has a unit."
        yield Bare(line, match[1], hint, written=True)


def _is_near(tree: nodes.Template, name: nodes.Name) -> bool:
    units = BARE.get(name.name)
    if units is None:
        return True
    text = "".join(_pieces(tree.body, name))
    text = _TITLE_LINE.sub(lambda title: f"{title[0]}.", text)
    before, _, after = text.partition(_MARK)
    left = _END.split(before)[-1].split()
    right = _END.split(after + " ", maxsplit=1)[0].split()
    return _says(right, units[1:], _AFTER) or _says(left[::-1], units[1:], _BEFORE)


def _says(words: Sequence[str], units: Sequence[str], most: int) -> bool:
    """Whether a unit comes before another number does; a range or a list shares one unit."""
    steps, linked = 0, False
    for place, word in enumerate(words):
        plain = _bare_word(word)
        if any(_is_unit(part, units, place) for part in (plain, *plain.split("-"))):
            return True
        if _OTHER in word or _DIGIT.search(word):
            if not linked:
                return False
            steps = 0
        steps = 0 if plain == "than" else steps + 1
        linked = plain in _LINKS or word.endswith(",") or (linked and plain in _ARTICLES)
        if steps > most:
            return False
    return False


def _is_unit(word: str, units: Sequence[str], place: int) -> bool:
    """Short words such as ``of`` say something right beside the number alone."""
    return any(word in {unit, f"{unit}s"} and (place == 0 or unit not in _BESIDE) for unit in units)


def _bare_word(word: str) -> str:
    return word.strip("().,;:*`'\"-").lower()


def _pieces(found: Sequence[nodes.Node], marked: nodes.Name) -> Iterator[str]:
    """Write out what may stand around a placeholder: not the other branches of its own ``if``."""
    from jinja2 import nodes  # noqa: PLC0415 - start-up

    for node in found:
        if isinstance(node, nodes.TemplateData):
            yield node.data
        elif isinstance(node, nodes.Output):
            yield from _pieces(node.nodes, marked)
        elif isinstance(node, nodes.If):
            branches = [node.body, *(other.body for other in node.elif_), node.else_]
            own = [branch for branch in branches if _holds(branch, marked)]
            for branch in own or branches:
                yield from _pieces(branch, marked)
        elif isinstance(node, nodes.For):
            yield from _pieces(node.body, marked)
        else:
            inside = node is marked or marked in node.find_all(nodes.Name)
            yield _MARK if inside else f" {_OTHER if _counts(node) else _WORD} "


def _counts(node: nodes.Node) -> bool:
    """Whether a placeholder, or a choice between some, is a number without a unit."""
    from jinja2 import nodes  # noqa: PLC0415 - start-up

    names = [node] if isinstance(node, nodes.Name) else node.find_all(nodes.Name)
    return any(isinstance(name, nodes.Name) and name.name in BARE for name in names)


def _holds(branch: Sequence[nodes.Node], marked: nodes.Name) -> bool:
    from jinja2 import nodes  # noqa: PLC0415 - start-up

    return any(marked is name for node in branch for name in node.find_all(nodes.Name))
