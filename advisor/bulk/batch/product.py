"""A YAML plan as scenarios: every combination that can run, in an order that suits the caches.

The model changes slowest, so that neighbours share its weights; then the card, then format and
framework, then context, batch and the rest. So neighbours try the same other formats on a card, and
the next card is held against the same larger ones.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from msgspec import Struct, field

from advisor.bulk.batch.axes import Card
from advisor.bulk.batch.plan import Item, Plan, Shard, check_requests
from advisor.bulk.batch.plan_file import Block, PlanFile, read_plan
from advisor.errors import RequestError, UserError
from advisor.estimator import estimate_memory
from advisor.files import read_whole
from advisor.knowledge import names
from advisor.knowledge.layers import Stack
from advisor.knowledge.types import Framework, Gpu, Knowledge
from advisor.models.stored_tensors import Model
from advisor.scenario import support
from advisor.scenario.asked_format import DEFAULT_PRECISION, precision_asked
from advisor.scenario.choices import candidates, choices_for, kind_of
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request, request_from

TOO_LONG = "the context is longer than the model was trained for (beyond_trained: yes keeps it)"
REPEATED = "an earlier block of the plan has it already"
NO_DEPTH = "the depth is not below the context"
ALONE = "a part of its machine: no second one can be put beside it"
Inner = Mapping[str, object]


class _Group(Struct, frozen=True):
    """Scenarios that share a model."""

    block: int
    heads: Sequence[Mapping[str, object]]
    """The model with each format and framework."""
    codes: Sequence[int]
    """(Card number x heads + number of the head) x inner combinations + number of the inner one."""


class Product(Struct, frozen=True):
    """A YAML plan, expanded; see ``advisor.bulk.batch.plan.Plan``."""

    blocks: tuple[Block, ...]
    shard_size: int
    groups: tuple[_Group, ...]
    starts: tuple[int, ...]
    """Scenarios before each group."""
    scenarios: int
    skipped: Mapping[str, int]

    @property
    def described(self) -> Mapping[str, object]:
        """The lists in canonical spelling."""
        return {"kind": "product", "blocks": [_described(block) for block in self.blocks]}

    def shards(self, wanted: Collection[int]) -> Iterator[Shard]:
        """Give the shards of these numbers, in order."""
        for number in sorted(wanted):
            start = number * self.shard_size
            stop = min(start + self.shard_size, self.scenarios)
            yield Shard(number, tuple(self._items(start, stop)))

    def _items(self, start: int, stop: int) -> Iterator[Item]:
        place = bisect_right(self.starts, start) - 1
        while start < stop:
            group, first = self.groups[place], self.starts[place]
            last = min(stop, first + len(group.codes))
            inners = _inner(self.blocks[group.block])
            for code in group.codes[start - first : last - first]:
                outer, inner = divmod(code, len(inners))
                card, head = divmod(outer, len(group.heads))
                text = self.blocks[group.block].cards[card].text
                yield Item({"gpu": text, **group.heads[head], **inners[inner]})
            start, place = last, place + 1


def expand(plan: PlanFile, knowledge: Knowledge) -> Product:
    """Find every combination that can run and count the others by reason."""
    expansion = _Expansion(plan.blocks, knowledge)
    groups = [group for number in range(len(plan.blocks)) for group in expansion.groups(number)]
    starts, total = [], 0
    for group in groups:
        starts.append(total)
        total += len(group.codes)
    skipped = dict(sorted(expansion.skipped.items(), key=lambda pair: (-pair[1], pair[0])))
    return Product(plan.blocks, plan.shard_size, tuple(groups), tuple(starts), total, skipped)


def _inner(block: Block) -> list[Inner]:
    """The combinations of everything but card, model, format and framework."""
    stated = {key: values for key, values in block.lists.items() if values}
    return [
        dict(zip(stated, one, strict=True)) | dict(block.fixed) for one in product(*stated.values())
    ]


def _described(block: Block) -> Mapping[str, object]:
    return {
        "gpus": [card.text for card in block.cards],
        "models": [choice.text for choice in block.models],
        "formats": list(block.formats),
        "frameworks": list(block.frameworks),
        "contexts": list(block.contexts),
        "batch": list(block.batch),
        "kv_cache": list(block.kv_cache),
        "gpu_counts": list(block.gpu_counts),
        "prefer": list(block.prefer),
        "with": dict(block.fixed),
        "beyond_trained": block.beyond_trained,
    }


class _Allowed(Struct, frozen=True):
    """Which inner combinations a framework and card can run, and why not the others."""

    places: Sequence[int]
    skipped: Counter[str]

    @classmethod
    def of(cls, bad: Sequence[str]) -> _Allowed:
        places = [place for place, why in enumerate(bad) if not why]
        return cls(places, Counter(filter(None, bad)))


class _Expansion(Struct):
    blocks: Sequence[Block]
    knowledge: Knowledge
    skipped: Counter[str] = field(default_factory=Counter)
    chosen: dict[tuple[object, ...], Framework | str] = field(default_factory=dict)
    sized: dict[tuple[object, ...], str] = field(default_factory=dict)

    def groups(self, number: int) -> Iterator[_Group]:
        block = self.blocks[number]
        inners = _inner(block)
        for choice in block.models:
            if choice.model is None:
                repeats = max(len(block.formats), 1) * max(len(block.frameworks), 1)
                self.skipped[choice.why_not] += len(block.cards) * len(inners) * repeats
                continue
            heads = [
                (choice.text, precision, framework)
                for precision, framework in product(block.formats or [""], block.frameworks or [""])
            ]
            codes = [
                (code // len(inners) * len(heads) + place) * len(inners) + code % len(inners)
                for place, head in enumerate(heads)
                for code in self._codes(number, choice.model, head, inners)
            ]
            if codes:
                yield _Group(number, [_stated(head) for head in heads], array("L", sorted(codes)))

    def _codes(
        self,
        number: int,
        model: Model,
        head: tuple[str, str, str],
        inners: Sequence[Inner],
    ) -> Sequence[int]:
        codes = array("L")
        allowed: dict[object, _Allowed] = {}
        _, precision, framework = head
        earlier = [b for b in self.blocks[:number] if _shares(b, self.blocks[number], head)]
        beyond = self.blocks[number].beyond_trained
        for place, card in enumerate(self.blocks[number].cards):
            runs = self._framework(model, precision, framework, card.gpu)
            why = runs if isinstance(runs, str) else self._unsized(head, runs, card)
            if why or isinstance(runs, str):
                self.skipped[why] += len(inners)
                continue
            key = (runs.name, card.gpu.compute_capability, card.gpu.stands_alone)
            if key not in allowed:
                bad = [self._bad(one, model, runs, card.gpu, beyond=beyond) for one in inners]
                allowed[key] = _Allowed.of(bad)
            self.skipped.update(allowed[key].skipped)
            for at in allowed[key].places:
                if earlier and any(_has(block, card, inners[at]) for block in earlier):
                    self.skipped[REPEATED] += 1
                else:
                    codes.append(place * len(inners) + at)
        return codes

    def _bad(self, inner: Inner, model: Model, runs: Framework, gpu: Gpu, *, beyond: bool) -> str:
        """Say why a combination of context, cache ... cannot be had; empty when it can."""
        count = inner.get("gpus")
        if isinstance(count, int) and count > 1 and gpu.stands_alone:
            return ALONE
        context, depth, kind = inner.get("context"), inner.get("depth"), inner.get("kv_cache")
        trained = model.trained_context_tokens
        if isinstance(context, int) and trained and context > trained and not beyond:
            return TOO_LONG
        if isinstance(context, int) and isinstance(depth, int) and depth >= context:
            return NO_DEPTH
        if isinstance(kind, str):
            kv = names.find_kv_type(self.knowledge, kind)
            if not support.runs_kv(runs, kv, gpu, model.shape):
                return (
                    f"{runs.name} cannot keep the KV cache as {kind} of {model.name} on such a card"
                )
        return ""

    def _framework(self, model: Model, precision: str, framework: str, gpu: Gpu) -> Framework | str:
        """Give the framework that runs it, or say why none does."""
        stored = id(model) if model.stored else 0
        card = (gpu.vendor, gpu.architecture, gpu.compute_capability)
        own = (stored, model.held_format, model.name if framework else "")
        key = (precision, framework, *kind_of(model), *own, *card)
        if key not in self.chosen:
            self.chosen[key] = self._choose(model, precision, framework, gpu)
        return self.chosen[key]

    def _choose(self, model: Model, precision: str, framework: str, gpu: Gpu) -> Framework | str:
        known = self.knowledge
        stated = names.find_framework(known, framework) if framework else None
        stored = model.stored
        held = stored.format_name if stored else precision_asked(Request(), model, stated)
        asked = precision or held or DEFAULT_PRECISION
        tried = candidates(known, stated, split=False)
        if found := choices_for(known, gpu, model).asked_pair(asked, tried):
            return found[1]
        subject = f"{framework} does not run" if framework else "no framework runs"
        if choices_for(known, None, model).asked_pair(asked, tried):
            return f"{subject} {asked} on {_kind_of(gpu)}"
        kind = model.shape.outer_type or model.shape.model_type
        return f"{subject} {asked} of the architecture '{kind}'"

    def _unsized(self, head: tuple[str, str, str], runs: Framework, card: Card) -> str:
        """Say why no formula covers the memory; tried once for a model and framework."""
        model, precision, framework = head
        key = (model, runs.name)
        if key not in self.sized:
            stated = {"gpu": card.text, "model": model, "precision": precision or None}
            request = request_from({**stated, "framework": framework or None})
            try:
                estimate_memory(resolve(request, self.knowledge), self.knowledge)
                self.sized[key] = ""
            except UserError as bad:
                self.sized[key] = bad.message
        return self.sized[key]


def _stated(head: tuple[str, str, str]) -> Mapping[str, object]:
    named = zip(("model", "precision", "framework"), head, strict=True)
    return {key: value for key, value in named if value}


def _kind_of(gpu: Gpu) -> str:
    """``NVIDIA Ada Lovelace``; Apple's architectures carry the vendor's name already."""
    if gpu.architecture.startswith(gpu.vendor):
        return gpu.architecture
    return f"{gpu.vendor} {gpu.architecture}"


def _shares(earlier: Block, block: Block, head: tuple[str, str, str]) -> bool:
    model, precision, framework = head
    return (
        earlier.fixed == block.fixed
        and any(choice.text == model for choice in earlier.models)
        and precision in (earlier.formats or ("",))
        and framework in (earlier.frameworks or ("",))
        and all(bool(earlier.lists[key]) == bool(values) for key, values in block.lists.items())
    )


def _has(earlier: Block, card: Card, inner: Inner) -> bool:
    same = all(inner.get(key) in values for key, values in earlier.lists.items() if values)
    return same and any(one.text == card.text for one in earlier.cards)


_YAML = (".yaml", ".yml")
_ROWS = (".csv", ".jsonl", ".ndjson", ".json")
_MOST_REASONS = 5


def load_plan(file: Path, knowledge: Knowledge, folder: Stack = None) -> Plan:
    """Read and check a plan; nothing is estimated yet but what tells whether it can be.

    The file's ending says what it is; ``folder`` is the user's knowledge, for presets.

    Raises:
        UserError: Everything that is wrong with it, at once.
    """
    suffix = file.suffix.casefold()
    if suffix in _ROWS:
        return check_requests(file, knowledge)
    if suffix not in _YAML:
        raise RequestError(
            f"'{file}' is neither a plan nor requests by its name",
            hint=f"Name it with one of {', '.join((*_YAML, *_ROWS))}.",
        )
    try:
        content = read_whole(file)
    except OSError as bad:
        raise RequestError(f"cannot read '{file}': {bad.strerror}.") from None
    plan = expand(read_plan(content, str(file), knowledge, folder), knowledge)
    if not plan.scenarios:
        reasons = list(plan.skipped)[:_MOST_REASONS]
        raise RequestError(
            f"nothing in '{file}' can run: {'; '.join(reasons) or 'it is empty'}",
            hint="Take other formats, cards or contexts.",
        )
    return plan
