"""What the questions give: documents, the pages made of them, and rows for a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from advisor.errors import RequestError
from advisor.report import FORMATS, Page, render_json
from advisor.reverse.documents import COLUMNS, ReverseDoc, flat_row, written_csv
from advisor.suggest import did_you_mean

if TYPE_CHECKING:
    from advisor.advice.document import Advice
    from advisor.knowledge.layers import Stack
    from advisor.report.prose import Length

Writer = Callable[[str, "Length"], str]
"""Writes a form, ``text`` or ``markdown``, with so much of the report."""


def _chosen(form: str, forms: Mapping[str, Callable[[], str]]) -> str:
    """Write the form that is asked for.

    Raises:
        RequestError: There is no such form.
    """
    if form not in forms:
        hint = did_you_mean(form, forms) or f"Known: {', '.join(forms)}."
        raise RequestError(f"'{form}' is no format of this answer", hint=hint)
    return forms[form]()


class Report:
    """One report: its document, and the pages made of it."""

    def __init__(self, doc: Advice, templates: Stack = None) -> None:
        """Hold a document and the texts it is written with."""
        self.document = doc
        self._templates = templates

    @property
    def fits(self) -> bool:
        """Whether all of it runs on the cards."""
        return self.document.verdict.state in {"fits", "tight"}

    def to_dict(self) -> dict[str, Any]:
        """Give the document of ``advise --format json``, as plain values."""
        found: dict[str, Any] = json.loads(render_json(self.document))
        return found

    def rows(self) -> list[dict[str, object]]:
        """Give the remedies, one flat row each, as a table takes them."""
        return [
            {
                "rank": item.rank,
                "action": item.action,
                "title": item.title,
                "fits": item.after.fits,
                "required_bytes": item.after.required_bytes,
                "decode_tok_s": speed.estimate if (speed := item.after.decode_tok_s) else None,
                "effort": item.tradeoff.effort,
                "command": item.commands[0].text if item.commands else None,
                "change": dict(item.change),
            }
            for item in self.document.recommendations
        ]

    def written(self, form: str = "text", length: Length = "standard") -> str:
        """Write it as text, markdown, html or json, at a length: short, standard or full."""
        page = Page(self.document, length, self._templates)
        return _chosen(form, {name: partial(one.write, page) for name, one in FORMATS.items()})

    @property
    def why(self) -> str:
        """Which rule recommends what, with its score and the facts it rests on; what is barred."""
        lines = [self.document.verdict.sentence]
        for item in self.document.recommendations:
            points = " ".join(f"{one.points:+g} ({one.text})" for one in item.score_terms)
            because = ", ".join(f"{one.fact} is {one.shown}" for one in item.because)
            lines += [
                f"{item.rank}. {item.title}: rule {item.rule}, score {item.score:g} = {points}"
            ]
            lines += [f"   because {because}"]
        barred = dict.fromkeys(
            f"{one.title}: {one.reason}" for one in self.document.not_recommended
        )
        return "\n".join([*lines, *(["Not recommended:", *barred] if barred else [])]) + "\n"

    @property
    def markdown(self) -> str:
        """The page as Markdown."""
        return self.written("markdown")

    @property
    def html(self) -> str:
        """The page as HTML that needs no other file."""
        return self.written("html")

    def _repr_html_(self) -> str:
        """Show the page in a notebook."""
        return self.html

    def __str__(self) -> str:
        return self.written()

    def __repr__(self) -> str:
        return f"<advisor.Report {self.document.verdict.state}: {self.document.verdict.sentence}>"


class Table:
    """The rows of ``models_for`` or ``gpus_for``, the best first."""

    def __init__(self, doc: ReverseDoc, pages: Mapping[str, Callable[[], str]]) -> None:
        """Hold an answer, and what writes its pages."""
        self.document = doc
        self._pages = pages

    def to_dict(self) -> dict[str, Any]:
        """Give the document of ``--format json``, as plain values."""
        found: dict[str, Any] = json.loads(render_json(self.document))
        return found

    def rows(self) -> list[dict[str, object]]:
        """Give a flat row for each model or card, with the columns of ``--format csv``."""
        return [{name: flat_row(row).get(name) for name in COLUMNS} for row in self.document.rows]

    def written(self, form: str = "text") -> str:
        """Write it as text, markdown, csv or json."""
        doc = self.document
        data = {"csv": lambda: written_csv(doc), "json": lambda: render_json(doc)}
        return _chosen(form, {**self._pages, **data})

    def __str__(self) -> str:
        return self.written()

    def __repr__(self) -> str:
        doc = self.document
        return f"<advisor.Table {doc.question} {doc.subject}: {len(doc.rows)} of {doc.fitting}>"


class CommandCheck(Struct, frozen=True):
    """What comes of a command: whether it starts, the one that does, and the report."""

    starts: Literal["yes", "in part", "no"]
    corrected: str | None
    details: Mapping[str, Any]
    """The object ``command`` of ``check-command --format json``."""
    report: Report
    _said: Mapping[str, str]
    """Form -> what stands above the report."""

    def to_dict(self) -> dict[str, Any]:
        """Give the document of ``check-command --format json``, as plain values."""
        return {"command": self.details, "advice": self.report.to_dict()}

    def written(self, form: str = "text", length: Length = "short") -> str:
        """Write it as text, markdown or json, with so much of the report."""
        pages = {
            name: lambda: f"{self._said[form]}\n{self.report.written(form, length)}"
            for name in self._said
        }
        return _chosen(form, {**pages, "json": lambda: render_json(self.to_dict())})


class LogAnswer(Struct, frozen=True):
    """What a log says beside our figures; the report where it tells enough."""

    cause: str | None
    """What went wrong, in a sentence."""
    missing: Sequence[str]
    """What it does not tell, as questions; empty where the report is whole."""
    details: Mapping[str, Any]
    """The document of ``diagnose --format json``."""
    report: Report | None
    _write: Writer

    def to_dict(self) -> dict[str, Any]:
        """Give the document of ``diagnose --format json``, as plain values."""
        return dict(self.details)

    def written(self, form: str = "text", length: Length = "short") -> str:
        """Write it as text, markdown or json, with so much of the report and what is missing."""
        asked = "".join(f"\n{question}\n" for question in self.missing)
        forms = {name: lambda: self._write(form, length) + asked for name in ("text", "markdown")}
        return _chosen(form, {**forms, "json": lambda: render_json(self.to_dict())})
