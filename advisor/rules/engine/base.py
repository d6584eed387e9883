"""What an engine does: facts and compiled rules in, firings out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from advisor.knowledge.fact_type import FactValue


class OptionFacts(Struct, frozen=True):
    """The facts of one what-if: ``option.*`` names to values; unknown ones absent."""

    key: str
    values: Mapping[str, FactValue]
    shared: Mapping[str, FactValue] = {}
    """Those of ``values`` that other what-ifs may share, in a mapping that never changes: what an
    engine makes of it can be kept. It is all of ``values``, or facts that are in the ``values`` of
    no other what-if that shares some, unless that one shares them too."""


class Firing(Struct, frozen=True, order=True):
    """A rule that holds: for option ``option`` or, when it is empty, for the scenario."""

    rule: str
    option: str = ""


class Outcome(Struct, frozen=True):
    """Everything that fired, sorted, and the facts that rules concluded."""

    firings: tuple[Firing, ...]
    concluded: Mapping[str, FactValue]
    supports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Concluded fact -> the rules that fired for it, sorted."""


class Engine(Protocol):
    """Runs a compiled rule set; both implementations give equal outcomes."""

    name: str

    def run(self, facts: Mapping[str, FactValue], options: Sequence[OptionFacts]) -> Outcome:
        """Fire every rule that holds, to a fixed point.

        Args:
            facts: Scenario facts by full name, in base units; unknown ones absent.
            options: What-ifs with unique keys.

        Raises:
            RuleFileError: Two rules conclude different values for one fact.
            EngineError: The engine failed.
        """
        ...
