"""What was concluded -> the result document with its sentences, and the placeholders of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.advice.document import Advice, Note, Recommendation
from advisor.advice.projection import numbers_of, options_doc
from advisor.files import data_dir
from advisor.knowledge.layers import Layer, Stack, UserEntry, layers
from advisor.remedies import settings_of
from advisor.remedies.option import Expected
from advisor.report.figures import counted, known, listed, say, spoken, words_of
from advisor.report.remedy_view import OptionView, caveats_of
from advisor.report.situation import Situation
from advisor.report.template_writer import SEED, turned
from advisor.report.templates import Templates, templates_for
from advisor.report.views import Told
from advisor.report.word_file import FILE as WORDS
from advisor.units import plain

if TYPE_CHECKING:
    from advisor.advice.conclusions import Conclusions, FiredNote
    from advisor.advice.configuration import MemoryPicture
    from advisor.runtimes.commands import Command

_REPORT = "report"


class Views(Struct, frozen=True):
    """The placeholders of one document, written once and shared by its sentences and its report.

    They hold figures and names, never sentences, so later sentences change none.
    """

    doc: Advice
    situation: Situation
    options: dict[int, OptionView] = field(default_factory=dict)
    """By rank, as far as asked for."""
    _told: dict[int, Told] = field(default_factory=dict)

    @classmethod
    def of(cls, doc: Advice) -> Views:
        """Write the placeholders of the scenario."""
        return cls(doc, Situation(doc))

    def option(self, item: Recommendation) -> OptionView:
        """Give the placeholders of a recommendation of this document."""
        found = self.options.get(item.rank)
        if found is None:
            found = self.options[item.rank] = OptionView(self.doc, item)
        return found

    def told(self, item: Recommendation) -> Told:
        """Give the placeholders that a recommendation's own texts are written from.

        Each has its own turn of the variation, so that neighbours differ within a report too.
        """
        found = self._told.get(item.rank)
        if found is None:
            seed = turned(self.situation[SEED], item.rank)
            found = Told({SEED: seed}, self.situation, self.option(item))
            self._told[item.rank] = found
        return found


def document(
    found: Conclusions,
    *,
    templates: Stack = None,
    picture: MemoryPicture | None = None,
    options: bool = False,
    reasons: bool = True,
) -> Advice:
    """Turn what was concluded into the result document that every view reads.

    ``picture`` is how memory grows, where it is to be shown; ``options`` lists the what-ifs that
    fit, ``reasons`` the conditions behind what is barred, which no page shows.

    Raises:
        TemplateError: A template is missing, broken or names an unknown placeholder.
    """
    doc = document_and_views(found, templates=templates, picture=picture, reasons=reasons)[0]
    if options:
        barred = frozenset(item.option.key for item in found.not_recommended)
        doc.options = options_doc(found.options, barred)
    return doc


def document_and_views(
    found: Conclusions,
    *,
    templates: Stack = None,
    picture: MemoryPicture | None = None,
    reasons: bool = True,
) -> tuple[Advice, Views]:
    """Give the document with its placeholders, for whoever writes its report as well."""
    with spoken(templates):
        doc = numbers_of(found, picture, reasons=reasons)
        if templates:
            users = (*doc.provenance.yours, *_user_templates(found, templates))
            doc.provenance = replace(doc.provenance, yours=users)
        views = Views.of(doc)
        _write_sentences(views, found, templates_for(templates))
    return doc, views


def _user_templates(found: Conclusions, folders: Stack) -> Iterator[UserEntry]:
    """The user's templates among those that a report may be written from."""
    named = layers(folders, "templates")
    actions = (f"actions/{item.text_template}" for item in found.recommendations)
    notes = (f"notes/{note.text_template}" for note in found.notes if note.text_template)
    pages = (f"{_REPORT}/{p.name}" for one in named for p in (one.folder / _REPORT).glob("*.j2"))
    below = [*named[::-1], Layer(data_dir("templates"), "templates")]
    for path in dict.fromkeys((*actions, *notes, *sorted(pages))):
        holding = [layer for layer in below if (layer.folder / path).is_file()]
        if holding and holding[0] in named:
            behind = (path, f"{holding[1].label}/{path}") if holding[1:] else ()
            yield UserEntry("template", path, f"{holding[0].label}/{path}", *behind)
    yield from _user_words(named)


def _user_words(named: Sequence[Layer]) -> Iterator[UserEntry]:
    """The user's files of words that change one."""
    for number, layer in enumerate(named):
        before, now = (words_of([one.folder for one in named[:n]]) for n in (number, number + 1))
        if dict(before) != dict(now):
            yield UserEntry("words", WORDS, f"{layer.label}/{WORDS}", WORDS, f"templates/{WORDS}")


def _write_sentences(views: Views, found: Conclusions, texts: Templates) -> None:
    doc, situation = views.doc, views.situation
    doc.verdict.sentence = texts.text("report/verdict.md.j2", situation)
    for shown, item in zip(doc.recommendations, found.recommendations, strict=True):
        name = item.text_template or f"{item.option.action}.md.j2"
        context = views.told(shown)
        shown.title, text = texts.titled(f"actions/{name}", context)
        caveats = [texts.text(f"report/{caveat}.md.j2", context) for caveat in caveats_of(context)]
        shown.text = " ".join([text, *filter(None, caveats)])
    for barred, was in zip(doc.not_recommended, found.not_recommended, strict=True):
        facts = was.option.facts if isinstance(was.option, Expected) else {}
        barred.title = plain(title(barred.action, barred.change, facts))
    users = doc.provenance.rules()
    doc.notes = [
        Note(note.rule, users.get(note.rule), text)
        for note in found.notes
        if (text := _note_text(note, situation, texts))
    ]


def _note_text(note: FiredNote, situation: dict[str, str], texts: Templates) -> str:
    """A note without a template of its own carries its sentence itself."""
    if note.text_template:
        return texts.text(f"notes/{note.text_template}", situation)
    return plain(note.text)


def title(action: str, change: Mapping[str, object], facts: Mapping[str, object]) -> str:
    """Name what is barred in a few words.

    ``facts`` are empty where nothing was estimated.
    """
    change = {key: value for key, value in change.items() if (key, value) != ("gpu_layers", "all")}
    keys = set(change)
    if facts.get("option.split") == "tensor":
        return say("barred.tensor", n=change["gpus"])
    if keys in ({"precision"}, {"framework"}):
        return str(change[keys.pop()])
    if keys == {"precision", "framework"} and settings_of(action) == {"precision"}:
        return say("barred.format", format=change["precision"], framework=change["framework"])
    if keys == {"kv_cache"}:
        return say("barred.kv_cache", type=change["kv_cache"])
    if not change:
        return known("barred", action) or action
    return listed([_changed(key, value) for key, value in change.items()])


def _changed(key: str, value: object) -> str:
    """Say one setting of a change in words."""
    if key in {"batch", "gpu_layers"} and isinstance(value, int):
        return counted(f"barred.setting.{key}", value)
    shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    text = known("barred.setting", key)
    return text.format(n=shown) if text else f"{key.replace('_', ' ')} {shown}"


def barred(doc: Advice) -> list[str]:
    """Say what was not recommended and why, one line per reason; a format only once."""
    by_reason: dict[str, list[str]] = {}
    told: dict[str, str] = {}
    for item in doc.not_recommended:
        reason, named = item.reason, item.title
        subject = _parted(named)[0] or named
        if told.setdefault(subject, reason) == reason:
            by_reason.setdefault(reason, []).append(named)
    return [
        say("barred.line", names=_folded(list(dict.fromkeys(names))), reason=why)
        for why, names in by_reason.items()
    ]


def _parted(title: str) -> tuple[str, str]:
    """Part ``FP8 in vLLM`` into format and framework, where words stand between the two."""
    between = say("barred.format", format="", framework="")
    if not between.strip():
        return "", title
    head, _, place = title.rpartition(between)
    return head, place


def _folded(names: Sequence[str]) -> str:
    """``AWQ in vLLM, FP8 in vLLM`` -> ``AWQ and FP8 in vLLM``."""
    parts = [_parted(name) for name in names]
    places = {place for _, place in parts}
    if len(names) > 1 and len(places) == 1 and all(head for head, _ in parts):
        heads = listed([head for head, _ in parts])
        return say("barred.format", format=heads, framework=places.pop())
    return listed(list(names))


def sources(doc: Advice) -> Mapping[int, str]:
    """Say at the first command of each kind what it holds that nobody asked for, by rank.

    That is a file that nobody publishes, for the setup itself at rank 0, and the sequences without
    which a server would not start.
    """
    found, said = dict[int, str](), {""}
    for rank, commands in [(0, doc.commands), *((r.rank, r.commands) for r in doc.recommendations)]:
        for command in commands[:1]:
            news = {kind: text for kind, text in _beside(command) if kind not in said}
            said.update(news)
            found[rank] = " ".join(news.values())
    return found


def _beside(command: Command) -> Iterator[tuple[str, str]]:
    if command.config:
        yield command.config, say("by_config", config=command.config)
    if command.setup:
        yield command.setup, command.setup
    if kind := command.unpublished:
        yield kind, say(f"unpublished.{kind}")
    program = command.program.partition(" ")[0]
    if started := known("started", program):
        yield program, started
    if command.whole_experts:
        yield "whole_experts", say("whole_experts")
    for kind in ("most_at_start", "too_many_beyond"):
        if most := getattr(command, kind):
            yield kind, counted(kind, most)
