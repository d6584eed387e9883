"""What is wrong with templates: alone, and with the rules that name them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from advisor.errors import RequestError, Source, UserError
from advisor.files import data_dir, overlaid, read_tree
from advisor.rules.language.model import Rule
from advisor.rules.language.texts import SUFFIX, text_of
from advisor.suggest import did_you_mean
from advisor.workbench.lint.problem import Problem, in_order, problem, problems_of

_SENTENCES = ("actions/", "notes/", "report/")
_PAGES = ("report/", "site/")


class Checked(Struct, frozen=True):
    """The outcome of a check."""

    files: int
    problems: Sequence[Problem]


def check_templates(
    folder: Path | None = None, *, rules: Path | None = None, knowledge: Path | None = None
) -> Checked:
    """Check a folder of templates over the built-in ones, or these.

    Args:
        folder: The user's templates.
        rules: The user's rules, over the built-in ones.
        knowledge: The user's knowledge, over the built-in one.

    Raises:
        RequestError: The folder is none, or holds no template.
        KnowledgeError: The knowledge is wrong, so that rules cannot be read.
    """
    names = _names(folder)
    own = _Folder(folder or data_dir("templates"), folder)
    every = overlaid("templates", folder, [".j2"])
    found = [problem for name in names for problem in own.problems(name)]
    try:
        found += _between(_rules(rules, knowledge), names, every, own)
    except UserError as error:
        found += problems_of(error)
    return Checked(len(names), in_order(found))


def _names(folder: Path | None) -> Sequence[str]:
    if folder is not None and not folder.is_dir():
        raise RequestError(f"{folder} is not a folder", hint="Name a folder of templates.")
    names = list(read_tree(folder or data_dir("templates"), [".j2"]))
    if not names:
        hint = "A template lies in actions/, notes/ or report/ and ends in .md.j2."
        raise RequestError(f"{folder} holds no template (*.j2)", hint=hint)
    return names


def _rules(rules: Path | None, knowledge: Path | None) -> Sequence[Rule]:
    from advisor.remedies.registry import rule_vocabulary  # noqa: PLC0415 - likewise
    from advisor.rules.language import load_rules  # noqa: PLC0415 - the rest does without

    over = data_dir("rules") if rules else None
    return load_rules(rules, vocabulary=rule_vocabulary(knowledge), over=over).rules


class _Folder:
    """The templates of one folder, each checked by itself."""

    def __init__(self, folder: Path, given: Path | None) -> None:
        from advisor.report.template_reader import TemplateReader  # noqa: PLC0415 - start-up

        self._folder = folder
        self._given = given
        self._reader = TemplateReader([folder])

    def place(self, name: str, line: int = 0, column: int = 0) -> Source:
        """Give a place in a file, named as the user names the folder."""
        shown = self._given.as_posix() if self._given else "templates"
        return Source(f"{shown}/{name}", line, column)

    def problems(self, name: str) -> Iterator[Problem]:
        """Find what is wrong with one template."""
        from advisor.report.template_places import too_much  # noqa: PLC0415 - start-up
        from advisor.report.template_reader import problems_in  # noqa: PLC0415 - likewise

        wrong = problems_in(self._reader, name)
        for error in wrong:
            at = error.source or Source("")
            place = self.place(name, at.line, at.column)
            yield problem(error.lint, error.message, place, error.hint)
        text = (self._folder / name).read_bytes()
        if name.startswith("actions/") and not text.lstrip().startswith(b"# "):
            hint = "Write '# Use {{ option.format }} weights', then the text below it."
            yield problem(
                "template-title", "the first line must be a title.", self.place(name, 1, 1), hint
            )
        unread = {error.lint for error in wrong} & {"template-syntax", "encoding"}
        if not unread and name.endswith(SUFFIX) and name.startswith(_SENTENCES):
            source = text.decode()
            if too_much(self._reader, source) is None:
                yield from self._numbers(name, source)

    def _numbers(self, name: str, source: str) -> Iterator[Problem]:
        from advisor.report.grammar import Violation  # noqa: PLC0415 - likewise
        from advisor.report.template_places import located  # noqa: PLC0415 - likewise
        from advisor.workbench.lint.numbers import numbers_without_unit  # noqa: PLC0415 - start-up

        for bare in numbers_without_unit(self._reader.tree(source, name)):
            if bare.written:
                column = source.splitlines()[bare.line - 1].find(bare.word) + 1
                place = self.place(name, bare.line, column)
            else:
                at = located(self._reader, source, Violation(bare.line, "", word=bare.word))
                place = self.place(name, at.line, at.column)
            message = f"'{bare.word}' is a number, and nothing near it says of what."
            yield problem("number-without-unit", message, place, bare.hint)


def _between(
    rules: Sequence[Rule], names: Sequence[str], every: Mapping[str, bytes], own: _Folder
) -> Iterator[Problem]:
    wanted = {text_of(rule): rule for rule in reversed(rules) if text_of(rule)}
    for name, rule in wanted.items():
        if name not in every:
            said = f"rule '{rule.id}' has no text: there is no template '{name}'."
            yield problem("missing-template", said, rule.source, _elsewhere(name, every))
    built_in = read_tree(data_dir("templates"), [".j2"])
    for name in names:
        read = name in built_in and name.startswith(_PAGES)
        if name not in wanted and not read:
            yield problem("unused-template", *_unused(name, own, {**wanted, **built_in}))


def _elsewhere(name: str, every: Mapping[str, bytes]) -> str:
    own = name.partition("/")[2]
    same = [known for known in every if known.partition("/")[2] == own]
    return f"'{same[0]}' is for something else." if same else _near(name, every)


def _unused(name: str, own: _Folder, read: Iterable[str]) -> tuple[str, Source, str]:
    others = [known for known in read if known != name]
    if name.startswith(("actions/", "notes/")):
        hint = _near(name, others) or "Name it under 'text' of a rule, or delete it."
        return "no rule names this text.", own.place(name, 1, 1), hint
    hint = _near(name, others) or "Texts lie in actions/ and notes/, parts of reports in report/."
    return "nothing reads this file.", own.place(name, 1, 1), hint


def _near(name: str, choices: Iterable[str]) -> str:
    """Suggest a file of the same folder, comparing what tells names apart."""
    folder, _, own = name.partition("/")
    there = [known.partition("/")[2] for known in choices if known.startswith(f"{folder}/")]
    return did_you_mean(own.removesuffix(SUFFIX), [t.removesuffix(SUFFIX) for t in there])
