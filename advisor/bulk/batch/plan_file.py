"""A plan in YAML: lists of cards, models, formats ... whose every combination is reported.

gpus: popular
models: {include: [popular], exclude: [{family: Falcon}]}
formats: [FP16, Q4_K_M]
contexts: [4096, 32768]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.bulk.batch.axes import (
    Axis,
    Card,
    Choice,
    Reader,
    T,
    count_axis,
    format_axis,
    framework_axis,
    gpu_axis,
    kv_axis,
    model_axis,
    refuse,
)
from advisor.bulk.batch.plan import MOST_IN_A_SHARD, SHARD_SIZE
from advisor.errors import KnowledgeError, RequestError, UserError, raise_problems
from advisor.knowledge.layers import Stack, holding
from advisor.knowledge.stacked_files import read_files
from advisor.knowledge.types import Knowledge
from advisor.knowledge.yaml_fields import Collector, Fields
from advisor.scenario.settings import FIXED, SETTINGS, number_problems, request_from
from advisor.yamlfile import Node

FILE = "presets.yaml"
KINDS = ("gpus", "models", "formats", "contexts")
_KEYS = ("preset", "of", "include", "exclude", "why", "source")

Presets = Mapping[str, Mapping[str, Node]]
"""Kind of list -> name of preset -> the mapping that holds include and exclude."""


def read_presets(folders: Stack = None) -> Presets:
    """Read the built-in presets, or a user's file of that name in front of them.

    Raises:
        KnowledgeError: The file is wrong.
        Problems: It is wrong in several places.
    """
    problems = Collector(KnowledgeError)
    found = _presets(folders, problems)
    raise_problems(problems.errors)
    return found


def _presets(folders: Stack, problems: Collector) -> Presets:
    files, _ = read_files(folders)
    found: dict[str, dict[str, Node]] = {kind: {} for kind in KINDS}
    shown = f"{next(holding(folders, FILE), 'knowledge')}/{FILE}"
    content = files.get(FILE)
    for node in problems.entries(content, shown, "- preset: NAME") if content else ():
        _take(node, found, problems)
    return found


def preset_problems(folders: Stack, knowledge: Knowledge) -> Sequence[UserError]:
    """Find all that is wrong with a user's presets, the names and filters they hold included."""
    problems = Collector(KnowledgeError)
    if not any(holding(folders, FILE)):
        return []
    presets = _presets(folders, problems)
    blocks = _Blocks(knowledge, presets, problems)
    for kind, named in presets.items():
        for name, node in named.items():
            if isinstance(node.value, Mapping) and "include" in node.value:
                asked = replace(node, value=name, text=name)
                blocks.look_up(Fields({kind: asked}, node.source, {}, problems), kind)
    return problems.errors


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


_PREFER = SETTINGS["prefer"].words
_FIXED = [one.typed_name for one in FIXED]
_LISTS = (
    "gpus", "models", "formats", "frameworks", "contexts", "batch", "kv_cache", "gpu_counts",
    "prefer",
)  # fmt: skip
_BLOCK = (*_LISTS, "with", "beyond_trained")
_TOP = (*_BLOCK, "blocks", "shard_size")


class Block(Struct, frozen=True):
    """One product; an empty list leaves its key to the default of a request."""

    cards: tuple[Card, ...]
    models: tuple[Choice, ...]
    formats: tuple[str, ...]
    frameworks: tuple[str, ...]
    contexts: tuple[int, ...]
    batch: tuple[int, ...]
    kv_cache: tuple[str, ...]
    gpu_counts: tuple[int, ...]
    prefer: tuple[str, ...]
    fixed: Mapping[str, object]
    beyond_trained: bool
    """Whether contexts longer than a model was trained for are reported too."""

    @property
    def lists(self) -> Mapping[str, Sequence[object]]:
        """What varies beside card, model, format and framework, by key of a request."""
        return {
            "gpus": self.gpu_counts,
            "context": self.contexts,
            "batch": self.batch,
            "kv_cache": self.kv_cache,
            "prefer": self.prefer,
        }


class PlanFile(Struct, frozen=True):
    """What a YAML plan says."""

    blocks: tuple[Block, ...]
    shard_size: int


def read_plan(content: bytes, shown: str, knowledge: Knowledge, folder: Stack = None) -> PlanFile:
    """Read a YAML plan and look up every name in it.

    ``folder`` is the user's knowledge, for presets.

    Raises:
        RequestError: One thing is wrong.
        Problems: Several are; all of them at once.
    """
    problems = Collector(RequestError)
    root = problems.parse(content, shown)
    fields = Fields.of(root, "a plan", problems) if root else None
    raise_problems(problems.errors)
    assert fields
    reader = _Blocks(knowledge, read_presets(folder), problems)
    blocks = [reader.block(part) for part in _parts(fields, problems)]
    size = _whole("shard_size", fields, problems, SHARD_SIZE)
    if size > MOST_IN_A_SHARD:
        hint = f"Give at most {MOST_IN_A_SHARD}."
        problems.add(f"'shard_size' is {size}.", fields.at("shard_size"), hint)
    raise_problems(problems.errors)
    return PlanFile(tuple(blocks), size)


def _parts(fields: Fields, problems: Collector) -> list[Fields]:
    fields.only(_TOP)
    blocks = fields.node("blocks")
    if blocks is None:
        return [fields]
    for key in _BLOCK:
        if key in fields:
            hint = "Move it into the blocks."
            problems.add(f"'{key}' stands beside 'blocks'.", fields.at(key), hint)
    if not isinstance(blocks.value, list) or not blocks.value:
        problems.add("'blocks' must be a list of mappings.", fields.at("blocks"))
        return []
    found = [Fields.of(node, "a block", problems) for node in blocks.value]
    for part in found:
        if part:
            part.only(_BLOCK)
    return [part for part in found if part]


class _Blocks(Struct, frozen=True):
    knowledge: Knowledge
    presets: Presets
    problems: Collector

    def block(self, fields: Fields) -> Block:
        known = self.knowledge
        for key in ("gpus", "models"):
            fields.require(key, f"For example '{key}: popular'.")
        return Block(
            cards=self._cards(fields),
            models=self._chosen(model_axis(known), fields),
            formats=self._chosen(format_axis(known), fields),
            frameworks=self._chosen(framework_axis(known), fields),
            contexts=self._chosen(count_axis("contexts", "context"), fields),
            batch=self._chosen(count_axis("batch", "batch"), fields),
            kv_cache=self._chosen(kv_axis(known), fields),
            gpu_counts=self._chosen(count_axis("gpu_counts", "gpus"), fields),
            prefer=self._prefer(fields),
            fixed=self._fixed(fields),
            beyond_trained=fields.flag("beyond_trained"),
        )

    def look_up(self, fields: Fields, kind: str) -> None:
        """Look up the names of one list."""
        if kind == "contexts":
            self._chosen(count_axis(kind, "context"), fields)
        elif kind == "gpus":
            self._chosen(gpu_axis(self.knowledge), fields)
        elif kind == "models":
            self._chosen(model_axis(self.knowledge), fields)
        else:
            self._chosen(format_axis(self.knowledge), fields)

    def _cards(self, fields: Fields) -> tuple[Card, ...]:
        cards = self._chosen(gpu_axis(self.knowledge), fields)
        for card in cards if "gpu_counts" in fields else ():
            if card.counted:
                message = f"'{card.text}' says how many cards there are, and so does gpu_counts."
                hint = "Leave gpu_counts out, or move the card into a block of its own."
                self.problems.add(message, fields.at("gpus"), hint)
        return cards

    def _chosen(self, axis: Axis[T], fields: Fields) -> tuple[T, ...]:
        node = fields.node(axis.kind)
        if node is None:
            return ()
        return tuple(Reader(axis, self.presets.get(axis.kind, {}), self.problems).select(node))

    def _prefer(self, fields: Fields) -> tuple[str, ...]:
        words = fields.words("prefer")
        for word in words:
            if word not in _PREFER:
                hint = f"It is one of {', '.join(_PREFER)}."
                self.problems.add(f"unknown prefer '{word}'.", fields.at("prefer"), hint)
        return tuple(dict.fromkeys(words))

    def _fixed(self, fields: Fields) -> Mapping[str, object]:
        node = fields.node("with")
        given = Fields.of(node, "'with'", self.problems) if node else None
        if given is None:
            return {}
        given.only(_FIXED)
        for key, value in given.values.items():
            if key in _FIXED:
                self._check(key, value)
        return {key: value.plain() for key, value in given.values.items()}

    def _check(self, key: str, node: Node) -> None:
        try:
            raise_problems(number_problems(request_from({key: node.plain()})))
        except UserError as bad:
            refuse(bad, node, self.problems)


def _whole(key: str, fields: Fields, problems: Collector, default: int) -> int:
    number = fields.number(key)
    if number is None:
        return default
    if not number.is_integer() or number < 1:
        problems.add(f"'{key}' must be a whole number above 0.", fields.at(key))
        return default
    return int(number)
