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

from msgspec import Struct

from advisor.knowledge.types import Knowledge

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

        Args:
            request: Keys of a request in canonical spelling.
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
