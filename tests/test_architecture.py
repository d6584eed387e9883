"""The structure of the program: who may import whom, and who may print."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

from advisor.remedies import actions

PACKAGE = Path(__file__).resolve().parent.parent / "advisor"


def modules() -> Iterator[Path]:
    return (p for p in PACKAGE.rglob("*.py") if "data" not in p.relative_to(PACKAGE).parts)


@lru_cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def part(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Name the advisor modules that a file imports anywhere, in functions and for types too."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("advisor"):
            base = node.module or ""
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield whole if whole in every_module() else base


@lru_cache(maxsize=1)
def every_module() -> frozenset[str]:
    return frozenset(named(path) for path in modules())


def named(path: Path) -> str:
    return ".".join(("advisor", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )


def test_packages_import_only_from_below() -> None:
    assert lint_imports(config_filename=str(PACKAGE.parent / ".importlinter"), no_cache=True) == 0


def test_few_modules_lie_outside_the_packages() -> None:
    loose = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__", "build_hook"}
    assert loose == {"disk", "errors", "files", "memo", "units", "yamlfile"}
    assert len({part(path) for path in modules()} - loose) == 14 + 3


def test_there_is_no_import_cycle() -> None:
    graph = {named(p): set(imported(p)) for p in modules()}
    state: dict[str, int] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if state.get(name) == 2 or name not in graph:
            return
        assert state.get(name) != 1, " -> ".join((*trail, name))
        state[name] = 1
        for other in graph[name] - {name}:
            visit(other, (*trail, name))
        state[name] = 2

    for name in graph:
        visit(name, ())


def test_only_one_module_knows_durable_rules() -> None:
    users = {
        named(path)
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any(
            "durable" in name and not name.startswith("advisor")
            for name in [getattr(node, "module", "") or "", *(a.name for a in node.names)]
            if name != "DurableEngine"
        )
    }
    assert users <= {"advisor.rules.engine.durable", "advisor.rules.engine"}


@pytest.mark.parametrize("path", sorted(modules()), ids=named)
def test_only_the_command_line_prints_or_exits(path: Path) -> None:
    if part(path) == "cli":
        return
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"print", "exit"}, named(path)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            seen = f"{node.value.id}.{node.attr}"
            assert seen not in {"sys.stdout", "sys.stderr", "sys.exit"}, named(path)


@pytest.mark.parametrize("path", sorted(modules()), ids=named)
def test_modules_and_functions_stay_small(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 400, f"{named(path)} has {lines} lines, 400 at most: move one idea out of it"
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef) and (path.name, node.name) != ("advise.py", "advise"):
            assert (node.end_lineno or 0) - node.lineno <= 50, f"{named(path)}: {node.name}"


_JINJA = frozenset({"grammar.py", "template_places.py", "template_reader.py"})
"""Imported when a template has to be compiled, never before."""


@pytest.mark.parametrize("kind", ["runtime", "vendor", "back end"])
def test_what_data_names_has_a_home(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PACKAGE.parent / "benchmarks"))
    structure = importlib.import_module("structure")
    found = structure.homeless(PACKAGE.parent, structure.modules(PACKAGE.parent))
    assert found.lists[f"{kind} literals without a home"] == []


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    heavy = {"pydantic", "jinja2", "yaml", "rich", "pyarrow", "distributed"}
    for path in modules():
        if path.name in _JINJA | {"validation.py", "build_hook.py"}:
            continue
        for node in tree(path).body:
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert not heavy & {name.split(".")[0] for name in names}, named(path)


def test_actions_are_named_by_remedies_and_data_alone() -> None:
    known = set(actions())
    for path in modules():
        if part(path) in {"remedies", "knowledge"}:
            continue
        said = {n.value for n in ast.walk(tree(path)) if isinstance(n, ast.Constant)}
        assert not known & {text for text in said if isinstance(text, str)}, named(path)
