"""What a text says in one situation: every what-if, every wording, and where its figures go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions, RankedOption, confidence_of, scorer
from advisor.advice.facts import option_facts
from advisor.advice.projection import numbers_of
from advisor.errors import RequestError, did_you_mean
from advisor.knowledge.layers import Stack, holding
from advisor.knowledge.vocabulary import ACTION_FACT, FactValue
from advisor.remedies.option import Base, Option
from advisor.report.assembly import Views, document_and_views
from advisor.report.figures import spoken
from advisor.report.prose import Length, report
from advisor.report.template_writer import SEED, If, Output, Stmt, value_of
from advisor.report.templates import Templates, templates_for
from advisor.rules.language.model import Rule, text_name, text_of
from advisor.workbench.explanation import nearest_miss, why_not_lines

WORDINGS: Sequence[str] = tuple(digit * 64 for digit in "0123456789abcdef")
"""Values of ``request.variation`` that together pick every wording of blocks of up to 16."""


class Use(Struct, frozen=True):
    """What a template does with its placeholders in one situation."""

    printed: Mapping[str, str]
    """Placeholders in the text, with their values, in order."""
    asked: Mapping[str, str]
    """Placeholders that conditions looked at and the text does not hold."""
    reached: frozenset[int]
    """Lines with text that was written."""
    lines: frozenset[int]
    """All lines with text."""
    pieces: frozenset[tuple[int, str]] = frozenset()
    """Line and text of what was written, which tells wordings apart."""
    varies: bool = False
    """Whether a wording was picked."""


class _Seen(dict[str, str]):
    """What is given, as far as it was asked for."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def __missing__(self, name: str) -> str:
        self[name] = self._given.get(name, "")
        return self[name]


def use_of(texts: Templates, name: str, given: Mapping[str, str]) -> Use:
    """Follow a template of actions/ or notes/ with these values: only branches taken count.

    Raises:
        TemplateError: It is missing or not as it must be.
    """
    tree, printed, asked = texts.tree(name), _Seen(given), _Seen(given)
    written = list(_written(tree.body, printed, asked))
    reached = frozenset(line for line, _ in written)
    pieces = frozenset((line, text) for line, text in written if text)
    lines = frozenset(_lines(tree.body))
    only = {n: v for n, v in asked.items() if n not in printed and n != SEED}
    return Use(dict(printed), only, reached, lines, pieces, SEED in asked)


def _written(found: Sequence[Stmt], printed: _Seen, asked: _Seen) -> Iterator[tuple[int, str]]:
    """Give line and text of what is written; the text is empty for a placeholder."""
    for node in found:
        if isinstance(node, Output):
            for line, part in node.parts:
                if isinstance(part, str):
                    yield from _text_lines(line, part)
                else:
                    value_of(part)(printed)
                    yield line, ""
        elif isinstance(node, If):
            branches = (body for test, body in node.branches if value_of(test)(asked))
            yield from _written(next(branches, node.otherwise), printed, asked)


def _text_lines(line: int, text: str) -> Iterator[tuple[int, str]]:
    lines = enumerate(text.split("\n"), start=line)
    return ((number, one) for number, one in lines if one.strip())


def _lines(found: Sequence[Stmt]) -> Iterator[int]:
    for node in found:
        if isinstance(node, Output):
            for line, part in node.parts:
                yield from (n for n, _ in _text_lines(line, part if isinstance(part, str) else "x"))
        elif isinstance(node, If):
            for _, body in node.branches:
                yield from _lines(body)
            yield from _lines(node.otherwise)


class Variant(Struct, frozen=True):
    """One text that a template gives."""

    subject: str
    """Key of the what-if; empty for a remark."""
    rule: str
    template: str
    """The file, named as the user names its folder."""
    fate: str
    """What becomes of it in the report."""
    title: str
    """Empty for a remark."""
    text: str
    use: Use


class Preview(Struct, frozen=True):
    """Everything ``advisor templates preview`` shows."""

    asked: Mapping[str, object]
    variants: Sequence[Variant]

    @property
    def unreached(self) -> Mapping[str, Sequence[int]]:
        """Template -> its lines that none of the variants reaches."""
        found: dict[str, set[int]] = {}
        for variant in self.variants:
            found.setdefault(variant.template, set(variant.use.lines))
        for variant in self.variants:
            found[variant.template] -= variant.use.reached
        return {template: sorted(lines) for template, lines in found.items() if lines}


def preview(
    advisor: Advisor,
    advice: Conclusions,
    name: str,
    *,
    length: Length = "standard",
    templates: Stack = None,
    every: bool = False,
) -> Preview:
    """Write the text of an action or remark with the facts of one situation.

    ``name`` is an action, a rule, or a text without its ending; ``every`` gives all what-ifs and
    all wordings, otherwise what is said.

    Raises:
        RequestError: The name is unknown, or the text does not arise here.
        TemplateError: The template is wrong.
    """
    rules = named(advisor, name)
    stage = _Stage(advisor, advice, length, templates, every)
    made = stage.advised(rules) if rules[0].action else stage.remarked(rules)
    variants = list(made)
    if not variants:
        raise _does_not_arise(advisor, advice, name, rules)
    return Preview(advice.request.stated(), variants)


def each_text(
    advisor: Advisor, advice: Conclusions, rules: Sequence[Rule], templates: Stack
) -> Iterator[Iterator[Variant]]:
    """Write every wording of what rules say in one situation, each text once for a what-if.

    However many rules share a text, it says the same of the same what-if.

    What did not fire is passed over.

    Returns:
        The wordings of each text; a text that is wrong raises TemplateError where they are taken.
    """
    return _Stage(advisor, advice, "standard", templates, every=True).each(rules)


def named(advisor: Advisor, name: str) -> Sequence[Rule]:
    """Find the rules behind the name of an action, a rule or a text.

    Raises:
        RequestError: There is none.
    """
    rules = [rule for rule in advisor.ruleset.rules if text_name(rule)]
    for found in (
        [rule for rule in rules if rule.action == name],
        [rule for rule in rules if rule.id == name],
        [rule for rule in rules if text_name(rule) == name],
    ):
        if found:
            return found
    actions = advisor.vocabulary.fact(ACTION_FACT).values
    if name in actions:
        raise RequestError(f"no rule recommends '{name}'", hint="Add one to your rules.")
    known = {known for r in rules for known in (r.id, r.action, text_name(r)) if known}
    hint = did_you_mean(name, sorted(known)) or f"Actions: {', '.join(actions)}."
    raise RequestError(f"'{name}' is no action, no rule with a text and no text", hint=hint)


class _Stage(Struct, frozen=True, dict=True):
    """One situation, and how much of it to show."""

    advisor: Advisor
    advice: Conclusions
    length: Length
    templates: Stack
    every: bool

    def advised(self, rules: Sequence[Rule]) -> Iterator[Variant]:
        """Write the texts of recommendations: those said, or all that rules would give."""
        ids = {rule.id for rule in rules}
        said = [item for item in self.advice.recommendations if item.rule in ids]
        others = self._unsaid(ids, {item.option.key for item in said})
        whole = (*self.advice.recommendations, *others)
        doc, views = document_and_views(
            replace(self.advice, recommendations=whole), templates=self.templates
        )
        for item in [*said, *others] if self.every else said or others[:1]:
            given = views.told(doc.recommendations[item.rank - 1])
            fate = self._report[0].get(item.rank) or self._fate(item)
            blank = Variant(item.option.key, item.rule, "", fate, "", "", _NOTHING)
            yield from self._worded(blank, f"actions/{item.text_template}", given)

    def remarked(self, rules: Sequence[Rule]) -> Iterator[Variant]:
        """Write the texts of remarks that are made here."""
        _, views = document_and_views(self.advice, templates=self.templates)
        said = {rule.id for rule in rules} & {note.rule for note in self.advice.notes}
        for rule in rules:
            if rule.id in said:
                fate = self._report[1].get(rule.id, f"not in the {self.length} report")
                blank = Variant("", rule.id, "", fate, "", "", _NOTHING)
                yield from self._worded(blank, text_of(rule), views.situation)

    def each(self, rules: Sequence[Rule]) -> Iterator[Iterator[Variant]]:
        """Write all texts of these rules: of what-ifs first, then remarks."""
        items = self._once(rules)
        whole = replace(self.advice, recommendations=items, not_recommended=(), notes=())
        with spoken(self.templates):
            views = Views.of(numbers_of(whole))
        for item, shown in zip(items, views.doc.recommendations, strict=True):
            blank = Variant(item.option.key, item.rule, "", "", "", "", _NOTHING)
            yield self._worded(blank, f"actions/{item.text_template}", views.told(shown))
        said = {note.rule for note in self.advice.notes}
        for text in dict.fromkeys(text_of(r) for r in rules if not r.action and r.id in said):
            yield self._worded(Variant("", "", "", "", "", "", _NOTHING), text, views.situation)

    def _once(self, rules: Sequence[Rule]) -> Sequence[RankedOption]:
        """Make a recommendation of each what-if with each text that rules have for it."""
        texts = {rule.id: text_of(rule) for rule in rules if rule.action}
        said = {(item.rule, item.option.key): item for item in self.advice.recommendations}
        options = {option.key: option for option in self.advice.options}
        first: dict[tuple[str, str], str] = {}
        for rule_id, key in sorted(self.advice.fired, key=lambda pair: pair not in said):
            if rule_id in texts and key in options:
                first.setdefault((texts[rule_id], key), rule_id)
        return [
            replace(said[rule, key], rank=rank)
            if (rule, key) in said
            else self._recommended(rule, options[key], self._score(rule, key), rank)
            for rank, ((_, key), rule) in enumerate(first.items(), start=1)
        ]

    def _worded(self, blank: Variant, template: str, given: Mapping[str, str]) -> Iterator[Variant]:
        """Fill a template in; with ``every``, until each of its wordings was seen."""
        texts = templates_for(self.templates)
        seen = set[tuple[int, str]]()
        for seed in (given[SEED], *(WORDINGS if self.every else ())):
            values = {**given, SEED: seed}
            use = use_of(texts, template, values)
            if seen and use.pieces <= seen:
                continue
            seen |= use.pieces
            title, text = (
                texts.titled(template, values)
                if template.startswith("actions/")
                else ("", texts.text(template, values))
            )
            shown = self._shown(template)
            yield replace(blank, template=shown, title=title, text=text, use=use)
            if not use.varies:
                return

    def _shown(self, template: str) -> str:
        folder = next(holding(self.templates, template), None)
        return f"{folder.as_posix() if folder else 'templates'}/{template}"

    def _unsaid(self, ids: set[str], said: set[str]) -> list[RankedOption]:
        """Make a recommendation of every what-if that the rules want and the report leaves out."""
        options = {option.key: option for option in self.advice.options}
        best: dict[str, tuple[float, str]] = {}
        for rule_id, key in self.advice.fired:
            if rule_id in ids and key in options and key not in said:
                scored = (-self._score(rule_id, key), rule_id)
                best[key] = min(best.get(key, scored), scored)
        ordered = sorted(best, key=lambda key: (best[key], key))
        rank = len(self.advice.recommendations)
        return [
            self._recommended(best[key][1], options[key], -best[key][0], rank + number)
            for number, key in enumerate(ordered, start=1)
        ]

    @cached_property
    def _values(self) -> Mapping[str, Mapping[str, FactValue]]:
        advice = self.advice
        base = Base(
            advice.request, advice.scenario, advice.memory, advice.speed, self.advisor.knowledge
        )
        return {item.key: item.values for item in option_facts(base, advice.options)}

    def _score(self, rule_id: str, key: str) -> float:
        score = self.advisor.ruleset.by_id[rule_id].score
        return scorer(score)(self.advice.facts, self._values[key]) if score else 0.0

    def _recommended(self, rule_id: str, option: Option, score: float, rank: int) -> RankedOption:
        text = text_of(self.advisor.ruleset.by_id[rule_id]).partition("/")[2]
        confidence = confidence_of(option)
        return RankedOption(
            rank, rule_id, option, text, score, (), (), confidence, command="", alternatives=()
        )

    def _fate(self, item: RankedOption) -> str:
        """Say why a what-if that a rule wants is not in the report."""
        key = item.option.key
        for barred in self.advice.not_recommended:
            if barred.option.key == key:
                return f"not said: {barred.rule} bars it"
        for _, superseded, by in self.advice.superseded:
            if superseded == key:
                return f"not said: {by} supersedes it"
        if key in self.advice.dominated:
            return "not said: another of its kind is as good in everything and better in something"
        return f"not said: another of its kind is better (score {item.score:g})"

    @cached_property
    def _report(self) -> tuple[Mapping[int, str], Mapping[str, str]]:
        """Where the report has each recommendation, by rank, and each remark, by rule."""
        doc, views = document_and_views(self.advice, templates=self.templates)
        made = report(doc, self.length, self.templates, views)
        where = f"in the {self.length} report"
        places = {
            item.rank: f"number {item.rank} of the recommendations, not {where}"
            for item in self.advice.recommendations
        }
        for remedy in made.remedies:
            how = "told in full" if remedy.text else "told in a sentence of its own"
            places[int(remedy.number)] = f"number {remedy.number} {where}, {how}"
        told = {note.rule: f"told {where}" for note in doc.notes if note.text in made.watch}
        return places, told


_NOTHING = Use({}, {}, frozenset(), frozenset())


def _does_not_arise(
    advisor: Advisor, advice: Conclusions, name: str, rules: Sequence[Rule]
) -> RequestError:
    """Say why a text is not used here, and which ones are."""
    nearest = min(
        rules,
        key=lambda rule: sum(
            not t.holds for t in nearest_miss(advisor, advice, rule).trace.nearest
        ),
    )
    lines = [
        f"'{name}' does not arise here: the verdict is {advice.state}",
        f"nearest is the rule {nearest.id}:",
        *(f"  {line}" for line in why_not_lines(advisor, advice, nearest)),
    ]
    actions = ", ".join(item.option.action for item in advice.recommendations) or "no action"
    notes = ", ".join(note.rule for note in advice.notes) or "none"
    return RequestError(
        "\n".join([*lines, f"what arises: {actions}", f"remarks: {notes}"]),
    )
