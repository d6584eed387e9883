"""A user's rules over those below: replace by name, add, switch off with a reason.

Below are the built-in rules and, of several folders, the rules of those before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import Struct, field
from msgspec.structs import astuple, replace

from advisor.errors import RuleFileError, Source, guess
from advisor.knowledge.vocabulary import Vocabulary
from advisor.knowledge.yaml_fields import Collector, listed
from advisor.rules import When
from advisor.rules.language.context import Reading
from advisor.rules.language.entries import read_rules
from advisor.rules.language.model import (
    Disabled,
    Draft,
    Overlay,
    Rule,
    Users,
    as_stored,
    read_facts,
)
from advisor.rules.language.static_checks import check, known_names

__all__ = ["known_names", "read_layers"]

_SHOWN = 3


def read_layers(
    contents: Mapping[str, bytes],
    vocabulary: Vocabulary,
    templates: Collection[str] | None,
    names: Mapping[str, Collection[str]] | None,
    users: Sequence[Users],
) -> tuple[Sequence[Draft], Sequence[Disabled], Collector]:
    """Read and check rule files, arguments as for ``load.parse_set``, with what is wrong."""
    problems = Collector(RuleFileError)
    reading = Reading(vocabulary, problems, templates, names)
    drafts = [
        draft
        for shown, content in contents.items()
        for draft in read_rules(content, shown, reading)
    ]
    drafts, disabled = _laid_over(drafts, users, reading)
    check(drafts, reading)
    return drafts, disabled, problems


def _laid_over(
    drafts: Sequence[Draft], users: Sequence[Users], reading: Reading
) -> tuple[list[Draft], list[Disabled]]:
    """Lay the user's rules over the built-in ones, and each layer over those before it.

    ``users`` are the files of the user, the lowest layer first; without any nothing is below.

    Returns:
        The rules that count, each user's one where the one it replaces stood, and those that
        are switched off.
    """
    if not users:
        return _alone(drafts, reading), []
    later = {file for layer in users[1:] for file in layer.user}
    kept = [draft for draft in drafts if _file(draft) not in later]
    laying = _Laying(reading, users[0])
    for layer in users:
        if layer is not users[0]:
            laying = laying.under(layer)
            kept += [draft for draft in drafts if _file(draft) in layer.user]
        kept = laying.laid(kept)
    laying.check_conclusions(kept)
    return kept, laying.disabled()


def _file(draft: Draft) -> str:
    return draft.rule.source.file if draft.rule.source else ""


def _alone(drafts: Sequence[Draft], reading: Reading) -> list[Draft]:
    for draft in drafts:
        key = "disable" if _disables(draft) else "replaces"
        if key in draft.places:
            message = f"'{key}' is for rules of your own, laid over the built-in ones."
            reading.problems.add(
                message, draft.places[key], "Delete it, or use --rules.", lint="overlay"
            )
    return [draft for draft in drafts if not _disables(draft)]


def _disables(draft: Draft) -> bool:
    return "disable" in draft.places


def _entry(draft: Draft) -> object:
    """Tell entries apart: the rules of one ladder are one entry."""
    return draft.rule.source or id(draft)


def _names(rule: Rule) -> Iterator[str]:
    yield rule.id
    if rule.ladder:
        yield rule.ladder


class _Laying(Struct):
    """One layer, laid over what is below it."""

    reading: Reading
    layer: Users
    stands: dict[str, list[Draft]] = field(default_factory=dict)
    """Name that a lower layer replaced or switched off -> what has its place, or what it was."""
    off_below: dict[str, tuple[Draft, Draft]] = field(default_factory=dict)
    """Id of a rule that a lower layer switched off -> it, and what switches it off."""
    renamed: dict[str, str] = field(default_factory=dict)
    below: dict[str, list[Draft]] = field(default_factory=dict)
    """Rule or ladder name -> its drafts."""
    standing: set[str] = field(default_factory=set)
    """Ids of the rules below that count."""
    hidden: dict[str, Sequence[Draft]] = field(default_factory=dict)
    """File of the user's -> the drafts of the built-in file at the same path."""
    taken: dict[str, list[Draft]] = field(default_factory=dict)
    """Id of a built-in rule -> the user's entry in its place."""
    off: dict[str, Draft] = field(default_factory=dict)
    """Id of a built-in rule -> what switches it off."""

    def index(self, drafts: Sequence[Draft]) -> None:
        """Note every rule below, those behind a file of the user's included."""
        quiet = replace(self.reading, problems=Collector(RuleFileError))
        for users, (name, content) in self.layer.shadowed.items():
            self.hidden[users] = read_rules(content, name, quiet)
        for draft in drafts:
            if not self.is_users(draft):
                self.standing.add(draft.rule.id)
                self._note(draft)
        for name, stands in self.stands.items():
            self.below.setdefault(name, stands)
        known = set(self.below)
        for draft in (draft for group in self.hidden.values() for draft in group):
            if not known.intersection(_names(draft.rule)):
                self._note(draft)

    def _note(self, draft: Draft) -> None:
        for name in _names(draft.rule) if draft.rule.id else ():
            self.below.setdefault(name, []).append(draft)

    def is_users(self, draft: Draft) -> bool:
        """Whether it is the user's."""
        return draft.rule.source is not None and draft.rule.source.file in self.layer.user

    def under(self, layer: Users) -> _Laying:
        """Begin the next layer, which knows what this one replaced and switched off."""
        stands = dict(self.stands)
        for name, drafts in self.below.items():
            entry = next((e for d in drafts if (e := self.taken.get(d.rule.id))), None)
            if entry is not None or any(d.rule.id in self.off for d in drafts):
                stands[name] = entry or drafts
        return _Laying(self.reading, layer, stands, self._switched_off(), dict(self.renamed))

    def _switched_off(self) -> dict[str, tuple[Draft, Draft]]:
        """Give what is off in this layer and below it, each with what switches it off."""
        below = {name: pair for name, pair in self.off_below.items() if name not in self.taken}
        return below | {name: (self.below[name][0], by) for name, by in self.off.items()}

    def laid(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Give the rules that count, of this layer and of all below it."""
        self.index(drafts)
        entries = [list(group) for _, group in groupby(drafts, _entry)]
        for entry in entries:
            if self.is_users(entry[0]):
                self.take(entry)
        self.leave_out(drafts)
        return self.assembled(entries)

    # ---- what each entry of the user's does

    def take(self, entry: list[Draft]) -> None:
        """Find what an entry replaces or switches off."""
        first = entry[0]
        if _disables(first):
            self._switch_off(first)
        elif first.replaces:
            targets = self._find(first, first.replaces, "replaces")
            self._put(entry, targets)
        elif self._is_copy(entry):
            self._put(entry, self.below[_name(first)])
        else:
            self._say_taken(entry)

    def _switch_off(self, draft: Draft) -> None:
        for target in self._find(draft, draft.disables, "disable"):
            other = self.off.get(target.rule.id)
            if other is not None:
                self._add(draft, "disable", "is switched off twice", other.rule.source)
            elif target.rule.id in self.taken:
                place = self.taken[target.rule.id][0].rule.source
                self._add(draft, "disable", "is replaced as well", place)
            else:
                self.off[target.rule.id] = draft

    def _put(self, entry: list[Draft], targets: Sequence[Draft]) -> None:
        for target in targets:
            other = self.taken.get(target.rule.id)
            if other is not None:
                self._add(entry[0], "replaces", "is replaced twice", other[0].rule.source)
            elif target.rule.id in self.off:
                place = self.off[target.rule.id].rule.source
                self._add(entry[0], "replaces", "is switched off as well", place)
            else:
                self.taken[target.rule.id] = entry
        if len(targets) == len(entry) == 1 and targets[0].rule.id != entry[0].rule.id:
            old, new = targets[0].rule.id, entry[0].rule.id
            self.renamed = {n: new if to == old else to for n, to in self.renamed.items()}
            self.renamed[old] = new

    def _add(self, draft: Draft, key: str, what: str, other: Source | None) -> None:
        name = draft.replaces or draft.disables
        message = f"the built-in '{name}' {what} (at {other})."
        self.reading.problems.add(message, draft.at(key), "Keep one of the two.", lint="overlay")

    def _find(self, draft: Draft, name: str, key: str) -> Sequence[Draft]:
        found = self.below.get(name, ())
        if not found and name:
            hint = guess(name, self.below) or "'advisor rules docs' lists the built-in rules."
            self.reading.problems.add(
                f"there is no built-in rule '{name}' to {key.removesuffix('s')}.",
                draft.at(key),
                hint,
                lint="unknown-rule",
            )
        return found

    def _is_copy(self, entry: list[Draft]) -> bool:
        """Whether it stands in a file that takes the place of the built-in one with this rule."""
        place = entry[0].rule.source
        behind = self.hidden.get(place.file, ()) if place else ()
        return any(_name(draft) == _name(entry[0]) for draft in behind)

    def _say_taken(self, entry: list[Draft]) -> None:
        draft = entry[0]
        name = _name(draft)
        other = self.below.get(name, [])
        if other:
            whose = (
                "a rule of another folder of yours" if other[0].rule.overlay else "a built-in rule"
            )
            message = f"'{name}' is {whose} (at {other[0].rule.source})."
            hint = f"Write 'replaces: {name}' to take its place, or give yours another name."
            self.reading.problems.add(message, draft.rule.source, hint, lint="overlay")
            self.taken.update({target.rule.id: entry for target in other})

    # ---- what is missing from a file that takes the place of a built-in one

    def leave_out(self, drafts: Sequence[Draft]) -> None:
        """Complain about built-in rules that such a file leaves out; a whole copy may."""
        broken = any(d.partial and not d.rule.id for d in drafts)
        for users, behind in self.hidden.items() if not broken else ():
            gone = self.taken.keys() | self.off.keys() | self.stands.keys()
            names = list(dict.fromkeys(_name(d) for d in behind if d.rule.id not in gone))
            if not names:
                continue
            if self.layer.whole:
                self._deleted(users, behind, names)
                continue
            shown = names[:_SHOWN] + ([f"{len(names) - _SHOWN} more"] if names[_SHOWN:] else [])
            built = self.layer.shadowed[users][0]
            message = (
                f"this file takes the place of the built-in {built} and leaves out "
                f"{listed(shown).replace(' or ', ' and ')}."
            )
            hint = (
                "Give the file another name to add to the built-in rules, or write "
                f"'- disable: {names[0]}' with a reason for each."
            )
            self.reading.problems.add(message, Source(users, 1, 1), hint, lint="overlay")

    def _deleted(self, users: str, behind: Sequence[Draft], names: Sequence[str]) -> None:
        for draft in behind:
            if _name(draft) in names:
                nothing = Rule("", "", When(()), source=Source(users))
                reason = f"left out of {users}"
                self.off.setdefault(draft.rule.id, Draft(nothing, reason=reason))

    # ---- the result

    def assembled(self, entries: Sequence[list[Draft]]) -> list[Draft]:
        """Put the rules that count in order."""
        moved = {id(entry[0]): entry for entry in self.taken.values() if self._moves(entry)}
        kept: list[Draft] = []
        done: set[int] = set()
        for entry in entries:
            for draft in entry:
                users = self.taken.get(draft.rule.id) if not self.is_users(draft) else None
                if users is not None and id(users[0]) in moved and id(users[0]) not in done:
                    done.add(id(users[0]))
                    kept += map(self._marked, users)
                elif self._stays(draft, moved):
                    kept.append(self._marked(draft) if self.is_users(draft) else draft)
        return [self._related(draft) for draft in kept]

    def _moves(self, entry: list[Draft]) -> bool:
        """Whether the rule it replaces stands in a file that counts."""
        return any(id_ in self.standing for id_, users in self.taken.items() if users is entry)

    def _stays(self, draft: Draft, moved: Mapping[int, list[Draft]]) -> bool:
        if self.is_users(draft):
            owner = next((e for e in moved.values() if any(d is draft for d in e)), None)
            return not _disables(draft) and owner is None
        return draft.rule.id not in self.taken and draft.rule.id not in self.off

    def _marked(self, draft: Draft) -> Draft:
        """Say of a user's rule what it replaces; an unchanged copy counts as built in."""
        targets = [t for t, users in self.taken.items() if any(d is draft for d in users)]
        if not targets:
            return replace(draft, rule=replace(draft.rule, overlay=Overlay()))
        other = self.below[targets[0]][0]
        if any(_bare(self.below[t][0].rule) == _bare(draft.rule) for t in targets):
            return draft
        name = other.rule.ladder if len(targets) > 1 and other.rule.ladder else other.rule.id
        before = other.rule.overlay.names if other.rule.overlay else ()
        overlay = Overlay(name, other.rule.source, before)
        return replace(draft, rule=replace(draft.rule, overlay=overlay))

    def _related(self, draft: Draft) -> Draft:
        """Follow renamed rules in what others say of them, and drop what is switched off."""
        rule = draft.rule
        named = tuple(self.renamed.get(name, name) for name in rule.supersedes)
        for name in named if self.is_users(draft) and rule.overlay else ():
            if name in self.off:
                message = f"'{name}' is switched off (at {self.off[name].rule.source})."
                hint = "Take it out of 'supersedes', or do not switch it off."
                self.reading.problems.add(message, draft.at("supersedes"), hint, lint="overlay")
        itself = set() if rule.id in rule.supersedes else {rule.id}
        off = {*self.off, *self.off_below} - self.taken.keys()
        alive = tuple(name for name in named if name not in off and name not in itself)
        better = self.renamed.get(rule.replaced_by or "", rule.replaced_by)
        if (alive, better) == (rule.supersedes, rule.replaced_by):
            return draft
        return replace(draft, rule=replace(rule, supersedes=alive, replaced_by=better))

    def check_conclusions(self, kept: list[Draft]) -> None:
        """Complain where nothing concludes a fact any more since a rule was switched off."""
        concluded = {name for draft in kept for name in draft.rule.conclude}
        readers = {
            name: draft.rule.id for draft in reversed(kept) for name in read_facts(draft.rule)
        }
        for rule_id, (draft, by) in self._switched_off().items():
            for fact in draft.rule.conclude:
                if fact in readers and fact not in concluded:
                    message = (
                        f"without '{by.disables or rule_id}' no rule concludes {fact}, "
                        f"which '{readers[fact]}' reads."
                    )
                    hint = "Add a rule of your own that concludes it, or keep this one."
                    self.reading.problems.add(
                        message, by.at("disable"), hint, lint="fact-never-concluded"
                    )
                    concluded.add(fact)
                    said = f"conclude {fact}"
                    kept.append(Draft(Rule("", "", When(())), partial=True, text=said))

    def disabled(self) -> list[Disabled]:
        """List what is switched off, in the order of the user's files."""
        return [
            Disabled(draft.rule, by.reason, by.rule.source)
            for draft, by in self._switched_off().values()
        ]


def _name(draft: Draft) -> str:
    return draft.rule.ladder or draft.rule.id


def _bare(value: object) -> object:
    """Give a rule without the places in its file, to compare."""
    if isinstance(value, Source):
        return None
    if isinstance(value, Rule):
        held = astuple(replace(value, stored_cases=as_stored([])))
        return [*map(_bare, held), _bare(value.cases)]
    if isinstance(value, Struct):
        return tuple(map(_bare, astuple(value)))
    if isinstance(value, Mapping):
        return {key: _bare(inner) for key, inner in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_bare(inner) for inner in value]
    return value
