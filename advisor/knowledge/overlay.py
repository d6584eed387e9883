"""A user's knowledge over the built-in one, entry by entry: what is replaced, changed, added.

An entry of the user's may say ``replaces: NAME`` (it takes the place of the built-in entry),
``based_on: NAME`` (it has the built-in entry's fields but for those it states), or be
``- disable: NAME`` with a ``reason``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.errors import KnowledgeError, Source, UserError, did_you_mean
from advisor.knowledge.field_kinds import items_of
from advisor.knowledge.layers import SHORTER
from advisor.knowledge.stacked_files import FOLDERS, TABLES, Files, holds, is_table
from advisor.knowledge.validation import Entry, entry_of, nodes_of
from advisor.yamlfile import Node

_SHOWN = 3
_CAN_GO = ("gpu", "model")
"""Kinds that nothing else in knowledge/ names, so that one of them can be switched off."""
_FIXED = {"policy": ("between", "at_most", "as_sold")}
"""Kinds of entries that the program names, so that none is added: what of them stays as it is."""
_ITS_NAMES = ("aliases", "hf_id")
"""Fields that a record based on another one does not take over under a new name."""
BUILT_IN = "knowledge"
"""How the built-in folder is called in messages."""


class Below(Struct, frozen=True):
    """What lower layers did with entries that are there no more."""

    renamed: Mapping[str, str] = {}
    """Name -> that of the entry which has its place."""
    off: Mapping[str, Entry] = {}


class Laying(Struct):
    """The entries of one kind, those of a layer laid over all below it.

    ``names`` are the files of the layer; ``entries`` all of them in file order; ``hidden`` those of
    built-in files behind files of the user's at the same path.
    """

    files: Files
    names: Collection[str]
    kind: str
    entries: Sequence[Entry]
    hidden: Sequence[Entry]
    below: Below
    problems: list[UserError]
    taken: dict[str, Entry] = field(default_factory=dict)
    """Name of a built-in entry -> the user's in its place."""
    off: dict[str, Entry] = field(default_factory=dict)
    """Name of a built-in entry -> the user's that switches it off."""
    gone: dict[str, Entry] = field(default_factory=dict)
    """Those built-in entries."""
    broken: set[int] = field(default_factory=set)
    """Entries that cannot be read, since what they are based on is unknown."""

    def result(self) -> Iterator[Entry]:
        """Give the entries that count, each user's one where the one it replaces stood."""
        standing = {entry.name: entry for entry in self.entries if not self._is_users(entry)}
        built_in = {entry.name: entry for entry in self.hidden} | {**self.below.off, **standing}
        for entry in self.entries:
            if self._is_users(entry):
                self._take(entry, built_in)
        self._left_out()
        moved = {id(e) for name, e in self.taken.items() if name in standing}
        for entry in self.entries:
            over = None if self._is_users(entry) else self.taken.get(entry.name)
            if over is not None:
                yield self._finished(over, built_in)
            elif self._is_users(entry):
                if not _disables(entry) and id(entry) not in moved | self.broken:
                    yield self._finished(entry, built_in)
            elif entry.name not in self.off:
                yield entry

    def _is_users(self, entry: Entry) -> bool:
        return entry.place.file in self.names

    def under(self) -> Below:
        """Say what the next layer has to know."""
        renamed = {old: entry.name for old, entry in self.taken.items() if old != entry.name}
        before = {old: renamed.get(now, now) for old, now in self.below.renamed.items()}
        back = {old: entry for old, entry in self.below.off.items() if old not in self.taken}
        return Below({**before, **renamed}, {**back, **self.gone})

    def _now(self, name: str, built_in: Mapping[str, Entry]) -> str:
        """Follow a name to that of the entry which a lower layer put in its place."""
        return name if name in built_in else self.below.renamed.get(name, name)

    def _say(self, message: str, at: Source, hint: str = "") -> None:
        self.problems.append(KnowledgeError(message, source=at, hint=hint))

    def _take(self, entry: Entry, built_in: Mapping[str, Entry]) -> None:
        key = "disable" if _disables(entry) else "replaces" if entry.text("replaces") else ""
        based = self._now(entry.text("based_on"), built_in)
        if based and based not in built_in:
            self._unknown(entry, "based_on", based, built_in)
            self.broken.add(id(entry))
        if key:
            name = self._now(entry.text(key), built_in)
            if name not in built_in:
                self._unknown(entry, key, name, built_in)
            elif name in self.taken or name in self.off:
                other = self.taken.get(name) or self.off[name]
                message = f"the built-in {self.kind} '{name}' is taken twice (first at "
                self._say(f"{message}{other.place}).", entry.at(key), "Keep one of the two.")
            elif key == "disable":
                self._switch_off(entry, name, built_in)
            elif self.kind in _FIXED and name != entry.name:
                message = f"a {self.kind} keeps its name: the program reads '{name}'."
                self._say(message, entry.place, f"Write '{self.kind}: {name}'.")
                self.broken.add(id(entry))
            else:
                self.taken[name] = entry
        elif entry.name in built_in:
            same_path = any(h.name == entry.name for h in self._hidden_in(entry.place.file))
            other = built_in[entry.name]
            same = other.place.file in self.files.user and other.node.plain() == entry.node.plain()
            if not same_path and not same and based != entry.name:
                self._say_taken(entry, other)
            self.taken.setdefault(entry.name, entry)
        elif self.kind in _FIXED:
            self._unknown(entry, self.kind, entry.name, built_in)
            self.broken.add(id(entry))

    def _forget(self, name: str) -> None:
        """Take an entry that counts no more from what is told of the user's."""
        self.files.replaced.get(self.kind, {}).pop(name, None)
        self.files.off.get(self.kind, {}).pop(name, None)

    def _switch_off(self, entry: Entry, name: str, built_in: Mapping[str, Entry]) -> None:
        if self.kind not in _CAN_GO:
            message = f"a {self.kind} cannot be switched off: other entries name it."
            self._say(message, entry.place, "Write a rule with 'veto' to keep it out of advice.")
            return
        if not entry.text("reason"):
            self._say("the key 'reason' is missing.", entry.place, "Say why it is switched off.")
        assert isinstance(entry.node.value, Mapping)
        for key in entry.node.value:
            if key not in {"disable", "reason"}:
                hint = "'disable' takes a 'reason' and nothing else."
                self._say(f"unknown key '{key}'.", entry.at(key), hint)
        self.off[name] = entry
        self.gone[name] = built_in[name]
        self._forget(name)
        at = [self.files.called(entry.place), entry.text("reason")]
        self.files.off.setdefault(self.kind, {})[name] = at

    def _unknown(self, entry: Entry, key: str, name: str, built_in: Mapping[str, Entry]) -> None:
        message = f"'{key}': there is no built-in {self.kind} '{name}'."
        holding = sorted((n for n in built_in if name.casefold() in n.casefold()), key=len)
        hint = did_you_mean(name, built_in)
        if holding:
            hint = f"Did you mean '{holding[0]}'?"
        hint = hint or "'advisor knowledge find' looks names up."
        self._say(message, entry.at(key), hint)

    def _say_taken(self, entry: Entry, other: Entry) -> None:
        users = other.place.file in self.files.user
        whose = "stands in another folder of yours" if users else "is built in"
        message = f"the {self.kind} '{entry.name}' {whose} (at {self.files.called(other.place)})."
        hint = (
            f"Write 'replaces: {entry.name}' to take its place, 'based_on: {entry.name}' to "
            "change some of its fields, or give yours another name."
        )
        self._say(message, entry.place, hint)

    def _hidden_in(self, file: str) -> Iterator[Entry]:
        path = self.files.path(file)
        return (entry for entry in self.hidden if entry.place.file == path)

    def _left_out(self) -> None:
        """Complain about what a file at the path of a built-in one leaves out."""
        paths = {self.files.path(name): name for name in self.names}
        if paths.keys() >= self.files.built_in.keys() and self.kind not in _FIXED:
            return
        for file in dict.fromkeys(entry.place.file for entry in self.hidden):
            gone = self.taken.keys() | self.off.keys() | self.below.renamed.keys()
            gone |= self.below.off.keys()
            names = [e.name for e in self._hidden_in(paths[file]) if e.name not in gone]
            if names:
                more = f" and {len(names) - _SHOWN} more" if names[_SHOWN:] else ""
                message = (
                    f"this file takes the place of the built-in {BUILT_IN}/{file} and leaves out "
                    f"{', '.join(names[:_SHOWN])}{more}."
                )
                hint = f"Call it {_other_name(file)} to add to the built-in entries."
                self._say(message, Source(paths[file], 1, 1), hint)

    def _finished(self, entry: Entry, built_in: Mapping[str, Entry]) -> Entry:
        """Take what is ours out of the record, and note whose it is."""
        replaced = next((name for name, over in self.taken.items() if over is entry), "")
        base = built_in.get(self._now(entry.text("based_on"), built_in))
        known = built_in.get(replaced)
        if known is None or known.node.plain() != entry.node.plain():
            behind = self.files.called(known.place) if known else None
            self._forget(replaced)
            place = self.files.called(entry.place)
            self.files.replaced.setdefault(self.kind, {})[entry.name] = [
                place,
                replaced or None,
                behind,
                base.name if base else None,
                *_stated_keys(entry, base),
            ]
        node = _without(entry.node, ("replaces", "based_on"))
        node = self._with_fixed(node, entry, known) if known else node
        node = self._with_lists(node, entry, base)
        made = _based(node, entry, base) if base else node
        return Entry(made, self.kind, entry.name, self.problems)

    def _with_fixed(self, node: Node, entry: Entry, known: Entry) -> Node:
        """Keep what of a built-in entry nobody changes."""
        fixed = _FIXED.get(self.kind, ())
        theirs = {key: value for key, value in _mapping(known.node).items() if key in fixed}
        stated = {key: value for key, value in _mapping(node).items() if key in fixed}
        for key, value in stated.items():
            if key not in theirs or value.plain() != theirs[key].plain():
                message = f"'{key}' of the {self.kind} '{known.name}' cannot be changed."
                self._say(message, entry.at(key), "Leave it out.")
        return replace(node, value={**_mapping(node), **theirs})

    def _with_lists(self, node: Node, entry: Entry, base: Entry | None) -> Node:
        """Change the lists of the base as ``{add: [...], remove: [...]}`` says."""
        theirs = _mapping(base.node) if base else {}
        found = dict(_mapping(node))
        for key, value in found.items():
            below = theirs.get(key)
            if _is_change(value):
                found[key] = self._changed(entry, key, value, below)
            elif below is not None and (lost := _lost(value, below)):
                self._say_shorter(entry, key, lost)
        return replace(node, value=found)

    def _changed(self, entry: Entry, key: str, value: Node, below: Node | None) -> Node:
        """Add to a list and take from it; what is wrong leaves it as it is below."""
        if below is None or not isinstance(below.value, list):
            message = f"'add' and 'remove' need a list '{key}' in the entry that it is based on."
            self._say(message, entry.at(key), f"Write 'based_on', or the whole '{key}'.")
            return below or replace(value, value=[])
        change = {name: items_of(part) for name, part in _mapping(value).items()}
        known = [item.plain() for item in below.value]
        for item in change.get("remove", ()):
            if item.plain() not in known:
                message = f"'{key}' has no '{item.text.strip()}' to remove."
                hint = did_you_mean(item.text.strip(), [one.text.strip() for one in below.value])
                self._say(message, item.source, hint)
        gone = [item.plain() for item in change.get("remove", ())]
        kept = [item for item in below.value if item.plain() not in gone]
        added = [item for item in change.get("add", ()) if item.plain() not in known]
        return replace(value, value=[*kept, *added])

    def _say_shorter(self, entry: Entry, key: str, lost: Sequence[str]) -> None:
        more = f" and {len(lost) - _SHOWN} more" if lost[_SHOWN:] else ""
        message = f"'{key}' takes the place of a longer list and leaves out "
        message += f"{', '.join(lost[:_SHOWN])}{more}."
        hint = (
            f"Write '{key}: {{add: [...]}}' to keep the rest, or 'remove' for those you leave out."
        )
        at = entry.at(key)
        self.problems.append(KnowledgeError(message, source=at, hint=hint, lint=SHORTER))


def _is_change(value: Node) -> bool:
    """Whether it says what to add to a list and what to take from it."""
    return isinstance(value.value, Mapping) and set() < {*value.value} <= {"add", "remove"}


def _lost(value: Node, below: Node) -> Sequence[str]:
    """Give what a list leaves out of the longer one in whose place it stands."""
    if not isinstance(below.value, list) or not isinstance(value.value, list):
        return ()
    kept = [item.plain() for item in value.value]
    lost = [item.text.strip() for item in below.value if item.plain() not in kept]
    return lost if len(value.value) < len(below.value) else ()


def _stated_keys(entry: Entry, base: Entry | None) -> Sequence[str]:
    """The figures that an entry based on another one states itself."""
    assert isinstance(entry.node.value, Mapping)
    about = {entry.kind, "replaces", "based_on", "source", "sources"}
    return [key for key in entry.node.value if key not in about] if base else []


def _disables(entry: Entry) -> bool:
    return bool(entry.text("disable"))


def _other_name(file: str) -> str:
    folder, _, name = file.rpartition("/")
    stem = name.removesuffix(".yaml")
    return f"{folder}/mine.yaml" if folder else f"{stem}-mine.yaml"


def _without(node: Node, keys: Sequence[str]) -> Node:
    assert isinstance(node.value, Mapping)
    return replace(node, value={k: v for k, v in node.value.items() if k not in keys})


def _based(node: Node, entry: Entry, base: Entry) -> Node:
    """Fill in the fields of the base, each with the source it has there."""
    assert isinstance(node.value, Mapping)
    assert isinstance(base.node.value, Mapping)
    stated, theirs = node.value, base.node.value
    skipped = {entry.kind, "source", "sources", *stated}
    skipped |= set(_ITS_NAMES) if entry.name != base.name else set()
    kept = {key: value for key, value in theirs.items() if key not in skipped}
    sources = dict.fromkeys(kept, theirs["source"]) if "source" in theirs else {}
    sources |= {k: v for k, v in _mapping(theirs.get("sources")).items() if k not in stated}
    sources |= _mapping(stated.get("sources"))
    if "disputed" in kept:
        left = {k: v for k, v in _mapping(kept["disputed"]).items() if k not in stated}
        kept["disputed"] = replace(kept["disputed"], value=left)
    place = stated["sources"].source if "sources" in stated else node.source
    found = {**stated, **kept, "sources": Node(sources, place)}
    return replace(node, value=found)


def _mapping(node: Node | None) -> Mapping[str, Node]:
    return node.value if node is not None and isinstance(node.value, Mapping) else {}


def entries_of(
    files: Mapping[str, bytes], where: str, problems: list[UserError]
) -> Iterator[Entry]:
    """Give every entry of a table or folder, in file order, overlays laid.

    ``where`` is a key of ``FOLDERS`` or ``TABLES``.
    """
    kind = FOLDERS.get(where) or TABLES[where]
    if not isinstance(files, Files):
        wanted = {path: content for path, content in files.items() if holds(path, where)}
        yield from (e for p in wanted for e in entries_in(wanted[p], p, kind, problems))
        return
    upper = {name for names in files.layers[1:] for name in names}
    lower = [name for name in files if name not in upper]
    entries, below = [*_of(files, lower, where, kind, problems)], Below()
    for number, names in enumerate(files.layers):
        added = _of(files, names, where, kind, problems) if number else ()
        hidden = [*_behind(files, names, where, kind)]
        laying = Laying(files, names, kind, [*entries, *added], hidden, below, problems)
        entries, below = [*laying.result()], laying.under()
    yield from entries


def _of(
    files: Files, names: Iterable[str], where: str, kind: str, problems: list[UserError]
) -> Iterator[Entry]:
    for name in names:
        if holds(files.path(name), where):
            yield from entries_in(files[name], name, kind, problems, files.user)


def _behind(files: Files, names: Mapping[str, str], where: str, kind: str) -> Iterator[Entry]:
    """Give the entries of built-in files at the paths of files of the user's."""
    for path in names.values():
        if path in files.built_in and holds(path, where):
            yield from entries_in(files.built_in[path], path, kind, [], files.user)


def entries_in(
    content: bytes,
    path: str,
    kind: str,
    problems: list[UserError],
    user: Collection[str] = (),
) -> Iterator[Entry]:
    """Give the entries of one file; one of the user's may be a ``disable``, which has no name."""
    for node in nodes_of(content, path, kind, problems):
        if path in user and isinstance(node.value, Mapping) and "disable" in node.value:
            yield Entry(node, kind, "", problems)
        elif (entry := entry_of(node, kind, problems)) is not None:
            yield entry


def source_ids(files: Mapping[str, bytes]) -> frozenset[str]:
    """List the ids that are declared."""
    named = [(name, name, content) for name, content in files.items()]
    if isinstance(files, Files):
        named = [(files.path(name), name, content) for name, content in files.items()]
        named += [(path, path, content) for path, content in files.shadowed.items()]
    return frozenset(
        entry.name
        for path, name, content in named
        if is_table(path, "sources")
        for entry in entries_in(content, name, "id", [])
    )
