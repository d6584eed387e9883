"""One advisor and a few short cuts for the tests of what-ifs."""

from __future__ import annotations

from functools import lru_cache

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.remedies.option import Base, Option
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
    return advisor().estimate(apply_change(advice.request, dict(option.change)))
