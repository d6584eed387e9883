"""Questions of other programs: from Python, over HTTP, as tools; answered as commands do.

Settings are those of ``advisor estimate`` by name (docs/estimate.md): ``gpu``, ``model``,
``precision``, ``context``, ``batch``, ``framework``, ``ram="64GB"`` ...; errors are ``UserError``
with ``message``, ``hint`` and, where several things are wrong, ``errors``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.configuration import memory_picture
from advisor.api.results import CommandCheck, LogAnswer, Report
from advisor.errors import RequestError, UserError, otherwise
from advisor.estimator.calibration import with_measurements
from advisor.files import __version__, user_cache_dir
from advisor.knowledge import load_knowledge
from advisor.knowledge.layers import Stack, UserFiles, names_only
from advisor.reading import local_model
from advisor.report.assembly import document
from advisor.scenario.figures import UNCHECKED
from advisor.scenario.settings import Request, request_from

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from advisor.advice.conclusions import Conclusions
    from advisor.bulk.estimates import Line, LineDoc
    from advisor.bulk.reverse.table import Table
    from advisor.knowledge.types import Knowledge
    from advisor.reading.log_file import LogText

__all__ = [
    "CommandCheck",
    "LogAnswer",
    "Report",
    "Session",
    "advise",
    "check_command",
    "diagnose",
    "estimate",
    "gpus_for",
    "models_for",
]

Extra = Literal["barred", "reasons", "memory", "options"]
"""What people look for and cannot run here, which JSON and long pages list; the conditions behind
what is barred, which JSON lists; how memory grows with context, as with ``--memory``; every what-if
that fits, as with ``--options``."""
_USUAL: Sequence[Extra] = ("barred", "reasons")


class Session:
    """Rules, texts and knowledge, loaded once for many questions, each when it is first needed."""

    def __init__(
        self,
        *,
        rules: Stack = None,
        templates: Stack = None,
        knowledge: Stack = None,
        measurements: Path | None = None,
        files: bool = True,
        hub: bool = False,
        offline: bool = False,
        as_stated: bool = False,
    ) -> None:
        """Lay folders over the built-in ones.

        Args:
            rules: Folders of your own, as for ``--rules``.
            templates: As for ``--templates``.
            knowledge: As for ``--knowledge``.
            measurements: The file that ``advisor measure`` keeps; it counts where it exists.
            files: Whether a question may name a path of this machine, or its card (``local``).
            hub: Whether models that are not known are read from Hugging Face, as with ``--hub``.
            offline: Whether only what was read from there before is taken.
            as_stated: Whether what cannot run as stated is refused, not answered as it can.
        """
        self._user = UserFiles(rules, templates, knowledge, measurements)
        self._files, self._hub, self._offline = files, hub, offline
        self._as_stated = as_stated
        self._advisor: Advisor | None = None
        self._knowledge: Knowledge | None = None

    @property
    def advisor(self) -> Advisor:
        """Rules, knowledge and an engine.

        Raises:
            UserError: A file is wrong; every problem of every file at once.
        """
        if self._advisor is None:
            self._advisor = Advisor.with_files(self._user)
            self._knowledge = self._advisor.knowledge
        return self._advisor

    @property
    def knowledge(self) -> Knowledge:
        """Cards, models, formats and frameworks, with the user's measurements.

        Raises:
            UserError: A file is wrong; every problem of it.
        """
        if self._knowledge is None:
            user = self._user
            self._knowledge = with_measurements(load_knowledge(user.knowledge), user.measurements)
        return self._knowledge

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
        known = self.knowledge
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
        if not (self._files or self._hub):
            return request
        look = partial(local_model, knowledge=self.knowledge, hub=self._hub, offline=self._offline)
        named = ((name, getattr(request, name)) for name in ("model", "draft_model"))
        return replace(request, **{name: look(text) for name, text in named if text})

    def advise(
        self,
        request: Request | None = None,
        extras: Sequence[Extra] = _USUAL,
        /,
        **settings: object,
    ) -> Report:
        """Say whether a model runs on a card, how well, and what to change.

        Args:
            request: In place of settings.
            extras: What it holds besides; see ``Extra``.
            settings: Those of a request.

        Raises:
            UserError: A name, a number or a setting is wrong.
        """
        with self._reach():
            asked = self._named(_asked(request, settings))
            found = self._answered(asked, complete="barred" in extras)
            picture = memory_picture(found.scenario, self.knowledge) if "memory" in extras else None
        templates = self._user.templates
        doc = document(
            found,
            templates=templates,
            picture=picture,
            options="options" in extras,
            reasons="reasons" in extras,
        )

        def trace() -> str:
            from advisor.workbench.explanation import traced  # noqa: PLC0415  seldom

            return traced(self.advisor, found)

        return Report(doc, templates, trace)

    def _answered(
        self, asked: Request, *, complete: bool, first: Request | None = None
    ) -> Conclusions:
        """Advise; of what cannot be as it is stated the nearest that can, and say so first."""
        try:
            return self.advisor.advise(asked, complete=complete, first=first)
        except UserError as error:
            told, change = (None if self._as_stated else otherwise(error)) or ((), {})
            if replace(asked, **change) == asked:
                raise
        other = replace(asked, **change)
        moved = other.framework != asked.framework
        first = first or (asked if moved else None)
        found = self._answered(other, complete=complete, first=first)
        scenario = replace(found.scenario, read_as=(*told, *found.scenario.read_as))
        guessed = dict.fromkeys((*found.memory.approximate, UNCHECKED))  # of what was asked for
        memory = replace(found.memory, approximate=tuple(guessed))
        return replace(found, scenario=scenario, memory=memory)

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
            return estimate_request(asked, self.knowledge)

    def estimate_lines(self, stream: BinaryIO, name: str) -> Iterator[Line]:
        """Estimate every line of a file, JSON Lines or CSV; what is wrong stays on its line.

        Args:
            stream: Bytes of the file.
            name: Its name, whose end says what it is; also for messages.

        Raises:
            UserError: Nothing of it can be read.
        """
        from advisor.bulk.estimates import estimates  # noqa: PLC0415  start-up

        return estimates(stream, name, self.knowledge)

    def models_for(self, gpu: str, *, limit: int | str | None = 10, **asked: object) -> Table:
        """List the best models and formats that run on a card.

        Args:
            gpu: The card or cards, as ``--gpu`` takes them.
            limit: Most rows; None or "all": all.
            asked: Settings of a request, and ``all_formats``, ``family``, ``licences``,
                ``modality``, ``min_params``, ``max_params`` (billions, or "500M"),
                ``released_after``, ``purpose`` (chat, code ...), ``prefer``, ``precisions``,
                ``min_speed`` (tokens/s), ``max_loss`` (% of perplexity, or "any"), ``unmeasured``.

        Raises:
            UserError: A name or a number is wrong.
        """
        from advisor.bulk.reverse.table import models_table  # noqa: PLC0415  start-up

        with self._reach():
            return models_table(gpu, limit, asked, self.knowledge)

    def gpus_for(self, model: str, *, limit: int | str | None = 10, **asked: object) -> Table:
        """List the cards that run a model, up to ``gpus`` of each (1 unless stated).

        Args:
            model: The model, as ``--model`` takes it.
            limit: Most rows; None or "all": all.
            asked: As for ``models_for``, and instead of what tells models: ``sort`` (price, memory,
                speed or power), ``vendor``, ``forms`` (desktop, laptop ...), ``max_price_usd`` and
                ``max_power_w`` of all cards together.

        Raises:
            UserError: A name or a number is wrong.
        """
        from advisor.bulk.reverse.table import cards_table  # noqa: PLC0415  start-up

        def named(text: str) -> str:
            return self._named(Request(model=text)).model or ""

        with self._reach():
            return cards_table(model, limit, asked, self.knowledge, named)

    def fewest_cards(self, request: Request) -> tuple[int, bool] | None:
        """Say how many of its card a request takes, and whether they hold all of its requests.

        None: no number of them up to 32 runs it.
        """
        from advisor.bulk.reverse.cards import fewest_cards  # noqa: PLC0415  start-up

        with self._reach():
            return fewest_cards(self._named(request), self.knowledge)

    def check_command(
        self,
        command: str,
        machine: Request | None = None,
        extras: Sequence[Extra] = _USUAL,
        /,
        **settings: object,
    ) -> CommandCheck:
        """Say whether a command starts on a card (``gpu=``, ``ram=`` ...), and which one does.

        Args:
            command: As it would be typed.
            machine: In place of settings.
            extras: What the report holds besides, ``barred`` and ``reasons``.
            settings: The card and the computer around it.

        Raises:
            UserError: The command, the model or the card cannot be read.
        """
        from advisor.advice.command_check import check_command as checked  # noqa: PLC0415
        from advisor.report import command_view as view  # noqa: PLC0415  start-up

        with self._reach():
            asked = _asked(machine, settings)
            found = checked(_text(command, "command"), asked, self.advisor)
            advice = (
                self.advisor.with_expected(found.advice) if "barred" in extras else found.advice
            )
        templates = self._user.templates
        doc = document(advice, templates=templates, reasons="reasons" in extras)
        text = "".join(f"{line}\n" for line in view.command_lines(found))
        said = {"text": text, "markdown": view.command_markdown(found)}
        return CommandCheck(view.command_doc(found, doc), Report(doc, templates), said)

    def diagnose(
        self,
        log: str | LogText,
        request: Request | None = None,
        shown: str = "the log",
        user_card: str = "",
        /,
        **settings: object,
    ) -> LogAnswer:
        """Read the text of a log or an error, set its figures beside ours, and say what helps.

        Args:
            log: Its text.
            request: What is known besides, in place of settings; it counts before the log.
            shown: What messages call the log.
            user_card: The card that counts where neither log nor settings name one.
            settings: Those of a request.

        Raises:
            UserError: No line of it is known, or a setting is wrong.
        """
        from advisor.report import diagnosing  # noqa: PLC0415  start-up

        templates = self._user.templates
        with self._reach():
            made, missing = diagnosing.diagnose(
                _text(log, "log") if isinstance(log, str) else log,
                self._named(_asked(request, settings)), self.advisor,
                knowledge=self._user.knowledge, templates=templates, shown=shown,
                user_card=user_card,
            )  # fmt: skip
        report = Report(made.advice, templates) if made.advice else None
        return LogAnswer(made, missing, report, diagnosing.written, templates)


def _text(value: object, what: str) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise RequestError(f"the {what} is {'empty' if isinstance(value, str) else 'not a text'}.")


def _asked(request: Request | None, settings: Mapping[str, object]) -> Request:
    if request is not None and settings:
        raise RequestError("both a request and settings are given", hint="Give one of them.")
    return request_from(settings) if request is None else request


_BUILT_IN = Session()
advise = _BUILT_IN.advise
estimate = _BUILT_IN.estimate
models_for = _BUILT_IN.models_for
gpus_for = _BUILT_IN.gpus_for
check_command = _BUILT_IN.check_command
diagnose = _BUILT_IN.diagnose
