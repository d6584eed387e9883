"""The report in words and key figures, shared by the text, Markdown and HTML views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from advisor.remedies.registry import is_uncertain
from advisor.report import figures as f
from advisor.report.assembly import Views
from advisor.report.clauses import barred, said, whose
from advisor.report.figures import Strings
from advisor.report.remedy_view import OptionView
from advisor.report.situation import LONG_CONTEXT_TOKENS
from advisor.report.templates import Templates, templates_for
from advisor.report.views import Placeholders, Told
from advisor.report.word_budget import Choice, everything, within_room, words_in
from advisor.report.words import known, say, speaking, spoken

if TYPE_CHECKING:
    from advisor.advice.document import Advice, Recommendation
    from advisor.runtimes.commands import Command
    from advisor.scenario.figures import Figure

Length = Literal["short", "standard", "full"]
SHORT_WORDS = 150
_EFFORTS = {"setting": 0, "download": 1, "rebuild": 2, "purchase": 3}
_FED = "<<"
"""A command that is a whole script: of those only the first is shown, unless all is wanted."""
_FIGURE = ": "
"""Between label and value of a key figure."""


class RemedyFigures(Placeholders):
    """The figures of a remedy for tables and lists, written as a view asks for them."""

    __slots__ = ("_before", "option")
    names = ("summary", "required", "headroom", "speed", "quality", "loss", "effort", "cost")

    def __init__(self, option: OptionView, item: Recommendation) -> None:
        """Take the placeholders that they are written from."""
        super().__init__()
        self.option, self._before = option, item.before.decode_tok_s

    def __missing__(self, name: str) -> str:
        """Write a figure.

        Raises:
            KeyError: There is none of this name.
        """
        writer = _LINES[name]
        with speaking(self.option.words):
            text = self[name] = writer(self.option, self._before)
        return text


class Remedy(Struct, frozen=True):
    """One recommendation as the views show it."""

    number: str
    title: str
    text: str
    """Empty where only title and figures are given."""
    brief: str
    """The same in a sentence or two, for where there is no room for the text."""
    also: str
    """Runners-up of the same kind, empty when there are none."""
    command: str
    unsaid: str
    """What the command cannot say, and why; empty when it says everything."""
    confidence: str
    rule: str
    yours: str
    """Where the rule stands when it is the user's own; else empty."""
    figures: RemedyFigures

    @property
    def summary(self) -> str:
        """``28.1 -> 15.3 GiB`` and the speed, for people in a hurry."""
        return self.figures["summary"]

    @property
    def required(self) -> str:
        """What is needed after the change."""
        return self.figures["required"]

    @property
    def headroom(self) -> str:
        """What stays free after it."""
        return self.figures["headroom"]

    @property
    def speed(self) -> str:
        """Tokens per second after it."""
        return self.figures["speed"]

    @property
    def quality(self) -> str:
        """What it costs in quality."""
        return self.figures["quality"]

    @property
    def loss(self) -> str:
        """The same where it may be noticed; else empty."""
        return self.figures["loss"]

    @property
    def effort(self) -> str:
        """What it asks for."""
        return self.figures["effort"]

    @property
    def cost(self) -> str:
        """Launch prices to pay for it."""
        return self.figures["cost"]


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
    doc: Advice, length: Length, templates: Path | None = None, views: Views | None = None
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
    opening = [heading, doc.verdict.sentence, have, happens, first, gaps, *doc.warnings]
    opening += [_unsaid_besides(item.commands, gaps) for item in doc.recommendations[:1]]
    opening += [word for figure in figures for word in figure]
    briefs = _briefs(views, texts) if length == "standard" else {}
    chosen = _chosen(doc, length, briefs, sum(map(words_in, opening)))
    return Report(
        title=heading,
        verdict=doc.verdict.sentence,
        state=doc.verdict.state,
        figures=tuple(figures),
        command=run,
        unsaid=gaps,
        have=have,
        happens=happens,
        first=first,
        remedies=tuple(
            _remedy(
                RemedyFigures(views.option(item), item),
                item,
                length,
                text=item.text if item.rank in chosen.told else "",
                brief=briefs.get(item.rank, ""),
                gaps=_unsaid_besides(item.commands, gaps),
            )
            for item in chosen.items
        ),
        watch=tuple(chosen.watch),
        warnings=tuple(doc.warnings),
        barred=tuple(barred(doc)) if length == "full" else (),
        provenance=provenance(doc),
    )


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
    context = views.told_with(best, action_text=best.text, length=length, least_effort=least)
    return texts.text("report/first.md.j2", context)


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
    return within_room(doc, briefs, used)


def _remedy(
    figures: RemedyFigures,
    item: Recommendation,
    length: Length,
    *,
    text: str,
    brief: str,
    gaps: str,
) -> Remedy:
    shown = length == "full" or item.rank == 1 or _FED not in item.command
    return Remedy(
        number=str(item.rank),
        title=item.title,
        text=text,
        brief=brief,
        also=figures.option["option.alternatives"] if length == "full" and item.rank > 1 else "",
        command=item.command if shown else "",
        unsaid=gaps,
        confidence=item.confidence,
        rule=item.rule,
        yours=said(item.yours),
        figures=figures,
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


def _summary(s: Strings, before: Figure | None) -> str:
    memory = f"{s['option.before_required'].removesuffix(' GiB')} -> {s['option.required']}"
    kind = "line.free.some" if s["option.several"] else "line.free"
    kind += ".thin" if s["option.thin"] else ""
    free = say(kind, size=s["option.headroom"]) if s["option.headroom"] else ""
    point = _drafted(s) or s["option.speed_point"]
    changed = before is not None and f.speed_point(before) != point
    speed = f"{f.rate(before.estimate)} -> {point}" if before and point and changed else point
    return ", ".join(part for part in (memory, free, speed) if part)


def _drafted(s: Strings) -> str:
    """The span a draft model leads to, where the draft is what is recommended."""
    return s["option.speculative"] if is_uncertain(s["option.family"]) else ""


def _quality(s: Strings) -> str:
    if s["option.quality_cost"]:
        share = s["option.quality_cost"]
        return say("line.loss" if share[0].isdigit() else "line.loss.tiny", share=share)
    if s["option.quality_gain"]:
        return say("line.gain", points=s["option.quality_gain"].removesuffix(" %"))
    return say("line.same" if s["option.quality_same"] else "line.unmeasured")


_LINES: Mapping[str, Callable[[Strings, Figure | None], str]] = {
    "summary": _summary,
    "required": lambda s, _: s["option.required"],
    "headroom": lambda s, _: s["option.headroom"] or say("line.fits-not"),
    "speed": lambda s, _: _drafted(s) or s["option.decode_speed"] or say("line.unknown"),
    "quality": lambda s, _: _quality(s),
    "loss": lambda s, _: (
        "" if s["option.quality_small"] or not s["option.quality_cost"] else _quality(s)
    ),
    "effort": lambda s, _: known("effort-kind", s["option.effort"]) or s["option.effort"],
    "cost": lambda s, _: s["option.cost"],
}
"""Figure of a remedy -> its text, from its placeholders and the speed before."""


def provenance(doc: Advice) -> str:
    """Name what made the report, for the last line."""
    made = doc.provenance
    rules, knowledge = made.rules_sha256[:12], made.knowledge_sha256[:12]
    user = made.measurements_sha256
    named = {"version": made.advisor, "rules": rules, "knowledge": knowledge}
    line = say("made.own", **named, own=user[:12]) if user else say("made", **named)
    files = whose(doc)
    return f"{line}. {files}" if files else line
