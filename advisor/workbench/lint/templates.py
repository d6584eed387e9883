"""What is wrong with templates: alone, and with the rules that name them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.errors import RequestError, Source, TemplateError, UserError, did_you_mean
from advisor.files import data_dir, read_tree
from advisor.knowledge.layers import Stack, stack
from advisor.remedies import rule_vocabulary
from advisor.report.figures import words_of
from advisor.report.grammar import Violation
from advisor.report.template_reader import TemplateReader, located, problems_in, too_much
from advisor.report.word_file import FILE, read_source, read_words
from advisor.rules.language import load_rules
from advisor.rules.language.model import SUFFIX, Rule, openable, text_of
from advisor.scenario.settings import STATED
from advisor.workbench.lint.problem import Edited, Problem, decoded, in_order, problem, problems_of
from advisor.workbench.lint.trials import render_problems

if TYPE_CHECKING:
    from jinja2 import nodes


_SENTENCES = ("actions/", "notes/", "report/")
_PAGES = ("report/", "site/")


class Checked(Struct, frozen=True):
    """The outcome of a check."""

    files: int
    problems: Sequence[Problem]


def check_templates(
    folders: Stack = None, *, rules: Stack = None, knowledge: Stack = None
) -> Checked:
    """Check folders of templates over the built-in ones, or these.

    Raises:
        RequestError: The folder is none, or holds no template.
        KnowledgeError: The knowledge is wrong, so that rules cannot be read.
    """
    parts = [
        (_names(one), _Folder(one or data_dir("templates"), one))
        for one in stack(folders) or (None,)
    ]
    every = {*read_tree(data_dir("templates"), [".j2"]), *(n for names, _ in parts for n in names)}
    found = [
        problem for names, layer in parts for name in names for problem in layer.problems(name)
    ]
    try:
        read = _rules(rules, knowledge)
        for names, layer in parts:
            found += [one for one in _between(read, names, every, layer) if one not in found]
        if folders and not found:
            wrong = render_problems(folders, rules=rules, knowledge=knowledge)
            found += [one for error in wrong for one in _layer_of(parts, error).told([error])]
    except UserError as error:
        found += problems_of(error)
        for names, layer in parts:  # what no rule could name needs no rules to be told
            strays = [name for name in names if not name.startswith(_NAMED_BY_RULES)]
            found += [one for one in _between((), strays, every, layer) if one not in found]
    return Checked(sum(len(names) for names, _ in parts), in_order(found))


_NAMED_BY_RULES = ("actions/", "notes/")


def _names(folder: Path | None) -> Sequence[str]:
    if folder is not None and not folder.is_dir():
        raise RequestError(f"{folder} is not a folder", hint="Name a folder of templates.")
    whole = folder or data_dir("templates")
    names = sorted(p.relative_to(whole).as_posix() for p in whole.rglob("*.j2") if not p.is_dir())
    names = [name for name in names if "/." not in f"/{name}"]
    names += [FILE] if os.path.lexists(whole / FILE) else []
    if not names:
        hint = "A template lies in actions/, notes/ or report/ and ends in .md.j2."
        raise RequestError(f"{folder} holds no template (*.j2) and no {FILE}", hint=hint)
    return names


def _rules(rules: Stack, knowledge: Stack) -> Sequence[Rule]:
    over = data_dir("rules") if rules else None
    return load_rules(rules or None, vocabulary=rule_vocabulary(knowledge), over=over).rules


def _layer_of(parts: Sequence[tuple[Sequence[str], _Folder]], error: UserError) -> _Folder:
    """Give the folder whose file counts where a report could not be written."""
    name = (error.source or Source("")).file.removeprefix("templates/")
    return next((layer for names, layer in reversed(parts) if name in names), parts[-1][1])


def renamed_texts(folder: Path) -> Sequence[Edited]:
    """Give the templates that name facts as they once did, with the names of today.

    Comments and white space stay. Templates that cannot be taken apart are left as they are.
    """
    reader = TemplateReader([folder])
    found: list[Edited] = []
    for name, content in read_tree(folder, [".j2"]).items():
        text = decoded(content)
        after = reader.renamed(text, name) if text is not None else None
        if text is not None and after is not None and after != text:
            found.append(Edited(folder / name, openable(folder / name), text, after))
    return found


class _Folder:
    """The templates of one folder, each checked by itself."""

    def __init__(self, folder: Path, given: Path | None) -> None:
        self._folder = folder
        self._given = given
        self._reader = TemplateReader([folder])

    def place(self, name: str, line: int = 0, column: int = 0) -> Source:
        """Give a place in a file, named as the user names the folder."""
        shown = self._given.as_posix() if self._given else "templates"
        return Source(f"{shown}/{name}", line, column)

    def problems(self, name: str) -> Iterator[Problem]:
        """Find what is wrong with one template."""
        if name == FILE:
            yield from self.told(read_words(self._folder, words_of(None))[1])
            return
        wrong = problems_in(self._reader, name)
        yield from self.told(wrong)
        unread = {error.lint for error in wrong} & {"template-syntax", "encoding"}
        text = b"# " if unread else read_source(self._folder, name) or b""
        if name.startswith("actions/") and not text.lstrip().startswith(b"# "):
            hint = "Write '# Use {{ option.format }} weights', then the text below it."
            yield problem(
                "template-title", "the first line must be a title.", self.place(name, 1, 1), hint
            )
        if not unread and name.endswith(SUFFIX) and name.startswith(_SENTENCES):
            source = text.decode()
            if too_much(self._reader, source) is None:
                yield from self._numbers(name, source)

    def told(self, wrong: Iterable[TemplateError]) -> Iterator[Problem]:
        """Give mistakes with their places as the user names the folder."""
        for error in wrong:
            at = error.source or Source("")
            place = self.place(at.file.removeprefix("templates/"), at.line, at.column)
            yield problem(error.lint or "template-forbidden", error.message, place, error.hint)

    def _numbers(self, name: str, source: str) -> Iterator[Problem]:
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
    rules: Sequence[Rule], names: Sequence[str], every: Collection[str], layer: _Folder
) -> Iterator[Problem]:
    wanted = {text_of(rule): rule for rule in reversed(rules) if text_of(rule)}
    for name, rule in wanted.items():
        if name not in every:
            said = f"rule '{rule.id}' has no text: there is no template '{name}'."
            yield problem("missing-template", said, rule.source, _elsewhere(name, every))
    built_in = read_tree(data_dir("templates"), [".j2"])
    for name in names:
        read = name == FILE or (name in built_in and name.startswith(_PAGES))
        if name not in wanted and not read:
            yield problem("unused-template", *_unused(name, layer, {**wanted, **built_in}))


def _elsewhere(name: str, every: Collection[str]) -> str:
    own = name.partition("/")[2]
    same = [known for known in every if known.partition("/")[2] == own]
    return f"'{same[0]}' is for something else." if same else _near(name, every)


def _unused(name: str, layer: _Folder, read: Iterable[str]) -> tuple[str, Source, str]:
    others = [known for known in read if known != name]
    if name.startswith(_NAMED_BY_RULES):
        hint = _near(name, others) or "Name it under 'text' of a rule, or delete it."
        return "no rule names this text.", layer.place(name, 1, 1), hint
    hint = _near(name, others) or "Texts lie in actions/ and notes/, parts of reports in report/."
    return "nothing reads this file.", layer.place(name, 1, 1), hint


def _near(name: str, choices: Iterable[str]) -> str:
    """Suggest a file of the same folder, comparing what tells names apart."""
    folder, _, own = name.partition("/")
    there = [known.partition("/")[2] for known in choices if known.startswith(f"{folder}/")]
    return did_you_mean(own.removesuffix(SUFFIX), [t.removesuffix(SUFFIX) for t in there])


_TOKENS = ("tokens", "token")
_SEQUENCES = ("sequences", "sequence", "request", "conversation", "stream", "user")
_CARDS = ("cards", "card", "gpu", "of", "x")
_LAYERS = ("layers", "layer")
_EXPERTS = ("experts", "expert")

BARE: Mapping[str, Sequence[str]] = {
    "gpu.release_year": ("as the year", "in", "since", "from", "year"),
    "gpu.tensor_cores": ("tensor cores", "tensor"),
    "host.ram_option": ("as the option", "option"),
    "option.usable_mib": ("MiB", "mib"),
    "request.gpus": _CARDS,
    "request.all_gpus": _CARDS,
    "model.experts": _EXPERTS,
    "model.experts_used": _EXPERTS,
    "model.layers": _LAYERS,
    "model.images_held": ("images", "image", "of"),
    "model.trained_context": _TOKENS,
    "weights.bits_per_weight": ("bits", "bit"),
    "request.context": _TOKENS,
    "request.batch": _SEQUENCES,
    "memory.cache_tokens": _TOKENS,
    "memory.cache_sequences": _SEQUENCES,
    "memory.held_sequences": _SEQUENCES,
    "memory.max_context": _TOKENS,
    "memory.max_batch": _SEQUENCES,
    "memory.high_mib": ("in MiB", "mib"),
    "break_even.context": _TOKENS,
    "break_even.fewer": _SEQUENCES,
    "break_even.batch": _SEQUENCES,
    "break_even.gpus": _CARDS,
    "speed.prompt": _TOKENS,
    "speed.depth": _TOKENS,
    **{one.fact: one.counts for one in STATED if one.fact},
    "option.context": _TOKENS,
    "option.batch": _SEQUENCES,
    "option.gpus": _CARDS,
    "option.stage_cards": (*_CARDS, "parallel"),
    "option.layers": _LAYERS,
    "option.cpu_experts": _LAYERS,
}
"""Placeholder -> what to write behind it, then beginnings of words, one of which has to stand near
it in its sentence."""
_BEFORE, _AFTER = 5, 4
"""Words in which a unit counts as near."""
_END = re.compile(r"[.!?:](?=\s)")
_TITLE_LINE = re.compile(r"\A\s*# [^\n]*")
_ALONE = re.compile(r"(?<![\w.,/-])(\d+(?:[.,]\d+)*)(?=\s*(?:[.,;:!?)]\s|[.,;:!?)]?\Z))")
_MARK, _OTHER, _WORD = "\ue000", "{}", "_"
_DIGIT = re.compile(r"(?<![A-Za-z])\d")
_LINKS = frozenset({"to", "and", "or", "of", "than", "instead", "by", "from", "", "/"})
"""Between two numbers that share a unit: 8 of 64 experts, 4 instead of 8 sequences."""
_ARTICLES = frozenset({"the", "these", "those", "its"})
_BESIDE = frozenset({"of", "x", "in", "since", "from"})


class Bare(Struct, frozen=True):
    """A number without a unit."""

    line: int
    word: str
    """The placeholder, or the number as it is written."""
    hint: str
    written: bool = False
    """Whether it stands in the text itself."""


def numbers_without_unit(tree: nodes.Template) -> Iterator[Bare]:
    """Find placeholders that are bare numbers, and written numbers, without a word for them."""
    from jinja2 import nodes  # noqa: PLC0415 - start-up

    for output in tree.find_all(nodes.Output):
        for item in output.nodes:
            if isinstance(item, nodes.TemplateData):
                yield from _written(item)
                continue
            for name in (item, *item.find_all(nodes.Name)):
                if isinstance(name, nodes.Name) and not _is_near(tree, name):
                    hint = f"Write for example '{{{{ {name.name} }}}} {BARE[name.name][0]}'."
                    yield Bare(name.lineno, name.name, hint)


def _written(data: nodes.TemplateData) -> Iterator[Bare]:
    for match in _ALONE.finditer(data.data):
        before = data.data[: match.start()].split()
        if before and before[-1] != before[-1].lower():
            continue  # part of a name: RTX 4090
        line = data.lineno + data.data.count("\n", 0, match.start())
        hint = "Say what it counts, or take a placeholder, which has a unit."
        yield Bare(line, match[1], hint, written=True)


def _is_near(tree: nodes.Template, name: nodes.Name) -> bool:
    units = BARE.get(name.name)
    if units is None:
        return True
    text = "".join(_pieces(tree.body, name))
    text = _TITLE_LINE.sub(lambda title: f"{title[0]}.", text)
    before, _, after = text.partition(_MARK)
    if before.endswith("="):  # a setting, whose name tells what it takes
        return True
    left = _END.split(before)[-1].split()
    right = _END.split(after + " ", maxsplit=1)[0].split()
    return _says(right, units[1:], _AFTER) or _says(left[::-1], units[1:], _BEFORE)


def _says(words: Sequence[str], units: Sequence[str], most: int) -> bool:
    """Whether a unit comes before another number does; a range or a list shares one unit."""
    steps, linked = 0, False
    for place, word in enumerate(words):
        plain = _bare_word(word)
        if any(_is_unit(part, units, place) for part in (plain, *plain.split("-"))):
            return True
        if _OTHER in word or _DIGIT.search(word):
            if not linked:
                return False
            steps = 0
        steps = 0 if plain == "than" else steps + 1
        linked = plain in _LINKS or word.endswith(",") or (linked and plain in _ARTICLES)
        if steps > most:
            return False
    return False


def _is_unit(word: str, units: Sequence[str], place: int) -> bool:
    """Short words such as ``of`` say something right beside the number alone."""
    return any(word in {unit, f"{unit}s"} and (place == 0 or unit not in _BESIDE) for unit in units)


def _bare_word(word: str) -> str:
    return word.strip("().,;:*`'\"-").lower()


def _pieces(found: Sequence[nodes.Node], marked: nodes.Name) -> Iterator[str]:
    """Write out what may stand around a placeholder: not the other branches of its own ``if``."""
    from jinja2 import nodes  # noqa: PLC0415 - start-up

    for node in found:
        if isinstance(node, nodes.TemplateData):
            yield node.data
        elif isinstance(node, nodes.Output):
            yield from _pieces(node.nodes, marked)
        elif isinstance(node, nodes.If):
            branches = [node.body, *(other.body for other in node.elif_), node.else_]
            own = [branch for branch in branches if _holds(branch, marked)]
            for branch in own or branches:
                yield from _pieces(branch, marked)
        elif isinstance(node, nodes.For):
            yield from _pieces(node.body, marked)
        else:
            inside = node is marked or marked in node.find_all(nodes.Name)
            yield _MARK if inside else f" {_OTHER if _counts(node) else _WORD} "


def _counts(node: nodes.Node) -> bool:
    """Whether a placeholder, or a choice between some, is a number without a unit."""
    from jinja2 import nodes  # noqa: PLC0415 - start-up

    names = [node] if isinstance(node, nodes.Name) else node.find_all(nodes.Name)
    return any(isinstance(name, nodes.Name) and name.name in BARE for name in names)


def _holds(branch: Sequence[nodes.Node], marked: nodes.Name) -> bool:
    from jinja2 import nodes  # noqa: PLC0415 - start-up

    return any(marked is name for node in branch for name in node.find_all(nodes.Name))
