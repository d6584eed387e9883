"""What people type and paste, read: names of cards and models, commands, logs.

One reader for every command, plan and log. A model's name is taken apart (publisher, name, tag,
file, format) and every word of it must be accounted for: by a model's own name, or as maker,
packer, tuning, fine-tune or filler (``words``). What leaves a word over is refused with the
candidates; no text is read as another model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError, UserError, raise_problems
from advisor.knowledge.catalogue import MOST_CARDS, Cards, put_together
from advisor.knowledge.index import by_text, cards_printed, is_chinese
from advisor.knowledge.names import find_model
from advisor.knowledge.types import Gpu, Knowledge
from advisor.models.hub_names import has_hub_form
from advisor.reading.known import (
    ModelRead,
    Reading,
    known_card,
    known_model,
    listed,
    namesakes,
    siblings,
    tells_instruct,
    told,
    with_size,
)
from advisor.reading.name_parts import unsized_card
from advisor.units import GIB

_JOINED = re.compile(r"(?<!\s)\s++\+\s*+|\+(?=[^\s)])")
"""``Max+ 395`` is part of a name: there the sign has a space behind it and none before."""
_MEMORY_OF_ALL = re.compile(
    r"\(?\b(\d{2,4})\s*gi?b\b(?:\s+(?:of\s+)?vram)?(?:\s+total)?\)?", re.IGNORECASE
)
_COUNTED = re.compile(r"(\d{1,4})\s*[xX\u00d7]\s+(?!\d{1,2}(?:\s*(?i:gpus?|cards?))?$)(\S.*)")
_GB = re.compile(r"\d{1,4}\s*gi?b\b", re.IGNORECASE)
_BETWEEN = re.compile(r"[+,;&/]|\s(?:and|with|plus)\b", re.IGNORECASE)
_EACH_AGAIN = re.compile(r"(?i)\(?\b(\d{1,2})\s*[x\u00d7*]\s*(\d{1,3}\s*gi?b\b[^)]*)\)?")
_ROUND = re.compile(r"(?<=\d)\.0+(?=\s*gi?b)", re.IGNORECASE)
_INSIDE = re.compile(
    r"(?<=[a-z])\s+\+\s+(?=[a-z][^()+]*\))|\s\+\s+(?=\d+\s*gi?b\s+(?:of\s+)?vram\s*$)"
    r"|(?<=[a-z]):\s+(?=[a-z])",
    re.IGNORECASE,
)
"""A plus between words of a remark or before a card's memory, a colon behind a machine's name."""
_BESIDE = re.compile(
    r"(?:\d+[ -]cores?\s*)?\(\d+P\s*\+\s*\d+E\)|(?::(?:sramecc|xnack)[+-])+|(?<=[1-9]0)\s+series\b"
    r"|\s+and(?:\s+an?)?(?=\s+\d+[ -](?:gpu[ -])?cores?\b)|\bml\.(?=\w+\.\d*x?large\b)"
    r"|(?<=vram)[\s,;/&+]+(?:and\s+|with\s+)?\d+\s*gi?b\s+(?:(?:of|system|host|cpu)\s+)*(?:ram|ddr\w*)"
    r"|\s*\(x(?:8|16|\d{1,2}(?:[\s/+]?x\d{1,2})+)\)|\bpcie?[\s-]*(?:gen[\s-]*)?[345](?:\.0)?(?:[\s-]*x\d{1,2})?\b"
    r"|\b\d{2,4}-bit\b|\s+Rev\. \D\b|,\s*\d{3}\.\d+(?:\.\d+)?$|^[\da-f]{2}:[\da-f]{2}(?:\.\d)?\s",
    re.IGNORECASE,
)
"""Cores, features of chips, lanes, RAM beside VRAM, what drivers and lspci put beside a name."""


class _Part(Struct, frozen=True):
    """Cards of one kind in a text, and the line that says how they were read."""

    gpu: Gpu
    count: int | None
    others: tuple[Gpu, ...] = ()
    line: str = ""


@by_text
def find_gpu(knowledge: Knowledge, text: str) -> Gpu:
    """Find one card by name, alias, ``NAME:SIZE``, or as people say it; nothing is assumed.

    Raises:
        RequestError: Unknown (nearest names), of an unknown memory, or of several meanings.
    """
    if gpu := known_card(knowledge, text):
        return gpu
    part = _read(knowledge, text) or _unknown(knowledge, text)
    if part.others or (part.count or 1) > 1:
        names = [*dict.fromkeys(map(with_size, (part.gpu, *part.others)))]
        raise RequestError(
            f"'{text}' names several cards: {listed(names)}.", hint="Write one of these."
        )
    return part.gpu


@by_text
def find_cards(knowledge: Knowledge, text: str) -> Cards:
    """Find one card, several equal ones, or unequal ones joined by a plus.

    Args:
        knowledge: The cards that are known.
        text: ``NAME``, ``NAME:SIZE``, ``2x NAME``, ``dual NAME``, and any of them joined.

    Raises:
        UserError: A card is unknown or ambiguous, or these do not work together.
    """
    named = _BESIDE.sub("", cards_printed(text).strip())
    pieces = _JOINED.split(_ROUND.sub("", _INSIDE.sub(" ", named)))
    if not all(map(_names_something, pieces)):
        message = f"'{text}' lacks a card beside the plus" if text.strip() else "no GPU is named"
        raise RequestError(message, hint="Write for example 'RTX 4090' or 'RTX 4090 + RTX 3090'.")
    parts = _parts(knowledge, pieces)
    found = [(1 if part.count is None else part.count, part.gpu) for part in parts]
    total = sum(count for count, _ in found)
    if not all(count for count, _ in found) or total > MOST_CARDS:
        raise RequestError(
            f"'{text}' names {total if total > MOST_CARDS else 'no'} cards",
            hint=f"Give 1 to {MOST_CARDS}, for example 2x RTX 3090.",
        )
    counted = len(parts) > 1 or parts[0].count is not None
    others = parts[0].others if len(parts) == 1 else ()
    read_as = tuple(part.line for part in parts if part.line)
    return put_together(knowledge, found, counted=counted, others=others, read_as=read_as)


def _names_something(piece: str) -> bool:
    matched = _COUNTED.fullmatch(piece.strip())
    return bool((matched[2] if matched else piece).strip())


def _parts(knowledge: Knowledge, pieces: Sequence[str]) -> Sequence[_Part]:
    """Read every piece; a single one that is not understood may name several without a plus."""
    problems: list[UserError] = []
    found: list[_Part] = []
    for piece in pieces:
        try:
            found.append(_counted(knowledge, piece.strip()))
        except UserError as error:
            problems.append(error)
    if problems and (otherwise := _otherwise(knowledge, pieces)):
        return otherwise
    raise_problems(problems)
    return found


def _otherwise(
    knowledge: Knowledge, pieces: Sequence[str], *, counted: bool = False
) -> Sequence[_Part]:
    """Read a list that lacks the plus, without the processor, or memory alone, or so many of it."""
    from advisor.reading import near  # noqa: PLC0415 - where it is needed

    if counted:
        said = [(n, near.only_memory(knowledge, one)) for n, one in near.counts_in(pieces[0])]
        return [_Part(gpu, n or 1, (), _taken_for(pieces[0], gpu)) for n, gpu in said if gpu]
    gpu = near.only_memory(knowledge, pieces[0]) if len(pieces) == 1 else None
    if gpu is not None:
        return [_Part(gpu, None, (), _taken_for(pieces[0], gpu))]
    typed = " + ".join(pieces)
    if (english := " ".join(near.in_english(typed).split())) != typed:
        with suppress(UserError):
            parts = _parts(knowledge, _JOINED.split(english))
            return [replace(part, line=part.line.replace(english, typed)) for part in parts]
    whole = near.MEMORY_BEHIND.sub(" ", " and ".join(pieces))
    with suppress(UserError):
        part = _counted(knowledge, whole)
        if part.gpu.unified_memory and whole != pieces[0]:
            return [part]
    listed_ = near.split_at_words(pieces[0]) if len(pieces) == 1 else pieces
    cards = near.without_cpus(listed_)
    if cards and cards != list(pieces):
        with suppress(UserError):
            parts = [_counted(knowledge, piece) for piece in cards]
            named = {(part.gpu.name, part.gpu.unified_memory, part.count) for part in parts}
            twice = "/" in pieces[0] and named == {(parts[0].gpu.name, True, None)}
            return parts[-1:] if twice else parts
    return ()


def _taken_for(text: str, gpu: Gpu) -> str:
    alike = "what fits is alike on others, speeds are not"
    return f"'{text}' names no card and is taken as that of a {gpu.name}; {alike}."


def requested_cards(knowledge: Knowledge, text: str) -> Cards:
    """Find the cards of a request: as ``find_cards``, or so many of a memory alone (``3x24 GB``).

    Raises:
        UserError: As ``find_cards``.
    """
    try:
        return find_cards(knowledge, text)
    except UserError:
        for part in _otherwise(knowledge, [text.strip()], counted=True):
            if part.count and part.count <= MOST_CARDS:
                one, line = [(part.count, part.gpu)], (part.line,)
                return put_together(knowledge, one, counted=True, others=(), read_as=line)
        if shared := _as_processor(knowledge, text):
            return shared
        raise


def _as_processor(knowledge: Knowledge, text: str) -> Cards | None:
    """Take the processor for graphics beside it that have no figures, where no card is named."""
    _, graphics, shares = unsized_card(text) or (None, "", False)
    if not shares:
        return None
    for piece in _BETWEEN.split(_GB.sub(" ", text.replace(graphics, " "))):
        with suppress(UserError):
            find_cards(knowledge, piece)
            return None
    line = f"'{graphics}' has no figures here: the processor is sized, which reads that memory."
    said = known_card(knowledge, f"cpu {' '.join(_GB.findall(text))}")
    return Cards(said, 1, (), counted=False, read_as=(line,)) if said else None


def _counted(knowledge: Knowledge, text: str) -> _Part:
    """Read a name with its count, in whatever form that is written.

    Raises:
        RequestError: It is not understood as it stands, nor with a count.
    """
    refused: list[RequestError] = []
    matched = None if is_chinese(text) else _COUNTED.fullmatch(text)
    plain = (int(matched[1]), matched[2], text) if matched else (None, text, "")
    for count, name, whole in (plain,) if matched else _ways(plain):
        try:
            if part := _read(knowledge, name, count, whole, unusual=not matched and bool(whole)):
                return part
        except RequestError as error:
            refused += [error] if name is plain[1] else []
        if count and (part := _of_all(knowledge, name, count, text)):
            return part
    if refused:
        raise refused[0]
    return _unknown(knowledge, plain[1])


def _ways(plain: tuple[int | None, str, str]) -> Iterator[tuple[int | None, str, str]]:
    """Give a text as it stands, then every way to read a count in it."""
    signed = not plain[0] and _SIGNED.search(plain[1])  # ``4 * RX 460`` is no memory of 4 GB
    if not signed:
        yield plain
    from advisor.reading.near import counts_in  # noqa: PLC0415 - where it is needed

    yield from ((count or None, name, plain[1]) for count, name in counts_in(plain[1]))
    if signed:
        yield plain


_SIGNED = re.compile(r"[*\u00d7]|\d\s*(?:gpu|card)s?\s*\)", re.IGNORECASE)


def _of_all(knowledge: Knowledge, name: str, count: int, text: str) -> _Part | None:
    """Read cards whose memory is told of all together: ``3x RTX 3090 (72GB)``."""
    if (again := _EACH_AGAIN.search(name)) and int(again[1]) == count:
        each = f"{name[: again.start()]} {again[2]} {name[again.end() :]}"
        with suppress(RequestError):
            return _read(knowledge, each, count, text, unusual=True)
    said = _MEMORY_OF_ALL.search(name)
    if said is None:
        return None
    with suppress(RequestError):
        rest = f"{name[: said.start()]} {name[said.end() :]}".strip()
        part = _read(knowledge, rest, count, text, unusual=True)
        if part and (part.gpu.vram_bytes or 0) * count == int(said[1]) * GIB:
            return part
    return None


def _unknown(knowledge: Knowledge, text: str) -> NoReturn:
    from advisor.reading.near_cards import unknown_card  # noqa: PLC0415 - where it is needed

    raise unknown_card(knowledge, text)


def _read(
    knowledge: Knowledge,
    name: str,
    count: int | None = None,
    text: str = "",
    *,
    unusual: bool = False,
) -> _Part | None:
    """Read a name out of ``text``; ``unusual``: its count has a form that is told."""
    if is_chinese(name):  # it may be a count
        return None
    gpu = known_card(knowledge, name)
    if gpu is None:
        from advisor.reading.spoken import spoken_card  # noqa: PLC0415 - where it is needed

        found = spoken_card(knowledge, name, plural=(count or 1) > 1)
        if found is None:
            return None
    else:
        others = tuple(knowledge.gpus[other] for other in namesakes(knowledge, name, gpu))
        how = f", the one of {(gpu.released or '')[:4]}" if others else ""
        if not others and gpu.sale == "special" and gpu.name != name:
            others = tuple(one for one in siblings(knowledge, gpu) if one.not_for_sale is None)
            how = f", {gpu.not_for_sale}"
        found = Reading(gpu, None, others, how)
        if not others and not unusual:
            return _Part(gpu, count)
    each = found.count
    named = not text[:1].isdigit() or known_card(knowledge, name.split(maxsplit=1)[0])
    again = each == count and named  # ``p5.48xlarge (8x H100)``, ``4x A10G g5.12xlarge``
    total = count if each is None else each * (1 if count is None or again else count)
    return _Part(found.gpu, total, found.others, told(found, text or name, total or 1))


@by_text
def read_model(knowledge: Knowledge, text: str) -> ModelRead:
    """Find the model that a text names, with the format that it says.

    Raises:
        UserError: Nothing has this name, several do, or it cannot be sized.
    """
    tag = ":" in text and "/" not in text  # perhaps of Ollama's, which says a format too
    model = None if tag else known_model(knowledge, text)
    if model is None:
        return _by_words(knowledge, text)
    told = model.name in knowledge.models or tells_instruct(text)
    return ModelRead(model, said=() if told else (f"'{text.strip()}' is read as {model.name}.",))


def read_whole(knowledge: Knowledge, text: str) -> ModelRead:
    """Find the model that a text names which is a name as a whole, a fine-tune beside its format.

    Raises:
        UserError: As ``read_model``.
    """
    return _by_words(knowledge, text, whole=True)


def _by_words(knowledge: Knowledge, text: str, *, whole: bool = False) -> ModelRead:
    from advisor.reading.unlisted import read_by_words  # noqa: PLC0415  a plain name does without

    return read_by_words(knowledge, text, whole=whole)


def is_read(knowledge: Knowledge, text: str) -> bool:
    """Whether a text names a model that is known."""
    try:
        read_model(knowledge, text)
    except UserError:
        return False
    return True


_HINT = "Add --hub to read it from Hugging Face."


def local_model(text: str, knowledge: Knowledge, *, hub: bool, offline: bool) -> str:
    """Give a model's name or path to go on with, reading from the hub where that was asked for.

    A name of the knowledge base and a file on disk go before the hub.

    Raises:
        UserError: The hub does not give it, or it needs the hub and that was not asked for.
    """
    if not hub and not offline:
        if _names_a_hub_file(text) and not is_read(knowledge, text):
            raise RequestError(f"'{text[:200]}' is not on this machine", hint=_HINT)
        return text
    known = not has_hub_form(text) or _exists(text)
    return text if known else _known_or_fetched(text, knowledge, offline=offline)


def _known_or_fetched(text: str, knowledge: Knowledge, *, offline: bool) -> str:
    from advisor.models import hub  # noqa: PLC0415  http and what guards it, only where it is asked

    repository, hint = hub.repository_of(text), ""
    if repository is not None and "/" in repository:
        try:
            find_model(knowledge, repository)
        except RequestError as unknown:
            hint = unknown.hint if unknown.hint.startswith("Did you mean") else ""
        else:
            return repository
    try:
        return str(hub.fetch(text, offline=offline))
    except RequestError as error:
        error.hint = " ".join(filter(None, (error.hint, hint)))
        raise


def _names_a_hub_file(text: str) -> bool:
    """Whether a text is an address, or ``org/name:file.gguf``, which nothing else can mean."""
    file = ":" in text and "/" in text and text.endswith(".gguf")
    return "://" in text or (file and not _exists(text))


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False
