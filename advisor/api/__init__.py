"""What ``import advisor`` offers: questions from Python, answered as the commands answer them.

Settings are those of ``advisor estimate`` by name (docs/estimate.md): ``gpu``, ``model``,
``precision``, ``context``, ``batch``, ``framework``, ``ram="64GB"`` ...; errors are ``UserError``
with ``message``, ``hint`` and, where several things are wrong, ``errors``.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.api.results import CommandCheck, LogAnswer, Report, Table
from advisor.errors import RequestError
from advisor.files import __version__, user_cache_dir
from advisor.knowledge.layers import Stack
from advisor.knowledge.reach import names_only
from advisor.reading.model_names import local_model
from advisor.report import Page
from advisor.report.assembly import document
from advisor.report.figures import spoken
from advisor.scenario.settings import Request, request_from

if TYPE_CHECKING:
    from advisor.bulk.estimates import LineDoc
    from advisor.report.diagnosis import Diagnosis
    from advisor.report.prose import Length
    from advisor.reverse import Found
    from advisor.reverse.asked import Page as TablePage

_WIDTH = 88
"""Columns of a page of text."""
__all__ = [
    "CommandCheck",
    "LogAnswer",
    "Report",
    "Session",
    "Table",
    "advise",
    "check_command",
    "diagnose",
    "estimate",
    "gpus_for",
    "models_for",
]


class Session:
    """Rules, texts and knowledge, loaded once for many questions."""

    def __init__(
        self,
        *,
        rules: Stack = None,
        templates: Stack = None,
        knowledge: Stack = None,
        files: bool = True,
        hub: bool = False,
    ) -> None:
        """Load the built-in folders, with those given laid over them.

        Args:
            rules: Folders of your own, as for ``--rules``.
            templates: As for ``--templates``.
            knowledge: As for ``--knowledge``.
            files: Whether a question may name a path of this machine, or its card (``local``).
            hub: Whether models that are not known are read from Hugging Face, as with ``--hub``.

        Raises:
            UserError: A file is wrong; every problem of every file at once.
        """
        self._templates, self._knowledge = templates, knowledge
        self._files, self._hub = files, hub
        self.advisor = Advisor.load(rules=rules, templates=templates, knowledge=knowledge)

    @property
    def versions(self) -> Mapping[str, str]:
        """What answers rest on: the program's version, and hashes of rules, texts, knowledge."""
        return {
            "advisor": __version__,
            "engine": self.advisor.engine.name,
            "rules_sha256": self.advisor.ruleset.sha256,
            "knowledge_sha256": self.advisor.knowledge.sha256,
            "templates_sha256": self.advisor.templates_sha256,
        }

    @property
    def names(self) -> Mapping[str, list[str]]:
        """What is known by name: cards, models, weight formats and frameworks."""
        known = self.advisor.knowledge
        return {
            "gpu": list(known.gpus),
            "model": list(known.models),
            "precision": list(known.formats),
            "framework": list(known.frameworks),
        }

    def _reach(self) -> AbstractContextManager[None]:
        """Keep a question to names, where this session does not read files."""
        read_before = (user_cache_dir() / "hub",) if self._hub else ()
        return nullcontext() if self._files else names_only(*read_before)

    def _named(self, request: Request) -> Request:
        """Name the models that only the hub knows by the files that are read from it."""
        if not self._hub:
            return request
        known = self.advisor.knowledge
        named = ((name, getattr(request, name)) for name in ("model", "draft_model"))
        read = {k: local_model(v, known, hub=True, offline=False) for k, v in named if v}
        return replace(request, **read)

    def advise(self, request: Request | None = None, /, **settings: object) -> Report:
        """Say whether a model runs on a card, how well, and what to change.

        Raises:
            UserError: A name, a number or a setting is wrong.
        """
        with self._reach():
            asked = self._named(_asked(request, settings))
            found = self.advisor.advise(asked, complete=True)
        return Report(document(found, templates=self._templates), self._templates)

    def explain(self, rule: str | None = None, /, **settings: object) -> str:
        """Say why: of a rule, what let it fire or kept it silent; without one, of the advice.

        Raises:
            UserError: A setting is wrong, or there is no such rule.
        """
        if rule is None:
            return self.advise(**settings).why
        from advisor.workbench.dependencies import find_any_rule  # noqa: PLC0415  seldom
        from advisor.workbench.explanation import explanation  # noqa: PLC0415

        found = find_any_rule(self.advisor.ruleset, _text(rule, "rule"))
        with self._reach():
            advice = self.advisor.advise(self._named(request_from(settings)))
            return explanation(self.advisor, advice, found, None)

    def estimate(self, request: Request | None = None, /, **settings: object) -> LineDoc:
        """Give parameters, memory (bytes) and speed (tokens/s) alone, without rules.

        Raises:
            UserError: As ``advise``.
        """
        from advisor.bulk.estimates import estimate_request  # noqa: PLC0415  start-up

        with self._reach():
            asked = self._named(_asked(request, settings))
            return estimate_request(asked, self.advisor.knowledge)

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
        from advisor.reverse.asked import Wishes, models_page  # noqa: PLC0415  start-up

        stated: dict[str, object] = {
            "limit": limit,
            "all_formats": all_formats,
            "family": family,
            "licences": licences,
        }
        asked = Wishes("models-for", stated, settings, gpu=gpu)
        known, own = self.advisor.knowledge, asked.own
        wanted = reverse.ModelFilter(family=own.get("family"), licences=own.get("licences", ()))
        with self._reach():
            cards, found = reverse.models_for(
                asked.subject, asked.settings("quality"), wanted, known,
                limit=asked.limit, all_formats=own.get("all_formats", False),
            )  # fmt: skip
        return self._table("models-for", cards.gpu.name, found, models_page(cards, found, known))

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
        from advisor.reverse.asked import Wishes, cards_page  # noqa: PLC0415  start-up

        stated: dict[str, object] = {"limit": limit, "sort": sort, "vendor": vendor, "forms": forms}
        stated["max_price_usd"] = max_price_usd
        asked = Wishes("gpus-for", stated, settings, model=model)
        known, own = self.advisor.knowledge, asked.own
        wanted = reverse.CardFilter(
            vendor=own.get("vendor"),
            forms=own.get("forms", ()),
            max_price_usd=own.get("max_price_usd"),
        )
        with self._reach():
            subject = self._named(Request(model=asked.subject)).model or ""
            wish = asked.settings("balanced")
            read, found = reverse.gpus_for(
                subject, wish, wanted, known, sort=own.get("sort", "price"), limit=asked.limit
            )
        return self._table("gpus-for", read.name, found, cards_page(read, found, known))

    def _table(self, question: str, subject: str, found: Found, page: TablePage) -> Table:
        from advisor.reverse.asked import written_markdown, written_text  # noqa: PLC0415
        from advisor.reverse.documents import reverse_doc  # noqa: PLC0415  start-up

        pages = {"text": partial(written_text, page), "markdown": partial(written_markdown, page)}
        return Table(reverse_doc(question, subject, found, self.advisor.knowledge), pages)

    def check_command(self, command: str, /, **machine: object) -> CommandCheck:
        """Say whether a command starts on a card (``gpu=``, ``ram=`` ...), and which one does.

        Raises:
            UserError: The command, the model or the card cannot be read.
        """
        from advisor.advice.command_check import check_command as checked  # noqa: PLC0415
        from advisor.report import command_view as view  # noqa: PLC0415  start-up

        with self._reach():
            found = checked(_text(command, "command"), request_from(machine), self.advisor)
            doc = document(self.advisor.with_expected(found.advice), templates=self._templates)
        details = to_builtins(view.command_doc(found, doc).command)
        text = "".join(f"{line}\n" for line in view.command_lines(found))
        said = {"text": text, "markdown": view.command_markdown(found)}
        report = Report(doc, self._templates)
        return CommandCheck(found.starts, found.corrected or None, details, report, said)

    def diagnose(self, log: str, /, **settings: object) -> LogAnswer:
        """Read the text of a log or an error, set its figures beside ours, and say what helps.

        Raises:
            UserError: No line of it is known, or a setting is wrong.
        """
        from advisor.reading.log_file import read_log  # noqa: PLC0415  start-up
        from advisor.report import diagnosing  # noqa: PLC0415

        with self._reach():
            made, missing = diagnosing.diagnose(
                read_log(None, io.BytesIO(_text(log, "log").encode("utf-8", "replace"))),
                self._named(request_from(settings)),
                self.advisor,
                knowledge=self._knowledge,
                templates=self._templates,
            )
        report = Report(made.advice, self._templates) if made.advice else None
        cause = made.cause.text if made.cause else None
        questions = [str(one) for one in missing]
        return LogAnswer(
            cause, questions, to_builtins(made), report, partial(_log_page, made, self._templates)
        )


def _log_page(made: Diagnosis, templates: Stack, form: str, length: Length) -> str:
    from advisor.report import diagnosing as views  # noqa: PLC0415  start-up

    page = Page(made.advice, length, templates) if made.advice else None
    with spoken(templates):
        said = views.markdown(made) if form == "markdown" else views.text(made, _WIDTH)
        return views.with_advice(said, page, form)


def _text(value: object, what: str) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise RequestError(f"the {what} is {'empty' if isinstance(value, str) else 'not a text'}.")


def _asked(request: Request | None, settings: Mapping[str, object]) -> Request:
    if request is not None and settings:
        raise RequestError("both a request and settings are given", hint="Give one of them.")
    return request_from(settings) if request is None else request


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
