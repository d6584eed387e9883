"""Reading the source of runtimes: single definitions run without their package, compiled cards.

Used by ``capabilities.py``. Nothing of a runtime is imported: single classes and functions are
taken out of its files and run with stand-ins for everything else.
"""

from __future__ import annotations
import __future__ as futures

import ast
import builtins
import re
import struct
import types
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

_FATBIN = re.compile(rb"\x50\xed\x55\xba\x01\x00\x10\x00")
_HEADER, _ARCH_AT, _LEAST = 16, 28, 32
CUBIN = 2
OLDEST = 7.5
"""The oldest compute capability that the servers' wheels have machine code for."""
FP8_UNITS = 8.9
"""Compute capability from which Triton reads fp8e4nv (triton/backends/nvidia/compiler.py)."""
Row = dict[str, object]


class Anything(type):
    """Stands in for whatever a definition names and the question does not need."""

    def __getattr__(cls, _name: str) -> object:
        """Give a stand-in for every attribute."""
        return Stand

    def __call__(cls, *args: object, **_kwargs: object) -> object:
        """Give a stand-in for every call; of a decorator, what it decorates."""
        return args[0] if len(args) == 1 and isinstance(args[0], types.FunctionType) else Stand

    def __getitem__(cls, _key: object) -> object:
        """Give a stand-in for every subscript."""
        return Stand


class Stand(metaclass=Anything):
    """The stand-in itself; classes may build on it."""


class Module:
    """A source file of a runtime."""

    def __init__(self, root: Path, path: str) -> None:
        """Parse it; ``path`` is told from the root of the package."""
        self.path = path
        self.text = (root / path).read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)

    def node(self, name: str) -> ast.stmt:
        """Find a definition by its name."""
        for node in self.tree.body:
            if name in {getattr(node, "name", None), *_targets(node)}:
                return node
        raise LookupError(f"{self.path} has no {name}")

    def run(self, given: Mapping[str, object], *names: str) -> Mapping[str, object]:
        """Run definitions; what is not given is stood in for."""
        body = [_WithoutImports().visit(self.node(name)) for name in names]
        named = {each.id for node in body for each in ast.walk(node) if isinstance(each, ast.Name)}
        space: dict[str, object] = {
            name: Stand for name in named if not hasattr(builtins, name)
        } | dict(given)
        flags = futures.annotations.compiler_flag
        code = compile(ast.Module(body, []), self.path, "exec", flags)
        exec(code, space)  # noqa: S102 - see above
        return space

    def constant(self, name: str) -> object:
        """Read a literal."""
        node = self.node(name)
        assert isinstance(node, ast.Assign | ast.AnnAssign)
        assert node.value
        return ast.literal_eval(node.value)

    def line(self, needle: str, nth: int = 0) -> str:
        """Say where a text stands, ``path:line``; ``nth`` counts from 0."""
        lines = [n for n, line in enumerate(self.text.splitlines(), 1) if needle in line]
        if len(lines) <= nth:
            raise LookupError(f"{self.path} does not say {needle!r}")
        return f"{self.path}:{lines[nth]}"


class _WithoutImports(ast.NodeTransformer):
    """Leaves imports out: what they bring is stood in for."""

    def visit_Import(self, node: ast.Import) -> ast.stmt:
        """Do nothing instead."""
        return ast.copy_location(ast.Pass(), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        """Do nothing instead."""
        return ast.copy_location(ast.Pass(), node)


def _targets(node: ast.stmt) -> list[str]:
    stated = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in stated if isinstance(target, ast.Name)]


def compiled_for(wheel: Path, library: str) -> list[float]:
    """List the compute capabilities that a library of a wheel has machine code for."""
    with zipfile.ZipFile(wheel) as packed:
        data = packed.read(library)
    return sorted({arch / 10 for kind, arch in _kernels(data) if kind == CUBIN})


def _kernels(data: bytes) -> Iterator[tuple[int, int]]:
    """Give kind (1: PTX, 2: machine code) and architecture of every kernel image in a library."""
    for found in _FATBIN.finditer(data):
        place = found.start() + _HEADER
        end = place + struct.unpack_from("<Q", data, found.start() + 8)[0]
        while place < end and place + _LEAST < len(data):
            kind, _, header, size = struct.unpack_from("<HHIQ", data, place)
            if not header:
                break
            yield kind, struct.unpack_from("<I", data, place + _ARCH_AT)[0]
            place += header + size


def smallest_cards(
    root: Path, folder: str, formats: Mapping[str, tuple[str, str | None]]
) -> Iterator[Row]:
    """Give a row for each format that needs more than the oldest card a runtime has code for.

    Args:
        root: Of the package.
        folder: That of the files.
        formats: Weight format -> file, and the class in it that says the smallest capability.
    """
    for name, (path, cls) in formats.items():
        module = Module(root, folder + path)
        needed, line = _least(module, cls)
        if needed > OLDEST:
            yield {
                "about": "weights", "of": [name], "answer": "refused", "vendors": ["NVIDIA"],
                "below_capability": needed,
                "why": f"its kernels need compute capability {needed:g}",
                "at": f"{module.path}:{line}",
            }  # fmt: skip


def _least(module: Module, cls: str | None) -> tuple[float, int]:
    """Give what ``get_min_capability`` of a class returns for usual formats, and its line."""
    inside = module.node(cls) if cls else module.tree
    for node in ast.walk(inside):
        if isinstance(node, ast.FunctionDef) and node.name == "get_min_capability":
            last = node.body[-1]
            assert isinstance(last, ast.Return)
            value = last.value.orelse if isinstance(last.value, ast.IfExp) else last.value
            return float(ast.literal_eval(value)) / 10, last.lineno  # type: ignore[arg-type]
    raise LookupError(f"{module.path} names no smallest capability")


class Classes:
    """Every class in a folder of a runtime, by name."""

    def __init__(self, folder: Path) -> None:
        """Parse the folder."""
        self.nodes: dict[str, ast.ClassDef] = {}
        for file in sorted(folder.rglob("*.py")):
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    self.nodes[node.name] = node

    def having(self, asked: Callable[[ast.ClassDef], bool]) -> set[str]:
        """Name the classes of which something holds, or of one that they build on."""
        return {name for name in self.nodes if self._has(name, asked, ())}

    def _has(
        self, name: str, asked: Callable[[ast.ClassDef], bool], before: tuple[str, ...]
    ) -> bool:
        node = self.nodes.get(name)
        if node is None or name in before:
            return False
        bases = [ast.unparse(base).rpartition(".")[2].partition("[")[0] for base in node.bases]
        return asked(node) or any(self._has(base, asked, (*before, name)) for base in bases)


def without(
    folder: Path, transformers: Path, asked: Callable[[ast.ClassDef], bool]
) -> Sequence[str]:
    """Name the ``model_type``s that a runtime has classes for, of none of which something holds.

    A checkpoint that reads images names the class for that, so that one alone counts.
    """
    classes = Classes(folder)
    having = classes.having(asked)
    found = (
        (kind, [name for name in names if name in classes.nodes])
        for kind, names in classes_of(transformers).items()
    )
    return sorted(
        kind for kind, names in found if names and not having.intersection(_of_images(names))
    )


def _of_images(names: Sequence[str]) -> Sequence[str]:
    return [name for name in names if name.endswith("ForConditionalGeneration")] or names


def classes_of(transformers: Path) -> Mapping[str, list[str]]:
    """Give ``model_type`` -> class names, as transformers has them."""
    text = (transformers / "transformers/models/auto/modeling_auto.py").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for kind, name in re.findall(
        r'\("([a-z0-9_.-]+)", "(\w+For(?:CausalLM|ConditionalGeneration))"\)', text
    ):
        found.setdefault(kind, []).append(name)
    return found
