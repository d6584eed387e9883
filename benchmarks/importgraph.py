"""The modules of the program and who imports whom, for structure.py.

What is imported inside functions and for the type checker counts as well: it is needed to
understand a module, and it is where circles hide.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Literal, NamedTuple

PACKAGE = "advisor"
ROOT = "__init__"
"""How the package's own ``__init__`` is called here."""
FRONT = (ROOT, "__main__", "build_hook")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
When = Literal["start", "call", "typing"]
"""While a module is imported, inside a function, or for the type checker alone."""
ALWAYS: tuple[When, ...] = ("start", "call", "typing")
Graph = Mapping[str, Collection[str]]


class Module(NamedTuple):
    name: str
    """Below the package: ``cli.main``, ``cli`` for its ``__init__``."""
    file: str
    lines: int
    code: ast.Module
    nodes: Sequence[ast.AST]

    @property
    def part(self) -> str:
        """The package or loose module it belongs to."""
        return part(self.name)

    @property
    def stem(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def said(self) -> str:
        """The first line of its docstring."""
        return (ast.get_docstring(self.code) or "").partition("\n")[0]


class Import(NamedTuple):
    module: str
    other: str
    """A module of ours, or empty."""
    when: When


def part(name: str) -> str:
    return name.partition(".")[0]


def modules(tree: Path) -> Sequence[Module]:
    """Read every module of a checkout; the packaged data is none of them."""
    home = tree / PACKAGE
    files = sorted(path.relative_to(home) for path in home.rglob("*.py"))
    return [_module(home, file) for file in files if file.parts[0] != "data"]


def _module(home: Path, file: Path) -> Module:
    text = (home / file).read_text(encoding="utf-8")
    folder = file.stem == ROOT and file.parent.parts
    name = ".".join(folder or file.with_suffix("").parts)
    code = ast.parse(text)
    return Module(name, file.as_posix(), len(text.splitlines()), code, [*ast.walk(code)])


def imports(every: Sequence[Module]) -> Sequence[Import]:
    names = {module.name for module in every}
    return [
        Import(module.name, _ours(target, names), when)
        for module in every
        for node, when in _statements(module.code.body, "start")
        for target in _targets(node, module)
    ]


def _statements(nodes: Iterable[ast.AST], when: When) -> Iterator[tuple[ast.AST, When]]:
    for node in nodes:
        yield node, when
        inner: When = "call" if isinstance(node, FUNCTIONS) else when
        inside: Iterable[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _statements(node.body, "typing")
            inside = node.orelse
        held = (ast.stmt, ast.excepthandler, ast.match_case)
        yield from _statements((one for one in inside if isinstance(one, held)), inner)


def _targets(node: ast.AST, module: Module) -> Collection[str]:
    """Name what a statement imports, one name a module; ``from a import b`` may mean ``a.b``."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    around = [PACKAGE, *Path(module.file).parent.parts]
    above = around[: len(around) + 1 - node.level] if node.level else []
    base = ".".join([*above, *filter(None, [node.module])])
    return [f"{base}.{alias.name}" for alias in node.names]


def _ours(target: str, names: Collection[str]) -> str:
    if part(target) != PACKAGE:
        return ""
    inside = target.partition(".")[2]
    return next((name for name in (inside, inside.rpartition(".")[0]) if name in names), ROOT)


def graph(made: Iterable[Import], names: Iterable[str], *when: When) -> Graph:
    found: dict[str, set[str]] = {name: set() for name in names}
    for one in made:
        if one.other and one.other != one.module and one.when in when:
            found[one.module].add(one.other)
    return found


def of_packages(whole: Graph) -> Graph:
    """Join modules to packages and loose modules; the front door, ``__init__``, is none."""
    found: dict[str, set[str]] = {part(name): set() for name in whole}
    for name, others in whole.items():
        found[part(name)] |= {part(other) for other in others} - {part(name), ROOT}
    return {name: found[name] for name in found if name != ROOT}


def circles(whole: Graph) -> Sequence[Sequence[str]]:
    reach = {name: _reached(whole, name) for name in whole}
    return sorted({tuple(sorted(m for m in reach[n] if n in reach[m])) for n in whole} - {()})


def _reached(whole: Graph, start: str) -> Collection[str]:
    found: set[str] = set()
    ahead = [*whole[start]]
    while ahead:
        if (name := ahead.pop()) not in found:
            found.add(name)
            ahead.extend(whole[name])
    return found


def chains(whole: Graph) -> Mapping[str, Sequence[str]]:
    """The longest chain down from each, where a circle counts as one."""
    knot = {name: name for name in whole}
    knot |= {name: circle[0] for circle in circles(whole) for name in circle}
    small: dict[str, set[str]] = defaultdict(set)
    for name, others in whole.items():
        small[knot[name]] |= {knot[other] for other in others} - {knot[name]}
    below: dict[str, Sequence[str]] = {}
    for name in TopologicalSorter(small).static_order():
        below[name] = [name, *max((below[o] for o in sorted(small[name])), key=len, default=[])]
    return {name: below[knot[name]] for name in whole}


def longest(whole: Graph) -> Sequence[str]:
    found = chains(whole)
    return max((found[name] for name in sorted(found)), key=len, default=[])


def drawing(tree: Path, *, counts: bool = True) -> str:
    """Draw the packages and loose modules, each above all that it imports, for a code block.

    Without ``counts`` it changes only when a package comes, goes, moves or says something else.
    """
    every = modules(tree)
    below = chains(of_packages(graph(imports(every), [m.name for m in every], *ALWAYS)))
    lines = []
    last = 0
    for name in sorted(below, key=lambda name: (-len(below[name]), name)):
        floor = len(below[name])
        held = [module for module in every if module.part == name]
        lines.append(f"{'' if floor == last else floor:>2}  {_drawn(name, held, counts)}".rstrip())
        last = floor
    return "\n".join(lines)


def _drawn(name: str, held: Sequence[Module], counts: bool) -> str:  # noqa: FBT001
    loose = f"{name}.py" == held[0].file
    what, count = (name, "") if loose else (f"{name}/", f"{len(held)} module{'s'[: len(held) - 1]}")
    said = next((module.said for module in held if module.name == name), "")
    if not counts:
        return f"{what:<14}{said}"
    return f"{what:<14}{count:>10}{sum(module.lines for module in held):>7,} lines  {said}"
