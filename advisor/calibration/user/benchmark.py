"""What a benchmark's file says, before anything is looked up, and typed access to its fields."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Literal

from msgspec import Struct, field

from advisor.errors import RequestError, Source, UserError
from advisor.estimate.measurement import Metric

_LONGEST_TEXT = 300
_MOST_TOKENS = 2**27


class Run(Struct, frozen=True, kw_only=True):
    """One figure with what its file says of the setup; an empty text or None: it does not say."""

    line: int
    metric: Metric
    tok_s: float
    per: Literal["tokens", "prompts too", "batch"] = "tokens"
    """What ``tok_s`` counts: generated tokens, prompt tokens with them, or whole batches."""
    stdev: float | None = None
    gpu: str = ""
    gpus: int | None = None
    gpu_layers: int | None = None
    """Layers on the card; None: all."""
    models: tuple[str, ...] = ()
    """Spellings of the model's name, the most telling first."""
    precisions: tuple[str, ...] = ()
    """Spellings of the weight format, the most telling first."""
    framework: str = ""
    usual_framework: str = ""
    """Taken where neither file nor user names one."""
    framework_version: str = ""
    backend: str = ""
    prompt_tokens: int | None = None
    gen_tokens: int | None = None
    depth_tokens: int | None = None
    batch: int | None = None
    date: str = ""
    source: str = ""
    note: str = ""
    architecture: str = ""
    """Of the model, as llama.cpp names it."""
    parameters: float | None = None
    """Of the model that really ran."""
    file_bytes: float | None = None
    """Of its weights."""


class Skipped(Struct, frozen=True):
    """A row that is right and of no use here."""

    line: int
    reason: str


Read = Run | Skipped | UserError


class Fields(Struct, frozen=True):
    """One row or object of a file; complaints name the file, the line and the field."""

    values: Mapping[str, object]
    file: str
    line: int
    shown: Mapping[str, str] = field(default_factory=dict)
    """What the file calls a field, where that is not its key."""

    def error(self, message: str, hint: str = "") -> RequestError:
        """Make an error of this place."""
        return RequestError(message, source=Source(self.file, self.line), hint=hint)

    def said(self, key: str) -> bool:
        """Whether the file states the field at all."""
        found = self.values.get(key)
        return found is not None and found != ""

    def text(self, key: str) -> str:
        """Read a text on one line; numbers count as text, other kinds do not."""
        found = self.values.get(key)
        if found is None:
            return ""
        if isinstance(found, bool) or not isinstance(found, str | int | float):
            raise self.error(f"{self._name(key)} is not a text")
        return one_line(str(found))

    def number(self, key: str) -> float | None:
        """Read a number, finite or not; None where it is not stated."""
        if not self.said(key):
            return None
        found = self.values[key]
        if isinstance(found, str | int | float) and not isinstance(found, bool):
            try:
                return float(found)
            except (ValueError, OverflowError):
                pass
        raise self.error(f"{self._name(key)} is {one_line(repr(found))}, not a number")

    def speed(self, key: str) -> float:
        """Read a positive finite number that must be there."""
        found = self.number(key)
        if found is None:
            raise self.error(f"{self._name(key)} is missing")
        if not math.isfinite(found) or found <= 0:
            raise self.error(f"{self._name(key)} is {found:g}", "A measured speed is above 0.")
        return found

    def spread(self, key: str) -> float | None:
        """Read a standard deviation; None where it is missing or no number."""
        found = self.number(key)
        return found if found is not None and math.isfinite(found) and found >= 0 else None

    def count(self, key: str) -> int | None:
        """Read a whole number of tokens, cards or streams from 0 up."""
        found = self.number(key)
        if found is None:
            return None
        if not (0 <= found <= _MOST_TOKENS) or not float(found).is_integer():
            raise self.error(f"{self._name(key)} is {found:g}", "Give a whole number from 0 up.")
        return int(found)

    def layers(self, key: str) -> int | None:
        """Read a number of layers where a negative one means all."""
        found = self.number(key)
        return int(min(found, _MOST_TOKENS)) if found is not None and found >= 0 else None

    def flag(self, key: str) -> bool:
        """Read a switch: true, 1 or on."""
        return str(self.values.get(key, "")).strip().casefold() in {"true", "1", "on", "yes"}

    def _name(self, key: str) -> str:
        return self.shown.get(key, key)


def one_line(text: str) -> str:
    """Bring a text onto one line without control characters, cut where it is endless."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(plain.split())[:_LONGEST_TEXT]


def iso_date(text: str) -> str:
    """Give the ISO date at the start of a text, or nothing.

    Known: 2025-04-24T11:57:09Z and 20250424-115709.
    """
    found = re.match(r"(\d{4})-?(\d{2})-?(\d{2})(?!\d)", text)
    if not found:
        return ""
    try:
        return date(*map(int, found.groups())).isoformat()
    except ValueError:
        return ""
