"""Answers on their way out: to the terminal, a pipe or a file; why reports say what they say."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions, RankedOption, ScoreTerm, user_rule
from advisor.advice.document import wrong_in
from advisor.calibration import file_of
from advisor.cli.options import KNOWLEDGE, RULES, TEMPLATES, NoMeasurements, layers_option, spread
from advisor.cli.own_settings import used_settings
from advisor.errors import EngineError, UserError
from advisor.estimator.picture import memory_picture
from advisor.files import opened
from advisor.knowledge.layers import OwnFiles, Stack
from advisor.knowledge.vocabulary import Vocabulary, show
from advisor.report import FORMATS, Page
from advisor.report.assembly import document
from advisor.report.charts import picture_markdown, picture_text
from advisor.report.prose import Length, too_long
from advisor.rules.language.model import Rule

if TYPE_CHECKING:
    from advisor.advice.document import Advice
    from advisor.report.pages import OptionsTable

_PIPE_WIDTH = 88
_WIDEST = 100


def write_report(
    advisor: Advisor,
    advice: Conclusions,
    *,
    templates: Stack,
    form: str,
    length: Length,
    output: Path | None,
    options: bool,
    why: bool,
    memory: bool,
    strict: bool = False,
) -> None:
    """Render the advice and write it to ``output`` or standard output.

    Raises:
        UserError: A template is wrong, or the file cannot be written.
        EngineError: With ``strict``: the report does not hold.
    """
    chosen = FORMATS[form]
    if chosen.complete or length == "full" or why:
        advice = advisor.with_expected(advice)
    picture = memory_picture(advice.scenario, advisor.knowledge) if memory else None
    reasons = chosen.complete or strict
    doc = named(
        document(advice, templates=templates, picture=picture, options=options, reasons=reasons)
    )
    if strict:
        _hold(doc, length, templates)
    terminal = output is None and sys.stdout.isatty()
    color = terminal and not os.environ.get("NO_COLOR")
    width = width_of(terminal=terminal)
    text = chosen.write(Page(doc, length, templates, width=width, color=color))
    if chosen.continued:
        extra = [_picture(doc, form, templates, terminal=terminal)] if memory else []
        extra += [_options(doc, form, output, templates)] if options else []
        extra += [why_report(advisor, advice)] if why else []
        text = "\n\n".join([text.rstrip("\n"), *extra])
    write(text.rstrip("\n") + "\n", output)


def named(doc: Advice) -> Advice:
    """Let a document name the settings of the user that stand for flags not given."""
    if used := used_settings():
        doc.scenario = replace(doc.scenario, read_as=(*doc.scenario.read_as, *used))
    return doc


def _hold(doc: Advice, length: Length, templates: Stack) -> None:
    """Refuse a document that does not hold: a bug of ours, unless files of the user shaped it.

    Raises:
        UserError: It does not hold, and the user's own files are in it.
        EngineError: It does not hold.
    """
    wrong = [*wrong_in(doc), *too_long(doc, length, templates)]
    if not wrong:
        return
    said = f"this report does not hold: {'; '.join(wrong)}."
    if templates or doc.provenance.yours:
        raise UserError(said, hint="See whether it holds without your own files.")
    raise EngineError(said)


def _picture(doc: Advice, form: str, templates: Stack, *, terminal: bool) -> str:
    if form == "markdown":
        return picture_markdown(doc, templates=templates)
    return picture_text(doc, width=width_of(terminal=terminal), templates=templates)


def _options(doc: Advice, form: str, output: Path | None, templates: Stack) -> str:
    """The table of what fits; drawn by rich on a terminal, with its picture in a Markdown file."""
    from advisor.report import pages  # noqa: PLC0415

    if form == "markdown":
        text = pages.options_markdown(doc, templates=templates)
        picture = pages.scatter_svg(doc, templates=templates) if output else None
        return f"{text}\n\n{picture}" if picture else text
    if output is None and sys.stdout.isatty():
        return _drawn(pages.options_html(doc, templates=templates))
    return pages.options_text(doc, width=width_of(terminal=False), templates=templates)


def _drawn(table: OptionsTable | None) -> str:
    if table is None:
        return ""
    from rich.console import Console  # noqa: PLC0415  start-up
    from rich.table import Table  # noqa: PLC0415

    drawn = Table(title=table.title, caption=table.foot)
    for name in table.head:
        drawn.add_column(name)
    for row in table.rows:
        drawn.add_row(*row)
    console = Console(width=width_of(terminal=True), no_color=bool(os.environ.get("NO_COLOR")))
    with console.capture() as held:
        console.print(table.lead, highlight=False)
        console.print(drawn)
    return held.get()


def width_of(*, terminal: bool) -> int:
    """Give the columns to write in."""
    return min(shutil.get_terminal_size().columns, _WIDEST) if terminal else _PIPE_WIDTH


def write(text: str, output: Path | None) -> None:
    """Write to a file, whole or not at all, or to standard output.

    Raises:
        RequestError: The file cannot be written.
    """
    if output is None:
        sys.stdout.write(text)
        return
    with opened(output) as file:
        file.write(text)


def why_report(advisor: Advisor, advice: Conclusions) -> str:
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


def _off(advice: Conclusions) -> Iterator[str]:
    """The rules that the user disabled; nothing without any."""
    if advice.provenance.switched_off:
        yield "Switched off by your rules"
        for item in advice.provenance.switched_off:
            yield f"  {item.name} ({item.at}): {item.reason}"
        yield ""


def _barred(advice: Conclusions) -> Iterator[str]:
    for item in advice.not_recommended:
        yield f"  {item.option.key}: {item.rule}: {item.reason}"
        for why in item.why():
            beyond = f", {why.distance} short" if why.distance and "below" in why.test else ""
            beyond = beyond or (f", {why.distance} beyond" if why.distance else "")
            yield f"      because {why.fact} is {why.shown} ({why.test}{beyond})"


def _fired(advisor: Advisor, advice: Conclusions) -> Iterator[str]:
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
    if rule.overlay is None:
        return ""
    return f" ({user_rule(rule)})"


def _score(vocabulary: Vocabulary, recommendation: RankedOption) -> Iterator[str]:
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


def _silent(advisor: Advisor, advice: Conclusions) -> Iterator[str]:
    fired = {rule for rule, _ in advice.fired}
    from advisor.workbench.explanation import why_not_lines  # noqa: PLC0415 - for --why alone

    for rule in advisor.ruleset.rules:
        if rule.id not in fired:
            yield f"  {rule.id}{_whose(rule)}"
            yield from (f"      {line}" for line in why_not_lines(advisor, advice, rule))


_FOLDERS = {"rules": RULES, "templates": TEMPLATES, "knowledge": KNOWLEDGE}


def takes_folders(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``own`` of a command by the flags of the user's folders."""
    return spread(command, "own", _folder_flags(None), _own_files)


def takes_own_files(
    panel: str | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace ``own`` by the flags of the folders, in a panel of the help, and of measurements."""
    flags = [*_folder_flags(panel), _flag("no_measurements", NoMeasurements, default=False)]
    return lambda command: spread(command, "own", flags, _own_files)


def _folder_flags(panel: str | None) -> list[Parameter]:
    return [
        _flag(name, Annotated[list[Path] | None, layers_option(said, panel)], default=None)
        for name, said in _FOLDERS.items()
    ]


def _flag(name: str, kind: object, *, default: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _own_files(values: Mapping[str, Any]) -> OwnFiles:
    folders: Mapping[str, Stack] = {name: values[name] for name in _FOLDERS}
    left_out = values.get("no_measurements", True)
    return OwnFiles(
        **folders, measurements=None if left_out else measurements_of(folders["knowledge"])
    )


def measurements_of(knowledge: Stack) -> Path | None:
    """Give the file to read: beside the user's knowledge where that is named, else their own.

    None where the environment leaves measurements out.
    """
    if os.environ.get("ADVISOR_NO_MEASUREMENTS", "").casefold() not in {"", "0", "false", "no"}:
        return None
    return file_of(knowledge)
