"""A pasted command: its program, its flags by what they mean, and the flags that mean nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from advisor.errors import nearest
from advisor.knowledge.programs import (
    BY_MODELFILE,
    FORK_FLAGS,
    FORKED,
    IN_A_CALL,
    NAMED,
    NOT_SIZED,
    TAKES_NONE,
    ProgramFlag,
    earlier_flags_of,
    flags_of,
    found_by_name,
    not_started,
    spelled,
    starts,
    unsaid,
)
from advisor.reading.shell import (
    Invocation,
    as_lines,
    image_at,
    invocations,
    mounts,
    program_name,
    said_before,
    visible_cards,
)

_ABBREVIATES = ("vllm serve", "sglang serve", "TabbyAPI", "mlx_lm.")
"""Programs whose parser takes the beginning of a flag where only one begins so."""
_OF_PROGRAMS = ("OLLAMA_", "LLAMA_ARG_")
"""What variables begin with that a program must know; others may be anybody's."""
_LEAST_ABBREVIATED = 4
_TYPED = re.compile(r"(?m)^(?:>>>\s*)?/set parameter (.+)$")
_BOOLEANS = frozenset({"0", "1", "true", "false"})
_LOADS_A_KEY = ("lms load",)
"""Programs whose first line names the file that the last one loads by its key."""
_IN_FILES = {"dtype": ("kv", {"auto": ""}), "enable_attention_dp": ("all_attend_apart", {})}
"""Keys of a file that are no flags -> what they mean, and words that say nothing."""
_MODELFILE = {"FROM": "model", "DRAFT": "draft"}
_SUBCOMMANDS = {"run": 1, "create": 0, "serve": 0, "start": 0, "pull": 1, "show": 1}
"""What of Ollama is started -> how many words after it name the model."""


class Item(Struct, frozen=True):
    """A flag as it was typed, or a word by itself; ``flag`` None: the program has no such flag."""

    words: tuple[str, ...]
    flag: ProgramFlag | None
    value: str = ""

    @property
    def sets(self) -> str:
        """What it means; empty: neither memory nor speed."""
        return self.flag.sets if self.flag else ""

    @property
    def bare(self) -> bool:
        """Whether it stands without the word that it takes, as the switch of older versions."""
        alone = len(self.words) == 1 and self.words[0][:1] == "-" and "=" not in self.words[0]
        return alone and self.sets == "flash" and bool(self.flag and self.flag.kind == "value")


class Unknown(Struct, frozen=True):
    """A flag that the program does not have, and the nearest that it has."""

    name: str
    nearest: tuple[str, ...]

    @property
    def ignored(self) -> bool:
        """Whether it is a variable: programs read those that they know, and start."""
        return _VARIABLE.fullmatch(self.name) is not None


_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


class Pasted(Struct, frozen=True):
    """A command as it was read."""

    tool: str
    prefix: tuple[str, ...]
    """The words before its flags: wrappers, container, the program itself."""
    items: tuple[Item, ...]
    unknown: tuple[Unknown, ...]
    wrong: tuple[str, ...]
    """Flags whose value the program does not take, each with what it takes."""
    cards: int | None = None
    """Cards that variables and the container leave visible; None: all."""
    lines: int = 1
    """How many commands it took to say it; only a single one can be written anew."""

    def said(self) -> Mapping[str, str]:
        """Give each meaning with its word; what is said last counts."""
        return {item.sets: item.value for item in self.items if item.sets not in {"", NOT_SIZED}}

    @property
    def without_effect(self) -> Sequence[str]:
        """Name the flags that change neither memory nor speed, as typed."""
        return _names(i for i in self.items if i.flag and not i.flag.sets and not i.flag.earlier)

    @property
    def earlier(self) -> Sequence[str]:
        """Name the flags that earlier versions of the program alone took so, as typed."""
        return _names(i for i in self.items if i.bare or (i.flag and i.flag.earlier))


def _names(items: Iterable[Item]) -> Sequence[str]:
    return list(dict.fromkeys(item.words[0] for item in items if item.words))


def read_command(text: str) -> Pasted:
    """Read a command, a Modelfile, several lines of both, or a file that starts a program.

    Raises:
        RequestError: No program that is known is started in it.
    """
    if _is_modelfile(text):
        return _ollama([Invocation({}, (BY_MODELFILE, "create"))], text)
    of_file = as_lines(text) or _of_a_request(text)
    every = invocations(of_file or text)
    written = {one.output: _printed(one) for one in every if one.output}
    read = [(one, found) for one in every if (found := _started(one))]
    if not read:
        raise not_started([[program_name(word) for word in one.words] for one in every])
    one, (tool, prefix, rest) = read[0]
    if tool == BY_MODELFILE:
        calls = [call for call, (name, _, _) in read if name == tool]
        typed = (f"PARAMETER {said}" for said in _TYPED.findall(of_file or text))
        return _ollama(calls, "\n".join((*written.values(), *typed)))
    variables, cards = said_before(one.words[: len(one.words) - len(rest)])
    variables = {**one.variables, **variables}
    items = [*_of_variables(tool, variables), *_items(tool, rest)]
    items = list(_on_host(items, mounts(one.words)))
    fork = FORKED.get(tool, "")
    if fork and any(i.words[0] in FORK_FLAGS for i in items if i.words):
        tool, items = fork, list(_items(fork, rest))
    items = [*_of_file(tool, written, items), *(_as_read(item, written) for item in items)]
    if tool in _LOADS_A_KEY and len(read) > 1:
        items = [*_items(tool, read[-1][1][2]), *(i for i in items if i.sets == "model")]
    cards_left = visible_cards(variables, cards)
    lines = len(every) + bool(of_file)
    return pasted_of(tool, items, cards_left, prefix=prefix, lines=lines)


def _of_a_request(text: str) -> str:
    """Write what is sent to Ollama's interface as the lines that say the same."""
    sent = re.search(r"/api/(?:generate|chat)\b.*?(\{.*\})", text, re.DOTALL)
    try:
        said = json.decode(sent[1].replace('\\"', '"')) if sent else {}
        told = (f"/set parameter {k} {v}" for k, v in said.get("options", {}).items())
        return "\n".join((f"ollama run {said['model']}", *told))
    except (DecodeError, KeyError, AttributeError):
        return ""


def _on_host(items: Sequence[Item], mounted: Mapping[str, str]) -> Iterator[Item]:
    """Give paths within a container as they are outside, where the line says it."""
    for item in items:
        inside = next((p for p in mounted if f"{item.value}/".startswith(f"{p}/")), None)
        outside = f"{mounted[inside]}{item.value[len(inside) :]}" if inside else item.value
        yield Item(item.words, item.flag, outside)


def pasted_of(
    tool: str,
    items: Sequence[Item],
    cards: int | None,
    *,
    prefix: Sequence[str] = (),
    lines: int = 2,
) -> Pasted:
    """Put together what was read, with the flags that the program does not know."""
    names = list(flags_of(tool))
    unknown = [
        Unknown(item.words[0], tuple(nearest(spelled(item.words[0]), names)))
        for item in items
        if item.flag is None
    ]
    if usual := unsaid(tool, "backend"):
        stated = (
            i.flag.values.get(i.value, usual) for i in items if i.flag and i.sets == "backend"
        )
        model = next((item.value for item in items if item.sets == "model"), "")
        tool = f"{tool} with {next(stated, '') or found_by_name(tool, model) or usual}"
    return Pasted(
        tool, tuple(prefix), tuple(items), tuple(unknown), tuple(_wrong(items)), cards, lines
    )


def _wrong(items: Sequence[Item]) -> Iterator[str]:
    for item in items:
        choices = item.flag.choices if item.flag else ()
        known = {*choices, *(item.flag.values if item.flag else ())}
        if choices and item.flag and item.flag.sets and item.value not in known:
            yield f"{item.words[0]} takes {', '.join(choices)}, not '{item.value}'"


def _started(call: Invocation) -> tuple[str, Sequence[str], Sequence[str]] | None:
    """Give the program, the words up to its flags, and its flags."""
    plain = [program_name(word) for word in call.words]
    if plain[:1] and plain[0].endswith(".llamafile"):
        return "llama-server", call.words[:1], ("-m", call.words[0], *call.words[1:])
    for start in starts():
        size = len(start.words)
        if start.kind in {IN_A_CALL, NAMED}:
            continue
        image = start.kind == "image"
        places = [image_at(call.words, start.words[0])] if image else range(len(plain))
        found = (i for i in places if tuple(plain[i + image : i + size]) == start.words[image:])
        at = next(found, -1)
        if at >= 0:
            return start.tool, call.words[: at + size], call.words[at + size :]
    return None


# ---- its flags


def _items(tool: str, words: Sequence[str]) -> Sequence[Item]:
    known, rest = flags_of(tool), list(words)
    places = [flag for flag in known.values() if flag.kind in {"positional", "optional"}]
    places = [flag for flag in places if not flag.names[0].startswith("-")]
    found: list[Item] = []
    while rest:
        word = rest.pop(0)
        if word.startswith("-") and len(word) > 1 and not word[1:2].isdigit():
            found.append(_flagged(tool, word, rest))
        elif places:
            found.append(Item((word,), places.pop(0), word))
        elif found and found[-1].flag and found[-1].flag.kind == TAKES_NONE:
            found[-1] = Item((*found[-1].words, word), found[-1].flag, word)
        else:
            found.append(Item((word,), None, word))
    return found


_GLUED = re.compile(r"(-[A-Z])=?(\w+)")
"""A value without a space before it: ``-O3``."""


def _flagged(tool: str, word: str, rest: list[str]) -> Item:
    name, equals, value = word.partition("=")
    flag = _flag(tool, name)
    glued = None if flag else _GLUED.fullmatch(word)
    if glued and (short := flags_of(tool).get(glued[1])):
        return Item((word,), short, glued[2])
    if flag is None:
        follows = not equals and bool(rest) and not rest[0].startswith("-")
        return Item((name, rest.pop(0)) if follows else (word,), None)
    if flag.kind == TAKES_NONE:
        turned = name != flag.names[0] and name.startswith(("--enable-", "--disable-"))
        off = turned or name.startswith(("--no-", "-no-", "-nkvo"))
        return Item((word,), flag, "off" if off else "on")
    if equals:
        return Item((name, value), flag, value)
    taken = _taken(tool, flag, rest)
    value = taken[0] if taken else "on" if flag.sets == "flash" else ""
    if flag.kind == "many" and taken:
        value = ",".join(taken)
    return Item((word, *taken), flag, value)


def _taken(tool: str, flag: ProgramFlag, rest: list[str]) -> Sequence[str]:
    """Take the words after a flag that are its value; the switch of older versions has none."""
    if flag.sets == "flash" and rest and rest[0] not in {*flag.choices, *flag.values, *_BOOLEANS}:
        return ()
    most = {"two": 2, "many": len(rest)}.get(flag.kind, 1)
    taken: list[str] = []
    while rest and len(taken) < most and _is_value(tool, rest[0]):
        taken.append(rest.pop(0))
    return taken


def _is_value(tool: str, word: str) -> bool:
    return not word.startswith("-") or word[1:2].isdigit() or _flag(tool, word) is None


def _flag(tool: str, name: str) -> ProgramFlag | None:
    known, typed = flags_of(tool), spelled(name)
    found = known.get(typed) or known.get(typed.partition(".")[0])
    found = found or earlier_flags_of(tool).get(typed)
    if found or not tool.startswith(_ABBREVIATES) or len(typed) < _LEAST_ABBREVIATED:
        return found
    begun = {flag.names: flag for key, flag in known.items() if key.startswith(typed)}
    return next(iter(begun.values())) if len(begun) == 1 else None


def _of_variables(tool: str, variables: Mapping[str, str]) -> Iterator[Item]:
    """Read the variables that stand for flags; those of programs that are none are unknown."""
    known = flags_of(tool)
    for name, value in variables.items():
        flag = known.get(name) or _named_so(tool, name)
        if flag or name.startswith(_OF_PROGRAMS):
            yield Item((name, value), flag, value)


def _named_so(tool: str, variable: str) -> ProgramFlag | None:
    """Find the flag behind ``LLAMA_ARG_CTX_SIZE`` or, of TGI, ``MAX_TOTAL_TOKENS``."""
    known = flags_of(tool)
    if variable.startswith("LLAMA_ARG_"):
        stem = variable.removeprefix("LLAMA_ARG_").replace("_", "-").casefold()
        tried = (f"--{stem}", f"--{stem.removeprefix('n-')}", f"--{stem}-size")
        return next((known[name] for name in tried if name in known), None)
    if tool == "text-generation-launcher":
        return known.get(f"--{variable.replace('_', '-').casefold()}")
    return None


# ---- files that lines write


def _printed(call: Invocation) -> str:
    """Give what a line that calls printf or echo writes, line by line."""
    skipped = 2 if call.words[0] == "printf" else 1
    return "\n".join(call.words[skipped:])


def _of_file(tool: str, written: Mapping[str, str], items: Sequence[Item]) -> Iterator[Item]:
    """Read the file that a flag names, where a line before wrote it; keys may be its flags."""
    named = next((item.value for item in items if item.sets == "config_file"), "")
    for line in written.get(named, "").splitlines():
        key, _, value = line.strip().partition(":")
        flag = _flag(tool, f"--{key}")
        if flag and flag.sets:
            yield Item((f"--{key}", value.strip()), flag, value.strip())
        elif key in _IN_FILES:
            sets, values = _IN_FILES[key]
            yield Item((), ProgramFlag((key,), "value", (), sets, values, named), value.strip())


def _as_read(item: Item, written: Mapping[str, str]) -> Item:
    """Say of a file that no line writes that what stands in it is not sized."""
    if item.flag and item.sets == "config_file" and item.value not in written:
        return replace(item, flag=replace(item.flag, sets=NOT_SIZED))
    return item


def _is_modelfile(text: str) -> bool:
    lines = [line.strip() for line in text.splitlines()]
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return first.upper().startswith("FROM ") and " import " not in first


def _ollama(calls: Sequence[Invocation], modelfile: str) -> Pasted:
    """Read the lines that start Ollama together with the Modelfile that they use."""
    known = flags_of(BY_MODELFILE)
    items: list[Item] = []
    variables: dict[str, str] = {}
    model, cards = "", None
    for call in calls:
        before, given = said_before(call.words)
        said, cards = {**call.variables, **before}, given or cards
        variables |= said
        items += _of_variables(BY_MODELFILE, said)
        at = _where_ollama(call.words)
        command, rest = "".join(call.words[at + 1 : at + 2]), list(call.words[at + 2 :])
        flags = [item for item in _items(BY_MODELFILE, rest) if item.words[0].startswith("-")]
        items += flags
        bare = [word for word in rest if not word.startswith("-")]
        if _SUBCOMMANDS.get(command) and bare:
            model = bare[0]
    stated = list(_of_modelfile(modelfile, known))
    if not any(item.sets == "model" for item in stated) and model:
        stated.append(_word_of("model", model))
    return pasted_of(BY_MODELFILE, [*items, *stated], visible_cards(variables, cards))


def _where_ollama(words: Sequence[str]) -> int:
    """Find the program among words that may name a folder, a container and an image so too."""
    named = [at for at, word in enumerate(words) if BY_MODELFILE in word]
    told = (at for at in named if "".join(words[at + 1 : at + 2]) in _SUBCOMMANDS)
    return next(told, named[-1])


def _of_modelfile(text: str, known: Mapping[str, ProgramFlag]) -> Iterator[Item]:
    for line in text.splitlines():
        first, *rest = line.split() or [""]
        if first.upper() in _MODELFILE and rest:
            yield _word_of(_MODELFILE[first.upper()], rest[0])
        elif first.upper() == "PARAMETER" and len(rest) > 1:
            yield Item((rest[0], rest[1]), known.get(rest[0].casefold()), rest[1])


def _word_of(sets: str, value: str) -> Item:
    return Item((value,), ProgramFlag((sets,), "positional", (), sets, {}, ""), value)
