"""What tables of knowledge say of each other: names that must exist, and records that meet."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import KnowledgeError, UserError, did_you_mean
from advisor.knowledge.field_kinds import Flaw, FlawedError, items_of, unknown_keys
from advisor.knowledge.file_records import PLACEHOLDER, Piece, Policy, ProgramRecord
from advisor.knowledge.index import card_keys, model_keys, named, plain_key
from advisor.knowledge.programs import LISTED, Capability, CommandPart, CommandPiece, Program
from advisor.knowledge.types import FAMILIES, Format, FormatLimit, Framework, Gpu, ModelRecord
from advisor.knowledge.validation import Entry, record_of
from advisor.units import shell_word
from advisor.yamlfile import Node

CLASS_NAMES = frozenset({"int8", "8bit", "q8", "w8", "int4", "4bit", "q4", "w4"})
"""Names that stand for every format of a class, so that no format may claim them."""
_ENGINE = (
    "not_on", "card_free", "places_layers", "pipeline", "whole_inputs", "one_latent_type",
    "tensor_heads", "sized_states", "draft_padding",
)  # fmt: skip
"""What belongs to the engine inside a framework."""
_AS_THEY_ARE = ("by_format", "on_load", "kv_types", "kv_equal", *LISTED, "cannot", "sources")
_R = TypeVar("_R", bound=Struct)


class Read(Struct, Generic[_R]):
    """A record and the entry it was read from."""

    record: _R
    entry: Entry


def report_shared_names(cards: Iterable[Read[Gpu]], models: Iterable[Read[ModelRecord]]) -> None:
    """Collect names and aliases that two cards, or two models, have in common."""
    for table, keys in ((cards, card_keys), (models, model_keys)):
        owner: dict[str, Entry] = {}
        for read in table:
            entry = read.entry
            for key, spelling in keys(named(read.record)).items():
                other = owner.setdefault(key, entry)
                if other is not entry:
                    message = f"the name '{spelling}' already means '{other.name}' ({other.place})"
                    entry.problem(message, hint="A name or alias belongs to one record.")


def names_of(table: Iterable[Read[_R]]) -> list[str]:
    """Name the entries of a table."""
    return [read.entry.name for read in table]


# ---- policies


def link_policies(policies: Sequence[Read[Policy]], user: Collection[str] = ()) -> dict[str, float]:
    """Read the values of policies within their bounds, in base units; ``user``: whose files."""
    found: dict[str, float] = {}
    for read in policies:
        policy, entry = read.record, read.entry
        if policy.value is None or policy.between is None:  # told already
            continue
        try:
            found[entry.name] = policy.between.read(policy.value, sold=policy.as_sold)
        except FlawedError as flawed:
            entry.flaws(flawed.flaws, "value")
    entries = {read.entry.name: read.entry for read in policies}
    for read in policies:
        name, most = read.entry.name, read.record.at_most or ""
        if name in found and most in found and found[name] > found[most]:
            at = read.entry if entries[most].place.file not in user else entries[most]
            message = f"'value' is {'above' if at is read.entry else 'below'} that of "
            other = most if at is read.entry else name
            hint = f"{name} may not exceed {most}: change both."
            at.problem(f"{message}{other}.", at=at.at("value"), hint=hint)
    return found


# ---- frameworks


def link_frameworks(
    frameworks: Sequence[Read[Framework]], formats: Collection[str], kinds: Collection[str]
) -> None:
    """Check what frameworks name, read their limits, and fill in ``model_types_of``."""
    earlier: dict[str, tuple[str, ...]] = {}
    for read in frameworks:
        entry = read.entry
        if not {"model_types", "model_types_of"} & entry.values.keys():
            hint = "List them, write [\"*\"] for any, or name a framework in 'model_types_of'."
            entry.problem("'model_types' is missing", hint=hint)
        if (read.record.memory_fraction or 0) > 1:
            message = "'memory_fraction' is above 100 %"
            entry.problem(message, at=entry.at("memory_fraction"))
        _check_known(entry, "formats", "weight format", formats)
        _check_known(entry, "usual_formats", "weight format", formats)
        _check_known(entry, "kv_types", "KV-cache type", kinds)
        _check_known(entry, "model_types_of", "framework before it", earlier)
        stated = tuple(sorted(read.record.model_types))
        types = earlier.get(read.record.model_types_of or "", stated)
        limits = _limits(entry, earlier)
        read.record = replace(read.record, model_types=types, format_limits=limits)
        earlier[entry.name] = types
    _share_engines(frameworks)
    _check_variants(frameworks)


def _check_variants(frameworks: Sequence[Read[Framework]]) -> None:
    """Hold variants to what they may be: an alias, or a framework whose memory is not modelled."""
    sized = {
        plain_key(name): read
        for read in frameworks
        if read.record.sized
        for name in (read.record.name, *read.record.aliases)
    }
    for read in frameworks:
        for name in read.record.variants:
            other = sized.get(plain_key(name), read)
            if other is not read:
                message = f"'variants' has '{name}', which is '{other.entry.name}' and sized itself"
                read.entry.problem(message, at=read.entry.at("variants"), hint="Take it out here.")


def _share_engines(frameworks: Sequence[Read[Framework]]) -> None:
    """Give what is not said of an engine from the first framework of its memory model."""
    said = [
        {name: getattr(read.record, name) for name in _ENGINE if name in read.entry.values}
        for read in frameworks
    ]
    engines: dict[str, dict[str, object]] = {}
    for read, stated in zip(frameworks, said, strict=True):
        engine = engines.setdefault(read.record.memory_model, {})
        engine.update({name: value for name, value in stated.items() if name not in engine})
    for read, stated in zip(frameworks, said, strict=True):
        read.record = replace(read.record, **engines[read.record.memory_model] | stated)


def _limits(entry: Entry, earlier: Mapping[str, tuple[str, ...]]) -> dict[str, FormatLimit]:
    """Read where a framework runs the formats of one family."""
    key = "format_limits"
    found: dict[str, FormatLimit] = {}
    stated = entry.values.get(key)
    if stated is None or not isinstance(stated.value, Mapping):
        return found
    entry.flaws(unknown_keys(stated, "family of weight formats", FAMILIES))
    for family, node in stated.value.items():
        if not isinstance(node.value, Mapping):
            message = f"'{key}': '{family}' must be a mapping of keys to values"
            entry.problem(message, at=node.source)
            continue
        inner = Entry(node, "format limit", f"{entry.name}, {family}", entry.problems)
        limit = record_of(FormatLimit, inner)
        other = limit.model_types_of
        if other and other not in earlier:
            message = f"'{key}': there is no framework before it '{other}'."
            entry.problem(message, at=entry.at(key), hint=did_you_mean(other, earlier))
        found[family] = replace(limit, model_types=earlier.get(other or "", limit.model_types))
    return found


def _check_known(entry: Entry, key: str, what: str, names: Collection[str]) -> None:
    node = entry.values.get(key)
    for item in items_of(node) if node is not None and node.value is not None else ():
        if item.text not in names:
            hint = did_you_mean(item.text, names) or f"Known: {', '.join(names)}."
            entry.problem(f"there is no {what} '{item.text}'.", at=item.source, hint=hint)


# ---- capabilities


def link_capabilities(
    rows: Sequence[Read[Capability]], frameworks: Sequence[Read[Framework]]
) -> None:
    """Give every framework its rows; one without any takes those of its engine."""
    names = [read.entry.name for read in frameworks]
    for read in rows:
        if read.record.framework not in names:
            message = f"there is no framework '{read.record.framework}'."
            hint = did_you_mean(read.record.framework or "", names)
            read.entry.problem(message, at=read.entry.at("framework"), hint=hint)
    engines: dict[str, tuple[Capability, ...]] = {}
    for runtime in frameworks:
        own = tuple(read.record for read in rows if read.record.framework == runtime.entry.name)
        engine = engines.setdefault(runtime.record.memory_model, own)
        runtime.record = replace(runtime.record, capabilities=own or engine)


# ---- programs


def link_programs(
    programs: Sequence[Read[ProgramRecord]],
    frameworks: Sequence[Read[Framework]],
    formats: Collection[str],
    kinds: Collection[str],
) -> None:
    """Check the programs, and give every framework its own, in file order."""
    words, whole = [*FAMILIES, *formats], list[ProgramRecord]()
    for read in programs:
        program, entry = read.record, read.entry
        _check_known(entry, "framework", "framework", names_of(frameworks))
        entry.flaws(_key_flaws(entry.values.get("kv_types"), "KV-cache type", kinds))
        for key in ("by_format", "on_load"):
            inside = entry.values.get(key)
            tables = inside.value.values() if inside and isinstance(inside.value, Mapping) else ()
            for node in tables:
                entry.flaws(_key_flaws(node, "weight format or family", words))
        lines = [*program.python, *(piece for line in program.lines or () for piece in line)]
        for name in LISTED:
            if any(piece.when == name for piece in lines) != bool(getattr(program, name)):
                message = f"a piece under '{name}' and the list '{name}' belong together"
                entry.problem(message, hint="List each model_type for which the piece is meant.")
        for piece in lines:
            entry.flaws(piece.flaws(program.placeholders))
        open_quotes = [] if program.python else [*_shell_flaws(lines)]
        entry.flaws(open_quotes)
        if not open_quotes:
            whole.append(program)
    for runtime in frameworks:
        records = (program for program in whole if program.framework == runtime.entry.name)
        runtime.record = replace(runtime.record, commands=tuple(map(_taken_apart, records)))


def _key_flaws(node: Node | None, what: str, names: Collection[str]) -> Sequence[Flaw]:
    return unknown_keys(node, what, names) if node and isinstance(node.value, Mapping) else ()


def _shell_flaws(pieces: Iterable[Piece]) -> Iterator[Flaw]:
    for piece in pieces:
        try:
            shlex.split(piece.text)
        except ValueError as error:
            yield Flaw(f"a quote is left open: {error}", piece.node.source)


def _taken_apart(record: ProgramRecord) -> Program:
    python = bool(record.python)
    return Program(
        name=record.name,
        what=record.what,
        version=record.version,
        lines=tuple(
            tuple(_piece(piece, python=python) for piece in line) for line in record.lines or ()
        ),
        interpreter=tuple(_piece(piece, python=False) for piece in record.python),
        **{name: getattr(record, name) for name in _AS_THEY_ARE},
    )


def _piece(piece: Piece, *, python: bool) -> CommandPiece:
    text = piece.text
    words = [tuple(_parts(word)) for word in ([text] if python else shlex.split(text))]
    ready = (
        word if any(part.name for part in word) else _fixed(word[0].before, python=python)
        for word in words
    )
    return CommandPiece(piece.when, tuple(ready), tuple(piece.carries))


def _fixed(word: str, *, python: bool) -> str:
    return word if python else shell_word(word)


def _parts(word: str) -> Iterator[CommandPart]:
    place = 0
    for found in PLACEHOLDER.finditer(word):
        yield CommandPart(word[place : found.start()], found[1], found[2] or "")
        place = found.end()
    if place < len(word) or not word:
        yield CommandPart(word[place:])


# ---- names


def check_names(
    formats: Sequence[Read[Format]],
    frameworks: Sequence[Read[Framework]],
    problems: list[UserError],
) -> None:
    """Collect class names used as names, and names that two records share.

    Two formats may share a name when no framework runs both: the framework then decides.
    """
    runners: dict[str, set[str]] = {}
    for read in frameworks:
        for name in read.record.formats:
            runners.setdefault(name, set()).add(read.entry.name)
    for weights in formats:
        for spelling in _spellings(weights):
            if plain_key(spelling) in CLASS_NAMES:
                _say_class(weights.entry, spelling, problems)
    _check_shared(formats, runners, problems)
    _check_shared(frameworks, {}, problems)


def _check_shared(
    table: Sequence[Read[Format]] | Sequence[Read[Framework]],
    runners: Mapping[str, Collection[str]],
    problems: list[UserError],
) -> None:
    owners: dict[str, list[Entry]] = {}
    for read in table:
        for spelling in _spellings(read):
            others = owners.setdefault(plain_key(spelling), [])
            for other in others:
                if other is not read.entry and not _apart(read.entry, other, runners):
                    _say_shared(read.entry, other, spelling, problems)
            others.append(read.entry)


def _spellings(read: Read[Format] | Read[Framework]) -> Iterator[str]:
    yield read.entry.name
    yield from read.record.aliases


def _apart(one: Entry, other: Entry, runners: Mapping[str, Collection[str]]) -> bool:
    if not runners.get(one.name) or not runners.get(other.name):
        return False
    return not set(runners[one.name]) & set(runners[other.name])


def _say_class(entry: Entry, spelling: str, problems: list[UserError]) -> None:
    message = f"format '{entry.name}': '{spelling}' stands for a whole class of formats"
    hint = "Leave it out; class_bits already says which class this format is in."
    problems.append(KnowledgeError(message, source=entry.at("aliases"), hint=hint))


def _say_shared(entry: Entry, other: Entry, spelling: str, problems: list[UserError]) -> None:
    message = f"{entry.kind} '{entry.name}': the name '{spelling}' already means '{other.name}'"
    hint = f"It stands at {other.place}; a name belongs to one {entry.kind}."
    problems.append(KnowledgeError(message, source=entry.at("aliases"), hint=hint))
