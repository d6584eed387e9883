"""The settings of a reverse question that no request has, each declared once.

Words that a question looks up (``purpose``, ``sort`` ...) are taken as texts here; an unknown one
is refused with the nearest by the question itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from advisor.bulk.reverse.answers import NO_LIMIT, Reader, Settings
from advisor.bulk.reverse.cards import CardFilter
from advisor.bulk.reverse.models import MODALITIES, ModelFilter
from advisor.errors import RequestError, UserError, did_you_mean, raise_problems
from advisor.knowledge.field_kinds import is_date
from advisor.knowledge.merit import USES
from advisor.scenario.setting_kinds import Setting, out_of_bounds, typed_value
from advisor.scenario.settings import request_from
from advisor.units import UnitError, parse_quantity

_MOST = 1e12


class Wanted(Setting, frozen=True):
    """A setting that may take several values, or a number with a unit."""

    several: bool = False
    flag: str = ""
    """Its flag, where that is another word."""
    dimension: str = ""
    """Of a number, where it may be stated with a unit."""
    bare: float = 1.0
    """What a text without a unit counts, in base units."""
    example: str = ""
    is_date: bool = False

    @property
    def typed_name(self) -> str:
        """Its flag without hyphens."""
        return self.flag or self.name


_ENOUGH, _WHICH, _OUTPUT = "What is good enough", "Which ones", "The answer"
_RELEASED = Wanted(
    "Released on this date or later: 2025, 2025-06 or 2025-06-30.", _WHICH, name="released_after",
    is_date=True,
)  # fmt: skip
_BOTH = (
    Wanted(
        "Weight format to be tried: Q4_K_M, AWQ, INT4 ...; repeatable.", "How it is to run",
        "all formats with a measured loss", name="precisions", several=True, flag="precision",
    ),
    Wanted(
        "quality: the least measured loss that fits and is fast enough. balanced, speed: the "
        "smallest format that loses little. Models are ranked by merit, with speed by tokens/s.",
        _ENOUGH, "quality for models, balanced for cards", name="prefer",
    ),
    Wanted(
        f"What the model is for: {', '.join(USES)}. Sets context and speed that suffice, "
        "and for models the leaderboards that count.",
        _ENOUGH, "chat for models", name="purpose", flag="for",
    ),
    Wanted(
        "Tokens/s of one sequence, at least.", _ENOUGH, name="min_speed", kind="number", least=0,
        most=_MOST, unit="tokens/s", dimension="rate", example="20",
    ),
    Wanted(
        "Perplexity increase of the format over FP16 in %, at most; or any.", _ENOUGH,
        "12, or any with named formats", name="max_loss", kind="number", least=0, most=_MOST,
        unit="%", dimension="share", example="5",
    ),
    Wanted(
        "Take formats whose loss nobody measured too, as with a framework or formats named.",
        _ENOUGH, name="unmeasured", kind="switch",
    ),
)  # fmt: skip
_LIMIT = Wanted(
    "Most rows, or all.", _OUTPUT, "10", name="limit", kind="count or all", most=100_000,
)  # fmt: skip
_PARAMETERS = {"kind": "number", "least": 0, "most": 1e18, "dimension": "parameters", "bare": 1e9}
_MODELS = (
    Wanted(
        "Parameters, at least: 7B, 500M; a bare number is billions.", _WHICH, name="min_params",
        example="7B", **_PARAMETERS,  # type: ignore[arg-type]  # fields of it
    ),
    Wanted(
        "Parameters, at most.", _WHICH, name="max_params", example="7B",
        **_PARAMETERS,  # type: ignore[arg-type]  # fields of it
    ),
    Wanted("Only this model family.", _WHICH, name="family"),
    Wanted(f"{', '.join(MODALITIES[:-1])} or {MODALITIES[-1]}.", _WHICH, name="modality"),
    Wanted(
        "Only models of this licence: apache-2.0, mit ...; repeatable.", _WHICH, name="licences",
        several=True, flag="licence",
    ),
    _RELEASED,
    Wanted(
        "A row for every format that fits, not only the best.", _OUTPUT, name="all_formats",
        kind="switch",
    ),
    _LIMIT,
)  # fmt: skip
_CARDS = (
    Wanted("NVIDIA, AMD, Intel or Apple.", _WHICH, name="vendor"),
    Wanted(
        "desktop, workstation, laptop, datacenter, edge or unified (shared memory); repeatable.",
        _WHICH, name="forms", several=True, flag="form",
    ),
    Wanted(
        "Launch price of all cards together in US dollars, at most.", _WHICH, name="max_price_usd",
        kind="number", least=0, most=_MOST, unit="US dollars", flag="max_price", dimension="money",
        example="2000",
    ),
    Wanted(
        "Board power of all cards together in W, at most.", _WHICH, name="max_power_w",
        kind="number", least=0, most=_MOST, unit="W", flag="max_power", dimension="power",
        example="300W",
    ),
    _RELEASED,
    Wanted(
        "price, memory, speed or power; unknown figures come last.", _OUTPUT, "price", name="sort",
    ),
    _LIMIT,
)  # fmt: skip
WANTED: Mapping[str, Mapping[str, Wanted]] = {
    "models-for": {one.name: one for one in (*_BOTH, *_MODELS)},
    "gpus-for": {one.name: one for one in (*_BOTH, *_CARDS)},
}
"""Question -> what it takes besides the settings of a request, by name."""


def read_wanted(
    question: str, given: Mapping[str, object], *, flags: bool = False
) -> tuple[dict[str, Any], list[UserError]]:
    """Read the plain values of a question's own settings; ``None`` means not stated.

    With ``flags`` messages call settings by their flags.
    """
    declared, read, problems = WANTED[question], dict[str, Any](), list[UserError]()
    for name, value in given.items():
        if name not in declared:
            hint = did_you_mean(name, declared) or f"Known: {', '.join(declared)}."
            problems.append(RequestError(f"unknown key '{name}'", hint=hint))
        elif value is not None:
            one = declared[name]
            shown = f"--{one.typed_name.replace('_', '-')}" if flags else name
            try:
                read[name] = _value(replace(one, name=shown, flag=""), value)
            except UserError as wrong:
                problems.append(wrong)
            except (TypeError, ValueError, OverflowError) as wrong:
                problems.append(RequestError(f"{shown}: {wrong}", hint=one.help))
    return read, problems


def _value(one: Wanted, value: object) -> object:
    """Read a value; raises what ``typed_value`` raises, or a ``RequestError``."""
    if one.several:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise TypeError(f"'{value}' is not a list of names")
        return [typed_value(one, each) for each in value]
    if one.is_date and not is_date(str(value)):
        raise RequestError(f"{one.name} is '{value}'", hint="Write 2025, 2025-06 or 2025-06-30.")
    if one.dimension == "share" and str(value).strip().casefold() in {"any", str(NO_LIMIT)}:
        return NO_LIMIT
    text = one.dimension and isinstance(value, str)
    found = typed_value(one, _number(one, str(value)) if text else value)
    if isinstance(found, int | float) and (wrong := out_of_bounds(one, found)):
        raise wrong
    return found


def _number(one: Wanted, text: str) -> float:
    """Read a number with a unit; what stands without one counts ``bare`` base units."""
    try:
        quantity = parse_quantity(text.strip().removeprefix("$"))
    except UnitError as wrong:
        raise RequestError(f"{one.name}: {wrong}") from None
    if quantity.dimension not in {"count", one.dimension}:
        hint = f"Write a number, for example {one.example}."
        raise RequestError(f"{one.name} is '{text}'", hint=hint)
    return quantity.value * (one.bare if quantity.dimension == "count" else 1)


class Wishes:
    """A reverse question taken apart: its subject, its own settings, those of a request."""

    def __init__(
        self,
        question: str,
        limit: int | str | None,
        given: Mapping[str, object],
        **subject: object,
    ) -> None:
        """Read them.

        Raises:
            UserError: A name, a kind or a bound is wrong; all of them.
        """
        stated = {name: value for name, value in given.items() if value is not None}
        stated["limit"] = "all" if limit is None else limit
        named = {name: value for name, value in stated.items() if name in WANTED[question]}
        rest = {name: value for name, value in stated.items() if name not in named}
        if twice := {"gpu", "model", "precision"} & rest.keys():
            what = "a reverse question takes one card or one model, and formats as precisions=[...]"
            raise RequestError(f"{what}, not {' and '.join(sorted(twice))}")
        reader = Reader()
        self.own, wrong = read_wanted(question, named)
        request = reader.attempt(lambda: request_from({**rest, **subject}))
        raise_problems([*wrong, *reader.errors])
        assert request
        self.request = request
        self.subject = request.gpu or request.model or ""
        self.limit: int | None = None if self.own["limit"] == "all" else self.own["limit"]

    def settings(self, prefer: str) -> Settings:
        """Put them as the question takes them."""
        own = self.own
        return Settings(
            request=replace(self.request, gpu=None, model=None),
            precisions=own.get("precisions", ()),
            min_speed_tok_s=own.get("min_speed"),
            max_loss_percent=own.get("max_loss"),
            unmeasured=own.get("unmeasured", False),
            prefer=own.get("prefer", prefer),
            use=own.get("purpose"),
        )

    def models(self) -> ModelFilter:
        """Give the models that are asked for."""
        own = self.own
        return ModelFilter(
            family=own.get("family"),
            modality=own.get("modality"),
            min_parameters=own.get("min_params"),
            max_parameters=own.get("max_params"),
            released_from=own.get("released_after"),
            licences=own.get("licences", ()),
        )

    def cards(self) -> CardFilter:
        """Give the cards that are asked for."""
        own = self.own
        return CardFilter(
            vendor=own.get("vendor"),
            forms=own.get("forms", ()),
            max_price_usd=own.get("max_price_usd"),
            max_power_w=own.get("max_power_w"),
            released_from=own.get("released_after"),
        )
