"""A user's knowledge over the built-in one, entry by entry: what is replaced, changed, added.

An entry of the user's may say ``replaces: NAME`` (it takes the place of the built-in entry),
``based_on: NAME`` (it has the built-in entry's fields but for those it states), or be
``- disable: NAME`` with a ``reason``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.errors import KnowledgeError, Source, UserError
from advisor.knowledge.provenance import Files, files_of_user
from advisor.knowledge.validation import Entry, entry_of, nodes_of
from advisor.suggest import did_you_mean, nearest
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


class Laying(Struct):
    """The entries of one kind, laid over each other.

    ``entries`` are all of them in file order; ``hidden`` those of built-in files behind files of
    the user's at the same path.
    """

    files: Files
    kind: str
    entries: Sequence[Entry]
    hidden: Sequence[Entry]
    problems: list[UserError]
    taken: dict[str, Entry] = field(default_factory=dict)
    """Name of a built-in entry -> the user's in its place."""
    off: dict[str, Entry] = field(default_factory=dict)
    broken: set[int] = field(default_factory=set)
    """Entries that cannot be read, since what they are based on is unknown."""

    def result(self) -> Iterator[Entry]:
        """Give the entries that count, each user's one where the one it replaces stood."""
        built_in = {entry.name: entry for entry in self.hidden}
        built_in |= {entry.name: entry for entry in self.entries if not self._is_users(entry)}
        behind = {id(entry) for entry in self.hidden}
        for entry in self.entries:
            if self._is_users(entry):
                self._take(entry, built_in)
        self._left_out()
        moved = {id(e) for name, e in self.taken.items() if id(built_in[name]) not in behind}
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
        return entry.place.file in self.files.user

    def _say(self, message: str, at: Source, hint: str = "") -> None:
        self.problems.append(KnowledgeError(message, source=at, hint=hint))

    def _take(self, entry: Entry, built_in: Mapping[str, Entry]) -> None:
        key = "disable" if _disables(entry) else "replaces" if entry.text("replaces") else ""
        based = entry.text("based_on")
        if based and based not in built_in:
            self._unknown(entry, "based_on", based, built_in)
            self.broken.add(id(entry))
        if key:
            name = entry.text(key)
            if name not in built_in:
                self._unknown(entry, key, name, built_in)
            elif name in self.taken or name in self.off:
                other = self.taken.get(name) or self.off[name]
                message = f"the built-in {self.kind} '{name}' is taken twice (first at "
                self._say(f"{message}{other.place}).", entry.at(key), "Keep one of the two.")
            elif key == "disable":
                self._switch_off(entry, name)
            elif self.kind in _FIXED and name != entry.name:
                message = f"a {self.kind} keeps its name: the program reads '{name}'."
                self._say(message, entry.place, f"Write '{self.kind}: {name}'.")
                self.broken.add(id(entry))
            else:
                self.taken[name] = entry
        elif entry.name in built_in:
            same_path = any(h.name == entry.name for h in self._hidden_in(entry.place.file))
            if not same_path and based != entry.name:
                self._say_taken(entry, built_in[entry.name])
            self.taken.setdefault(entry.name, entry)
        elif self.kind in _FIXED:
            self._unknown(entry, self.kind, entry.name, built_in)
            self.broken.add(id(entry))

    def _switch_off(self, entry: Entry, name: str) -> None:
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
        place = f"{entry.place.file}:{entry.place.line}"
        self.files.off.setdefault(self.kind, {})[name] = [place, entry.text("reason")]

    def _unknown(self, entry: Entry, key: str, name: str, built_in: Mapping[str, Entry]) -> None:
        message = f"'{key}': there is no built-in {self.kind} '{name}'."
        holding = sorted((n for n in built_in if name.casefold() in n.casefold()), key=len)
        hint = did_you_mean(name, built_in)
        if holding:
            hint = f"Did you mean '{holding[0]}'?"
        hint = hint or "'advisor knowledge find' looks names up."
        self._say(message, entry.at(key), hint)

    def _say_taken(self, entry: Entry, other: Entry) -> None:
        message = f"the {self.kind} '{entry.name}' is built in (at {_shown(other)})."
        hint = (
            f"Write 'replaces: {entry.name}' to take its place, 'based_on: {entry.name}' to "
            "change some of its fields, or give yours another name."
        )
        self._say(message, entry.place, hint)

    def _hidden_in(self, file: str) -> Iterator[Entry]:
        return (entry for entry in self.hidden if entry.place.file == file)

    def _left_out(self) -> None:
        """Complain about what a file at the path of a built-in one leaves out."""
        if self.files.whole and self.kind not in _FIXED:
            return
        for file in dict.fromkeys(entry.place.file for entry in self.hidden):
            gone = self.taken.keys() | self.off.keys()
            names = [e.name for e in self._hidden_in(file) if e.name not in gone]
            if names:
                more = f" and {len(names) - _SHOWN} more" if names[_SHOWN:] else ""
                message = (
                    f"this file takes the place of the built-in {BUILT_IN}/{file} and leaves out "
                    f"{', '.join(names[:_SHOWN])}{more}."
                )
                hint = f"Call it {_other_name(file)} to add to the built-in entries."
                self._say(message, Source(file, 1, 1), hint)

    def _finished(self, entry: Entry, built_in: Mapping[str, Entry]) -> Entry:
        """Take what is ours out of the record, and note whose it is."""
        replaced = next((name for name, over in self.taken.items() if over is entry), "")
        base = built_in.get(entry.text("based_on"))
        known = built_in.get(replaced)
        if known is None or known.node.plain() != entry.node.plain():
            behind = _shown(known) if known else None
            place = f"{entry.place.file}:{entry.place.line}"
            self.files.replaced.setdefault(self.kind, {})[entry.name] = [
                place,
                replaced or None,
                behind,
                base.name if base else None,
                *_stated_keys(entry, base),
            ]
        node = _without(entry.node, ("replaces", "based_on"))
        node = self._with_fixed(node, entry, known) if known else node
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


def _stated_keys(entry: Entry, base: Entry | None) -> Sequence[str]:
    """The figures that an entry based on another one states itself."""
    assert isinstance(entry.node.value, Mapping)
    about = {entry.kind, "replaces", "based_on", "source", "sources"}
    return [key for key in entry.node.value if key not in about] if base else []


def _disables(entry: Entry) -> bool:
    return bool(entry.text("disable"))


def _shown(entry: Entry) -> str:
    return f"{BUILT_IN}/{entry.place.file}:{entry.place.line}"


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


FOLDERS = {"gpus": "gpu", "models": "model"}
"""Folder -> kind of its records."""
TABLES = {
    "ggml_types": "ggml_type",
    "formats": "format",
    "kv_types": "kv_type",
    "frameworks": "framework",
    "commands": "command",
    "policy": "policy",
    "sources": "id",
    "compute_capabilities": "compute_capability",
    "card_words": "card_words",
    "computers": "machine",
}
"""Name of the file, which may go on after a hyphen -> kind of its records."""
SINGLE = (
    "facts.yaml",
    "presets.yaml",
    "logs.yaml",
    "calibration.yaml",
    "calibration-fitted.yaml",
    "measured.csv",
    "second_cards.yaml",
    "usual_cards.yaml",
    "measurements.csv",
)
"""Files that have one name only."""
_GONE_WHY = "this file is not read any more: own figures have one home, measurements.csv"
_GONE = {
    "measurements-user.csv": (
        "Move it out of the folder and run 'advisor measure add measurements-user.csv', with"
        " --knowledge if the figures are to stay in this folder."
    ),
    "calibration-user.yaml": (
        "Delete it. A card's factor now comes from what was measured on it: advisor measure add."
    ),
}
UNREAD = ("measurements/", "flags/")
"""Raw measurements, which ``advisor calibrate`` reads, and flags, for ``advisor check-command``."""
_DATA = (".yaml", ".yml", ".csv", ".json", ".jsonl", ".toml")
"""Endings of what is meant as data; a README beside it is not."""


def is_table(path: str, table: str) -> bool:
    """Whether a file holds entries of a table: ``formats.yaml``, ``formats-mine.yaml``."""
    if "/" in path or not path.endswith(".yaml"):
        return False
    stem = path.removesuffix(".yaml")
    return stem == table or stem.startswith(f"{table}-")


def entries_of(
    files: Mapping[str, bytes], where: str, problems: list[UserError]
) -> Iterator[Entry]:
    """Give every entry of a table or folder, in file order, overlays laid.

    Args:
        files: All knowledge files by relative path.
        where: A key of ``FOLDERS`` or ``TABLES``.
        problems: Takes what is wrong.
    """
    kind = FOLDERS.get(where) or TABLES[where]
    user = files_of_user(files)
    wanted = {path: content for path, content in files.items() if _holds(path, where)}
    entries = [e for path in wanted for e in entries_in(wanted[path], path, kind, problems, user)]
    if isinstance(files, Files) and user:
        behind = [
            entry
            for path, content in files.shadowed.items()
            if path in wanted
            for entry in entries_in(content, path, kind, [], user)
        ]
        entries = list(Laying(files, kind, entries, behind, problems).result())
    yield from entries


def _holds(path: str, where: str) -> bool:
    if where in FOLDERS:
        return path.startswith(f"{where}/") and path.endswith(".yaml")
    return is_table(path, where)


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
    shadowed = files.shadowed if isinstance(files, Files) else {}
    return frozenset(
        entry.name
        for path, content in (*files.items(), *shadowed.items())
        if is_table(path, "sources")
        for entry in entries_in(content, path, "id", [])
    )


def unread(paths: Sequence[str]) -> list[tuple[str, str]]:
    """List files that look like data and that nothing reads, each with what to do."""
    return [
        (path, _instead(path))
        for path in paths
        if path.endswith(_DATA) and not path.startswith(UNREAD) and not _is_read(path)
    ]


def _is_read(path: str) -> bool:
    named = path in SINGLE or path in _GONE
    return named or any(_holds(path, where) for where in (*FOLDERS, *TABLES))


def _instead(path: str) -> str:
    """Give the nearest path that is read."""
    named = PurePosixPath(path)
    stem, top = named.stem, named.parts[0]
    if named.suffix != ".yaml" and _is_read(str(named.with_suffix(".yaml"))):
        return f"Rename it to {named.with_suffix('.yaml')}."
    if len(named.parts) > 1:
        near = nearest(top, FOLDERS, most=1)
        return f"Did you mean {near[0]}/{'/'.join(named.parts[1:])}?" if near else _rule()
    table = nearest(stem.partition("-")[0], [*FOLDERS, *TABLES], most=1)
    if table:
        return f"Did you mean {table[0]}{'/' if table[0] in FOLDERS else '-'}mine.yaml?"
    near = nearest(path, SINGLE, most=1)
    return f"Did you mean {near[0]}?" if near else _rule()


def _rule() -> str:
    tables = ", ".join(f"{name}-NAME.yaml" for name in TABLES)
    return f"Cards go into gpus/NAME.yaml, models into models/NAME.yaml, the rest into {tables}."


def gone_problems(files: Mapping[str, bytes]) -> list[UserError]:
    """Say of files that older versions read what to do with them."""
    return [
        KnowledgeError(_GONE_WHY, source=Source(name), hint=do)
        for name, do in _GONE.items()
        if name in files
    ]


def unread_problems(files: Mapping[str, bytes]) -> list[UserError]:
    """Say of every file that nothing reads where it would be read."""
    found = files.unread if isinstance(files, Files) else ()
    return [
        KnowledgeError("nothing is read from a file of this name.", source=Source(path), hint=hint)
        for path, hint in found
    ]
