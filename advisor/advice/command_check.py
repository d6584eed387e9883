"""Whether a pasted command starts on a card, and the command that does.

The command is read into a request, which goes the way of every request; the corrected command is
that of a recommendation, and it is read back before it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.advice.preparation import usual_tokens
from advisor.errors import RequestError, UserError
from advisor.estimator import estimate_memory
from advisor.knowledge.catalogue import Cards
from advisor.knowledge.types import Knowledge
from advisor.reading import find_cards, is_read
from advisor.reading.command_lines import Item, Pasted
from advisor.reading.pasted_request import Asked, asked_by, read_pasted
from advisor.remedies.option import Option
from advisor.runtimes.commands import command_for
from advisor.scenario import Scenario, divides_requests
from advisor.scenario.figures import Memory
from advisor.scenario.host import asks_here, with_processor
from advisor.scenario.resolve import cards_asked, resolve
from advisor.scenario.settings import AROUND, Request, request_from
from advisor.units import shell_word

Starts = Literal["yes", "in part", "no"]
_LEAST_CONTEXT = 4_096
"""llama.cpp lowers a context that is not stated to no less (``--fit-ctx``, common/arg.cpp)."""
_RUNS = ("fits", "tight")
_EXPANDED = re.compile(r"\$(?:[A-Z_]\w*|\{[A-Z_]\w*\}|\(pwd\))")
"""What a shell puts a value for; a small letter behind ``$`` may be one of a password."""
_OF_MODEL = frozenset({"model", "file", "dtype", "quantization", "load_format"})


class Checked(Struct, frozen=True):
    """A command, what it asks for, and what comes of it."""

    pasted: Pasted
    asked: Asked
    advice: Conclusions
    starts: Starts
    sequences: int | None = None
    """How many sequences of the full length a server holds, where fewer than it may take."""
    corrected: str = ""
    """A command that starts; empty where this one does, or where none is known."""
    by: Option | None = None
    """What the corrected command changes; None where it only leaves flags out."""

    @property
    def refused(self) -> bool:
        """Whether the program refuses the line before it loads anything."""
        return bool(self.pasted.wrong) or not all(one.ignored for one in self.pasted.unknown)


def check_command(text: str, machine: Request, advisor: Advisor) -> Checked:
    """Say what comes of a command on a card.

    ``machine`` says what a command does not: the cards, and the computer around them.

    Raises:
        UserError: The command, the model or the card cannot be read.
    """
    pasted = read_pasted(text)
    asked, request = _request(pasted, machine, advisor.knowledge)
    try:
        advice = advisor.advise(request, all_cards=True)
    except RequestError as refused:
        if is_read(advisor.knowledge, request.model or ""):
            named = f"{request.model} in {asked.framework} on {request.gpu}"
            refused.message = (
                f"the command is read as {named}, and does not start: {refused.message}"
            )
        raise
    if asked.fits_context and advice.state not in _RUNS:
        lowered = max(advice.limits.max_context_tokens or 0, _LEAST_CONTEXT)
        request = replace(request, context=min(lowered, request.context or lowered))
        advice = advisor.advise(request, all_cards=True)
    starts, sequences = _starts(advice, asked)
    found = Checked(pasted, asked, advice, starts, sequences)
    if found.refused:
        found = replace(found, starts="no")
    corrected, by = _corrected(found, machine, advisor)
    return replace(found, corrected=corrected, by=by)


def _request(pasted: Pasted, machine: Request, knowledge: Knowledge) -> tuple[Asked, Request]:
    asked, machine = asked_by(pasted, knowledge), with_processor(machine, knowledge)
    cards, gpu = cards_asked(machine, knowledge), machine.gpu or ""
    around = _around(machine)
    if asks_here(machine) and not cards.each:
        cards, around["gpus"] = replace(cards, counted=True), asked.cards or machine.gpus
        named = gpu
        if asked.cards not in range(1, cards.count + 1):
            named = _cards_used(gpu, cards, asked.cards, knowledge)
    else:
        if not cards.counted and cards.count > 1:
            gpu = f"{cards.count}x {gpu}"
            cards = cards_asked(replace(machine, gpu=gpu), knowledge)
        named = _cards_used(gpu, cards, asked.cards, knowledge)
    request = replace(request_from({**asked.settings, "gpu": named}), **around)
    return asked, _unasked(_with_its_context(request, knowledge), knowledge)


def _with_its_context(request: Request, knowledge: Knowledge) -> Request:
    """Take as many tokens as a program takes by the memory of its cards, where none are stated."""
    if request.context:
        return request
    try:
        scenario = resolve(request, knowledge)
    except UserError:
        return request
    return replace(request, context=usual_tokens(scenario))


def _unasked(request: Request, knowledge: Knowledge) -> Request:
    """Take the sequences that a command must say to start for none asked, as they are printed.

    None is printed of what lacks memory.
    """
    if request.batch is None:
        return request
    alone = replace(request, batch=None)
    try:
        scenario = resolve(alone, knowledge)
        memory = estimate_memory(scenario, knowledge)
    except UserError:
        return request
    ranks = scenario.gpus if divides_requests(scenario) else 1
    room = memory.cache_room
    told = room and not memory.deficit_bytes and room.most_at_start
    return alone if told and told * ranks == request.batch else request


def _around(machine: Request) -> dict[str, Any]:
    of_machine = ((name, getattr(machine, name)) for name in ("reserve_gib", *AROUND))
    return {name: value for name, value in of_machine if value is not None}


def _cards_used(gpu: str, cards: Cards, wanted: int | None, knowledge: Knowledge) -> str:
    """Name as many cards as the command takes.

    Raises:
        RequestError: There are fewer, or none is visible to the program.
    """
    if wanted is None or wanted == cards.count:
        return gpu
    if wanted < 1:
        raise RequestError(
            "the command leaves no card visible", hint="Leave out the variable that hides them."
        )
    if cards.counted and wanted > cards.count:
        raise RequestError(
            f"the command takes {wanted} cards, but '{gpu}' names {cards.count}",
            hint=f"Give --gpu '{wanted}x ...', or split the model over {cards.count}.",
        )
    if cards.each:
        return " + ".join(card.name for card in cards.each[:wanted])
    single = _single(gpu, knowledge)
    return f"{wanted}x {single}" if wanted > 1 else single


def _single(gpu: str, knowledge: Knowledge) -> str:
    """Give one of several equal cards, as it was written."""
    found = find_cards(knowledge, gpu)
    if not found.counted:
        return gpu
    size = f":{found.gpu.vram_bytes // 2**30}GB" if found.gpu.vram_bytes else ""
    try:
        sized = find_cards(knowledge, f"{found.gpu.name}{size}")
    except UserError:
        return found.gpu.name
    return f"{found.gpu.name}{size}" if sized.gpu == found.gpu else found.gpu.name


def _starts(advice: Conclusions, asked: Asked) -> tuple[Starts, int | None]:
    if advice.state in _RUNS:
        held = advice.memory.held_sequences
        return "yes", held if held is not None and held < advice.scenario.batch else None
    if advice.state == "needs_offload" and asked.places_itself:
        return "in part", None
    return "no", None


# ---- the corrected command


def _corrected(found: Checked, machine: Request, advisor: Advisor) -> tuple[str, Option | None]:
    advice = found.advice
    if advice.state in _RUNS and (found.refused or found.pasted.earlier):
        kept = _kept(found.pasted)
        return (kept, None) if _holds(kept, machine, advice.memory, advisor) else ("", None)
    if found.starts == "yes":
        return "", None
    most = cards_asked(machine, advisor.knowledge).count
    for ranked in sorted(advice.recommendations, key=lambda one: _distance(one.option, advice)):
        option = ranked.option
        if option.scenario.gpu != advice.scenario.gpu or option.scenario.gpus > most:
            continue
        merged = _merged(found, option, machine, advisor)
        return merged or command_for(option.scenario, option.memory), option
    return "", None


def _distance(option: Option, advice: Conclusions) -> tuple[bool, bool]:
    """Prefer what keeps the program and the files; the order of rank stays within."""
    same = option.scenario.framework.name == advice.scenario.framework.name
    return not same, option.effort != "setting"


def _merged(found: Checked, option: Option, machine: Request, advisor: Advisor) -> str:
    """Write the option into the user's own line; empty where that does not come to the same."""
    pasted = found.pasted
    if pasted.lines > 1 or option.scenario.framework.name != found.asked.framework:
        return ""
    wanted = read_pasted(command_for(option.scenario, option.memory))
    same_model = _same_model(option.scenario, found.advice.scenario)
    for keep_others in (True, False):
        kept = _exchanged(pasted, wanted, keep_model=same_model, keep_others=keep_others)
        text = _written(pasted, list(kept))
        if _holds(text, machine, option.memory, advisor):
            return text
    return ""


def _same_model(one: Scenario, other: Scenario) -> bool:
    return (one.model.name, one.precision.name) == (other.model.name, other.precision.name)


def _exchanged(
    pasted: Pasted, wanted: Pasted, *, keep_model: bool, keep_others: bool
) -> Iterator[Item]:
    """Give the user's flags with the values of others, then the flags that are new.

    With ``keep_model`` the model stays as it is named, with ``keep_others`` all that ``wanted``
    does not say.
    """
    news = {item.sets: item for item in wanted.items if item.sets}
    for item in _known(pasted):
        if item.sets in {"", "?"} or (keep_model and item.sets in _OF_MODEL):
            news.pop(item.sets, None)
            yield item
        elif item.sets in news:
            new = news.pop(item.sets)
            yield item if item.value == new.value else new
        elif keep_others:
            yield item
    for item in news.values():
        if not (keep_model and item.sets in _OF_MODEL):
            yield item


def _known(pasted: Pasted) -> Sequence[Item]:
    """Give what the program takes, with the words that it lacks."""
    wrong = {text.split(" ")[0] for text in pasted.wrong}
    return [
        replace(item, words=(*item.words, item.value)) if item.bare else item
        for item in pasted.items
        if item.bare
        or (item.flag and not item.flag.earlier and not wrong.intersection(item.words[:1]))
    ]


def _kept(pasted: Pasted) -> str:
    """Write the line as the program takes it."""
    return _written(pasted, _known(pasted)) if pasted.lines == 1 else ""


def _written(pasted: Pasted, items: Sequence[Item]) -> str:
    words = [*pasted.prefix, *(word for item in items for word in item.words if item.words)]
    return " ".join(_shell_word(word) for word in words)


def _shell_word(word: str) -> str:
    """Write a word so that the home folder and variables in it stay the shell's to fill in."""
    home, rest = ("~/", word[2:]) if word.startswith("~/") else ("", word)
    quoted = shell_word(rest) if rest or not home else ""
    if _EXPANDED.search(rest) and not re.search(r'[`"\\!]|\$\((?!pwd\))', rest):
        quoted = f'"{rest}"'
    return home + quoted


def _comes_to(one: Memory, other: Memory) -> bool:
    """Whether two estimates are one: how little it may be depends on how the format was told."""
    same = ("required_bytes", "high_bytes", "usable_bytes", "kv_cache_bytes", "held_sequences")
    return all(getattr(one, name) == getattr(other, name) for name in same)


def _holds(text: str, machine: Request, memory: Memory, advisor: Advisor) -> bool:
    """Whether a command, read back, comes to this estimate."""
    if not text:
        return False
    try:
        pasted = read_pasted(text)
        _, request = _request(pasted, machine, advisor.knowledge)
        taken = not (pasted.unknown or pasted.wrong or pasted.earlier)
        return taken and _comes_to(advisor.estimate(request, all_cards=True).memory, memory)
    except UserError:
        return False
