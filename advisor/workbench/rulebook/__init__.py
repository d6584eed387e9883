"""The rulebook: a page per rule, the facts and pictures, as Markdown or static HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.errors import RequestError, UserError
from advisor.files import data_dir
from advisor.knowledge.layers import Stack, overlaid
from advisor.rules.language import read_folders
from advisor.rules.language.model import Case, Rule, text_of
from advisor.scenario.settings import request_from
from advisor.workbench.dependencies import fact_use
from advisor.workbench.preview import preview
from advisor.workbench.rulebook.blocks import Page, html_files, markdown_files
from advisor.workbench.rulebook.material import Example, Material, Measured, Topic
from advisor.workbench.rulebook.pictures import svg
from advisor.workbench.rulebook.rule_page import (
    fact_pages,
    index_page,
    picture_page,
    rule_page,
    topic_pages,
)
from advisor.workbench.scenario_file import request_line

Form = Literal["html", "md"]
LIST = "rulebook-files.txt"
"""Names what a book consists of, so that the next one can clear away pages of deleted rules."""


class Sources(Struct, frozen=True):
    """Folders over the built-in ones."""

    rules: Stack = None
    templates: Stack = None


def make_book(advisor: Advisor, sources: Sources, measured: Measured | None) -> Sequence[Page]:
    """Write all pages, in reading order."""
    templates = overlaid("templates", sources.templates, [".j2"])
    named = {text_of(rule) for rule in advisor.ruleset.rules}
    topics = list(_topics(advisor, sources.rules))
    known = advisor.vocabulary
    material = Material(
        advisor,
        topics,
        {name: templates[name].decode() for name in sorted(named) if name in templates},
        dict(_examples(advisor, sources.templates)),
        measured,
        {name: fact_use(name, known, advisor.ruleset) for name in known.facts},
        {rule.id: topic for topic in topics for rule in topic.rules},
    )
    return [
        index_page(material),
        *topic_pages(material),
        *(rule_page(material, rule) for rule in material.rules),
        *fact_pages(material),
        picture_page(material),
    ]


def _topics(advisor: Advisor, rules: Stack) -> Iterator[Topic]:
    by_file: dict[str, list[Rule]] = {}
    for rule in advisor.ruleset.rules:
        by_file.setdefault(rule.source.file if rule.source else "rules.yaml", []).append(rule)
    contents = read_folders(rules, data_dir("rules") if rules else None).contents
    taken: set[str] = set()
    for file, rules_there in by_file.items():
        inside = file.partition("/")[2]
        name = inside.removesuffix(".yaml").replace("/", "-") or "rules"
        while name in taken:
            name += "-2"
        taken.add(name)
        yield Topic(name, _head(contents.get(file, b"").decode()), rules_there)


def _head(text: str) -> str:
    """Take the comment at the head of a file; lines for editors are none."""
    found: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        words = line.lstrip("#").strip()
        if words and not words.startswith("yaml-language-server"):
            found.append(words)
    return " ".join(found)


def _examples(advisor: Advisor, templates: Stack) -> Iterator[tuple[str, Example]]:
    """Let each rule with a text speak in the first of its cases in which it is said."""
    given: dict[str, Conclusions | None] = {}
    for rule in advisor.ruleset.rules:
        for case in rule.cases if text_of(rule) else ():
            line = request_line(case.given)
            if case.expect == "fires" and line not in given:
                given[line] = _advice(advisor, case)
            advice = given.get(line)
            if case.expect == "fires" and advice:
                made = _example(advisor, rule, line, advice, templates)
                if made:
                    yield rule.id, made
                    break


def _advice(advisor: Advisor, case: Case) -> Conclusions | None:
    try:
        return advisor.advise(request_from(case.given))
    except UserError:
        return None


def _example(
    advisor: Advisor, rule: Rule, line: str, advice: Conclusions, templates: Stack
) -> Example | None:
    try:
        shown = preview(advisor, advice, rule.id, templates=templates).variants[0]
    except UserError:
        return None
    return Example(line, shown.title, shown.text) if shown.text else None


def files(pages: Sequence[Page], form: Form) -> Iterator[tuple[str, str]]:
    """Give every file of a book by its path."""
    return html_files(pages, svg) if form == "html" else markdown_files(pages, svg)


def write_book(pages: Sequence[Page], folder: Path, form: Form) -> None:
    """Write a book into a folder and clear away what only an older book had.

    Raises:
        RequestError: The folder holds something else, or cannot be written.
    """
    made = dict(files(pages, form))
    listed = folder / LIST
    try:
        if folder.exists() and any(folder.iterdir()) and not listed.is_file():
            hint = "Name another --output, or an empty folder."
            raise RequestError(f"{folder} holds something else than a rulebook", hint=hint)
        old = listed.read_text(encoding="utf-8").split("\n") if listed.is_file() else []
        for name in {*old} - {*made}:
            _remove(folder, name)
        for name, text in made.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        listed.write_text("\n".join(sorted(made)) + "\n", encoding="utf-8", newline="\n")
    except OSError as bad:
        raise RequestError(f"{folder} cannot be written: {bad.strerror}") from None


def _remove(folder: Path, name: str) -> None:
    path = folder / name
    inside = path.resolve().is_relative_to(folder.resolve())
    if name and inside and path.suffix in {".html", ".md", ".svg", ".css"}:
        path.unlink(missing_ok=True)
