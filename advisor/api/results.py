"""What the questions give: documents, and the pages and rows made of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from advisor.advice.document import wrong_in
from advisor.report import FORMATS, Page, chosen, render_json
from advisor.report.figures import say, spoken
from advisor.report.prose import too_long
from advisor.units import json_line

if TYPE_CHECKING:
    from advisor.advice.document import Advice
    from advisor.errors import UserError
    from advisor.knowledge.layers import Stack
    from advisor.report.command_view import CommandAnswer
    from advisor.report.diagnosis import Diagnosis
    from advisor.report.prose import Length

_WIDTH = 88
"""Columns of a page of text."""


class Report:
    """One report: its document, and the pages made of it."""

    def __init__(
        self, doc: Advice, templates: Stack = None, trace: Callable[[], str] | None = None
    ) -> None:
        """Hold a document, the texts it is written with, and what traces its rules."""
        self.document = doc
        self.templates = templates
        self._trace = trace

    @property
    def fits(self) -> bool:
        """Whether all of it runs on the cards."""
        return self.document.verdict.state in {"fits", "tight"}

    def noted(self, said: Sequence[str]) -> None:
        """Let it say these sentences too where it tells how the question was read."""
        if said:
            scenario = self.document.scenario
            self.document.scenario = replace(scenario, read_as=(*scenario.read_as, *said))

    def to_dict(self) -> dict[str, Any]:
        """Give the document of ``advise --format json``, as plain values."""
        found: dict[str, Any] = json.loads(json_line(self.document))
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

    def written(
        self,
        form: str = "text",
        length: Length = "standard",
        *,
        width: int = _WIDTH,
        color: bool = False,
    ) -> str:
        """Write it as text, markdown, html or json, at a length: short, standard or full."""
        page = Page(self.document, length, self.templates, width=width, color=color)
        return chosen(form, {name: partial(one.write, page) for name, one in FORMATS.items()})

    def flaws(self, length: Length) -> list[str]:
        """Say what of it does not hold: figures, sums, bounds, words."""
        return [*wrong_in(self.document), *too_long(self.document, length, self.templates)]

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
    def trace(self) -> str:
        """Every rule, as ``--why`` prints it: those that fired, and what kept others silent."""
        return self._trace() if self._trace else ""

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


class CommandCheck(Struct, frozen=True):
    """What comes of a command: whether it starts, the one that does, and the report."""

    document: CommandAnswer
    report: Report
    _said: Mapping[str, str]
    """Form -> what stands above the report."""

    @property
    def starts(self) -> Literal["yes", "in part", "no"]:
        """Whether it starts; in part: with a part of the model in system RAM."""
        return self.document.command.starts

    @property
    def corrected(self) -> str | None:
        """The line that starts; None where this one does, or none is known."""
        return self.document.command.corrected

    @property
    def details(self) -> Mapping[str, Any]:
        """The object ``command`` of ``check-command --format json``."""
        found: Mapping[str, Any] = to_builtins(self.document.command)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Give the document of ``check-command --format json``, as plain values."""
        return {"command": self.details, "advice": self.report.to_dict()}

    def written(self, form: str = "text", length: Length = "short") -> str:
        """Write it as text, markdown or json, with so much of the report."""
        pages = {
            name: lambda: f"{self._said[form]}\n{self.report.written(form, length)}"
            for name in self._said
        }
        return chosen(form, {**pages, "json": lambda: render_json(self.document)})


class LogAnswer(Struct, frozen=True):
    """What a log says beside our figures; the report where it tells enough."""

    document: Diagnosis
    errors: Sequence[UserError]
    """What is missing for figures of ours."""
    report: Report | None
    _above: Callable[[Diagnosis, str, int], str]
    """Writes what stands above the report, in a form and so many columns."""
    _templates: Stack

    @property
    def cause(self) -> str | None:
        """What went wrong, in a sentence."""
        return self.document.cause.text if self.document.cause else None

    @property
    def missing(self) -> Sequence[str]:
        """What it does not tell, as questions; empty where the report is whole."""
        return [str(one) for one in self.errors]

    @property
    def details(self) -> Mapping[str, Any]:
        """The document of ``diagnose --format json``."""
        return self.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """Give the document of ``diagnose --format json``, as plain values."""
        found: dict[str, Any] = to_builtins(self.document)
        return found

    def written(self, form: str = "text", length: Length = "short") -> str:
        """Write it as text, markdown or json, with so much of the report and what is missing."""
        asked = "" if form == "json" else "".join(f"\n{question}\n" for question in self.missing)
        return self.page(form, length) + asked

    def page(
        self,
        form: str,
        length: Length,
        *,
        above: Callable[[Diagnosis, str, int], str] | None = None,
        width: int = _WIDTH,
        color: bool = False,
    ) -> str:
        """Write it without what is missing; a terminal draws for itself what stands above."""
        above = above or self._above
        pages = {one: partial(above, self.document, one, width) for one in ("text", "markdown")}
        with spoken(self._templates):
            found = chosen(form, {**pages, "json": lambda: render_json(self.document)})
            if self.report is None or form == "json":
                return found
            title = f"{'## ' * (form == 'markdown')}{say('log.head.advice')}"
            below = self.report.written(form, length, width=width, color=color).rstrip("\n")
            return f"{found}\n{title}\n\n{below}\n"
