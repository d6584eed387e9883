"""How many machines a question names, and what memory theirs is."""

from __future__ import annotations

import re

from advisor.errors import RequestError, UserError
from advisor.knowledge.catalogue import are_machines, sizes_of
from advisor.knowledge.types import Knowledge
from advisor.reading import find_cards
from advisor.reading.sentence_cards import Read, card_in, is_settled
from advisor.reading.sentence_numbers import COUNTS, HOLE, counted

_COUNT = rf"(?:\d{{1,2}}|{'|'.join(COUNTS)})"
_MACHINES = re.compile(
    rf"(?<![\w.])(?:(?P<n>{_COUNT})[\s-]+(?P<of>(?:(?!{_COUNT}\s)[^\s,;]+\s+){{0,4}}?)"
    r"(?:machine|node|server|host|mini[\s-]?pc)s?|multi[\s-]?node)\b(?:\s+(?:cluster|with|of)\b)*",
    re.IGNORECASE,
)


def apart_machines(text: str) -> tuple[str, str]:
    """Take out how many machines there are: ``two DGX Spark nodes``, ``2 nodes of 8x H100``.

    Returns:
        The text without, and the words that say so; nothing of one.
    """
    said = _MACHINES.search(text)
    if said is None or (said["n"] or "").casefold() in {"1", "a", "an", "one", "single", "my"}:
        return text, ""
    return f"{text[: said.start()]} {said['of'] or ''} {HOLE} {text[said.end() :]}", said[0]


def join_machines(said: str, knowledge: Knowledge, read: Read) -> None:
    """Count the cards of several machines: as many of a kind, or those of each together.

    Raises:
        RequestError: How many cards that makes does not follow.
    """
    gpu = str(read.settings.get("gpu", ""))
    if not said or not gpu:
        return
    first = re.split(r"[\s-]", said.strip())[0]
    count = int(first) if first.isdigit() else counted(first)
    named = find_cards(knowledge, gpu)
    if count == 0 or named.each or not (are_machines(named.gpu) or named.counted):
        raise RequestError(
            f"'{said.strip()}': how many cards these machines have is not understood",
            hint="Name them all, for example 16x H100; they are sized as if one machine held them.",
        )
    each = named.gpu.name if named.counted else gpu
    read.settings["gpu"] = f"{count * named.count}x {each}"
    if not are_machines(named.gpu):
        read.assumed = (
            f"{count * named.count} cards of {count} machines are sized as those of one: what the "
            "network between them costs in speed is not."
        )


_SAID_SIZE = re.compile(r"\d\s?g(?:i?b)?\b", re.IGNORECASE)


def memory_of_ram(knowledge: Knowledge, settings: dict[str, object]) -> None:
    """Give what has no memory of its own, a Mac or a processor's graphics, the computer's RAM."""
    gpu, ram = settings.get("gpu"), settings.get("ram")
    if not (gpu and ram):
        return
    whole, machine = f"{gpu}:{ram}", f"{gpu} {ram}"
    shares = _shares_memory(knowledge, str(gpu))
    if shares or (not is_settled(str(gpu), knowledge) and is_settled(machine, knowledge)):
        settings["gpu"] = machine
        del settings["ram"]
    elif _has_any_memory(knowledge, str(gpu)) and card_in(whole, knowledge):
        settings["gpu"] = whole
        del settings["ram"]


def _shares_memory(knowledge: Knowledge, text: str) -> bool:
    """Whether a text names a machine of unified memory, as sold in several sizes, and no size."""
    if _SAID_SIZE.search(text) or not is_settled(text, knowledge):
        return False
    named = find_cards(knowledge, text)
    listed = knowledge.gpus.get(named.gpu.name)
    return bool(named.count == 1 and named.gpu.unified_memory and listed and sizes_of(listed))


def _has_any_memory(knowledge: Knowledge, text: str) -> bool:
    try:
        named = find_cards(knowledge, text)
    except UserError as error:
        return "several memory sizes" in error.message
    listed = knowledge.gpus.get(named.gpu.name)
    return listed is not None and not sizes_of(listed) and "GB" not in text.upper()
