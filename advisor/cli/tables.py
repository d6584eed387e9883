"""Columns of plain text, and the ``--why`` report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.advice.document import Advice, Recommendation, ScoreTerm
from advisor.advice.pipeline import Advisor
from advisor.knowledge.vocabulary import Vocabulary, show
from advisor.rules.language.model import Rule


def aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Lay rows out in columns, two spaces apart."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def why_report(advisor: Advisor, advice: Advice) -> str:
    """Show what fired, how it scored, what was superseded or barred, and what stayed silent."""
    none = ["  nothing"]
    parts = [
        "Why: what fired",
        *_fired(advisor, advice),
        "",
        "Superseded",
        *([f"  {a} ({key}): {by} says it already" for a, key, by in advice.superseded] or none),
        "",
        "Barred",
        *(list(_barred(advice)) or none),
        "",
        *_off(advice),
        "What stayed silent, and the conditions that failed",
        *_silent(advisor, advice),
    ]
    return "\n".join(parts)


def _off(advice: Advice) -> Iterator[str]:
    """The rules that the user disabled; nothing without any."""
    if advice.provenance.switched_off:
        yield "Switched off by your rules"
        for item in advice.provenance.switched_off:
            yield f"  {item.name} ({item.at}): {item.reason}"
        yield ""


def _barred(advice: Advice) -> Iterator[str]:
    for item in advice.not_recommended:
        yield f"  {item.option.key}: {item.rule}: {item.reason}"
        for why in item.because:
            beyond = f", {why.distance} short" if why.distance and "below" in why.test else ""
            beyond = beyond or (f", {why.distance} beyond" if why.distance else "")
            yield f"      because {why.fact} is {why.shown} ({why.test}{beyond})"


def _fired(advisor: Advisor, advice: Advice) -> Iterator[str]:
    by_rule: dict[str, list[str]] = {}
    for rule_id, key in advice.fired:
        by_rule.setdefault(rule_id, []).append(key)
    said = {r.rule: r for r in advice.recommendations}
    for rule in advisor.ruleset.rules:
        if rule.id in by_rule:
            keys = [key for key in by_rule[rule.id] if key]
            count = f" for {len(keys)} option{'s' if len(keys) != 1 else ''}" if keys else ""
            concluded = ", ".join(f"{fact} = {value}" for fact, value in rule.conclude.items())
            whose = _whose(rule)
            yield f"  {rule.id}{count}{': ' + concluded if concluded else ''}{whose}"
            if rule.id in said:
                yield from _score(advisor.vocabulary, said[rule.id])


def _whose(rule: Rule) -> str:
    """Say that a rule is the user's; nothing of a built-in one."""
    if rule.own is None:
        return ""
    from advisor.advice.provenance import own_rule  # noqa: PLC0415 - overlays alone

    return f" ({own_rule(rule)})"


def _score(vocabulary: Vocabulary, recommendation: Recommendation) -> Iterator[str]:
    terms = " ".join(
        f"{'-' if t.points < 0 else '+'} {abs(t.points):g} ({_term(vocabulary, t)})"
        for t in recommendation.score_terms
    ).removeprefix("+ ")
    yield f"      said as no. {recommendation.rank}: {recommendation.option.key}"
    yield f"      score {recommendation.score:g} = {terms}"
    for item in recommendation.because:
        yield f"      because {item.fact} is {item.shown} ({item.test})"


def _term(vocabulary: Vocabulary, term: ScoreTerm) -> str:
    if not term.fact or term.value is None:
        return term.text
    return f"{term.fact} {show(vocabulary.fact(term.fact), term.value)}, {term.text}"


def _silent(advisor: Advisor, advice: Advice) -> Iterator[str]:
    fired = {rule for rule, _ in advice.fired}
    from advisor.workbench.explanation import why_not_lines  # noqa: PLC0415 - for --why alone

    for rule in advisor.ruleset.rules:
        if rule.id not in fired:
            yield f"  {rule.id}{_whose(rule)}"
            yield from (f"      {line}" for line in why_not_lines(advisor, advice, rule))
