"""Keep the built-in folders of a drill that runs thousands of damaged files in one process.

What no damaged file changes is read, parsed and compiled once: the built-in files, and the engine
of the built-in rules. Everything that a user's file touches is worked out each time, as it is in
a process of its own. The starter's files count as built in: they lie beside the damaged one.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from typer.main import get_command

import advisor
from advisor import files, yamlfile
from advisor.advice import Advisor
from advisor.cli import app
from advisor.errors import UserError
from advisor.files import data_dir
from advisor.knowledge.layers import Stack
from advisor.rules import engine, language
from advisor.rules.engine.base import Engine
from advisor.rules.language.model import RuleSet
from advisor.yamlfile import Node

_GROUPS = frozenset({"knowledge", "measure", "rules", "templates"})
_MOST = 64
STARTER = Path(__file__).resolve().parents[1] / "advisor" / "starter"


def keep_built_in() -> None:
    """Keep what is built in from here on, for every module of the program."""
    for module in pkgutil.walk_packages(advisor.__path__, "advisor."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    _everywhere(app.application, _made_once(app.application))
    _everywhere(language.load_rules, _loaded_once(language.load_rules))
    _everywhere(files.digest, _hashed_once(files.digest))
    _everywhere(files.read_tree, _read_once(files.read_tree))
    _everywhere(yamlfile.read_yaml, _parsed_once(yamlfile.read_yaml))
    _everywhere(engine.make_engine, _compiled_once(engine.make_engine, Advisor.load().ruleset))


def _everywhere(old: object, new: object) -> None:
    for name, module in list(sys.modules.items()):
        if name == "advisor" or name.startswith("advisor."):
            for known, value in list(vars(module).items()):
                if value is old:
                    setattr(module, known, new)


def _made_once(make: Callable[..., Any]) -> Callable[..., Any]:
    @cache
    def once(*words: str) -> Any:
        return get_command(make(words))

    return lambda words: once(*words[: 1 + (words[0] in _GROUPS)])


def _loaded_once(load: Callable[..., RuleSet]) -> Callable[..., RuleSet]:
    kept: dict[object, RuleSet] = {}

    def loading(folders: Stack = None, **more: Any) -> RuleSet:
        if folders is not None or more.get("over") is not None or more.get("names") is None:
            return load(folders, **more)
        key = (
            more["vocabulary"].sha256,
            frozenset(more.get("templates") or ()),
            more["names"].knowledge.sha256,
        )
        if key not in kept:
            if len(kept) > _MOST:
                kept.clear()
            kept[key] = load(folders, **more)
        return kept[key]

    return loading


def _hashed_once(hashed: Callable[[Mapping[str, bytes]], str]) -> Callable[..., str]:
    """Hash by the identity of the contents, which are those of the built-in files mostly."""
    whole: dict[tuple[object, ...], tuple[object, str]] = {}

    def hashing(contents: Mapping[str, bytes]) -> str:
        key = (*contents, *map(id, contents.values()))
        if key not in whole:
            if len(whole) > _MOST:
                whole.clear()
            whole[key] = ([*contents.values()], hashed(contents))
        return whole[key][1]

    return hashing


def _read_once(read: Callable[..., Mapping[str, bytes]]) -> Callable[..., Mapping[str, bytes]]:
    built_in = frozenset(data_dir(kind) for kind in ("rules", "templates", "knowledge"))
    once = cache(read)

    def reading(folder: Path, suffixes: Iterable[str], *but: str) -> Mapping[str, bytes]:
        wanted = tuple(suffixes)
        return (once if folder in built_in else read)(folder, wanted, *but)

    return reading


def _parsed_once(read: Callable[..., Node | None]) -> Callable[..., Node | None]:
    folders = (data_dir("rules"), data_dir("knowledge"), STARTER)
    known = frozenset(path.read_bytes() for one in folders for path in one.rglob("*.yaml"))
    kept: dict[object, Node | None] = {}

    def reading(
        content: bytes, shown: str, error: type[UserError], problems: list[UserError]
    ) -> Node | None:
        if content not in known:
            return read(content, shown, error, problems)
        key = (content, shown, error)
        if key not in kept:
            if len(kept) > _MOST * len(known):
                kept.clear()
            kept[key] = read(content, shown, error, problems)
        return kept[key]

    return reading


def _compiled_once(make: Callable[..., Engine], whole: RuleSet) -> Callable[..., Engine]:
    once: dict[str | None, Engine] = {}

    def making(ruleset: RuleSet, *, prefer: str | None = None) -> Engine:
        if ruleset is not whole and ruleset != whole:
            return make(ruleset, prefer=prefer)
        if prefer not in once:
            once[prefer] = make(ruleset, prefer=prefer)
        return once[prefer]

    return making
