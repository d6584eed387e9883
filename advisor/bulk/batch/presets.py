"""knowledge/presets.yaml: named choices for plans, by stated criteria."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from advisor.errors import KnowledgeError, raise_problems
from advisor.knowledge.load import read_files
from advisor.knowledge.yaml_fields import Collector, Fields
from advisor.yamlfile import Node

FILE = "presets.yaml"
KINDS = ("gpus", "models", "formats", "contexts")
_KEYS = ("preset", "of", "include", "exclude", "why", "source")

Presets = Mapping[str, Mapping[str, Node]]
"""Kind of list -> name of preset -> the mapping that holds include and exclude."""


def read_presets(folder: Path | None = None) -> Presets:
    """Read the built-in presets, or a user's file of that name in front of them.

    Raises:
        KnowledgeError: The file is wrong.
        Problems: It is wrong in several places.
    """
    files, _ = read_files(folder)
    found: dict[str, dict[str, Node]] = {kind: {} for kind in KINDS}
    problems = Collector(KnowledgeError)
    shown = f"{folder or 'knowledge'}/{FILE}"
    content = files.get(FILE)
    for node in problems.entries(content, shown, "- preset: NAME") if content else ():
        _take(node, found, problems)
    raise_problems(problems.errors)
    return found


def _take(node: Node, found: dict[str, dict[str, Node]], problems: Collector) -> None:
    fields = Fields.of(node, "a preset", problems)
    if fields is None:
        return
    fields.only(_KEYS)
    for key in ("preset", "of", "include", "why", "source"):
        fields.require(key)
    name, kind = fields.text("preset"), fields.choice("of", KINDS)
    if not name or not kind:
        return
    if name.casefold() in found.get(kind, {}):
        problems.add(f"the preset '{name}' of {kind} stands twice.", node.source)
    found.setdefault(kind, {})[name.casefold()] = node
