"""One advisor and a few short cuts for the tests of what-ifs."""

from __future__ import annotations

from functools import lru_cache

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.remedies.option import Base, Option
from advisor.remedies.sharing import names_cards
from advisor.scenario.resolve import apply_change
from advisor.scenario.settings import Request


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


@lru_cache(maxsize=32)
def advised(**given: object) -> Conclusions:
    return advisor().advise(Request(**given))  # type: ignore[arg-type]  # keys of a request


def combinations(advice: Conclusions) -> list[Option]:
    return [option for option in advice.options if option.action == "combine"]


def run_again(advice: Conclusions, option: Option) -> Base:
    return again(advice.request, option)


def again(request: Request, option: Option) -> Base:
    """Estimate a request with a what-if's change: on the cards it names, else on the fewest."""
    changed = apply_change(request, dict(option.change))
    return advisor().estimate(changed, all_cards=names_cards(option.change))
