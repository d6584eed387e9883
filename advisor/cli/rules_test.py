"""``advisor rules test``, ``cover``, ``diff``, ``mutate``: are the rules right; what do they do?"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.cli.options import Format, OnlyRules, Output, Scenarios, Workers
from advisor.cli.report_output import progress_line, takes_folders, write
from advisor.errors import RequestError, UserError
from advisor.knowledge.layers import Stack, UserFiles, stack
from advisor.rules.language.model import Places
from advisor.workbench.bulk import evaluate_all
from advisor.workbench.cases import CaseResult, Runner, junit_xml
from advisor.workbench.comparison import compare_sides
from advisor.workbench.cover import cover as measure
from advisor.workbench.cover_views import cover_html, cover_json, cover_text
from advisor.workbench.dependencies import find_rules
from advisor.workbench.diff_views import View
from advisor.workbench.fact_store_files import Origin, sampled_facts
from advisor.workbench.lint.problem import as_text
from advisor.workbench.lint.templates import check_templates
from advisor.workbench.mutation_run import Search, mutated_rules, mutation_json, mutation_text
from advisor.workbench.scenario_file import load_scenarios, scenario_folder
from advisor.workbench.sides import Folders, base_side, load_side
from advisor.workbench.watch import Concerned, Session, Stamp, stamp, until_changed

Folder = Annotated[
    Path | None, typer.Argument(help="Folder of rule files. [default: --rules, or built-in]")
]


@takes_folders
def test(
    folder: Folder = None,
    rule: OnlyRules = None,
    scenarios: Scenarios = None,
    format_: Annotated[Format, typer.Option("--format", help="How it is written.")] = "text",
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file too.")] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Run again what an edit concerns, until Ctrl-C.")
    ] = False,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Write what is seen now into the scenarios that fail."),
    ] = False,
    *,
    user: UserFiles,
) -> None:
    """Run the cases of every rule and the scenario files; a failure says what was missing.

    With --rule only the cases of that rule run, and no scenarios.

    Example: advisor rules test --rule quantize-to-fit
    """
    folders = folder or user.rules
    places = _places(folders, scenarios)
    session = _session(folders, scenarios, user.templates, user.knowledge, places)
    begun = stamp(session.folders)
    only = find_rules(session.runner.advisor.ruleset, rule) if rule else None
    if accept:
        typer.echo(f"{session.accept()} scenarios brought up to date; look at the difference")
        session.reload()
    results = placed(session.run(only, () if only else session.scenarios), places)
    if not results and not watch:
        raise RequestError("no case was run", hint="Add cases to the rules.")
    typer.echo(json_of(results) if format_ == "json" else text_of(results), nl=False)
    if junit:
        write(junit_xml(results), junit)
    if watch:
        watch_files(session, only, begun, places)
    if not all(result.ok for result in results):
        raise typer.Exit(1)


def _places(folders: Stack, scenarios: Path | None) -> Places:
    return Places.of(folders, beside=[scenarios.parent, scenarios] if scenarios else [])


def _session(
    folders: Stack,
    scenarios: Path | None,
    templates: Stack,
    knowledge: Stack,
    places: Places,
) -> Session:
    for folder in stack(folders):
        must_hold_rules(folder)
    if scenarios is not None and not scenarios.is_dir():
        raise RequestError(f"{scenarios} is not a folder", hint="Name a folder of scenario files.")
    advisor = Advisor.load(rules=folders, templates=templates, knowledge=knowledge)
    where = scenarios or scenario_folder(folders)
    try:
        found = load_scenarios(
            where, advisor.vocabulary, advisor.ruleset, advisor.knowledge.names()
        )
    except UserError as error:
        raise places.error(error) from None
    if scenarios is not None and not found:
        raise RequestError(f"{scenarios} holds no scenario", hint="Add a file that ends in .yaml.")
    return Session(Runner(advisor, templates=templates), found, folders, where, knowledge)


def must_hold_rules(folder: Path) -> None:
    """Refuse a folder without rule files.

    Raises:
        RequestError: It is none, or holds none.
    """
    problem: UserError | None = None
    if not folder.is_dir():
        problem = RequestError(f"{folder} is not a folder")
    elif not any(folder.rglob("*.yaml")):
        problem = RequestError(f"{folder} holds no rule file (*.yaml)")
    if problem:
        raise problem


_LOOK_EVERY_S = 0.2


def watch_files(session: Session, only: frozenset[str] | None, seen: Stamp, places: Places) -> None:
    """Run tests again at every save, until Ctrl-C."""
    typer.echo("watching rules, templates and knowledge; Ctrl-C ends it")
    while True:
        seen = until_changed(session.folders, seen, lambda: time.sleep(_LOOK_EVERY_S))
        begun = time.perf_counter()
        try:
            concerned = session.reload()
        except UserError as error:
            for line in str(places.error(error)).splitlines():
                typer.echo(f"error: {line}")
            continue
        rerun(session, concerned, only, places)
        rules = concerned.rules if only is None else concerned.rules & only
        typer.echo(f"({len(rules)} rules concerned, {time.perf_counter() - begun:.2f} s)")
        _later(session, concerned, only, places, seen)


def rerun(
    session: Session, concerned: Concerned, only: frozenset[str] | None, places: Places
) -> None:
    """Run at once what an edit concerns most, and write the outcome."""
    if concerned.texts:
        for line in _template_problems(session.runner.templates, session.rules, session.knowledge):
            typer.echo(line)
    wanted = concerned.rules if only is None else concerned.rules & only
    found = session.run(wanted, concerned.scenarios if only is None else ())
    typer.echo(text_of(placed(found, places)), nl=False)


def _template_problems(templates: Stack, rules: Stack, knowledge: Stack) -> Iterator[str]:
    """What is wrong with the texts; a rule that asks for words would only show one of them."""
    checked = check_templates(templates, rules=rules, knowledge=knowledge)
    many = f"{checked.files} template{'s' * (checked.files != 1)}"
    yield from as_text(checked.problems).splitlines()
    yield f"{many}: {len(checked.problems) or 'no'} problem{'s' * (len(checked.problems) > 1)}"


def _later(
    session: Session,
    concerned: Concerned,
    only: frozenset[str] | None,
    places: Places,
    seen: Stamp,
) -> None:
    """Run the rest, whose facts must be worked out again, until the next save."""
    rest = concerned.later if only is None else concerned.later & only
    if not rest:
        return
    typer.echo("the other cases, as facts may differ ...")
    found: list[CaseResult] = []
    looked = time.perf_counter()
    for result in session.run(rest, ()):
        found.append(result)
        if time.perf_counter() - looked > _LOOK_EVERY_S:
            if stamp(session.folders) != seen:
                return
            looked = time.perf_counter()
    typer.echo(text_of(placed(found, places)), nl=False)


_MOST_ALIKE = 3
"""Cases without an answer that are listed one by one, where one contradiction fails many."""


def placed(results: Iterable[CaseResult], places: Places) -> list[CaseResult]:
    """Give results with paths that can be opened."""
    return [
        replace(
            result,
            source=places.source(result.source) if result.source else None,
            problem=places.text(result.problem),
            details=tuple(places.text(line) for line in result.details),
        )
        for result in results
    ]


def text_of(results: Sequence[CaseResult]) -> str:
    """Write the failures and how many tests hold."""
    lines: list[str] = []
    alike: dict[str, int] = {}
    for result in results:
        if result.unanswered and result.rule:
            alike[result.problem] = alike.get(result.problem, 0) + 1
        if not result.ok and not (result.rule and alike.get(result.problem, 0) > _MOST_ALIKE):
            lines.append(f"FAILED {result.source}: {result.title}: {result.problem}")
            lines += [f"    {line}" for line in result.details]
    for problem, number in alike.items():
        if number > _MOST_ALIKE:
            lines.append(f"FAILED {number - _MOST_ALIKE} more in the same way: {problem}")
    lines.append(_summary(results))
    return "\n".join(lines) + "\n"


def _summary(results: Sequence[CaseResult]) -> str:
    parts = [
        f"{sum(r.ok for r in own)} of {len(own)} {what} hold"
        for what, own in (
            ("cases", [r for r in results if r.rule]),
            ("scenarios", [r for r in results if not r.rule]),
        )
        if own
    ]
    return ", ".join(parts) or "nothing to run again"


def json_of(results: Sequence[CaseResult]) -> str:
    """Write every result."""
    made = {
        "schema_version": 1,
        "run": len(results),
        "failed": sum(not result.ok for result in results),
        "results": [
            {
                "rule": result.rule or None,
                "name": result.name,
                "at": str(result.source) if result.source else None,
                "ok": result.ok,
                "problem": result.problem or None,
                "details": list(result.details),
            }
            for result in results
        ],
    }
    return json.dumps(made, indent=2) + "\n"


DIFFERS = 3
_SAMPLE = 20_000

SampleSize = Annotated[int, typer.Option(help="Scenarios of the catalogue.", min=1, max=1_000_000)]


CoverFormat = Literal["text", "json", "html"]
DiffFormat = Literal["text", "markdown", "json"]
FailOn = Literal["verdict", "first", "any"]


@takes_folders
def cover(
    sample: SampleSize = _SAMPLE,
    format_: Annotated[CoverFormat, typer.Option("--format", help="How it is written.")] = ("text"),
    thresholds: Annotated[
        bool, typer.Option("--thresholds", help="Add a line for every numeric condition.")
    ] = False,
    output: Output = None,
    workers: Workers = None,
    *,
    user: UserFiles,
) -> None:
    """Measure over the catalogue how often each rule fires, and which thresholds ever decide.

    The facts of the sample are worked out once, kept, and used again until knowledge changes.

    Example: advisor rules cover --thresholds
    """
    side = load_side(Folders(*user.folders))
    store = sampled_facts(sample, Origin(user.knowledge, workers=workers), progress=progress_line())
    coverage = measure(evaluate_all(store, side.advisor.ruleset))
    if format_ == "json":
        text = cover_json(coverage)
    elif format_ == "html":
        text = cover_html(coverage)
    else:
        text = cover_text(coverage, thresholds=thresholds)
    write(text, output)


@takes_folders
def diff(
    base: Annotated[
        str,
        typer.Argument(
            help="A folder of rules, a folder that holds rules/, templates/ or knowledge/, or a "
            "git revision, or 'built-in' to see what your own files change."
        ),
    ],
    sample: SampleSize = _SAMPLE,
    format_: Annotated[DiffFormat, typer.Option("--format", help="How it is written.")] = ("text"),
    examples: Annotated[int, typer.Option(help="Examples of each rule.", min=0)] = 2,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            help="Exit 3 when a verdict changes, when a first recommendation changes as well, or "
            "when anything does."
        ),
    ] = None,
    output: Output = None,
    workers: Workers = None,
    *,
    user: UserFiles,
) -> None:
    """Show which reports an edit of rules, templates or knowledge changes.

    Every scenario of the sample is decided on both sides. Compared are the verdict, the
    recommendations and their order, the notes, what is barred and the words. Each change is told
    under its cause, found by running again with one edit left out or alone.

    Example: advisor rules diff built-in
    """
    folders = Folders(*user.folders)
    new = load_side(folders)
    with base_side(base, folders) as old:
        difference, prose, beside = compare_sides(
            old, new, sample, workers=workers, progress=progress_line()
        )
    view = View(difference, prose, beside, base, examples)
    write({"text": view.text, "markdown": view.markdown, "json": view.json}[format_](), output)
    if fail_on and (difference.fails(fail_on) or (prose and prose.reworded and fail_on == "any")):
        raise typer.Exit(DIFFERS)


Limit = Annotated[
    int | None,
    typer.Option(
        help="Look for a killing case for so many survivors; 0 needs no sample. [default: all]",
        min=0,
    ),
]
Known = Annotated[
    Path | None,
    typer.Option(help="File of mutants that an earlier run found to be the same as the rule."),
]
Accept = Annotated[
    bool, typer.Option("--accept", help="Look for all of them again, and write that file.")
]
FailUnder = Annotated[
    float | None, typer.Option(help="Exit 1 when fewer are killed, in %.", min=0, max=100)
]


@takes_folders
def mutate(
    rule: OnlyRules = None,
    limit: Limit = None,
    known: Known = None,
    accept: Accept = False,
    sample: SampleSize = _SAMPLE,
    format_: Annotated[Format, typer.Option("--format", help="How it is written.")] = "text",
    fail_under: FailUnder = None,
    output: Output = None,
    scenarios: Scenarios = None,
    workers: Workers = None,
    *,
    user: UserFiles,
) -> None:
    """Put one mistake at a time into the rules, and see whether a test notices.

    Survivors are printed with a case to paste that kills them, found among the scenarios of the
    sample; what no scenario tells from the original is listed apart and counts for nothing.
    With --limit 0 and --known nothing is searched: seconds instead of minutes, for CI.

    Example: advisor rules mutate --rule quantize-to-fit --limit 5
    """
    if accept and (known is None or limit is not None):
        raise typer.BadParameter("needs --known, and no --limit.", param_hint="'--accept'")
    folders = Folders(*user.folders)
    search = Search(sample, limit, known, accept=accept, workers=workers)
    result = mutated_rules(folders, scenarios, list(rule or ()), search, progress_line())
    write(mutation_json(result) if format_ == "json" else mutation_text(result), output)
    if fail_under is not None and 100 * result.share < fail_under:
        raise typer.Exit(1)
