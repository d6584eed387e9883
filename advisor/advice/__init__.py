"""From a request to ranked, explained advice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice.conclusions import (
    BarredOption,
    Conclusions,
    FiredNote,
    Held,
    RankedOption,
    Ranking,
    Scored,
    State,
    because,
    confidence_of,
    filled,
    switched_off,
    user_entries,
    user_rule,
)
from advisor.advice.document import Because, Provenance
from advisor.advice.preparation import (
    Prepared,
    estimate,
    prepare,
    request_warnings,
    with_last_resort,
)
from advisor.advice.ranking import rank
from advisor.errors import RuleFileError, UserError, raise_problems
from advisor.estimator.calibration import with_measurements
from advisor.estimator.speed import missing_inputs
from advisor.files import __version__, data_dir, digest
from advisor.knowledge import load_knowledge
from advisor.knowledge.layers import Stack, UserFiles, behind, overlaid
from advisor.knowledge.types import Knowledge
from advisor.knowledge.vocabulary import FactValue, Vocabulary
from advisor.remedies import rule_vocabulary
from advisor.remedies.assessment import speed_when_full
from advisor.remedies.impossible import expected_options
from advisor.remedies.option import Base, Expected, Option
from advisor.rules.engine import make_engine
from advisor.rules.engine.base import Engine, Firing, OptionFacts, Outcome
from advisor.rules.language import load_rules
from advisor.rules.language.model import Rule, RuleSet, text_names
from advisor.runtimes.commands import command_for
from advisor.scenario.figures import BreakEven, Limits
from advisor.scenario.settings import Request

_NO_SCORE = 0.0
_NO_REPORT = ("site/",)
"""Folders of templates that no report is made from."""


class _Run(Struct, frozen=True):
    """Everything one request led to, on the way to advice."""

    base: Base
    limits: Limits
    edges: BreakEven
    options: Mapping[str, Option]
    """By key."""
    facts: Mapping[str, FactValue]
    values: Mapping[str, Mapping[str, FactValue]]
    """Option facts by option key."""
    outcome: Outcome
    ranking: Ranking


class Advisor(Struct, frozen=True):
    """Rules, knowledge and an engine, loaded once and used for any number of requests.

    Threads may share it; the engine takes them in turn.
    """

    knowledge: Knowledge
    vocabulary: Vocabulary
    ruleset: RuleSet
    engine: Engine
    templates_sha256: str

    @classmethod
    def load(
        cls,
        *,
        rules: Stack = None,
        templates: Stack = None,
        knowledge: Stack = None,
        engine: str | None = None,
        measurements: Path | None = None,
    ) -> Advisor:
        """Load the built-in folders or those given.

        ``measurements`` is a file of the user's own; it counts where it exists.

        Raises:
            UserError: A file is wrong; every problem of every file at once.
        """
        return cls.with_files(UserFiles(rules, templates, knowledge, measurements), engine)

    @classmethod
    def with_files(cls, user: UserFiles, engine: str | None = None) -> Advisor:
        """Load as ``load`` does, with these files of the user's."""
        try:
            return cls.of(user, engine)
        except UserError:
            from advisor.advice.partial_load import read_all  # noqa: PLC0415 - where something is wrong

            raise_problems(read_all(*user.folders).problems)
            raise

    @classmethod
    def of(cls, user: UserFiles, engine: str | None = None) -> Advisor:
        """Load as ``with_files`` does, and stop at the first folder in which something is wrong.

        Raises:
            UserError: A file is wrong; every problem of that folder.
        """
        known = with_measurements(load_knowledge(user.knowledge), user.measurements)
        vocabulary = rule_vocabulary(user.knowledge)
        files = overlaid("templates", user.templates, [".j2", ".txt"])
        ruleset = load_rules(
            user.rules,
            vocabulary=vocabulary,
            templates=text_names(files),
            names=known.names(),
            over=data_dir("rules") if user.rules else None,
        )
        return cls(
            known,
            vocabulary,
            ruleset,
            make_engine(ruleset, prefer=engine),
            digest(
                {
                    **{n: text for n, text in files.items() if not n.startswith(_NO_REPORT)},
                    **behind("templates", user.templates, [".j2", ".txt"]),
                }
            ),
        )

    def estimate(self, request: Request, *, all_cards: bool = False) -> Base:
        """Resolve and estimate a request, without options or rules; ``all_cards`` as ``advise``.

        Raises:
            UserError: The request is wrong.
        """
        return estimate(request, self.knowledge, all_cards=all_cards)

    def advise(
        self,
        request: Request,
        *,
        complete: bool = False,
        first: Request | None = None,
        all_cards: bool = False,
    ) -> Conclusions:
        """Give everything known about one request.

        ``complete`` adds what people look for and cannot run here; see ``with_expected``. ``first``
        was stated where another framework runs it: what its own does run is looked for. On
        ``all_cards`` that it names, even where fewer of them do as well.

        Raises:
            UserError: The request is wrong.
            EngineError: A bug of ours.
        """
        ready = prepare(request, self.knowledge, first, all_cards=all_cards)
        return self.advise_on(ready, complete=complete)

    def advise_on(self, ready: Prepared, *, complete: bool = False) -> Conclusions:
        """Apply the rules to a request whose facts are worked out already.

        Raises:
            RuleFileError: The rules contradict each other, or none gives the verdict.
            EngineError: A bug of ours.
        """
        expected = {o.key: o for o in expected_options(ready.base)} if complete else {}
        run, others = self._run(ready, expected)
        if _leaves_alone(run):
            run, others = self._run(with_last_resort(ready), expected)
        return self._with_barred(self._assembled(run), expected, others)

    def _run(
        self, ready: Prepared, expected: Mapping[str, Expected]
    ) -> tuple[_Run, Sequence[Firing]]:
        of = ready.option_facts
        everything = self.engine.run(ready.facts, [*of, *_facts_of(expected)])
        outcome, others = _apart(everything, expected)
        known = {**ready.facts, **outcome.concluded}
        ranking = rank(self.ruleset, outcome.firings, known, of)
        values = {o.key: o.values for o in of}
        options = {option.key: option for option in ready.options}
        run = _Run(ready.base, ready.limits, ready.edges, options, known, values, outcome, ranking)
        return run, others

    def _assembled(self, run: _Run) -> Conclusions:
        return Conclusions(
            request=run.base.request,
            scenario=run.base.scenario,
            memory=run.base.memory,
            limits=run.limits,
            speed=run.base.speed,
            speed_full=speed_when_full(
                run.base.scenario, run.base.memory, run.base.speed, run.base.knowledge
            ),
            state=_state(run.facts),
            facts=run.facts,
            recommendations=self._recommendations(run),
            notes=self._notes(run),
            not_recommended=self._barred(run),
            superseded=run.ranking.superseded,
            dominated=run.ranking.dominated,
            fired=tuple((f.rule, f.option) for f in run.outcome.firings),
            options=tuple(run.options.values()),
            warnings=request_warnings(run.base),
            missing=missing_inputs(run.base.scenario, self.knowledge),
            provenance=self._provenance_of(run),
            break_even=run.edges,
        )

    def with_expected(self, advice: Conclusions) -> Conclusions:
        """Add what people look for and cannot run here, each with the rule that says why.

        The rules run once more, on those what-ifs alone, so ``advise`` itself pays nothing.
        """
        expected = {option.key: option for option in self.expected(advice)}
        outcome = self.engine.run(self._given(advice.facts), _facts_of(expected))
        return self._with_barred(advice, expected, outcome.firings)

    def _with_barred(
        self, advice: Conclusions, expected: Mapping[str, Expected], firings: Sequence[Firing]
    ) -> Conclusions:
        if not expected:
            return advice
        fired_for: dict[str, list[str]] = {}
        for firing in firings:
            fired_for.setdefault(firing.rule, []).append(firing.option)
        vetoes: dict[str, Rule] = {}
        for rule in self.ruleset.rules:
            for key in fired_for.get(rule.id, ()) if rule.veto else ():
                if key:
                    vetoes.setdefault(key, rule)
        barred = tuple(
            self._not_recommended(vetoes[key], expected[key], advice.facts, expected[key].facts)
            for key in expected
            if key in vetoes
        )
        fired = [(rule.id, key) for key, rule in vetoes.items()]
        return replace(
            advice,
            provenance=self._with_user_rules(advice.provenance, vetoes.values()),
            not_recommended=(*advice.not_recommended, *barred),
            fired=tuple(sorted({*advice.fired, *fired})),
        )

    def expected(self, advice: Conclusions) -> tuple[Expected, ...]:
        """List what people look for and cannot run here."""
        return expected_options(
            Base(advice.request, advice.scenario, advice.memory, advice.speed, self.knowledge)
        )

    def _given(self, facts: Mapping[str, FactValue]) -> dict[str, FactValue]:
        """The facts that no rule concluded."""
        origin = self.vocabulary.facts
        return {name: value for name, value in facts.items() if origin[name].origin != "rules"}

    def _not_recommended(
        self,
        rule: Rule,
        option: Option | Expected,
        facts: Mapping[str, FactValue],
        values: Mapping[str, FactValue],
    ) -> BarredOption:
        held = Held(rule, facts, values, self.vocabulary)
        return BarredOption(option, rule.id, held.veto_text(), held)

    def provenance(self) -> Provenance:
        """Name the version, rules, knowledge and engine behind an answer."""
        return Provenance(
            advisor=__version__,
            rules_sha256=self.ruleset.sha256,
            knowledge_sha256=self.knowledge.sha256,
            templates_sha256=self.templates_sha256,
            engine=self.engine.name,
            measurements_sha256=self.knowledge.user_speeds.sha256
            if self.knowledge.user_speeds
            else None,
        )

    def _provenance_of(self, run: _Run) -> Provenance:
        """Add what of the user's own files this answer rests on."""
        made = self.provenance()
        users = self.ruleset.disabled or self.ruleset.user_rules or self.knowledge.user_entries
        if not users and run.base.scenario.model.origin != "list":
            return made
        fired = {firing.rule for firing in run.outcome.firings}
        options = (run.options[item.option] for item in run.ranking.recommended)
        scenarios = [run.base.scenario, *(option.scenario for option in options)]
        return replace(
            made,
            yours=user_entries(self.ruleset, self.knowledge, fired, scenarios),
            switched_off=switched_off(self.ruleset),
        )

    def _with_user_rules(self, made: Provenance, fired: Iterable[Rule]) -> Provenance:
        """Add the user's rules among those that fired on what cannot run."""
        if not self.ruleset.user_rules:
            return made
        found = (user_rule(rule) for rule in fired)
        new = dict.fromkeys(entry for entry in found if entry and entry not in made.yours)
        return replace(made, yours=(*made.yours, *new))

    def _recommendations(self, run: _Run) -> tuple[RankedOption, ...]:
        said = enumerate(run.ranking.recommended, start=1)
        return tuple(self._recommendation(place, item, run) for place, item in said)

    def _recommendation(self, place: int, item: Scored, run: _Run) -> RankedOption:
        option = run.options[item.option]
        return RankedOption(
            rank=place,
            rule=item.rule.id,
            option=option,
            text_template=item.rule.text or f"{item.action}.md.j2",
            score=item.score,
            score_terms=item.terms,
            because=self._because(item.rule, run, option.key),
            confidence=confidence_of(option),
            command=command_for(option.scenario, option.memory, run.base.scenario.framework),
            alternatives=tuple(run.options[key] for key in item.alternatives),
        )

    def _notes(self, run: _Run) -> tuple[FiredNote, ...]:
        fired = {f.rule for f in run.outcome.firings}
        notes = [
            FiredNote(
                rule=rule.id,
                text_template=rule.text or "",
                score=rule.score.base if rule.score else _NO_SCORE,
                because=self._because(rule, run),
                text=filled(rule.note or "", run.facts, self.vocabulary),
            )
            for rule in self.ruleset.notes
            if rule.id in fired
        ]
        return tuple(sorted(notes, key=lambda n: -n.score))

    def _barred(self, run: _Run) -> tuple[BarredOption, ...]:
        return tuple(
            self._not_recommended(rule, run.options[key], run.facts, run.values[key])
            for rule, key in run.ranking.vetoed
        )

    def _because(self, rule: Rule, run: _Run, key: str = "") -> tuple[Because, ...]:
        return because(rule, run.facts, run.values.get(key), self.vocabulary)


def _facts_of(expected: Mapping[str, Expected]) -> list[OptionFacts]:
    return [OptionFacts(key, option.facts) for key, option in expected.items()]


def _apart(outcome: Outcome, expected: Mapping[str, Expected]) -> tuple[Outcome, Sequence[Firing]]:
    """Take out what fired for what cannot run."""
    if not expected:
        return outcome, ()
    others = [firing for firing in outcome.firings if firing.option in expected]
    real = tuple(firing for firing in outcome.firings if firing.option not in expected)
    return replace(outcome, firings=real), others


def _leaves_alone(run: _Run) -> bool:
    """Whether a request that does not run got neither a remedy nor a proof: rules bar what fits."""
    told = run.ranking.recommended or run.facts.get("options.none_exists")
    return not (run.base.fits or told)


def _state(facts: Mapping[str, FactValue]) -> State:
    state = facts.get("fit.state")
    if state not in {"fits", "tight", "needs_offload", "too_big"}:
        raise RuleFileError(
            "no rule concluded the verdict (fit.state) for this request",
            hint="Restore the verdict rules of the built-in rules/fit.yaml.",
        )
    return state  # type: ignore[return-value]  # one of the four, checked above
