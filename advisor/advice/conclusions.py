"""Conclusions: what the rules made of one request, with every record that they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from advisor.advice.document import Because, Provenance
from advisor.knowledge.fact_type import FactValue
from advisor.remedies.option import Expected, Option
from advisor.scenario.figures import BreakEven

if TYPE_CHECKING:
    from advisor.scenario.figures import Limits, Memory, Speed
    from advisor.scenario.scenario import Scenario
    from advisor.scenario.settings import Request

State = Literal["fits", "tight", "needs_offload", "too_big"]


class ScoreTerm(Struct, frozen=True):
    """One term of a score: ``points`` and how they came about."""

    text: str
    points: float
    fact: str = ""
    """The fact a ``per`` term counts, empty for the base and for ``when`` terms."""
    value: float | None = None
    """Its value in base units."""


class RankedOption(Struct, frozen=True):
    """A remedy that was proved: its option's figures are the estimator's."""

    rank: int
    rule: str
    option: Option
    text_template: str
    score: float
    score_terms: tuple[ScoreTerm, ...]
    because: tuple[Because, ...]
    confidence: Literal["high", "medium", "low"]
    command: str
    alternatives: tuple[Option, ...] = ()
    """Other options of the same action that rules also recommend, best first."""


class FiredNote(Struct, frozen=True):
    """A remark that changes nothing: cooling, drivers, monitoring."""

    rule: str
    text_template: str
    score: float
    because: tuple[Because, ...]
    text: str = ""
    """The remark itself where the rule has no template."""


class BarredOption(Struct, frozen=True):
    """An option a rule barred, with the reason."""

    option: Option | Expected
    rule: str
    reason: str
    because: tuple[Because, ...]


class Conclusions(Struct, frozen=True):
    """Everything concluded about one request."""

    request: Request
    scenario: Scenario
    memory: Memory
    limits: Limits
    speed: Speed | None
    state: State
    facts: Mapping[str, FactValue]
    """Scenario facts by name in base units, concluded ones included; unknown ones absent."""
    recommendations: tuple[RankedOption, ...]
    notes: tuple[FiredNote, ...]
    not_recommended: tuple[BarredOption, ...]
    superseded: tuple[tuple[str, str, str], ...]
    """(rule, option key, the rule that made it unnecessary)."""
    fired: tuple[tuple[str, str], ...]
    """(rule, option key or "") for every firing, sorted."""
    options: tuple[Option, ...]
    warnings: tuple[str, ...]
    """Plain sentences about the request itself (a sibling card, a context beyond training)."""
    missing: tuple[str, ...]
    """Names of figures that are unknown and would have mattered."""
    provenance: Provenance
    dominated: tuple[str, ...] = ()
    """Keys of options left out because another recommended one is as good in everything."""
    break_even: BreakEven = BreakEven()
