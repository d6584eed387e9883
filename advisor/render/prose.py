"""The report in words and key figures, shared by the text, Markdown and HTML views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from advisor.render import figures as f
from advisor.render.barred import barred
from advisor.render.figures import Strings
from advisor.render.templating import Templates, templates_for
from advisor.render.view import LONG_CONTEXT_TOKENS
from advisor.render.views import Views

if TYPE_CHECKING:
    from advisor.render.contract import CommandDoc, Document, RecommendationDoc

Length = Literal["short", "standard", "full"]
STANDARD_WORDS = 500
"""Everything a reader reads in a standard report: title, figures, sentences, headings, last line."""
SHORT_WORDS = 150
_FRAME_WORDS, _RUN_WORDS, _OWN_WORDS = 21, 6, 3
"""Of those, headings and last line; what leads to the command; the user's own measurements."""
_STANDARD_REMEDIES, _STANDARD_REMARKS = 6, 7
_FED = "<<"
"""A command that is a whole script: of those only the first is shown, unless all is wanted."""
_REMARKS_FIRST, _TEXTS_FIRST = 5, 2
"""So many remarks, and then texts of further remedies, before more of either."""
_REMARKS_SURE, _REMEDIES_SURE = 3, 4
"""So many of the best remarks are there; remedies after the fourth go without a mention for them."""
_FIGURE = ": "
"""Between label and value of a key figure."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One recommendation as the views show it."""

    number: str
    title: str
    text: str
    """Empty where only title and figures are given."""
    summary: str
    """``28.1 -> 15.3 GiB`` and the speed, for people in a hurry."""
    brief: str
    """The same in a sentence or two, for where there is no room for the text."""
    also: str
    """Runners-up of the same kind, empty when there are none."""
    command: str
    unsaid: str
    """What the command cannot say, and why; empty when it says everything."""
    required: str
    headroom: str
    speed: str
    quality: str
    effort: str
    cost: str
    confidence: str
    rule: str


@dataclass(frozen=True, slots=True)
class Report:
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
    doc: Document, length: Length, templates: Path | None = None, views: Views | None = None
) -> Report:
    """Write the report of a document in a length.

    ``standard`` keeps to 500 words, headings and figures included and commands apart: the best
    remedy in full, the others by name and figures, then the best remarks and the texts of the
    other remedies as far as they fit in; ``short`` is the verdict and the best remedy, 150 words;
    ``full`` is everything.

    Raises:
        TemplateError: A template of templates/report is missing or broken.
    """
    views = views or Views.of(doc)
    texts, situation = templates_for(templates), views.situation
    context = {**situation, "length": length}
    short = length == "short"
    heading = texts.text("report/title.md.j2", situation)
    have = "" if short else texts.text("report/have.md.j2", context)
    happens = "" if short else texts.text("report/happens.md.j2", context)
    first = _first(views, texts, length)
    figures = _figures(views, texts, length)
    run = "" if not doc["commands"] else doc["commands"][0]["text"]
    gaps = unsaid(doc["commands"])
    opening = [heading, doc["verdict"]["sentence"], have, happens, first, gaps, *doc["warnings"]]
    opening += [word for figure in figures for word in figure]
    chosen = _chosen(views, texts, length, sum(_words(text) for text in opening))
    return Report(
        title=heading,
        verdict=doc["verdict"]["sentence"],
        state=doc["verdict"]["state"],
        figures=tuple(figures),
        command=run,
        unsaid=gaps,
        have=have,
        happens=happens,
        first=first,
        remedies=tuple(
            _remedy(views.option(item), item, chosen, length, gaps) for item in chosen.items
        ),
        watch=tuple(chosen.watch),
        warnings=tuple(doc["warnings"]),
        barred=tuple(barred(doc)) if length == "full" else (),
        provenance=provenance(doc),
    )


def _figures(views: Views, texts: Templates, length: Length) -> list[tuple[str, str]]:
    """Write the figures a reader looks for first, label and value, a line each."""
    doc, situation = views.doc, views.situation
    named = any(item["after"]["decode_tok_s"] for item in doc["recommendations"])
    context = {
        **situation,
        "length": length,
        "break_even": texts.text("report/break_even.md.j2", situation) if length != "short" else "",
        "speeds_fall": f.flag(
            named
            and not situation["speed_known"]
            and doc["scenario"]["context_tokens"] >= LONG_CONTEXT_TOKENS
        ),
    }
    lines = texts.page("report/figures.md.j2", context).splitlines()
    rows = (line.partition(_FIGURE) for line in lines)
    return [(label.strip(), " ".join(value.split())) for label, _, value in rows if value.strip()]


def _first(views: Views, texts: Templates, length: Length) -> str:
    doc, situation = views.doc, views.situation
    if not doc["recommendations"]:
        return texts.text("report/none.md.j2", situation)
    best = doc["recommendations"][0]
    context = {**views.told(best), "action_text": best["text"], "length": length}
    return texts.text("report/first.md.j2", context)


def _words(text: str) -> int:
    """Count what holds a letter or a digit; of what else stands alone there is only ``%``."""
    return len(text.split()) - text.count(" %")


def _frame(doc: Document) -> int:
    own = _OWN_WORDS if doc["provenance"]["measurements_sha256"] else 0
    return _FRAME_WORDS + own + (_RUN_WORDS if doc["commands"] else 0)


@dataclass(frozen=True, slots=True)
class _Choice:
    items: Sequence[RecommendationDoc]
    told: frozenset[int]
    """Ranks of the remedies that are told in full, not only named with their figures."""
    watch: Sequence[str]
    briefs: Mapping[int, str]
    """By rank, of those that are not."""


def _chosen(views: Views, texts: Templates, length: Length, used: int) -> _Choice:
    doc = views.doc
    items, notes = doc["recommendations"], [note["text"] for note in doc["notes"]]
    if length == "short":
        return _Choice(items[:1], _ranks(items[:1]), [], {})
    if length == "full":
        return _Choice(items, _ranks(items), notes, {})
    room = STANDARD_WORDS - _frame(doc) - used
    named = {item["rank"]: texts.text("report/summary.md.j2", views.told(item)) for item in items}
    taken = {item["rank"]: _words(item["title"]) for item in items}
    taken |= {rank: taken[rank] + _words(named[rank]) for rank in list(named)[1:]}
    least = sum(map(_words, notes[:_REMARKS_SURE]))
    shown = items[:_STANDARD_REMEDIES]
    while len(shown) > _REMEDIES_SURE and sum(taken[i["rank"]] for i in shown) + least > room:
        shown = shown[:-1]
    gaps = sum(_words(unsaid(item["commands"])) for item in shown[:1])
    return _within(shown, notes, named, room - gaps - sum(taken[item["rank"]] for item in shown))


def _ranks(items: Sequence[RecommendationDoc]) -> frozenset[int]:
    return frozenset(item["rank"] for item in items)


def _within(
    items: Sequence[RecommendationDoc], notes: Sequence[str], briefs: Mapping[int, str], room: int
) -> _Choice:
    """Take the best remarks, then remedies' texts, then more of both, while words are left.

    A remedy that is not told still stands there with its title and a brief word.
    """
    filling = _Filling(room)
    remarks = filling.take(notes, _REMARKS_FIRST)
    gained = {briefs[item["rank"]]: item for item in items[1:]}
    told = filling.instead(gained, _TEXTS_FIRST)
    left = [note for note in notes if note not in remarks]
    remarks += filling.take(left, _STANDARD_REMARKS - len(remarks))
    told |= filling.instead({b: i for b, i in gained.items() if i["rank"] not in told}, len(items))
    kept = [note for note in notes if note in remarks]
    return _Choice(items, told | _ranks(items[:1]), kept, briefs)


@dataclass(slots=True)
class _Filling:
    """Words that are left, and what is taken out of them."""

    room: int

    def take(self, texts: Sequence[str], most: int) -> list[str]:
        """Take texts in order while they fit."""
        taken = list[str]()
        for text in texts:
            if len(taken) < most and _words(text) <= self.room:
                taken.append(text)
                self.room -= _words(text)
        return taken

    def instead(self, briefs: Mapping[str, RecommendationDoc], most: int) -> frozenset[int]:
        """Put texts in place of their brief words, in order while they fit; give the ranks."""
        told = list[int]()
        for brief, item in briefs.items():
            more = _words(item["text"]) - _words(brief)
            if len(told) < most and more <= self.room:
                told.append(item["rank"])
                self.room -= more
        return frozenset(told)


def _remedy(
    s: Strings, item: RecommendationDoc, chosen: _Choice, length: Length, said: str
) -> Remedy:
    """Put a recommendation as the views show it; ``said`` is what its command need not repeat."""
    gaps = unsaid(item["commands"])
    shown = length == "full" or item["rank"] == 1 or _FED not in item["command"]
    return Remedy(
        number=str(item["rank"]),
        title=item["title"],
        text=item["text"] if item["rank"] in chosen.told else "",
        summary=_summary(s),
        brief=chosen.briefs.get(item["rank"], ""),
        also=s["option_alternatives"] if length == "full" and item["rank"] > 1 else "",
        command=item["command"] if shown else "",
        unsaid="" if gaps == said else gaps,
        required=s["option_required"],
        headroom=s["option_headroom"] or "does not fit",
        speed=_drafted(s) or s["option_speed"] or "not known",
        quality=_quality(s),
        effort=s["option_effort_kind"],
        cost=s["option_cost"],
        confidence=item["confidence"],
        rule=item["rule"],
    )


_SETTINGS = {
    "gpus": "number of cards",
    "gpu_layers": "layers on the card",
    "cpu_experts": "experts in system RAM",
    "kv_cache": "KV-cache type",
    "kv_unified": "sharing of the cache",
    "swa_full": "full window cache",
    "ubatch": "tokens computed at once",
    "backend": "back end",
}


def unsaid(commands: Sequence[CommandDoc]) -> str:
    """Say what the first command cannot say, and why; empty when it says everything."""
    if not commands:
        return ""
    gaps = commands[0]["gaps"]
    named = (_SETTINGS.get(gap["setting"], gap["setting"].replace("_", " ")) for gap in gaps)
    reasons = list(dict.fromkeys(gap["reason"] for gap in gaps))
    return f"Not in this command: {f.listed(list(named))}. {' '.join(reasons)}" if gaps else ""


def _summary(s: Strings) -> str:
    memory = f"{s['before_required'].removesuffix(' GiB')} -> {s['option_required']}"
    free = f"{s['option_headroom']} free" if s["option_headroom"] else ""
    before = s["before_speed"].split(" (")[0].removeprefix("about ").removesuffix(" tok/s")
    point = _drafted(s) or s["option_speed_point"]
    same = before == point.removesuffix(" tok/s")
    speed = f"{before} -> {point}" if before and point and not same else point
    return ", ".join(part for part in (memory, free, speed) if part)


def _drafted(s: Strings) -> str:
    """The span a draft model leads to, where the draft is what is recommended."""
    return s["option_speculative"] if s["option_action"] == "speculative" else ""


def _quality(s: Strings) -> str:
    if s["option_quality_cost"]:
        return f"perplexity +{s['option_quality_cost']}".replace("+under", "by under")
    if s["option_quality_gain"]:
        return f"perplexity -{s['option_quality_gain'].removesuffix(' %')} points"
    return "same" if s["option_quality_same"] else "not measured"


def provenance(doc: Document) -> str:
    """Name what made the report, for the last line."""
    made = doc["provenance"]
    rules, knowledge = made["rules_sha256"][:12], made["knowledge_sha256"][:12]
    own = made["measurements_sha256"]
    yours = f", your measurements {own[:12]}" if own else ""
    return f"advisor {made['advisor']}, rules {rules}, knowledge {knowledge}{yours}"
