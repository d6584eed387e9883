"""What a plan is to the rest: so many scenarios in canonical spelling, cut into numbered shards."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.bulk import Row, read_rows
from advisor.errors import Problems, RequestError, Source, UserError, raise_problems
from advisor.knowledge.catalogue import Cards
from advisor.knowledge.names import find_kv_type
from advisor.knowledge.types import Knowledge
from advisor.models import model_from_path
from advisor.models.stored_tensors import Model
from advisor.scenario.asked_format import formats_named
from advisor.scenario.asked_model import find_model_named
from advisor.scenario.resolve import cards_asked, resolve
from advisor.scenario.settings import Request, request_from

SHARD_SIZE = 256
"""Scenarios in a shard unless the plan says otherwise."""
MOST_IN_A_SHARD = 4096


class Item(Struct, frozen=True):
    """One scenario to be reported."""

    request: Mapping[str, object]
    """Keys of a request; in their canonical spelling unless ``line`` says where they stood."""
    line: int = 0
    """Line of the file of requests, 0 for a plan in YAML."""
    id: object = None
    """As stated in the file of requests."""


class Shard(Struct, frozen=True):
    """A run of neighbouring scenarios; its number, from 0, depends on the plan alone."""

    number: int
    items: tuple[Item, ...]


class Plan(Protocol):
    """Everything that is to be reported."""

    @property
    def scenarios(self) -> int:
        """How many there are."""

    @property
    def shard_size(self) -> int:
        """Scenarios in every shard but the last."""

    @property
    def skipped(self) -> Mapping[str, int]:
        """Combinations left out because they cannot run, by reason."""

    @property
    def described(self) -> Mapping[str, object]:
        """The plan as plain data in canonical spelling, for the manifest."""

    def shards(self, wanted: Collection[int]) -> Iterator[Shard]:
        """Give the shards of these numbers, in order."""


def shard_count(plan: Plan) -> int:
    """How many shards a plan is cut into."""
    return shards_of(plan.scenarios, plan.shard_size)


def shards_of(scenarios: int, size: int) -> int:
    """How many shards of a size, 1 or more, so many scenarios are cut into."""
    return -(-scenarios // size)


_WINDOW = 64 * SHARD_SIZE
_MOST_PROBLEMS = 500
_CHUNK = 1 << 20
_ORDER = ("model", "config", "precision", "framework", "gpu", "context", "batch")


class Requests(Struct, frozen=True):
    """A file of requests, checked; see ``advisor.bulk.batch.plan.Plan``."""

    file: Path
    scenarios: int
    sha256: str
    model_files: Mapping[str, str]
    """Hash of what each model file on disk says, by its name in the rows."""
    shard_size: int = SHARD_SIZE
    skipped: Mapping[str, int] = field(default_factory=dict)

    @property
    def described(self) -> Mapping[str, object]:
        """The file by its content."""
        return {
            "kind": "requests",
            "rows": self.scenarios,
            "sha256": self.sha256,
            "model_files": dict(self.model_files),
        }

    def shards(self, wanted: Collection[int]) -> Iterator[Shard]:
        """Give the shards of these numbers, in order.

        Raises:
            RequestError: The file cannot be read any more.
        """
        numbers, number = frozenset(wanted), 0
        with _opened(self.file) as stream:
            items = (_item(row) for row in read_rows(stream, self.file.name))
            while window := sorted(islice(items, _WINDOW), key=_order):
                for start in range(0, len(window), self.shard_size):
                    if number in numbers:
                        yield Shard(number, tuple(window[start : start + self.shard_size]))
                    number += 1


def check_requests(file: Path, knowledge: Knowledge) -> Requests:
    """Read a whole file and check every row.

    Raises:
        UserError: Rows are wrong: all of them (the first 500), each with its line.
    """
    problems: list[UserError] = []
    models: dict[str, str] = {}
    count, wrong = 0, 0
    with _opened(file) as stream:
        for row in read_rows(stream, file.name):
            count += 1
            found = _problems(row, file.name, knowledge, models)
            wrong += bool(found)
            problems += found[: max(_MOST_PROBLEMS - len(problems), 0)]
    if wrong and len(problems) >= _MOST_PROBLEMS:
        problems.append(RequestError(f"{wrong:,} rows are wrong; the first are listed."))
    raise_problems(problems)
    if not count:
        raise RequestError(f"'{file.name}' holds no request", hint="Write one on each line.")
    return Requests(file, count, _sha256(file), dict(sorted(models.items())))


def _problems(row: Row, name: str, knowledge: Knowledge, models: dict[str, str]) -> list[UserError]:
    place = Source(name, row.number)
    if row.problem:
        return [RequestError(row.problem, source=place)]
    given = {key: value for key, value in row.given.items() if key != "id"}
    if not isinstance(row.given.get("id"), str | int | float | None):
        return [RequestError("id must be a text or a number", source=place)]
    try:
        request = request_from(given)
        if not request.gpu:
            raise RequestError("no GPU is named", hint="Fill in 'gpu'.")
        canonical(request, knowledge)
        models.update(file_state(request, knowledge))
    except UserError as error:
        errors = error.errors if isinstance(error, Problems) else [error]
        return [RequestError(e.message, source=place, hint=e.hint) for e in errors]
    return []


def _item(row: Row) -> Item:
    given = dict(row.given)
    name = given.pop("id", None)
    return Item(given, row.number, name)


def _order(item: Item) -> tuple[object, ...]:
    return (*(str(item.request.get(key, "")).casefold() for key in _ORDER), item.line)


def _opened(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as bad:
        raise RequestError(f"cannot read '{file}': {bad.strerror}.") from None


def _sha256(file: Path) -> str:
    total = hashlib.sha256()
    with _opened(file) as stream:
        while chunk := stream.read(_CHUNK):
            total.update(chunk)
    return total.hexdigest()


# ---- canonical spelling


def canonical(request: Request, knowledge: Knowledge) -> Request:
    """Write a request's names as the knowledge base does; what it asks for stays the same.

    Two rows that spell the same request differently then give the same report.

    Raises:
        UserError: The request is wrong, or names a file by an absolute path.
    """
    for text in (request.model, request.config, request.draft_model):
        if text and absolute(text):
            raise RequestError(
                f"'{text}' is an absolute path, which would end up in the reports",
                hint="Run from a folder near it and write the path from there.",
            )
    scenario = resolve(request, knowledge)
    key, value = scenario.kv_cache_k.name, scenario.kv_cache_v.name
    both = request.kv_cache and find_kv_type(knowledge, request.kv_cache).name
    return replace(
        request,
        **_cards(request, knowledge),
        model=_model(request.model, scenario.model, knowledge),
        draft_model=_model(request.draft_model, scenario.draft_model, knowledge),
        precision=_precision(request, knowledge),
        framework=scenario.framework.name if request.framework else None,
        backend=scenario.backend if request.backend else None,
        kv_cache=both,
        kv_cache_k=key if request.kv_cache_k else None,
        kv_cache_v=value if request.kv_cache_v else None,
    )


def file_state(request: Request, knowledge: Knowledge) -> Mapping[str, str]:
    """Hash what the model files of a request say, by their names in it."""
    found: dict[str, str] = {}
    if request.config:
        found[request.config] = _hash(model_from_path(Path(request.config)))
    for text in filter(None, (request.model, request.draft_model)):
        model = find_model_named(text, knowledge)
        if model.origin != "knowledge":
            found[text] = _hash(model)
    return found


def _hash(model: Model) -> str:
    return hashlib.sha256(repr(model).encode()).hexdigest()


def absolute(text: str) -> bool:
    """Whether a path would name a place on this machine alone."""
    paths = (PurePosixPath(text), PureWindowsPath(text))
    return text.startswith("~") or any(path.is_absolute() for path in paths)


def _cards(request: Request, knowledge: Knowledge) -> dict[str, Any]:
    """Two of a card are the card and the number two, however they were written."""
    if not request.gpu:
        return {}
    cards = cards_asked(request, knowledge)
    name = card_name(request.gpu, cards, knowledge)
    if cards.counted and name == cards.gpu.name:
        return {"gpu": name, "gpus": cards.count}
    return {"gpu": name}


def card_name(text: str, cards: Cards, knowledge: Knowledge) -> str:
    """Name the card; unequal cards, and one with a stated memory size, keep their text."""
    plain = not cards.each and knowledge.gpus.get(cards.gpu.name) == cards.gpu
    return cards.gpu.name if plain else text.strip()


def _model(text: str | None, model: Model | None, knowledge: Knowledge) -> str | None:
    if text is None or model is None:
        return text
    return model.name if model.origin == "knowledge" and model.name in knowledge.models else text


def _precision(request: Request, knowledge: Knowledge) -> str | None:
    if not request.precision:
        return None
    found = formats_named(request.precision, knowledge)
    return found[0].name if len(found) == 1 else request.precision.strip().upper()
