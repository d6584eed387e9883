"""The precomputed lookup of names: built once with the knowledge, stored beside it as JSON.

``gpus``: ``[name, words, core]`` per spelling; ``models``: ``exact`` (key -> names), ``hf``
(Hugging Face id -> name) and ``cores`` (``[name, core words]``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict, cast

from advisor.errors import KnowledgeError, UserError
from advisor.knowledge.entry import Parsed
from advisor.knowledge.tokens import Form, gpu_form, model_core, model_key
from advisor.knowledge.types import Knowledge

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
        cards = [_named(g.name, g.aliases, vendor=g.vendor) for g in knowledge.gpus.values()]
        models = [_named(m.name, m.aliases, hf_id=m.hf_id or "") for m in knowledge.models.values()]
        return build_index(cards, models)
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


def named(parsed: Parsed) -> Named:
    """Pick what the index needs from a parsed record."""
    aliases = parsed.fields.get("aliases", ())
    assert isinstance(aliases, tuple | list)
    return _named(
        str(parsed.fields["name"]),
        [str(a) for a in aliases],
        vendor=str(parsed.fields.get("vendor") or ""),
        hf_id=str(parsed.fields.get("hf_id") or ""),
    )


def report_shared_names(
    cards: Iterable[Parsed], models: Iterable[Parsed], problems: list[UserError]
) -> None:
    """Collect names and aliases that two cards, or two models, have in common."""
    for what, table, keys in (("gpu", cards, _card_keys), ("model", models, _model_keys)):
        owner: dict[str, Parsed] = {}
        for parsed in table:
            for key, spelling in keys(named(parsed)).items():
                other = owner.setdefault(key, parsed)
                if other is not parsed:
                    message = (
                        f"{what} '{parsed.fields['name']}': the name '{spelling}' already means "
                        f"'{other.fields['name']}' ({other.place})"
                    )
                    hint = "A name or alias belongs to one record."
                    problems.append(KnowledgeError(message, source=parsed.place, hint=hint))


def _named(name: str, aliases: Sequence[str], *, vendor: str = "", hf_id: str = "") -> Named:
    return {"name": name, "vendor": vendor, "hf_id": hf_id, "aliases": aliases}


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
