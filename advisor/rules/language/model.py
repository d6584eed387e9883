"""Rules as data, and how the files that they come from are called.

Values of conditions are in the base unit of the fact's dimension (see ``units``). Compiled rules
know a file by a short name that is the same on every machine (``rules/fit.yaml``); what a user
reads is the path as they typed it or as it is from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, wraps
from pathlib import Path
from typing import Concatenate, Literal, ParamSpec, TypeVar
from zlib import compress, decompress

from msgspec import Struct, field, json
from msgspec.structs import force_setattr

from advisor.errors import Problems, Source, UserError
from advisor.files import data_dir, digest, read_tree, real
from advisor.knowledge.layers import Layer, Stack, layers, stack
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import (
    Branch,
    Facts,
    Test,
    When,
    all_hold,
    all_tests,
    branches,
    of_option,
    value_of,
)


class PerTerm(Struct, frozen=True, omit_defaults=True):
    """``points`` per ``per_value`` (base unit) of a fact, at most ``cap`` points either way."""

    fact: str
    points: float
    per_value: float
    text: str
    cap: float | None = None
    source: Source | None = None


class WhenTerm(Struct, frozen=True, omit_defaults=True):
    """``points`` when all tests hold."""

    tests: tuple[Test, ...]
    points: float
    text: str


class Score(Struct, frozen=True, omit_defaults=True):
    """How a recommendation is ranked."""

    base: float
    add: tuple[PerTerm, ...] = ()
    when: tuple[WhenTerm, ...] = ()


class Case(Struct, frozen=True, omit_defaults=True):
    """One example beside the rule, on real inputs."""

    name: str
    given: Mapping[str, object]
    """Request keys, as on the command line."""
    expect: Literal["fires", "silent"]
    change: Mapping[str, object] | None = None
    rank: int | None = None
    says: str | None = None
    source: Source | None = None


class Overlay(Struct, frozen=True, omit_defaults=True):
    """That a rule is the user's, and which built-in rule or ladder it takes the place of."""

    replaces: str = ""
    """Name of the built-in one; empty for a rule that is added."""
    at: Source | None = None
    """Where the built-in one stands."""
    before: tuple[str, ...] = ()
    """What that one, itself a user's, took the place of, layer by layer."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that led to this rule in some layer below."""
        return tuple(name for name in (self.replaces, *self.before) if name)


class Rule(Struct, frozen=True, omit_defaults=True, dict=True):
    """One rule; exactly one of ``conclude``, ``action``, ``veto`` and ``note`` is set."""

    id: str
    why: str
    when: When
    conclude: Mapping[str, str | float | bool] = field(default_factory=dict)
    action: str | None = None
    score: Score | None = None
    supersedes: tuple[str, ...] = ()
    text: str | None = None
    """Template of a recommendation or note."""
    veto: str | None = None
    note: str | None = None
    """For a note: its text when it has no template of its own."""
    stored_cases: bytes = b""
    """Its cases as packed JSON; half of all that a start would hold."""
    status: Literal["experimental", "stable", "deprecated"] = "stable"
    since: str | None = None
    replaced_by: str | None = None
    reference: str | None = None
    """Where the numbers come from (``source:`` in the file)."""
    ladder: str | None = None
    """Id of the ladder this rule was expanded from."""
    source: Source | None = None
    overlay: Overlay | None = None
    """None for a built-in rule."""

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Examples beside the rule, read when they are first asked for."""
        stored = decompress(self.stored_cases) if self.stored_cases else b"[]"
        return json.decode(stored, type=tuple[Case, ...])

    @property
    def kind(self) -> Literal["conclude", "recommend", "veto", "note"]:
        """What the rule does."""
        if self.conclude:
            return "conclude"
        if self.action:
            return "recommend"
        return "veto" if self.veto else "note"

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        """Its conditions with every ``any`` expanded and every ``not`` flipped.

        Raises:
            RuleFileError: More than 64 branches.
        """
        return branches(self.when)

    @property
    def per_option(self) -> bool:
        """Whether the rule names an ``option.*`` fact, so that it is tried once per option."""
        names = (name for test in all_tests(self.when) for name in (test.fact, test.other))
        return any(name is not None and of_option(name) for name in names)


def as_stored(cases: Sequence[Case]) -> bytes:
    """Give cases as a rule holds them."""
    return compress(json.encode(cases)) if cases else b""


class Disabled(Struct, frozen=True, omit_defaults=True):
    """A built-in rule that the user switched off."""

    rule: Rule
    reason: str
    source: Source | None = None
    """Where the user says so."""


class RuleSet(Struct, frozen=True):
    """Every rule, in file and definition order, with the hash of the files."""

    rules: tuple[Rule, ...]
    sha256: str
    disabled: tuple[Disabled, ...] = ()
    by_id: Mapping[str, Rule] = field(default_factory=dict)
    notes: tuple[Rule, ...] = ()
    """Rules that make remarks, in order."""
    user_rules: tuple[Rule, ...] = ()
    """Rules of the user's."""

    def __post_init__(self) -> None:
        """Index the rules by id and by what is looked for most."""
        force_setattr(self, "by_id", {rule.id: rule for rule in self.rules})
        notes = tuple(rule for rule in self.rules if rule.kind == "note")
        force_setattr(self, "notes", notes)
        force_setattr(self, "user_rules", tuple(rule for rule in self.rules if rule.overlay))

    def rule(self, rule_id: str) -> Rule:
        """Find a rule by id; KeyError when there is none."""
        return self.by_id[rule_id]


SUFFIX = ".md.j2"


def text_of(rule: Rule) -> str:
    """Name the template of a rule, as ``actions/quantize.md.j2``; empty where it needs none."""
    if rule.action:
        return f"actions/{rule.text or rule.action + SUFFIX}"
    return f"notes/{rule.text}" if rule.kind == "note" and rule.text else ""


def text_name(rule: Rule) -> str:
    """Name the text of a rule without folder and ending, as experts speak of it."""
    return text_of(rule).partition("/")[2].removesuffix(SUFFIX)


def text_names(files: Mapping[str, bytes]) -> frozenset[str]:
    """The texts that rules may name: everything in actions/ and notes/."""
    paths = (name.split("/") for name in files)
    return frozenset(path[-1] for path in paths if path[0] in {"actions", "notes"})


def what_held(
    rule: Rule, facts: Facts, option: Facts | None = None
) -> Sequence[tuple[Test, FactValue | None]]:
    """Give the tests of the first branch that holds, with the values they met."""
    for tests in rule.branches:
        if all_hold(tests)(facts, option):
            return [(test, value_of(test.fact, facts, option)) for test in tests]
    return ()


class Draft(Struct, frozen=True):
    """A rule as it was read, before the rules were checked against each other."""

    rule: Rule
    places: Mapping[str, Source] = field(default_factory=dict)
    """Key of the rule -> where it stands."""
    partial: bool = False
    """Whether something in it could not be read, so that what seems missing may be there."""
    replaces: str = ""
    """Name of the built-in rule or ladder whose place it takes."""
    disables: str = ""
    """Name of the built-in rule or ladder to switch off; such a draft holds no rule."""
    reason: str = ""
    """Why it is switched off."""

    text: str = ""
    """Of a partial one, the whole file as it is: what seems to be missing may stand in it."""

    def at(self, key: str) -> Source | None:
        """Where a key stands, or where the rule begins."""
        return self.places.get(key, self.rule.source)


def read_facts(rule: Rule) -> Mapping[str, Source | None]:
    """List the facts that a rule reads, with one place each."""
    found: dict[str, Source | None] = {}
    for test in scored_tests(rule):
        for name in filter(None, (test.fact, test.other)):
            found.setdefault(name, test.source)
    for term in rule.score.add if rule.score else ():
        found.setdefault(term.fact, term.source)
    return found


def scored_tests(rule: Rule) -> tuple[Test, ...]:
    """List the tests of the conditions and of the score."""
    terms = rule.score.when if rule.score else ()
    return (*all_tests(rule.when), *(test for term in terms for test in term.tests))


_P = ParamSpec("_P")
_T = TypeVar("_T")


class Places(Struct, frozen=True):
    """Short name of a file -> its path as a user would type it."""

    paths: Mapping[str, str]

    @classmethod
    def of(cls, folders: Stack, *, built_in: bool = True, beside: Iterable[Path] = ()) -> Places:
        """Look up the YAML files of folders of rules; of two with one short name the last counts.

        The built-in rules come first; ``beside`` are folders that are no layers.
        """
        named = [Layer(path, short_name(path)) for path in beside]
        named = [*rule_layers(folders), *named]
        if built_in or not stack(folders):
            named.insert(0, Layer(data_dir("rules"), "rules"))
        paths: dict[str, str] = {}
        for one in named:
            if one.folder.is_dir():
                names = read_tree(one.folder, [".yaml", ".yml"])
                paths |= {f"{one.label}/{name}": openable(one.folder / name) for name in names}
        top = stack(folders)[-1:] if stack(folders)[1:] else ()
        for path in top:  # scenarios are those of the highest layer, and named without it
            inside = read_tree(path / "scenarios", [".yaml"])
            paths |= {
                f"{short_name(path)}/scenarios/{n}": openable(path / "scenarios" / n)
                for n in inside
            }
        return cls(paths)

    def source(self, source: Source) -> Source:
        """Give the same place with the path of its file."""
        path = self.paths.get(source.file, source.file)
        return Source(path, source.line, source.column)

    def text(self, text: str) -> str:
        """Put paths for the short names in a message (``first at rules/fit.yaml:1:3``)."""
        for label, path in self.paths.items():
            if f"{label}:" in text:
                text = re.sub(rf"(?<![\w./-]){re.escape(label)}:", lambda _: f"{path}:", text)  # noqa: B023
        return text

    def error(self, error: UserError) -> UserError:
        """Give the same error, or all errors of a group, with paths."""
        if isinstance(error, Problems):
            return Problems(self.error(e) for e in error.errors if isinstance(e, UserError))
        return type(error)(
            self.text(error.message),
            source=self.source(error.source) if error.source else None,
            hint=error.hint,
            lint=error.lint,
            edit=error.edit,
        )


def short_name(folder: Path) -> str:
    """Name a folder without its parents: what is compiled must not depend on where it lies."""
    name = real(folder).name.encode("utf-8", "replace").decode()  # it is hashed and kept
    return "rules" if folder == data_dir("rules") else name


def rule_layers(folders: Stack) -> tuple[Layer, ...]:
    """Give the user's folders of rules, the lowest first, with their short names."""
    paths = stack(folders)
    return layers(paths, short_name(paths[0]) if paths else "")


def openable(path: Path) -> str:
    """Write a path as typed; an absolute one below the present folder as it is from there.

    The built-in rules of an installed advisor are nobody's to edit, and keep their short name.
    """
    here, built_in = Path.cwd(), data_dir("rules")
    if path.is_absolute() and path.is_relative_to(here):
        path = path.relative_to(here)
    elif path.is_relative_to(built_in):
        path = Path("rules") / path.relative_to(built_in)
    return path.as_posix()


def telling_paths(
    load: Callable[Concatenate[Stack, _P], _T],
) -> Callable[Concatenate[Stack, _P], _T]:
    """Let a function that reads folders of rules raise errors that name paths.

    The folders are its first argument, as typed; what they are laid over is built in.
    """

    @wraps(load)
    def loading(folders: Stack = None, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return load(folders, *args, **kwargs)
        except UserError as error:
            raise Places.of(folders).error(error) from None

    return loading


class Users(Struct, frozen=True):
    """One layer of a user's rule files; names are as messages show them."""

    user: frozenset[str]
    shadowed: Mapping[str, tuple[str, bytes]]
    """File of the user's -> name and content of the built-in file at the same path."""
    whole: bool
    """Whether there is one for every built-in file: an edited copy of the whole set."""

    @classmethod
    def of(cls, user: Mapping[str, str], below: Mapping[str, bytes], label: str) -> Users:
        """Compare a folder with the built-in one.

        Args:
            user: Path below the user's folder -> the name shown.
            below: Path below the built-in folder -> content.
            label: How the built-in folder is called.
        """
        both = {
            user[name]: (f"{label}/{name}", below[name]) for name in sorted(user) if name in below
        }
        return cls(frozenset(user.values()), both, whole=len(both) == len(below))

    @property
    def sha256(self) -> str:
        """Tell layers apart that lead to the same files."""
        user = "\n".join(sorted(self.user)).encode()
        return digest({"": user, **dict(self.shadowed.values())})
