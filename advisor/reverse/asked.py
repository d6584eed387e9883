"""The settings of a reverse question that no request has, each declared once.

Words that a question looks up (``purpose``, ``sort`` ...) are taken as texts here; an unknown one
is refused with the nearest by the question itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from advisor.errors import RequestError, UserError, raise_problems
from advisor.knowledge.merit import USES
from advisor.reverse.answers import Reader, Settings
from advisor.reverse.cards import FORMS, SORTS
from advisor.scenario.settings import Setting, out_of_bounds, request_from, typed_value
from advisor.suggest import did_you_mean

_MOST = 1e12


class Wanted(Setting, frozen=True):
    """A setting that may take several values."""

    several: bool = False


_BOTH = (
    Wanted(
        "Weight formats to be tried: Q4_K_M, AWQ, INT4 ...",
        name="precisions", several=True, default="all formats with a measured loss",
    ),
    Wanted(
        f"What the model is for: {', '.join(USES)}. Sets the context and speed that suffice.",
        name="purpose",
    ),
    Wanted(
        "What counts: quality, speed or balanced.",
        name="prefer", default="quality for models, balanced for cards",
    ),
    Wanted(
        "Tokens/s of one sequence, at least.",
        name="min_speed", kind="number", least=0, most=_MOST, unit="tokens/s",
    ),
    Wanted(
        "Perplexity increase of the weight format over FP16, at most.",
        name="max_loss", kind="number", least=0, most=_MOST, unit="%", default="12",
    ),
    Wanted("Take formats whose loss nobody measured too.", name="unmeasured", kind="switch"),
    Wanted(
        "Most rows, or all.",
        name="limit", kind="count or all", most=100_000, default="10",
    ),
)  # fmt: skip
_MODELS = (
    Wanted("A row for every format that fits.", name="all_formats", kind="switch"),
    Wanted("Only this model family.", name="family"),
    Wanted("Only models of these licences: apache-2.0, mit ...", name="licences", several=True),
)
_CARDS = (
    Wanted(f"Order of the cards: {', '.join(SORTS)}.", name="sort", default="price"),
    Wanted("Only cards of this vendor.", name="vendor"),
    Wanted(f"Kinds of card: {', '.join(FORMS)}.", name="forms", several=True),
    Wanted(
        "Launch price of all cards together, at most.",
        name="max_price_usd", kind="number", least=0, most=_MOST, unit="US dollars",
    ),
)  # fmt: skip
WANTED: Mapping[str, Mapping[str, Wanted]] = {
    "models-for": {one.name: one for one in (*_BOTH, *_MODELS)},
    "gpus-for": {one.name: one for one in (*_BOTH, *_CARDS)},
}
"""Question -> what it takes besides the settings of a request, by name."""


def read_wanted(question: str, given: Mapping[str, object]) -> dict[str, object]:
    """Read the plain values of a question's own settings; ``None`` means not stated.

    Raises:
        UserError: An unknown name, a value of the wrong kind or out of bounds; all of them.
    """
    declared, read, problems = WANTED[question], dict[str, object](), list[UserError]()
    for name, value in given.items():
        try:
            if value is not None:
                read[name] = _value(declared[name], value)
        except KeyError:
            hint = did_you_mean(name, declared) or f"Known: {', '.join(declared)}."
            problems.append(RequestError(f"unknown key '{name}'", hint=hint))
        except (TypeError, ValueError, OverflowError) as wrong:
            problems.append(RequestError(f"{name}: {wrong}"))
    bounded = (out_of_bounds(declared[k], v) for k, v in read.items() if isinstance(v, int | float))
    raise_problems([*problems, *filter(None, bounded)])
    return read


def _value(setting: Wanted, value: object) -> object:
    if not setting.several:
        return typed_value(setting, value)
    if not isinstance(value, str) and isinstance(value, Sequence):
        return [typed_value(setting, one) for one in value]
    raise TypeError(f"'{value}' is not a list of names")


class Wishes:
    """A reverse question taken apart: its subject, its own settings, those of a request."""

    def __init__(
        self,
        question: str,
        own: Mapping[str, object],
        settings: Mapping[str, object],
        **subject: object,
    ) -> None:
        """Read them.

        Raises:
            UserError: A name, a kind or a bound is wrong; all of them.
        """
        stated = {name: value for name, value in settings.items() if value is not None}
        named = {name: value for name, value in stated.items() if name in WANTED[question]}
        rest = {name: value for name, value in stated.items() if name not in named}
        if twice := {"gpu", "model", "precision"} & rest.keys():
            what = "a reverse question takes one card or one model, and formats as precisions=[...]"
            raise RequestError(f"{what}, not {' and '.join(sorted(twice))}")
        reader = Reader()
        read = reader.attempt(lambda: read_wanted(question, {**own, **named}))
        request = reader.attempt(lambda: request_from({**rest, **subject}))
        raise_problems(reader.errors)
        assert request
        self.own: Mapping[str, Any] = read or {}
        self.request = request
        self.subject = request.gpu or request.model or ""
        limit: Any = self.own.get("limit")
        self.limit: int | None = None if limit == "all" else limit

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
