"""What a setting is: what a person reads of it, and how a value of its kind is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from advisor.errors import RequestError, UserError
from advisor.units import UnitError, parse_in, parse_whole

Kind = Literal["text", "word", "switch", "whole", "number", "count or all"]


class Setting(Struct, frozen=True):
    """One setting: what a person reads of it and what it may be."""

    help: str
    panel: str = ""
    """Group of its flag in the help; empty: it has no flag."""
    default: str = ""
    """What holds where it is not stated, in words."""
    least: float = 1
    most: float | None = None
    """Bounds of a number; without ``most`` neither is checked."""
    unit: str = ""
    with_unit: str = ""
    """The name under which the same is stated as a text with a unit; the flag bears it."""
    also: str = ""
    """Another setting that its text may state."""
    fixed: bool = True
    """Whether the block ``with`` of a batch plan takes it."""
    effort: int | None = None
    """How much a change of it asks of a person; None: a change of it alone is never proposed."""
    tried: Sequence[float] = ()
    """Values tried for a change, where what is resolved is what was stated."""
    drawn: Sequence[float | None] = ()
    """Values in a sample of requests, in step with those of the other settings of a computer."""
    fact: str = ""
    """The fact that is the value as stated, a whole number."""
    counts: Sequence[str] = ()
    """Words that may say what that fact counts, where a text prints it."""
    needed: bool = False
    """Whether its flag must be given."""
    listed_before: str = ""
    shown_before: str = ""
    """Place among the keys and among the flags, where not in the order of declaration."""
    called: Sequence[str] = ()
    """What other programs and people call its flag."""
    name: str = ""
    kind: Kind = "text"
    words: Sequence[str] = ()
    """All it may be, for the kind ``word``. These last three follow from the field."""

    @property
    def typed_name(self) -> str:
        """Its name where a person types it: a flag without hyphens, a key of ``with``."""
        return self.with_unit or self.name


def out_of_bounds(setting: Setting, value: float | None) -> UserError | None:
    """Say why no number of a setting can be this; None where it may, or is not bounded."""
    if value is None or setting.most is None:
        return None
    unit = f" {setting.unit}" if setting.unit else ""
    if value != value or value < setting.least:  # noqa: PLR0124  NaN is not itself
        hint = f"Give at least {setting.least}{unit}."
    elif value > setting.most:
        hint = f"Give at most {setting.most:,}{unit}."
    else:
        return None
    return RequestError(f"{setting.typed_name} is {_shown(value)}{unit}", hint=hint)


def _shown(value: float) -> str:
    return f"{value:,.10g}" if isinstance(value, float) else f"{value:,}"


def typed_value(setting: Setting, value: object) -> object:
    """Read a plain value as its kind; raises ``TypeError`` or ``ValueError`` where it is none."""
    if setting.kind in {"text", "word"}:
        return _text(setting, value)
    if setting.kind == "switch":
        if not isinstance(value, bool):
            raise TypeError(f"'{value}' is neither true nor false")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(f"'{value}' is not a number")
    whole = setting.kind == "count or all" and value == "all"
    return value if whole else float(value) if setting.kind == "number" else _whole(value)


def _text(setting: Setting, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"'{value}' is not a name")
    if value not in (setting.words or (value,)):
        raise ValueError(f"'{value}' is not one of {', '.join(setting.words)}")
    return value


def _whole(value: float | str) -> int:
    try:
        number = float(parse_whole(value) if isinstance(value, str) else value)
    except UnitError:
        raise ValueError(f"'{value}' is not a number") from None
    if not number.is_integer():
        raise ValueError(f"'{value}' is not a whole number")
    return int(number)


def quantities(setting: Setting, text: str) -> Mapping[str, object]:
    """Read the text of a setting with a unit: its number, and what else the text may state.

    Raises:
        UnitError, RequestError: Not such a quantity, or RAM with a word that is not understood.
    """
    try:
        return {setting.name: parse_in(text, setting.unit)}
    except UnitError:
        if not setting.also:
            raise
    from advisor.reading.ram import read_ram  # noqa: PLC0415  read where more than a size is said

    size, kind = read_ram(text)
    pairs = ((setting.name, size), (setting.also, kind and str(kind)))
    return {name: value for name, value in pairs if value}


_NOTHING_SAID: Final = re.compile(
    r"none|(?:ollama(?:'s)? )?default(?: (?:quant|tag|of ollama|ollama))?|auto|original|published"
    r"|any|native",
    re.IGNORECASE,
)
_UNPACKED: Final = re.compile(
    r"(?:un|non[- ]?|not )quanti[sz]ed|no[- ]quant(?:i[sz]ation)?|full(?:[- ]precision)?"
    r"|w16a16|half float|(?:fp|bf)16 ?(?:/|or) ?(?:fp|bf)16",
    re.IGNORECASE,
)
_BITS_BESIDE: Final = re.compile(
    r"(?:(?:torchao|quanto|onnx|openvino|ipex|itrex|quark|rtn|qat|unsloth|dynamic|"
    r"quanti[sz]ed(?: \w\w)?|a?sym|woq)[-_ ]+)*(int\d|\d{1,2}[- ]?bit)s?(?:wo(?:-\d{2,3})?|"
    r"\s*\((?!bits|exp|i?q\d)[^()]*\)|"
    r"[-_ ]+(?:quant\w*|weights?|only|wo|precision|b?float(?:16|32)?|a?sym|qat|rtn|"
    r"g\d{2,3}|kv\d))*",
    re.IGNORECASE,
)
"""A family of formats beside words that say nothing of it: ``4-bit quant``."""
_QUANT: Final = re.compile(r"(?:--?)?quant(?:i[sz]e|i[sz]ation)?[\s=:_-]+([2-8]|16)", re.IGNORECASE)
"""As a demo's flag has it: ``quant 4``."""
_KIND_BEHIND: Final = re.compile(r"(?i)(.+?)\s*\((gptq|awq|gguf|mlx|exl[23]|bnb|bitsandbytes)\)")
"""The kind of file in brackets behind a precision: ``int4 (gptq)``."""


def stated(precision: str | None) -> str:
    """Give the precision that was stated: nothing where the word leaves it open."""
    text = (precision or "").strip()
    text = _KIND_BEHIND.sub(r"\2 \1", text) if "(" in text else text
    if _NOTHING_SAID.fullmatch(text):
        return ""
    text = _QUANT.sub(r"\1-bit", text)
    bits = _BITS_BESIDE.fullmatch(text)
    return "16-bit" if _UNPACKED.fullmatch(text) else bits[1] if bits else text


def is_sixteen(text: str) -> bool:
    """Whether a precision says 16 bits and not which: the checkpoint's own type."""
    return text.strip().casefold().replace(" ", "-") in _SIXTEEN


_SIXTEEN: Final = frozenset({"16bit", "16bits", "16-bit", "16-bits"})
