"""Names of report files: readable, the same on every machine, safe on every file system.

A name depends on the request alone. Names of the knowledge base are told apart by their
readable form (checked here); whatever else stands in a request, or was cut off, adds a hash.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.catalogue import Cards
from advisor.knowledge.names import find_kv_type
from advisor.knowledge.types import Knowledge
from advisor.models import model_from_path
from advisor.models.stored_tensors import Model
from advisor.scenario.asked_format import formats_named
from advisor.scenario.asked_model import find_model_named
from advisor.scenario.resolve import cards_asked, resolve
from advisor.scenario.settings import Request

MOST_STEM, MOST_FOLDER = 110, 60
"""Longest file name without its ending, and longest folder name, in characters (ASCII)."""
_KEPT = 8_192
"""Readable forms kept; a plan names the same cards, models and formats again and again."""
_OTHER = re.compile(r"[^a-z0-9.]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")
"""Names that Windows keeps for devices, with any ending."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*")
_SHOWN = {"gpus": "x{}", "context": "{}", "batch": "b{}", "kv_cache": "kv-{}"}
_BARE = ("precision", "framework", "prefer")


def slug(text: str) -> str:
    """Write a text in lower-case letters, digits, dots and hyphens; may be empty."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return _OTHER.sub("-", plain.casefold()).strip("-.")


class Namer(Struct, frozen=True):
    """Names reports; ``known`` are the texts that their slug alone tells apart."""

    known: frozenset[str]

    @classmethod
    def of(cls, knowledge: Knowledge) -> Namer:
        """Take the names of a knowledge base."""
        known: set[str] = set()
        for table in knowledge.names().values():
            count = Counter(slug(name) for name in table)
            known.update(name for name in table if count[slug(name)] == 1)
        return cls(frozenset(known))

    def path(self, request: Mapping[str, object]) -> str:
        """Name a report by its request: ``meta-llama-3-8b/geforce-rtx-4090_q4-k-m_4096``.

        The request has its keys in canonical spelling.
        """
        given = {key: value for key, value in sorted(request.items()) if value is not None}
        model = str(given.pop("model", given.pop("config", "")))
        folder = _bounded(slug(model), MOST_FOLDER, model, exact=model in self.known)
        parts = [_part(key, value) for key, value in _in_order(given)]
        exact = all(
            value in self.known or slug(value) == value
            for value in given.values()
            if isinstance(value, str)
        )
        stem = "_".join(filter(None, parts))
        if not _says_all(stem, MOST_STEM, exact=exact):
            whole = json.dumps(request, sort_keys=True, ensure_ascii=True)
            stem = _bounded(stem, MOST_STEM, whole, exact=exact)
        return f"{folder}/{stem}"


def _in_order(given: Mapping[str, object]) -> list[tuple[str, object]]:
    first = ("gpu", "gpus", "precision", "context", "batch", "kv_cache", "framework", "prefer")
    shown = [(key, given[key]) for key in first if key in given]
    return shown + [(key, value) for key, value in given.items() if key not in first]


def _part(key: str, value: object) -> str:
    text = slug(str(value))
    if key == "gpu" or key in _BARE:
        return text
    return _SHOWN[key].format(text) if key in _SHOWN else f"{slug(key)}-{text}"


def _says_all(text: str, most: int, *, exact: bool) -> bool:
    return exact and text != "" and len(text) <= most and not _RESERVED.match(text)


def _bounded(text: str, most: int, whole: str, *, exact: bool) -> str:
    """Cut a name to its longest, and add a hash unless it says everything."""
    if _says_all(text, most, exact=exact):
        return text
    text = f"x-{text}" if _RESERVED.match(text) else text
    mark = hashlib.sha256(whole.encode()).hexdigest()[:12]
    return f"{text[: most - len(mark) - 1].rstrip('-_.')}-{mark}".lstrip("-_.")


def folder_names(texts: Collection[str]) -> Mapping[str, str]:
    """Name each of some texts apart from the others, safe on every file system.

    A text whose readable form stands alone keeps it; others add a hash.
    """
    count = Counter(slug(text) for text in texts)
    return {
        text: _bounded(slug(text), MOST_FOLDER, text, exact=count[slug(text)] == 1)
        for text in texts
    }


def is_name(text: str) -> bool:
    """Whether a text can be the name of a report: a folder and a file, nothing else."""
    return _NAME.fullmatch(text) is not None


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
