"""The precomputed lookup of names: built once with the knowledge, stored beside it as JSON.

``gpus``: ``[name, words, core]`` per spelling; ``models``: ``exact`` (key -> names), ``hf``
(Hugging Face id -> name) and ``cores`` (``[name, core words]``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast

from advisor.errors import UserError
from advisor.knowledge.tokens import Form, gpu_form, model_core, model_key
from advisor.knowledge.types import Gpu, Knowledge, ModelRecord

if TYPE_CHECKING:
    from advisor.knowledge.entries import Entry
    from advisor.knowledge.record_links import Read

_Found = TypeVar("_Found")

_MOST_ENTRIES = 8192
_LONGEST_TEXT = 200
Spelling = Sequence[str]


class ModelIndex(TypedDict):
    """How models are found."""

    exact: Mapping[str, Sequence[str]]
    hf: Mapping[str, str]
    cores: Sequence[Spelling]


class Index(TypedDict):
    """How cards and models are found."""

    gpus: Sequence[Spelling]
    models: ModelIndex


class Named(TypedDict):
    """What an index needs of a record."""

    name: str
    vendor: str
    hf_id: str
    aliases: Sequence[str]


def index_of(knowledge: Knowledge) -> Index:
    """Give the stored index, or build one for knowledge that was made by hand."""
    if not knowledge.index:
        return build_index(
            map(named, knowledge.gpus.values()), map(named, knowledge.models.values())
        )
    return cast("Index", knowledge.index)


def build_index(cards: Iterable[Named], models: Iterable[Named]) -> Index:
    """Index all names and aliases."""
    spellings: list[list[str]] = []
    for card in cards:
        forms = {form.key: form for form in _forms(card)}
        spellings += [
            [card["name"], " ".join(sorted(form.words)), key] for key, form in forms.items()
        ]
    return {"gpus": spellings, "models": _model_index(list(models))}


def named(record: Gpu | ModelRecord) -> Named:
    """Pick what the index needs of a record."""
    return {
        "name": record.name,
        "vendor": getattr(record, "vendor", ""),
        "hf_id": getattr(record, "hf_id", None) or "",
        "aliases": record.aliases,
    }


def report_shared_names(cards: Iterable[Read[Gpu]], models: Iterable[Read[ModelRecord]]) -> None:
    """Collect names and aliases that two cards, or two models, have in common."""
    for table, keys in ((cards, _card_keys), (models, _model_keys)):
        owner: dict[str, Entry] = {}
        for read in table:
            entry = read.entry
            for key, spelling in keys(named(read.record)).items():
                other = owner.setdefault(key, entry)
                if other is not entry:
                    message = f"the name '{spelling}' already means '{other.name}' ({other.place})"
                    entry.problem(message, hint="A name or alias belongs to one record.")


def _forms(card: Named) -> list[Form]:
    return [gpu_form(t, card["vendor"], card["name"]) for t in (card["name"], *card["aliases"])]


def _card_keys(card: Named) -> dict[str, str]:
    return {
        gpu_form(text, card["vendor"], card["name"]).bare: text
        for text in (card["name"], *card["aliases"])
    }


def _model_keys(model: Named) -> dict[str, str]:
    return {model_key(text): text for text in (model["name"], *model["aliases"])}


def _model_index(models: Sequence[Named]) -> ModelIndex:
    exact: dict[str, list[str]] = {}
    cores: list[list[str]] = []
    for model in models:
        keys = _model_keys(model)
        short = model["hf_id"].rpartition("/")[2]
        for key in dict.fromkeys([*keys, *([model_key(short)] if short else [])]):
            exact.setdefault(key, []).append(model["name"])
        texts = dict.fromkeys(" ".join(model_core(text)) for text in keys.values())
        cores += [[model["name"], core] for core in texts if core]
    hf = {model["hf_id"].casefold(): model["name"] for model in models if model["hf_id"]}
    return {"exact": exact, "hf": hf, "cores": cores}


# ---- look-ups, remembered: a bulk run asks for the same few names many thousand times


def by_text(
    find: Callable[[Knowledge, str], _Found],
) -> Callable[[Knowledge, str], _Found]:
    """Remember what ``find`` gave, or refused, for the same knowledge and the same text.

    An entry holds its knowledge, so an identity cannot be reused while the entry lives.
    """
    kept: dict[tuple[int, str], tuple[Knowledge, _Found | UserError]] = {}

    @wraps(find)
    def remembered(knowledge: Knowledge, text: str) -> _Found:
        if len(text) > _LONGEST_TEXT:
            return find(knowledge, text)
        key = (id(knowledge), text)
        entry = kept.get(key)
        if entry is None:
            if len(kept) >= _MOST_ENTRIES:
                kept.clear()
            entry = kept[key] = (knowledge, _outcome(find, knowledge, text))
        found = entry[1]
        if isinstance(found, UserError):
            raise found.with_traceback(None)
        return found

    return remembered


def _outcome(
    find: Callable[[Knowledge, str], _Found], knowledge: Knowledge, text: str
) -> _Found | UserError:
    try:
        return find(knowledge, text)
    except UserError as error:
        return error
