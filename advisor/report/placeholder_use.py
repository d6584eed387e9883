"""Which placeholders a template uses in one situation, and which of its lines it reaches.

The template is walked as it would be rendered: only the branches that are taken count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from advisor.errors import TemplateError
from advisor.report.template_code import FILTERS
from advisor.report.variants import PICKS, SEED, picked

if TYPE_CHECKING:
    from jinja2 import nodes

WORDINGS: Sequence[str] = tuple(digit * 64 for digit in "0123456789abcdef")
"""Values of ``variation`` that together pick every wording of every ``vary`` block of up to 16."""


class Use(Struct, frozen=True):
    """What a template does with its placeholders in one situation."""

    printed: Mapping[str, str]
    """Placeholders in the text, with their values, in order."""
    asked: Mapping[str, str]
    """Placeholders that conditions looked at and the text does not hold."""
    reached: frozenset[int]
    """Lines with text that was written."""
    lines: frozenset[int]
    """All lines with text."""
    pieces: frozenset[tuple[int, str]] = frozenset()
    """Line and text of what was written, which tells wordings apart."""


def use_of(folders: Sequence[Path], name: str, given: Mapping[str, str]) -> Use:
    """Follow a template of actions/ or notes/ with these values.

    Args:
        folders: Where templates are looked for, first one first.
        name: The template, as ``actions/quantize.md.j2``.
        given: Value of every placeholder.

    Raises:
        TemplateError: It is missing or not as it must be.
    """
    tree = _parsed(tuple(folders), name)
    walk = _Walk(given)
    walk.statements(tree.body)
    asked = {n: v for n, v in walk.asked.items() if n not in walk.printed and n != SEED}
    reached, pieces = frozenset(walk.reached), frozenset(walk.pieces)
    return Use(walk.printed, asked, reached, _text_lines(tree), pieces)


@lru_cache(maxsize=128)
def _parsed(folders: tuple[Path, ...], name: str) -> nodes.Template:
    from advisor.report.sandbox import Sandbox, problems_in  # noqa: PLC0415 - start-up

    sandbox = Sandbox(folders)
    wrong = problems_in(sandbox, name)
    if wrong or sandbox.loader is None:
        raise wrong[0] if wrong else TemplateError(f"there is no template '{name}'.")
    source = sandbox.loader.get_source(sandbox, name)[0]
    return sandbox.tree(source, name)


def _text_lines(tree: nodes.Template) -> frozenset[int]:
    from jinja2 import nodes  # noqa: PLC0415 - start-up

    return frozenset(line for node in tree.find_all(nodes.Output) for line in _lines(node))


def _lines(output: nodes.Output) -> list[int]:
    from jinja2 import nodes  # noqa: PLC0415 - start-up

    found = list[int]()
    for item in output.nodes:
        if not isinstance(item, nodes.TemplateData):
            found.append(item.lineno)
            continue
        lines = enumerate(item.data.split("\n"), start=item.lineno)
        found += [number for number, text in lines if text.strip()]
    return found


class _Walk(Struct):
    given: Mapping[str, str]
    printed: dict[str, str] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    reached: set[int] = field(default_factory=set)
    pieces: set[tuple[int, str]] = field(default_factory=set)

    def statements(self, found: Sequence[nodes.Node]) -> None:
        """Follow statements as they would be rendered."""
        from jinja2 import nodes  # noqa: PLC0415 - start-up

        for node in found:
            if isinstance(node, nodes.If):
                self.statements(self._branch(node))
            elif isinstance(node, nodes.Output):
                self.reached.update(_lines(node))
                for item in node.nodes:
                    if isinstance(item, nodes.TemplateData):
                        self.pieces.add((item.lineno, item.data))
                    else:
                        self._value(item, self.printed)

    def _branch(self, node: nodes.If) -> Sequence[nodes.Node]:
        for branch in (node, *node.elif_):
            if self._value(branch.test, self.asked):
                return branch.body
        return node.else_

    def _value(self, node: nodes.Node, seen: dict[str, str]) -> object:  # noqa: C901 - one per node
        """Give the value of an expression, and note the placeholders it takes."""
        from jinja2 import nodes  # noqa: PLC0415 - start-up

        def of(inner: nodes.Node) -> object:
            return self._value(inner, seen)

        match node:
            case nodes.Name():
                seen.setdefault(node.name, self.given.get(node.name, ""))
                return self.given.get(node.name, "")
            case nodes.Const():
                return node.value
            case nodes.Not():
                return not of(node.node)
            case nodes.And():
                return of(node.left) and of(node.right)
            case nodes.Or():
                return of(node.left) or of(node.right)
            case nodes.CondExpr():
                return of(node.expr1 if of(node.test) else node.expr2 or nodes.Const(""))
            case nodes.Tuple() | nodes.List():
                return tuple(of(item) for item in node.items)
            case nodes.Filter() if node.node is not None:
                return FILTERS[node.name](of(node.node), *map(of, node.args))
            case nodes.Test():
                return _tested(node.name, of(node.node), [of(item) for item in node.args])
            case nodes.Compare():
                values = [of(node.expr), *(of(operand.expr) for operand in node.ops)]
                pairs = zip(node.ops, values, values[1:], strict=False)
                return all(_COMPARE[operand.op](a, b) for operand, a, b in pairs)
        return ""


_COMPARE: Mapping[str, Callable[[object, object], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "in": lambda a, b: str(a) in b if isinstance(b, str) else a in tuple(b),  # type: ignore[arg-type]
    "notin": lambda a, b: not _COMPARE["in"](a, b),
}


def _tested(name: str, value: object, given: Sequence[object]) -> bool:
    if name == PICKS:
        at, choices, choice = (int(str(number)) for number in given)
        return picked(str(value), at, choices, choice)
    return name == "defined"
