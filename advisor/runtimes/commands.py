"""The commands that run a scenario, filled in from the templates of knowledge/commands.yaml.

What a program takes, and how it is written, stands there; this module only knows the values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from advisor.knowledge.catalogue import default_backend
from advisor.knowledge.programs import CommandPart, CommandPiece, Program
from advisor.knowledge.types import Format, Framework
from advisor.memo import Kept
from advisor.runtimes.command_values import (
    PLAIN_CACHE,
    VALUES,
    Shares,
    Started,
    devices,
    holds,
    may_flash,
    sees_anyway,
)
from advisor.scenario import Key, Scenario, is_usual_split, size_key, takes
from advisor.scenario.capability import asked, folder_name, gguf, repository_of, seen_gguf
from advisor.scenario.figures import Memory
from advisor.scenario.settings import DEFAULT_UBATCH
from advisor.units import shell_word

_NO_REASON = "No option for it is known."


class Gap(Struct, frozen=True):
    """A setting that a program cannot be told, and why."""

    setting: str
    """The setting, as in ``request``."""
    reason: str
    """Why it cannot be told."""


class Command(Struct, frozen=True):
    """A complete invocation of one program."""

    program: str
    """The program that is called."""
    what: str
    """What it does: serves, answers once, measures ..."""
    version: str
    """The version whose options these are."""
    text: str
    """Lines for a POSIX shell."""
    gaps: tuple[Gap, ...]
    """Settings that it cannot be told."""
    config: str = ""
    """What the model's ``config.json`` must say first: how YaRN reaches the context, where no flag
    says it."""
    unpublished: str = ""
    """What it names that nobody is known to publish: ``gguf``, ``gguf16``, ``mlx``, ``exllama``,
    ``unpacked`` or ``packed``, by how it is made; ``parts`` where it is published in several,
    ``images`` where its file for images is read by newer versions alone."""
    setup: str = ""
    """What has to be installed for it on this card, or for this format."""
    whole_experts: bool = False
    """Whether each card holds whole experts, since a share would cut what has one scale."""
    most_at_start: int | None = None
    """Sequences that it is told to hold at most so that it starts; null: it starts with what is
    asked. [sequences]"""
    too_many_beyond: int | None = None
    """The same where more were stated, which it may refuse; the others wait. [sequences]"""


def commands_for(
    scenario: Scenario, memory: Memory | None = None, within: Framework | None = None
) -> tuple[Command, ...]:
    """Give an invocation for every program of the scenario's framework, the fullest first.

    Without its memory a server is not told to leave what other programs need. Within a front end
    that loads published weights in that framework, its own program does.
    """
    shares = _shares_of(scenario, memory)
    layers = memory.layers_by_card if memory else ()
    room = memory.cache_room if memory else None
    told = (room.most_at_start, room.state_slots) if room else (None, None)
    programs = _programs(scenario, within)
    key, records = _key(scenario, shares, layers, (*told, *(p.name for p in programs)))
    found = _written_for.get(key)
    if found is None:
        sounds = scenario.model.modality == "audio"
        made = [
            _command(program, Started(scenario, program, shares, layers, *told))
            for program in programs
            if not (sounds and program.interpreter)  # which asks and answers in text
        ]
        in_order = tuple(sorted(made, key=_left_unsaid))
        found = (records, in_order)
        _written_for.put(key, found)
    return found[1]


def _shares_of(scenario: Scenario, memory: Memory | None) -> Shares | None:
    """Give the share of a shared memory that is counted as usable, rounded down."""
    gpu = scenario.gpu
    if memory is None or gpu is None or not gpu.unified_memory:
        return None
    usable, capacity = memory.usable_bytes, memory.capacity_bytes
    if not usable or not capacity:
        return None
    static = max(usable - memory.compute_buffer_bytes, 0)
    return Shares(100 * usable // capacity, 100 * static // capacity)


def _programs(scenario: Scenario, within: Framework | None) -> Sequence[Program]:
    own = scenario.framework
    inside = within is not None and within is not own and own.name in within.loads_with
    published = inside and repository_of(scenario.model, scenario.precision, own)
    return within.commands if within and published else own.commands


def command_for(
    scenario: Scenario, memory: Memory | None = None, within: Framework | None = None
) -> str:
    """Give the invocation that leaves the least unsaid; empty where none is sourced."""
    found = commands_for(scenario, memory, within)
    return found[0].text if found else ""


def needed_settings(scenario: Scenario) -> Iterator[str]:
    """Name the settings without which a program would run something else."""
    yield "context"
    values: Mapping[str, bool] = {
        "batch": scenario.batch > 1,
        "gpus": scenario.gpus > 1 and not scenario.cards,
        "split": not is_usual_split(scenario),
        "kv_cache_k": scenario.kv_cache_k.name not in PLAIN_CACHE,
        "kv_cache_v": scenario.kv_cache_v.name not in PLAIN_CACHE,
        "ubatch": scenario.ubatch != DEFAULT_UBATCH,
        "gpu_layers": scenario.gpu_layers is not None,
        "cpu_experts": scenario.cpu_experts > 0,
        "flash_attention": not scenario.flash_attention and may_flash(scenario),
        "kv_unified": not scenario.kv_unified and scenario.batch > 1,
        "swa_full": scenario.swa_full,
        "text_only": bool(scenario.text_only),
        "draft_model": scenario.draft_model is not None,
        "mtp": scenario.mtp > 0,
        "backend": devices(scenario) is not None,
    }
    yield from (key for key, stated in values.items() if stated)


def can_tell(scenario: Scenario, setting: str) -> bool:
    """Whether the command that is shown says a setting; true where no command is sourced."""
    found = commands_for(scenario)
    return not found or all(gap.setting != setting for gap in found[0].gaps)


def _left_unsaid(command: Command) -> tuple[bool, int, int]:
    """Order programs; one for a single sequence goes last where several are asked for.

    A cache without a limit grows into what was asked; other gaps run something else.
    """
    unsaid = [gap.setting for gap in command.gaps]
    return "batch" in unsaid, len(unsaid) - unsaid.count("context"), len(unsaid)


def _key(
    scenario: Scenario, shares: Shares | None, layers: tuple[int, ...], told: Key
) -> tuple[Key, Key]:
    """Give a key of what commands can hold: of the card its kind and what it shares."""
    gpu, (key, records) = scenario.gpu, size_key(scenario, None)
    card = gpu and (default_backend(gpu), gpu.compute_capability, gpu.architecture)
    return (*key, card, shares, layers, told), records


_written_for: Kept[Key, tuple[Key, tuple[Command, ...]]] = Kept(1_024)
"""What-ifs of neighbouring reports differ in the card alone. Without it a plan takes 1.09 times as
long; here and elsewhere measured in instructions (decision 26)."""


def _command(program: Program, started: Started) -> Command:
    carried, stated = set(_untold(started)), started.scenario.slots > 0
    lines = [_line(line, started, carried, bool(program.interpreter)) for line in program.lines]
    text = "\n".join(line for line in lines if line)
    if program.interpreter:
        header = _line(program.interpreter, started, carried, False)
        text = f"{header} <<'EOF'\n{text}\nEOF"
    return Command(
        program=program.name,
        what=program.what,
        version=program.version,
        text=text,
        gaps=tuple(_gaps(program, started.scenario, carried)),
        config=_config(started.scenario),
        unpublished=_unpublished(started, text),
        setup=_setup(started.scenario),
        whole_experts=holds("whole_experts", started),
        most_at_start=None if stated else started.most_at_start,
        too_many_beyond=started.most_at_start if stated else None,
    )


def _untold(started: Started) -> Iterator[str]:
    """Name settings that the program keeps to as long as it is not told otherwise."""
    if holds("blind", started):
        yield "text_only"


def _setup(of: Scenario) -> str:
    shape, kind = of.model.shape, of.precision.kind
    row = asked(of.framework, "setup", kind, of.gpu, shape, backend=of.backend)
    return f"{row.why}." if row else ""


def _config(scenario: Scenario) -> str:
    by_file = takes(scenario, "yarn")
    return scenario.model.yarn_config(scenario.context_tokens) if by_file else ""


def _unpublished(started: Started, text: str) -> str:
    """Say of which kind the file or folder is that a command names in the place of a repository."""
    scenario = started.scenario
    model, precision = scenario.model, scenario.precision
    if model.hf_id is None or model.stored:
        return ""
    whole = precision.family == "unquantized"
    if precision.kind == "gguf" or gguf(model, precision) in text:
        told = gguf(model, precision) in text
        kind = "parts" if seen_gguf(model, precision) else "gguf16" if whole else "gguf"
        return kind if told else "images" * _has_images(scenario, text)
    if started.repository or folder_name(model, precision) not in text:
        return _said_otherwise(started.repository or "", precision)
    of_its_own = scenario.framework.memory_model in _OWN_MAKERS
    return "unpacked" if whole else scenario.framework.memory_model if of_its_own else "packed"


_SCHEMES = frozenset({"awq", "gptq"})
"""Ways to find the scales of integers in groups, by which repositories and formats are named."""


def _said_otherwise(repository: str, precision: Format) -> str:
    """Say so where a repository is named after another way than the format is."""
    own, name = precision.family, repository.casefold()
    other = own in _SCHEMES and own not in name and any(one in name for one in _SCHEMES)
    return "scheme" if other else ""


def _has_images(scenario: Scenario, text: str) -> bool:
    """Whether the hub has a file for images beside it that older versions do not read."""
    hub = _HUB in text and bool(scenario.model.vision_parameters)
    return hub and takes(scenario, "images")


_HUB = "hf.co/"
_OWN_MAKERS = frozenset({"mlx", "exllama", "tensorrt-llm"})
"""Families of runtimes with a converter of their own."""


def _line(pieces: Sequence[CommandPiece], started: Started, carried: set[str], python: bool) -> str:  # noqa: FBT001
    said: list[str] = []
    for piece in pieces:
        words = _said(piece, started, python=python)
        if words is not None:
            said += words
            carried.update(piece.carries)
    return " ".join(said)


def _said(piece: CommandPiece, started: Started, *, python: bool) -> Sequence[str] | None:
    """Write a piece out; None where its switch is off or a value is missing."""
    if piece.when and not holds(piece.when, started):
        return None
    words = []
    for parts in piece.words:
        word = parts if isinstance(parts, str) else _filled(parts, started, python=python)
        if word is None:
            return None
        words.append(word)
    return words


def _filled(parts: Sequence[CommandPart], started: Started, *, python: bool) -> str | None:
    word = ""
    for part in parts:
        word += part.before
        if part.name:
            value = _value(part.name, started)
            if value is None:
                return None
            word += _written(value, part, python=python)
    return word if python else shell_word(word)


def _written(value: str, part: CommandPart, *, python: bool) -> str:
    if part.mode == "raw":
        return value
    if part.mode == "json":
        return json.dumps(value)
    return repr(value) if python else value


def _value(name: str, started: Started) -> str | None:
    known = VALUES.get(name)
    return known(started) if known else started.word(name)


def _gaps(program: Program, scenario: Scenario, carried: set[str]) -> Iterator[Gap]:
    """What the scenario states and the command does not say, with the sourced reason."""
    kept = sees_anyway(scenario)
    reasons = {**program.cannot, "text_only": f"{kept}."} if kept else program.cannot
    missing = [key for key in needed_settings(scenario) if key not in carried]
    named = dict.fromkeys("kv_cache" if key.startswith("kv_cache") else key for key in missing)
    yield from (Gap(key, reasons.get(key, _NO_REASON)) for key in named)
    if scenario.model.vision_parameters and "images" in reasons:
        yield Gap("images", reasons["images"])
