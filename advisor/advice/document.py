"""Advice: the result document that every output is a view of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from advisor.knowledge.fact_type import FactType, FactValue
from advisor.knowledge.vocabulary import shown_in
from advisor.remedies.option import Expected, Option
from advisor.scenario.figures import BreakEven

if TYPE_CHECKING:
    from advisor.knowledge.provenance import SwitchedOff, UserEntry
    from advisor.scenario.figures import Limits, Memory, Speed
    from advisor.scenario.scenario import Scenario
    from advisor.scenario.settings import Request

State = Literal["fits", "tight", "needs_offload", "too_big"]


class Because(Struct, frozen=True):
    """One condition of the rule that fired: the fact, its value and the test it passed."""

    fact: str
    value: FactValue | None
    test: str
    kind: FactType
    distance: str = ""
    """For a veto: how far a number lies beyond the limit it was held against."""

    @property
    def shown(self) -> str:
        """The value with its unit, for people."""
        return shown_in(self.kind.unit, self.value)


class ScoreTerm(Struct, frozen=True):
    """One term of a score: ``points`` and how they came about."""

    text: str
    points: float
    fact: str = ""
    """The fact a ``per`` term counts, empty for the base and for ``when`` terms."""
    value: float | None = None
    """Its value in base units."""


class Recommendation(Struct, frozen=True):
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


class Note(Struct, frozen=True):
    """A remark that changes nothing: cooling, drivers, monitoring."""

    rule: str
    text_template: str
    score: float
    because: tuple[Because, ...]
    text: str = ""
    """The remark itself where the rule has no template."""


class NotRecommended(Struct, frozen=True):
    """An option a rule barred, with the reason."""

    option: Option | Expected
    rule: str
    reason: str
    because: tuple[Because, ...]


class Provenance(Struct, frozen=True):
    """What produced the advice."""

    advisor: str
    rules_sha256: str
    knowledge_sha256: str
    templates_sha256: str
    engine: str
    measurements_sha256: str | None = None
    """Of the user's own measurements; None without any."""
    yours: tuple[UserEntry, ...] = ()
    """What of the user's own rules and knowledge it rests on."""
    switched_off: tuple[SwitchedOff, ...] = ()
    """Built-in rules that the user disabled."""


class Advice(Struct, frozen=True):
    """Everything known about one request."""

    request: Request
    scenario: Scenario
    memory: Memory
    limits: Limits
    speed: Speed | None
    state: State
    facts: Mapping[str, FactValue]
    """Scenario facts by name in base units, concluded ones included; unknown ones absent."""
    recommendations: tuple[Recommendation, ...]
    notes: tuple[Note, ...]
    not_recommended: tuple[NotRecommended, ...]
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
    break_even: BreakEven = field(default_factory=BreakEven)
