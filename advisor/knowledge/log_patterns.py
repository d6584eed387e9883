"""The lines of logs that say something, ``logs.yaml``: how they are written and what they mean.

A form is text with fields in braces, never a regular expression, so every form takes time in
proportion to the line: texts and gaps end at the first place where what follows them stands, and
nothing that matched is given up again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from advisor.errors import KnowledgeError, UserError, did_you_mean, raise_problems
from advisor.files import compiled, data_dir, hashed, read_whole
from advisor.knowledge.layers import Stack, layers, stack
from advisor.knowledge.yaml_fields import Collector, Fields
from advisor.units import base_factor

FILE = "logs.yaml"
Kind = Literal["memory", "count", "share", "parameters", "text"]
Of = Literal["device", "card", "whole"]
"""What a figure is of: one device, each card alike, or all devices together."""

FIELDS: Mapping[str, Kind] = {
    "device": "text", "card": "text", "model": "text", "name": "text", "told_model": "text",
    "precision": "text",
    "dtype": "text", "cache_type": "text", "cache_type_k": "text", "cache_type_v": "text",
    "flash_attention": "text", "backend": "text", "version": "text", "weights_of": "text",
    "capacity": "memory", "free": "memory", "claimed": "memory", "used": "memory",
    "others": "memory", "other": "memory", "required": "memory", "asked": "memory",
    "model_size": "memory", "weights": "memory", "cache": "memory", "cache_state": "memory",
    "cache_whole": "memory", "cache_needed": "memory", "cache_room": "memory",
    "buffers": "memory", "host_required": "memory", "host_free": "memory",
    "context": "count", "context_total": "count", "max_context": "count", "cache_tokens": "count",
    "sequences": "count", "ubatch": "count", "prefill_tokens": "count", "layers": "count",
    "layers_on_card": "count", "tensor_ranks": "count", "pipeline_ranks": "count",
    "fraction": "share", "card_percent": "share", "host_percent": "share",
    "parameters": "parameters",
}  # fmt: skip
"""Field -> what it is; memory is kept in bytes, shares as they are printed."""
CAUSES = (
    "weights", "cache", "buffers", "buffer-limit", "working-set", "cache-too-small",
    "no-cache-room", "card-in-use", "warm-up", "system-memory", "no-bfloat16", "out-of-memory",
)  # fmt: skip
"""What may have gone wrong, as ``log.cause.NAME`` of words.txt says it; the last of them is what
is said where nothing more telling is."""
NOTHING = "nothing"
_UNITS: Mapping[Kind, tuple[str, ...]] = {
    "memory": ("GiB", "MiB", "GB", "MB", "bytes", "size", "sizes"),
    "count": ("", "blocks"),
    "share": ("",),
    "parameters": ("B", "M"),
    "text": ("",),
}
BLOCK_TOKENS = 16
"""Tokens of a block of vLLM's cache where nothing else is asked for."""
_KEYS = (
    "line", "says", "where", "runtime", "weak", "of", "adds", "begins", "recovers", "firm", "sets",
    "cause", "source",
)  # fmt: skip
_LONGEST, _MOST_FIELDS = 400, 14
_PLACE = re.compile(r"\{(\.\.\.|[a-z_]+)(?: ([A-Za-z]+))?\}")
_SPACES = re.compile(r"( +)")
_NUMBER = r"[ \t]*+([-+]?\d{1,15}+(?:,\d{3}(?!\d)){0,4}+(?:\.\d{1,15}+)?+)"
"""No longer than any figure that means something, so that all of them are finite."""
_READ = {"size": _NUMBER + r"[ \t]*+((?:[KMGT]i?)?B|bytes)\b"}
_TEXT, _LAST_TEXT, _GAP = r"(?>(\S.{{0,299}}?){})", r"(\S.{0,299})", r"(?>.{{0,400}}?{})"


class Form(Struct, frozen=True, array_like=True):
    """One way in which a line is written."""

    needle: str
    """The longest word of it, which is in every such line."""
    head: str
    """The word with which it begins; empty where it begins with a field, at the line's begin."""
    begin: str
    """All fixed text before the first field."""
    pattern: str
    """A regular expression, to be matched where ``head`` begins. Groups are in the order of
    ``fields``, two for a size with its own unit."""
    fields: tuple[tuple[str, str], ...]
    """Field and unit of each."""


class LogLine(Struct, frozen=True):
    """A line that says something."""

    name: str
    forms: tuple[Form, ...]
    where: str
    runtime: str
    weak: bool
    of: Of
    adds: bool
    begins: bool
    recovers: bool
    firm: bool
    sets: Mapping[str, str]
    cause: str
    source: str


class LogPatterns(Struct, frozen=True):
    """All of ``logs.yaml``."""

    lines: tuple[LogLine, ...]
    words: Mapping[str, Mapping[str, str]]
    """Field -> how a log writes it -> what it means."""


def load_log_patterns(folders: Stack = None) -> LogPatterns:
    """Read ``logs.yaml`` of knowledge folders over the built-in one, entry by entry.

    Raises:
        KnowledgeError: The file is wrong; several problems come as ``Problems``.
    """
    files = [(f"knowledge/{FILE}", read_whole(data_dir("knowledge") / FILE))]
    paths = stack(folders)
    files += [
        (f"{layer.label}/{FILE}", read_whole(layer.folder / FILE))
        for layer in layers(paths, paths[0].name if paths else "")
        if (layer.folder / FILE).is_file()
    ]
    sha256 = hashed(b"\0".join(content for _, content in files))
    return compiled("logs", sha256, lambda: _read(files), LogPatterns)


def log_pattern_problems(files: Mapping[str, bytes]) -> Sequence[UserError]:
    """Find what is wrong with the ``logs.yaml`` of a knowledge folder; see ``check_knowledge``."""
    problems = Collector(KnowledgeError)
    if FILE in files:
        _entries(files[FILE], FILE, problems)
    return problems.errors


def _read(layers: Iterable[tuple[str, bytes]]) -> LogPatterns:
    problems = Collector(KnowledgeError)
    lines: dict[str, LogLine] = {}
    words: dict[str, dict[str, str]] = {}
    for shown, content in layers:
        found, meanings = _entries(content, shown, problems)
        lines.update({line.name: line for line in found})
        for field, means in meanings:
            words.setdefault(field, {}).update(means)
    raise_problems(problems.errors)
    return LogPatterns(tuple(lines.values()), words)


def _entries(
    content: bytes, shown: str, problems: Collector
) -> tuple[list[LogLine], list[tuple[str, Mapping[str, str]]]]:
    lines: list[LogLine] = []
    words: list[tuple[str, Mapping[str, str]]] = []
    for node in problems.entries(content, shown, "- line: NAME"):
        entry = Fields.of(node, "a line of a log", problems)
        if entry is None:
            continue
        if "words" in entry:
            words.append(_words(entry))
            continue
        made = _line(entry)
        if any(made.name == one.name for one in lines):
            problems.add(f"the line '{made.name}' stands twice.", entry.at("line"))
        lines.append(made)
    return lines, words


def _words(entry: Fields) -> tuple[str, Mapping[str, str]]:
    entry.only(("words", "means", "source"))
    entry.require("source")
    node = entry.require("means")
    means = Fields.of(node, "'means'", entry.problems) if node else None
    texts = [name for name, kind in FIELDS.items() if kind == "text"]
    field = entry.choice("words", texts) or ""
    found = {word: name for name in (means.values if means else ()) for word in means.words(name)}  # type: ignore[union-attr]  # empty without
    return field, {word: "" if name == NOTHING else name for word, name in found.items()}


def _line(entry: Fields) -> LogLine:
    entry.only(_KEYS)
    for key in ("line", "says", "source"):
        entry.require(key)
    forms = (_form(text, entry) for text in _says(entry))
    of = entry.choice("of", ("device", "card", "whole")) or "device"
    return LogLine(
        entry.text("line") or "",
        tuple(form for form in forms if form),
        entry.text("where") or "",
        entry.text("runtime") or "",
        entry.flag("weak"),
        of,  # type: ignore[arg-type]  # one of them
        entry.flag("adds"),
        entry.flag("begins"),
        entry.flag("recovers"),
        entry.flag("firm"),
        _sets(entry),
        entry.choice("cause", CAUSES) or "",
        entry.text("source") or "",
    )


def _says(entry: Fields) -> Sequence[str]:
    """Give the forms as written: spaces at their ends say something."""
    node = entry.node("says")
    if node is None or not entry.words("says"):
        return ()
    items = node.value if isinstance(node.value, list) else [node]
    return [item.text for item in items if isinstance(item.text, str) and item.text.strip()]


def _sets(entry: Fields) -> Mapping[str, str]:
    node = entry.node("sets")
    fields = Fields.of(node, "'sets'", entry.problems) if node else None
    if fields is None:
        return {}
    fields.only([name for name, kind in FIELDS.items() if kind == "text"])
    return {name: fields.text(name) or "" for name in fields.values if name in FIELDS}


def _form(text: str, entry: Fields) -> Form | None:
    """Take a form apart; None where it is wrong, which is then told."""
    at, problems = entry.at("says"), entry.problems
    pieces = _PLACE.split(text)
    literals, places = pieces[::3], list(zip(pieces[1::3], pieces[2::3], strict=True))
    wrong = list(_wrong(text, literals, places))
    for message, hint in wrong:
        problems.add(f"'{text[:60]}': {message}", at, hint)
    if wrong:
        return None
    fields = tuple((name, unit or "") for name, unit in places if name != "...")
    words = [word for literal in literals for word in literal.split()]
    head = literals[0].split()[0] if literals[0].strip() else ""
    parts = _parts([literals[0].lstrip(), *literals[1:]], places)
    begin = " ".join(literals[0].split())
    return Form(max(words, key=len), head, begin, "".join(parts), fields)


def _wrong(
    text: str, literals: Sequence[str], places: Sequence[tuple[str, str | None]]
) -> Iterator[tuple[str, str]]:
    """Say what is wrong with a form, and what to do."""
    if len(text) > _LONGEST or len(places) > _MOST_FIELDS:
        yield (
            f"it has more than {_LONGEST} characters or {_MOST_FIELDS} fields.",
            "Make it shorter.",
        )
    if any("{" in literal or "}" in literal for literal in literals):
        yield "a brace is no field.", "Write {field}, {field unit} or {...}."
    if not any(literal.strip() for literal in literals):
        yield "it has no text of its own.", "Write what stands in the line."
    if any(not between for between in literals[1:-1]):
        yield "two fields stand side by side.", "Write the text between them."
    if places and places[-1][0] == "..." and not literals[-1]:
        yield "it ends with a gap.", "Leave the last {...} out."
    for name, unit in places:
        if name != "...":
            yield from _wrong_field(name, unit or "")


def _wrong_field(name: str, unit: str) -> Iterator[tuple[str, str]]:
    kind = FIELDS.get(name)
    if kind is None:
        yield (
            f"unknown field '{name}'.",
            did_you_mean(name, FIELDS) or f"Known: {', '.join(FIELDS)}.",
        )
    elif unit not in _UNITS[kind]:
        known = ", ".join(filter(None, _UNITS[kind])) or "none"
        yield f"'{name}' has no unit '{unit}'.", f"It takes {known}."


def _parts(literals: Sequence[str], places: Sequence[tuple[str, str | None]]) -> Iterator[str]:
    """Write a form as a regular expression that never tries twice."""
    yield _literal(literals[0])
    for (name, unit), after in zip(places, literals[1:], strict=True):
        following = _literal(after)
        if name == "...":
            yield _GAP.format(following)
        elif FIELDS[name] == "text" or unit == "sizes":
            yield _TEXT.format(following) if following else _LAST_TEXT
        else:
            yield _READ.get(unit or "", _NUMBER) + following


def _literal(text: str) -> str:
    """Fixed text; a space stands for any number of them, two for at least two."""
    words = _SPACES.split(text)
    return "".join(
        (r"[ \t]{2,}+" if len(word) > 1 else r"[ \t]++")
        if word.startswith(" ")
        else re.escape(word)
        for word in words
        if word
    )


def factor(field: str, unit: str) -> float:
    """Give how many bytes, tokens or parameters one unit of a field is; 1 for plain numbers."""
    if unit == "blocks":
        return BLOCK_TOKENS
    if FIELDS[field] == "parameters":
        return 1e9 if unit == "B" else 1e6
    return base_factor(unit) if unit else 1.0
