"""How the program is built: its packages and their order, circles, and what has no home.

    python benchmarks/structure.py                the figures of this checkout
    python benchmarks/structure.py --against REV  beside those of another commit
    python benchmarks/structure.py --list         every place that was counted
    python benchmarks/structure.py --drawing      the packages from top to bottom

Reads the source; one ``advise`` is run, for what it loads and calls. ``--markdown`` gives the
table and ``--drawing`` the drawing of docs/architecture.md.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, cast

from importgraph import (
    ALWAYS,
    FRONT,
    FUNCTIONS,
    Module,
    circles,
    drawing,
    graph,
    imports,
    longest,
    modules,
    of_packages,
)

HERE = Path(__file__).resolve().parent.parent
Figures = Mapping[str, int | str]
TRACE = Path(__file__).resolve().with_name("advicetrace.py")
UNKNOWN = "-"
SMALL = 60

WORDS = {
    "runtime": ("knowledge", r"^(?:- framework|  memory_model): (.+)$"),
    "vendor": ("knowledge", r"^[- ] vendor: (.+)$"),
    "back end": ("knowledge", r"backend: (\w+),"),
    "action": ("rules", r"^ +action: (.+)$"),
    "format family": ("knowledge", r"^  family: (.+)$"),
}
"""In which folder the words of a kind are declared, and how."""
HOMES = {
    "runtime": ("runtimes", "knowledge"),
    "vendor": ("runtimes", "knowledge"),
    "back end": ("runtimes", "knowledge"),
    "action": ("remedies", "options", "knowledge"),
}
MEMOS = ("cache", "lru_cache")
STORES = ("dict", "OrderedDict", "defaultdict", "WeakKeyDictionary", "WeakValueDictionary")
VAGUE = ("own", "yours", "owned", "ownership")

ADVISE = ("advise", "--gpu", "RTX 4090", "--model", "phi-3-medium", "--precision", "fp16")


class Place(NamedTuple):
    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.what}"


class Report(NamedTuple):
    figures: Figures
    lists: Mapping[str, Sequence[str]]


def sizes(every: Sequence[Module]) -> Figures:
    functions = [n for m in every for n in m.nodes if isinstance(n, FUNCTIONS)]
    lengths = sorted((node.end_lineno or 0) - node.lineno + 1 for node in functions) or [0]
    loose = {module.part for module in every if "/" not in module.file}
    folders = {module.file.rpartition("/")[0] for module in every} - {""}
    lines = [module.lines for module in every]
    return {
        "modules": len(every),
        "lines": sum(lines),
        "functions": len(functions),
        "lines of a function, median": int(statistics.median(lengths)),
        "lines of a function, nine in ten": lengths[len(lengths) * 9 // 10],
        "lines of a function, most": lengths[-1],
        "lines of a module, most": max(lines),
        f"modules of at most {SMALL} lines": sum(count <= SMALL for count in lines),
        "packages": len({module.part for module in every} - loose),
        "ground modules": len(loose - {*FRONT}),
        "rooms: folders and loose modules": len(folders | (loose - {FRONT[0]})),
    }


def order(every: Sequence[Module]) -> Report:
    made = imports(every)
    names = [module.name for module in every]
    whole = graph(made, names, *ALWAYS)
    users = Counter(chain.from_iterable(whole.values()))
    late = [one for one in made if one.when == "call"]
    rounds = {"modules": circles(whole), "packages": circles(of_packages(whole))}
    lines = {
        "longest import chain": longest(graph(made, names, "start")),
        "longest with imports in functions": longest(graph(made, names, "start", "call")),
    }
    figures = {
        "layers": len(longest(of_packages(whole))),
        **{what: len(line) for what, line in lines.items()},
        **{f"circles of {what}": len(found) for what, found in rounds.items()},
        "imports in functions": len(late),
        "imports in functions, our modules": sum(bool(one.other) for one in late),
        "modules used by one only": sum(users[name] == 1 for name in names),
    }
    lists = {f"circles of {what}": list(map(" <-> ".join, some)) for what, some in rounds.items()}
    return Report(figures, lists | {what: [" -> ".join(line)] for what, line in lines.items()})


def words(tree: Path, kind: str) -> Collection[str]:
    """Read the words of a kind; ``none`` is the memory model of runtimes that are not sized."""
    folder, pattern = WORDS[kind]
    texts = (path.read_text(encoding="utf-8") for path in (tree / folder).rglob("*.yaml"))
    found = {word for text in texts for word in re.findall(pattern, text, re.MULTILINE)}
    return {word.partition(" #")[0].strip("\"' ").casefold() for word in found} - {"none"}


def literals(every: Sequence[Module]) -> Iterator[tuple[str, Place]]:
    """Every text of the code; one that stands alone is a docstring."""
    for module in every:
        alone = {id(node.value) for node in module.nodes if isinstance(node, ast.Expr)}
        for node in module.nodes:
            if isinstance(node, ast.Constant) and id(node) not in alone:
                place = Place(module.file, node.lineno, repr(node.value))
                yield str(node.value).casefold(), place


def homeless(tree: Path, every: Sequence[Module]) -> Report:
    """Texts that equal a word of a kind, blind to case, in all and outside the kind's homes."""
    said = [*literals(every)]
    figures: dict[str, str] = {}
    lists = {}
    for kind, homes in HOMES.items():
        known = {*words(tree, kind)}
        if kind == "runtime":  # MLX is a format as well
            known -= {*words(tree, "format family")}
        found = [place for text, place in said if text in known]
        away = [place for place in found if place.file.split("/")[0] not in homes]
        figures[f"{kind} literals"] = _counted(found) if known else UNKNOWN
        figures[f"{kind} literals without a home"] = _counted(away) if known else UNKNOWN
        lists[f"{kind} literals without a home"] = [*map(str, sorted(away))]
    return Report(figures, lists)


def _counted(places: Sequence[Place]) -> str:
    return f"{len(places)} in {len({place.file for place in places})} files"


def memos(every: Sequence[Module]) -> Mapping[str, Sequence[Place]]:
    """Where results are kept; what a module named memo defines keeps them as lru_cache does."""
    tops = [node for module in every if module.stem == "memo" for node in module.code.body]
    ours = {node.name for node in tops if isinstance(node, FUNCTIONS)} | {*MEMOS}
    classes = {node.name for node in tops if isinstance(node, ast.ClassDef)}
    return {
        "memo decorators": [*_decorated(every, ours)],
        "memo objects": [
            Place(module.file, node.lineno, ast.unparse(node))
            for module in every
            for node in module.nodes
            if isinstance(node, ast.Call) and _named(node) in classes & _keepers(module)
        ],
        "module dictionaries written to": [*chain.from_iterable(map(_stores, every))],
        "cached properties": [*_decorated(every, ["cached_property"])],
    }


def _named(node: ast.AST) -> str:
    while isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _keepers(module: Module) -> set[str]:
    """Names that a module has of functools or of the memo: others may be called the same."""
    if module.stem == "memo":
        return {getattr(node, "name", "") for node in module.nodes} | {*MEMOS}
    made = (node for node in module.nodes if isinstance(node, ast.ImportFrom))
    homes = ("functools", "advisor.memo", "memo")
    return {alias.name for node in made if node.module in homes for alias in node.names}


def _decorated(every: Sequence[Module], ours: Collection[str]) -> Iterator[Place]:
    for module in every:
        here = {*ours} & _keepers(module)
        for node in module.nodes:
            for by in node.decorator_list if isinstance(node, FUNCTIONS) else []:
                if _named(by) in here:
                    yield Place(module.file, by.lineno, f"{_named(by)} {getattr(node, 'name', '')}")
            if isinstance(node, ast.Assign) and _named(node.value) in here:
                yield Place(module.file, node.lineno, ast.unparse(node))


def _stores(module: Module) -> Iterator[Place]:
    inside = [n for n in module.code.body if isinstance(n, (*FUNCTIONS, ast.ClassDef))]
    written = {_written(node) for top in inside for node in ast.walk(top)}
    for node in module.code.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_empty_mapping(node.value):
            name = _named(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
            if name in written:
                yield Place(module.file, node.lineno, name)


def _is_empty_mapping(node: ast.AST | None) -> bool:
    if isinstance(node, ast.Dict):
        return not node.keys
    return isinstance(node, ast.Call) and _named(node) in STORES


def _written(node: ast.AST) -> str:
    item = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    method = isinstance(node, ast.Attribute) and node.attr in {"setdefault", "update"}
    return _named(getattr(node, "value", node)) if item or method else ""


def vague_names(every: Sequence[Module]) -> Mapping[str, Sequence[str]]:
    """Names that say whose something is and not what, rooms that hold no memory, and doubles."""
    said = {module.file: {*_identifiers(module)} for module in every}
    stems = Counter(Path(module.file).stem for module in every)
    doubles = sorted(stem for stem, count in stems.items() if count > 1 and stem not in FRONT)
    return {
        "modules named own, yours or room": [
            module.file for module in every if _is_vague(module.stem) or _is_room(module.stem)
        ],
        "identifiers with own or yours": sorted(filter(_is_vague, {*chain(*said.values())})),
        "modules with such identifiers": [
            f for f, some in said.items() if any(map(_is_vague, some))
        ],
        "file names used more than once": [f"{stem} {stems[stem]}" for stem in doubles],
    }


def _words(identifier: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)}


def _is_vague(identifier: str) -> bool:
    return not _words(identifier).isdisjoint(VAGUE)


def _is_room(identifier: str) -> bool:
    return "room" in _words(identifier) and "memory" not in _words(identifier)


def _identifiers(module: Module) -> Iterator[str]:
    for node in module.nodes:
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            if isinstance(value := getattr(node, field, None), str):
                yield from value.split(".")


def declared(tree: Path, every: Sequence[Module]) -> Figures:
    """Facts in knowledge/facts.yaml; texts by name in the tables of ``names.py`` of the report."""
    facts = tree / "knowledge/facts.yaml"
    text = facts.read_text(encoding="utf-8") if facts.is_file() else ""
    tops = [n for m in every if m.name in {"render.names", "report.names"} for n in m.code.body]
    tables = [node.value for node in tops if isinstance(node, ast.AnnAssign)]
    pairs = chain(*(zip(t.keys, t.values, strict=True) for t in tables if isinstance(t, ast.Dict)))
    keys = {
        k.value for k, v in pairs if isinstance(k, ast.Constant) and isinstance(v, ast.Constant)
    }
    return {
        "facts declared": len(re.findall(r"^- \{?fact:", text, re.MULTILINE)) or UNKNOWN,
        "placeholders declared": len(keys) or UNKNOWN,
    }


def traced(tree: Path) -> Figures:
    """What one advice loads and calls when what is compiled once is in the cache."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"PYTHONPATH": str(tree), "ADVISOR_CACHE_DIR": folder}
        command = [sys.executable, "-B", str(TRACE), str(tree), *ADVISE]
        for _ in ("filling the cache", "reading it"):
            done = subprocess.run(
                command, env={**os.environ, **settings}, capture_output=True, check=False
            )
    if done.returncode:
        print(done.stderr.decode()[-400:], file=sys.stderr)
        return {}
    return cast("Figures", json.loads(done.stdout))


def report(tree: Path) -> Report:
    every = modules(tree)
    ordered, away = order(every), homeless(tree, every)
    kept, vague = memos(every), vague_names(every)
    figures = {
        **sizes(every),
        **ordered.figures,
        **traced(tree),
        **away.figures,
        "places that keep results": sum(map(len, kept.values())),
        **{what: len(found) for what, found in {**kept, **vague}.items()},
        **declared(tree, every),
    }
    places = {what: [*map(str, found)] for what, found in kept.items()}
    return Report(figures, {**ordered.lists, **away.lists, **places, **vague})


def against(tree: Path, revision: str) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder, "tree.tar")
        command = ["git", "archive", f"--output={packed}", revision]
        subprocess.run(command, cwd=tree, check=True)
        with tarfile.open(packed) as archive:
            archive.extractall(folder, filter="data")
        return report(Path(folder))


def table(columns: Mapping[str, Figures], *, markdown: bool) -> str:
    rows = [["", *columns]]
    for what in dict.fromkeys(chain(*columns.values())):
        cells = [figures.get(what, UNKNOWN) for figures in columns.values()]
        rows.append([what, *(f"{c:,}" if isinstance(c, int) else c for c in cells)])
    if markdown:
        rows.insert(1, ["---", *("---:" for _ in columns)])
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return "\n".join(f"{row[0]:<40}" + "".join(f"{cell:>18}" for cell in row[1:]) for row in rows)


def show(reports: Mapping[str, Report], asked: argparse.Namespace) -> None:
    if asked.json:
        print(json.dumps({name: one._asdict() for name, one in reports.items()}, indent=1))
        return
    print(table({name: one.figures for name, one in reports.items()}, markdown=asked.markdown))
    for what, found in reports["now"].lists.items():
        if found and (asked.list or what.startswith("circles")):
            print(f"\n{what}:\n", *(f"- {one}" for one in found), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tree", type=Path, default=HERE, metavar="FOLDER")
    parser.add_argument("--against", metavar="REV")
    for flag in ("--json", "--markdown", "--list", "--drawing"):
        parser.add_argument(flag, action="store_true")
    asked = parser.parse_args()
    tree = asked.tree.resolve()
    if asked.drawing:
        print(drawing(tree, counts=False))
        return
    earlier = {asked.against: against(tree, asked.against)} if asked.against else {}
    show({**earlier, "now": report(tree)}, asked)


if __name__ == "__main__":
    main()
