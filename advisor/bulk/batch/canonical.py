"""A request as typed -> the same request in the names of the knowledge base."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.catalogue import Cards
from advisor.knowledge.names import find_kv_type
from advisor.knowledge.types import Knowledge
from advisor.models.resolution import model_from_path
from advisor.models.stored_tensors import Model
from advisor.scenario.asked_format import formats_named
from advisor.scenario.asked_model import find_model_named
from advisor.scenario.resolve import cards_asked, resolve
from advisor.scenario.settings import Request


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
