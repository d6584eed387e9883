"""What ``import advisor`` offers: questions from Python, answered as the commands answer them.

Settings are those of ``advisor estimate`` by name (docs/estimate.md): ``gpu``, ``model``,
``precision``, ``context``, ``batch``, ``framework``, ``ram="64GB"`` ...; errors are ``UserError``
with ``message``, ``hint`` and, where several things are wrong, ``errors``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, to_builtins

from advisor.advice.pipeline import Advisor
from advisor.errors import RequestError, raise_problems
from advisor.knowledge.layers import Stack
from advisor.report.assembly import document
from advisor.report.formats import FORMATS, Page, render_json
from advisor.reverse.documents import COLUMNS, ReverseDoc, flat_row, reverse_doc
from advisor.scenario.settings import Request, request_from

if TYPE_CHECKING:
    from advisor.advice.document import Advice
    from advisor.bulk.estimates import LineDoc
    from advisor.report.prose import Length
    from advisor.reverse import Settings

_REVERSE = ("min_speed", "max_loss", "unmeasured", "prefer", "purpose", "precisions")


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
        if form not in FORMATS:
            raise RequestError(f"'{form}' is no format", hint=f"Known: {', '.join(FORMATS)}.")
        return FORMATS[form].write(Page(self.document, length, self._templates))

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

    def __init__(self, doc: ReverseDoc) -> None:
        """Hold an answer."""
        self.document = doc

    def to_dict(self) -> dict[str, Any]:
        """Give the document of ``--format json``, as plain values."""
        found: dict[str, Any] = json.loads(render_json(self.document))
        return found

    def rows(self) -> list[dict[str, object]]:
        """Give a flat row for each model or card, with the columns of ``--format csv``."""
        return [{name: flat_row(row).get(name) for name in COLUMNS} for row in self.document.rows]

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


class LogAnswer(Struct, frozen=True):
    """What a log says beside our figures; the report where it tells enough."""

    cause: str | None
    """What went wrong, in a sentence."""
    missing: Sequence[str]
    """What it does not tell, as questions; empty where the report is whole."""
    details: Mapping[str, Any]
    """The document of ``diagnose --format json``."""
    report: Report | None


class Session:
    """Rules, texts and knowledge, loaded once for many questions."""

    def __init__(
        self, *, rules: Stack = None, templates: Stack = None, knowledge: Stack = None
    ) -> None:
        """Load the built-in folders, with those given laid over them.

        Raises:
            UserError: A file is wrong; every problem of every file at once.
        """
        self._templates, self._knowledge = templates, knowledge
        self.advisor = Advisor.load(rules=rules, templates=templates, knowledge=knowledge)

    def advise(self, request: Request | None = None, /, **settings: object) -> Report:
        """Say whether a model runs on a card, how well, and what to change.

        Raises:
            UserError: A name, a number or a setting is wrong.
        """
        found = self.advisor.advise(_asked(request, settings), complete=True)
        return Report(document(found, templates=self._templates), self._templates)

    def estimate(self, request: Request | None = None, /, **settings: object) -> LineDoc:
        """Give parameters, memory (bytes) and speed (tokens/s) alone, without rules.

        Raises:
            UserError: As ``advise``.
        """
        from advisor.bulk.estimates import estimate_request  # noqa: PLC0415  start-up

        return estimate_request(_asked(request, settings), self.advisor.knowledge)

    def models_for(
        self,
        gpu: str,
        *,
        limit: int | None = 10,
        all_formats: bool = False,
        family: str | None = None,
        licences: Sequence[str] = (),
        **settings: object,
    ) -> Table:
        """List the best models and formats that run on a card.

        Args:
            gpu: The card or cards, as ``--gpu`` takes them.
            limit: Most rows; None: all.
            all_formats: A row for every format that fits.
            family: Only this family.
            licences: Only these licences.
            settings: Those of a request, and ``purpose`` (chat, code ...), ``prefer``,
                ``precisions``, ``min_speed`` (tokens/s), ``max_loss`` (% of perplexity),
                ``unmeasured``.

        Raises:
            UserError: A name or a number is wrong.
        """
        from advisor import reverse  # noqa: PLC0415  start-up

        known = self.advisor.knowledge
        wanted = reverse.ModelFilter(family=family, licences=licences)
        asked = _wishes(settings, "quality")
        cards, found = reverse.models_for(
            gpu, asked, wanted, known, limit=limit, all_formats=all_formats
        )
        return Table(reverse_doc("models-for", cards.gpu.name, found, known))

    def gpus_for(
        self,
        model: str,
        *,
        limit: int | None = 10,
        sort: str = "price",
        vendor: str | None = None,
        forms: Sequence[str] = (),
        max_price_usd: float | None = None,
        **settings: object,
    ) -> Table:
        """List the cards that run a model, up to ``gpus`` of each (1 unless stated).

        Args:
            model: The model, as ``--model`` takes it.
            limit: Most rows; None: all.
            sort: price, memory, speed or power.
            vendor: Only cards of this vendor.
            forms: desktop, workstation, laptop, datacenter, edge, unified.
            max_price_usd: Launch price of all cards together, at most.
            settings: As for ``models_for``.

        Raises:
            UserError: A name or a number is wrong.
        """
        from advisor import reverse  # noqa: PLC0415  start-up

        known = self.advisor.knowledge
        wanted = reverse.CardFilter(vendor=vendor, forms=forms, max_price_usd=max_price_usd)
        asked = _wishes(settings, "balanced")
        found_model, found = reverse.gpus_for(model, asked, wanted, known, sort=sort, limit=limit)
        return Table(reverse_doc("gpus-for", found_model.name, found, known))

    def check_command(self, command: str, /, **machine: object) -> CommandCheck:
        """Say whether a command starts on a card (``gpu=``, ``ram=`` ...), and which one does.

        Raises:
            UserError: The command, the model or the card cannot be read.
        """
        from advisor.advice.command_check import check_command as checked  # noqa: PLC0415
        from advisor.report.command_view import command_doc  # noqa: PLC0415  start-up

        found = checked(command, request_from(machine), self.advisor)
        doc = document(self.advisor.with_expected(found.advice), templates=self._templates)
        details = to_builtins(command_doc(found, doc).command)
        report = Report(doc, self._templates)
        return CommandCheck(found.starts, found.corrected or None, details, report)

    def diagnose(self, log: str, /, **settings: object) -> LogAnswer:
        """Read the text of a log or an error, set its figures beside ours, and say what helps.

        Raises:
            UserError: No line of it is known, or a setting is wrong.
        """
        from advisor.reading.log_file import read_log  # noqa: PLC0415  start-up
        from advisor.report.diagnosing import diagnose as answer  # noqa: PLC0415  start-up

        made, missing = answer(
            read_log(None, io.BytesIO(log.encode())),
            request_from(settings),
            self.advisor,
            knowledge=self._knowledge,
            templates=self._templates,
        )
        report = Report(made.advice, self._templates) if made.advice else None
        cause = made.cause.text if made.cause else None
        return LogAnswer(cause, [str(one) for one in missing], to_builtins(made), report)


def _asked(request: Request | None, settings: Mapping[str, object]) -> Request:
    if request is not None and settings:
        raise RequestError("both a request and settings are given", hint="Give one of them.")
    return request_from(settings) if request is None else request


def _wishes(given: Mapping[str, object], prefer: str) -> Settings:
    """Divide settings of a request from those of a reverse question."""
    from advisor.reverse import Settings  # noqa: PLC0415  start-up

    own: dict[str, Any] = {name: given[name] for name in _REVERSE if name in given}
    request = request_from({name: value for name, value in given.items() if name not in own})
    if request.gpu or request.model or request.precision:
        what = "a reverse question takes one card or one model, and formats as precisions=[...]"
        raise_problems([RequestError(what)])
    return Settings(
        framework=request.framework,
        precisions=own.get("precisions", ()),
        context=request.context,
        batch=request.batch,
        gpus=request.gpus,
        kv_cache=request.kv_cache,
        beside=request,
        ram_gib=request.ram_gib,
        ram_type=request.ram_type,
        ram_bandwidth_gb_s=request.ram_bandwidth_gb_s,
        cpu=request.cpu,
        min_speed_tok_s=own.get("min_speed"),
        max_loss_percent=own.get("max_loss"),
        unmeasured=own.get("unmeasured", False),
        prefer=own.get("prefer", prefer),
        use=own.get("purpose"),
    )


@cache
def _built_in() -> Session:
    """The built-in folders, loaded at the first question."""
    return Session()


def advise(request: Request | None = None, /, **settings: object) -> Report:
    """As ``Session.advise``, with the built-in rules, texts and knowledge."""
    return _built_in().advise(request, **settings)


def estimate(request: Request | None = None, /, **settings: object) -> LineDoc:
    """As ``Session.estimate``."""
    return _built_in().estimate(request, **settings)


def models_for(gpu: str, **asked: Any) -> Table:
    """As ``Session.models_for``."""
    return _built_in().models_for(gpu, **asked)


def gpus_for(model: str, **asked: Any) -> Table:
    """As ``Session.gpus_for``."""
    return _built_in().gpus_for(model, **asked)


def check_command(command: str, /, **machine: object) -> CommandCheck:
    """As ``Session.check_command``."""
    return _built_in().check_command(command, **machine)


def diagnose(log: str, /, **settings: object) -> LogAnswer:
    """As ``Session.diagnose``."""
    return _built_in().diagnose(log, **settings)
