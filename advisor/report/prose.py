"""The report in words and key figures, shared by the text, Markdown and HTML views."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.knowledge.layers import Stack
from advisor.report import figures as f
from advisor.report.assembly import Views, barred, sources
from advisor.report.figures import known, say, spoken
from advisor.report.remedy_view import OptionView, Remedy, RemedyFigures
from advisor.report.situation import LONG_CONTEXT_TOKENS
from advisor.report.templates import Templates, templates_for
from advisor.report.views import Told, said, whose

if TYPE_CHECKING:
    from advisor.advice.document import Advice, Recommendation
    from advisor.runtimes.commands import Command


STANDARD_WORDS = 500
"""All that is read in a standard report: title, figures, sentences, headings, last line."""
_FRAME_WORDS, _RUN_WORDS, _USER_WORDS = 21, 6, 3
"""Of those, headings and last line; what leads to the command; the user's own measurements."""
_REMEDIES, _REMARKS = 6, 7
_REMARKS_FIRST, _TEXTS_FIRST = 5, 2
"""So many remarks, and then texts of further remedies, before more of either."""
_REMARKS_SURE, _REMEDIES_SURE = 3, 4
"""So many remarks are there if they can be; remedies after the fourth make way for them."""
_REASONS_SPARE = 35
"""Words by which the last reasons make way for the best remark."""


class Choice(Struct, frozen=True):
    """What a report says of remedies and remarks."""

    items: Sequence[Recommendation]
    told: frozenset[int]
    """Ranks of the remedies that are told in full, not only named with a brief word."""
    watch: Sequence[str]


def words_in(text: str) -> int:
    """Count what holds a letter or a digit; of what else stands alone there is only ``%``."""
    return len(text.split()) - text.count(" %")


def everything(items: Sequence[Recommendation], notes: Sequence[str]) -> Choice:
    """Take all there is."""
    return Choice(items, _ranks(items), notes)


def within_length(doc: Advice, briefs: Mapping[int, str], used: int) -> Choice:
    """Choose for a standard report.

    The best remarks, then remedies' texts, then more of both, while words are left. A remedy that
    is not told still stands there with its title and a brief word.

    ``briefs`` is the brief word on each remedy but the best, by rank; ``used`` counts the words of
    what stands in the report in any case.
    """
    notes = [note.text for note in doc.notes]
    taken = {
        item.rank: words_in(item.title) + words_in(briefs.get(item.rank, ""))
        for item in doc.recommendations
    }
    user = _USER_WORDS if doc.provenance.measurements_sha256 else 0
    budget = STANDARD_WORDS - _FRAME_WORDS - user - (_RUN_WORDS if doc.commands else 0) - used
    least = sum(map(words_in, notes[:_REMARKS_SURE]))
    shown = doc.recommendations[:_REMEDIES]
    while len(shown) > _REMEDIES_SURE and sum(taken[i.rank] for i in shown) + least > budget:
        shown = shown[:-1]
    first = sum(map(words_in, notes[:1])) - _REASONS_SPARE
    bought = len(shown) == _REMEDIES_SURE and shown[-1].tradeoff.effort == "purchase"
    if bought and sum(taken[item.rank] for item in shown) + first > budget:
        shown = shown[:-1]
    return _filled(shown, notes, briefs, budget - sum(taken[item.rank] for item in shown))


def _ranks(items: Sequence[Recommendation]) -> frozenset[int]:
    return frozenset(item.rank for item in items)


def _filled(
    items: Sequence[Recommendation], notes: Sequence[str], briefs: Mapping[int, str], budget: int
) -> Choice:
    filling = _Filling(budget)
    remarks = filling.take(notes[:1], 1, spare=_REASONS_SPARE)
    remarks += filling.take(notes[1:], _REMARKS_FIRST - len(remarks))
    told = filling.tell(items[1:], briefs, _TEXTS_FIRST)
    left = [note for note in notes if note not in remarks]
    remarks += filling.take(left, _REMARKS - len(remarks))
    named = [item for item in items[1:] if item.rank not in told]
    told |= filling.tell(named, briefs, len(named))
    kept = [note for note in notes if note in remarks]
    return Choice(items, told | _ranks(items[:1]), kept)


class _Filling(Struct):
    """Words that are left, and what is taken out of them."""

    budget: int

    def take(self, texts: Sequence[str], most: int, spare: int = 0) -> list[str]:
        """Take texts in order while they fit, and a few words beyond that."""
        taken = list[str]()
        for text in texts:
            if len(taken) < most and (words := words_in(text)) <= self.budget + spare:
                taken.append(text)
                self.budget -= words
        return taken

    def tell(
        self, items: Sequence[Recommendation], briefs: Mapping[int, str], most: int
    ) -> frozenset[int]:
        """Put texts in place of their brief words, in order while they fit; give the ranks."""
        told = list[int]()
        for item in items:
            more = words_in(item.text) - words_in(briefs[item.rank])
            if len(told) < most and more <= self.budget:
                told.append(item.rank)
                self.budget -= more
        return frozenset(told)


Length = Literal["short", "standard", "full"]
MOST_WORDS: Mapping[Length, int] = {"short": 150, "standard": STANDARD_WORDS}
"""All that is read in a report of a length, commands apart, as its Markdown shows it."""
_HEADINGS = {"run": 6, "lead": 4, "have": 3, "happens": 2, "else": 6}
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_EFFORTS = {"setting": 0, "download": 1, "rebuild": 2, "purchase": 3}
_FED = "<<"
"""A command that is a whole script: of those only the first is shown, unless all is wanted."""
_FIGURE = ": "
"""Between label and value of a key figure."""


class Report(Struct, frozen=True):
    """The four movements, already chosen for a length."""

    title: str
    verdict: str
    state: str
    figures: tuple[tuple[str, str], ...]
    command: str
    """Runs the request as it stands; empty where it does not run."""
    unsaid: str
    have: str
    happens: str
    first: str
    remedies: tuple[Remedy, ...]
    watch: tuple[str, ...]
    warnings: tuple[str, ...]
    barred: tuple[str, ...]
    provenance: str


def report(
    doc: Advice, length: Length, templates: Stack = None, views: Views | None = None
) -> Report:
    """Write the report of a document in a length.

    ``standard`` keeps to 500 words, headings and figures included and commands apart: the best
    remedy in full, the others by name and figures, then the best remarks and the texts of the
    other remedies as far as they fit in; ``short`` is the verdict and the best remedy, 150 words;
    ``full`` is everything.

    Raises:
        TemplateError: A template of templates/report is missing or broken.
    """
    with spoken(templates):
        return _written(views or Views.of(doc), length, templates_for(templates))


def _written(views: Views, length: Length, texts: Templates) -> Report:
    doc, context = views.doc, Told({"length": length}, views.situation)
    short = length == "short"
    heading = texts.text("report/title.md.j2", context)
    have = "" if short else texts.text("report/have.md.j2", context)
    happens = "" if short else texts.text("report/happens.md.j2", context)
    first = _first(views, texts, length)
    figures = _figures(doc, context, texts)
    run = "" if not doc.commands else doc.commands[0].text
    gaps = unsaid(doc.commands)
    made_of = sources(doc)
    beside = _sentences(gaps, _whose_command(doc, doc.commands), made_of.get(0, ""))
    opening = [heading, doc.verdict.sentence, have, happens, first, gaps, *_remarks(doc)]
    opening += [_unsaid_besides(item.commands, gaps) for item in doc.recommendations[:1]]
    opening += made_of.values()
    opening += [word for figure in figures for word in figure]
    briefs = _briefs(views, texts) if length == "standard" else {}
    chosen = _chosen(doc, length, briefs, sum(map(words_in, opening)))
    made = Report(
        title=heading,
        verdict=doc.verdict.sentence,
        state=doc.verdict.state,
        figures=tuple(figures),
        command=run,
        unsaid=beside,
        have=have,
        happens=happens,
        first=first,
        remedies=tuple(
            _remedy(
                views.option(item),
                item,
                length,
                text=item.text if item.rank in chosen.told else "",
                brief=briefs.get(item.rank, ""),
                gaps=_sentences(_unsaid_besides(item.commands, gaps), made_of.get(item.rank, "")),
                yours=_whose_remedy(doc, item),
            )
            for item in chosen.items
        ),
        watch=tuple(chosen.watch),
        warnings=_remarks(doc),
        barred=tuple(barred(doc)) if length == "full" else (),
        provenance=provenance(doc, length),
    )
    return made if length == "full" else _within(made, length)


def _remarks(doc: Advice) -> tuple[str, ...]:
    """Say on the request how it was read, then what its writer may not have meant."""
    return (*doc.scenario.read_as, *doc.warnings)


def words_read(made: Report, length: Length) -> int:
    """Count what is read of a short or standard report: all but its commands."""
    best = made.remedies[:1]
    told = [made.title, made.verdict, *made.warnings, made.unsaid, made.first, made.provenance]
    told += [text for item in best for text in (item.title, item.yours, item.unsaid)]
    headings = ["run"] * bool(made.command) + ["lead"] * bool(best or made.first)
    if length != "short":
        told += [word for figure in made.figures for word in figure]
        told += [made.have, made.happens, *made.watch]
        for item in made.remedies[1:]:
            told += [item.title, item.text or item.brief, item.yours]
        headings += ["have", "happens", "else"]
    return sum(map(words_in, told)) + sum(_HEADINGS[name] for name in headings)


def too_long(doc: Advice, length: Length, templates: Stack = None) -> list[str]:
    """Say that a report has more words than its length promises; nothing where it keeps to it."""
    if length not in MOST_WORDS:
        return []
    words = words_read(report(doc, length, templates), length)
    return [f"{words} words in a {length} report"] if words > MOST_WORDS[length] else []


def _within(made: Report, length: Length) -> Report:
    """Leave out last sentences until a report keeps to its length: how to start it goes last.

    The first sentence of each text stays, and of a short report the verdict and its warnings.
    """
    over = words_read(made, length) - MOST_WORDS[length]
    for best in made.remedies[:1]:
        shorter = replace(best, unsaid=_less(best.unsaid, over))
        made = replace(made, remedies=(shorter, *made.remedies[1:]))
    for name in (
        ("unsaid", "first") if length == "short" else ("first", "have", "happens", "unsaid")
    ):
        over = words_read(made, length) - MOST_WORDS[length]
        made = replace(made, **{name: _less(getattr(made, name), over)})
    return made


def _less(text: str, words: int) -> str:
    """Leave out so many last sentences that ``words`` are saved, but never the first."""
    sentences = _SENTENCES.split(text)
    while words > 0 and len(sentences) > 1:
        words -= words_in(sentences.pop())
    return " ".join(sentences)


def _figures(doc: Advice, context: Told, texts: Templates) -> list[tuple[str, str]]:
    """Write the figures a reader looks for first, label and value, a line each."""
    named = any(item.after.decode_tok_s for item in doc.recommendations)
    short = context["length"] == "short"
    context["edges"] = "" if short else texts.text("report/break_even.md.j2", context)
    context["speeds_fall"] = f.flag(
        named
        and not context["speed.known"]
        and doc.scenario.context_tokens >= LONG_CONTEXT_TOKENS
        and doc.facts.get("model.attention") != "none"
    )
    lines = texts.page("report/figures.md.j2", context).splitlines()
    rows = (line.partition(_FIGURE) for line in lines)
    return [(label.strip(), " ".join(value.split())) for label, _, value in rows if value.strip()]


def _first(views: Views, texts: Templates, length: Length) -> str:
    doc = views.doc
    if not doc.recommendations:
        return texts.text("report/none.md.j2", views.situation)
    best = doc.recommendations[0]
    efforts = [_EFFORTS.get(item.tradeoff.effort, 0) for item in doc.recommendations]
    least = f.flag(efforts[0] == min(efforts))
    context = views.told(best)
    context.update(action_text=best.text, length=length, least_effort=least)
    return texts.text("report/first.md.j2", context)


def _whose_remedy(doc: Advice, item: Recommendation) -> str:
    """Say whose the rule is, and whose the command."""
    return _sentences(said(item.yours), _whose_command(doc, item.commands))


def _sentences(*texts: str) -> str:
    return " ".join(filter(None, texts))


def _whose_command(doc: Advice, commands: Sequence[Command]) -> str:
    """Mark a command that a file of the user's words; empty for a built-in one."""
    if not commands or not doc.provenance.yours:
        return ""
    program = commands[0].program
    entries = (e for e in doc.provenance.yours if (e.what, e.name) == ("command", program))
    return " ".join(f"Command {entry}." for entry in entries)


def _unsaid_besides(commands: Sequence[Command], said: str) -> str:
    gaps = unsaid(commands)
    return "" if gaps == said else gaps


def _briefs(views: Views, texts: Templates) -> dict[int, str]:
    """Write a brief word on every remedy but the best, by rank."""
    return {
        item.rank: texts.text("report/summary.md.j2", views.told(item))
        for item in views.doc.recommendations[1:]
    }


def _chosen(doc: Advice, length: Length, briefs: Mapping[int, str], used: int) -> Choice:
    items = doc.recommendations
    if length == "short":
        return everything(items[:1], [])
    if length == "full":
        return everything(items, [note.text for note in doc.notes])
    return within_length(doc, briefs, used)


def _remedy(
    option: OptionView,
    item: Recommendation,
    length: Length,
    *,
    text: str,
    brief: str,
    gaps: str,
    yours: str,
) -> Remedy:
    shown = length == "full" or item.rank == 1 or _FED not in item.command
    return Remedy(
        number=str(item.rank),
        title=item.title,
        text=text,
        brief=brief,
        also=option["option.alternatives"] if length == "full" and item.rank > 1 else "",
        command=item.command if shown else "",
        unsaid=gaps,
        confidence=item.confidence,
        rule=item.rule,
        yours=yours,
        figures=RemedyFigures(option, item.before.decode_tok_s),
    )


def unsaid(commands: Sequence[Command]) -> str:
    """Say what the first command cannot say, and why; empty when it says everything."""
    if not commands:
        return ""
    gaps = commands[0].gaps
    if not gaps:
        return ""
    named = [known("setting", gap.setting) or gap.setting.replace("_", " ") for gap in gaps]
    reasons = " ".join(dict.fromkeys(gap.reason for gap in gaps))
    return say("unsaid", settings=f.listed(named), reasons=reasons)


def provenance(doc: Advice, length: Length) -> str:
    """Name what made the report, for the last line; a short one without digests."""
    made = doc.provenance
    rules, knowledge = made.rules_sha256[:12], made.knowledge_sha256[:12]
    user = made.measurements_sha256
    named = {"version": made.advisor, "rules": rules, "knowledge": knowledge, "engine": made.engine}
    if length == "short":
        line = say("made.short", **named)
    else:
        line = say("made.own", **named, own=user[:12]) if user else say("made", **named)
    files = whose(doc)
    return f"{line}. {files}" if files else line
