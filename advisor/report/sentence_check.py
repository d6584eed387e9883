"""Read a document's sentences back and hold them against its figures.

Every size, speed and bandwidth in a sentence must be a figure of the document (to the
rounding it is printed in), and no sentence may say "fits" where the verdict says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import to_builtins

from advisor.knowledge.catalogue import TOGETHER
from advisor.report.figures import amount, rest_bytes
from advisor.report.memory_view import counted_sequences
from advisor.report.prose import report
from advisor.scenario.figures import may_wait
from advisor.units import GB, GIB, plain, rate

if TYPE_CHECKING:
    from advisor.advice.document import Advice

_NUMBER = r"(\d[\d,]*(?:\.\d+)?)"
_RANGE = rf"{_NUMBER}(?: to {_NUMBER})?"
_SIZE = re.compile(rf"(?<![\w.]){_NUMBER} ?(GiB|GB)(?!/s|\w)")
_BANDWIDTH = re.compile(rf"{_NUMBER} ?(GB/s|TB/s)")
_SPEED = re.compile(rf"{_NUMBER} tok/s(?: \({_RANGE}\))?")
_WATT = re.compile(rf"{_NUMBER} W\b")
_TOKENS = re.compile(rf"{_NUMBER} (?:tokens|sequences)\b")
_NEGATED_FIT = re.compile(
    r"does not fit|do not fit|not fit|out-of-memory|cannot take|too much|is missing", re.IGNORECASE
)
_SAID_FIT = re.compile(
    r"\bfits\b(?! in| all)|to spare|stays free|nothing has to change", re.IGNORECASE
)
_PART = ("options.part_estimate", "options.part_low", "options.part_high")
_SPEED_KEYS = ("estimate", "low", "high", "modelled", "options.timed_speed", *_PART)


def contradictions(doc: Advice) -> list[str]:
    """List every sentence that disagrees with the document's figures; empty is right."""
    full = report(doc, "full")
    whole = [("verdict", doc.verdict.sentence), ("have", full.have)]
    whole += [("happens", full.happens)]
    notes = [(f"note {note.rule}", note.text) for note in doc.notes]
    remedies = [
        (f"recommendation {item.rank}", f"{item.title}. {item.text}")
        for item in doc.recommendations
    ]
    figures = [("key figure", f"{label} {value}") for label, value in full.figures]
    sentences = [*whole, *notes, *remedies, ("first", full.first), *figures]
    sentences += [(f"summary {item.number}", item.figures["summary"]) for item in full.remedies]
    standard = report(doc, "standard")
    sentences += [(f"in brief {item.number}", item.brief) for item in standard.remedies]
    return [
        *(problem for where, text in sentences for problem in wrong_numbers(doc, where, text)),
        *(problem for where, text in whole for problem in wrong_state(doc, where, text)),
        *_unsaid_risk(doc),
        *_wrong_remedies(doc),
        *_wrong_arithmetic(doc),
        *_unasked_speed(doc, [*whole, *notes]),
    ]


def wrong_state(doc: Advice, where: str, text: str) -> Iterator[str]:
    """Find words that say "fits" where the verdict says otherwise, or the reverse."""
    runs = doc.verdict.state in {"fits", "tight"}
    if runs and (found := _NEGATED_FIT.search(text)):
        yield f"{where}: says '{found[0]}' though the verdict is {doc.verdict.state}"
    said = re.sub(_NEGATED_FIT, "", text)
    if not runs and (found := _SAID_FIT.search(said)):
        yield f"{where}: says '{found[0]}' though the verdict is {doc.verdict.state}"


def _unsaid_risk(doc: Advice) -> Iterator[str]:
    """The verdict must say how much it may need where the range crosses what a card offers."""
    runs = doc.verdict.state in {"fits", "tight"}
    if not runs or doc.memory.certainty != "may_exceed":
        return
    held = doc.memory.held_sequences
    card = max(doc.memory.per_gpu, key=lambda c: c.high_bytes - may_wait(held, c) - c.usable_bytes)
    if f"up to {amount(card.high_bytes - may_wait(held, card))}" not in doc.verdict.sentence:
        yield "verdict: leaves out that more may be needed than is usable"


def _wrong_remedies(doc: Advice) -> Iterator[str]:
    for item in doc.recommendations:
        said = re.sub(_NEGATED_FIT, "", item.text)
        if not item.after.fits and (found := _SAID_FIT.search(said)):
            yield f"recommendation {item.rank}: says '{found[0]}' though it does not fit"
        if not item.after.fits and item.after.decode_tok_s:
            yield f"recommendation {item.rank}: has a speed though it does not fit"


def _wrong_arithmetic(doc: Advice) -> Iterator[str]:
    memory = doc.memory
    parts = ("weights_bytes", "kv_cache_bytes", "compute_buffer_bytes", "overhead_bytes")
    total = sum(getattr(memory, key) for key in parts)
    if abs(total - memory.required_bytes) > len(memory.per_gpu) + 1:
        yield f"memory: the parts add up to {total}, not to {memory.required_bytes}"
    if memory.deficit_bytes and memory.headroom_bytes:
        yield "memory: both a deficit and headroom"
    for before, after in pairwise(doc.recommendations):
        if before.rank >= after.rank:
            yield f"recommendation {after.rank}: out of order"


def _unasked_speed(doc: Advice, sentences: list[tuple[str, str]]) -> Iterator[str]:
    if doc.speed is not None:
        return
    for where, text in sentences:
        if found := _SPEED.search(text):
            yield f"{where}: gives {found[0]} though no speed is known"


def wrong_numbers(doc: Advice, where: str, text: str) -> Iterator[str]:
    """Find sizes, speeds and counts in a text that are no figure of the document."""
    known = _known(doc)
    text = text.replace("less than 0.01 GiB", "")
    for name in known.names:
        text = text.replace(name, "")
    for found in _SIZE.finditer(text):
        if not known.has_size(found[1], found[2]):
            yield f"{where}: {found[0]} is no figure of this report"
    for pattern, allowed in ((_SPEED, known.speeds), (_TOKENS, known.counts)):
        for found in pattern.finditer(text):
            if any(part is not None and part not in allowed for part in found.groups()):
                yield f"{where}: {found[0]} is no figure of this report"
    for pattern in (_BANDWIDTH, _WATT):
        for found in pattern.finditer(text):
            if not known.has_hardware(found[1]):
                yield f"{where}: {found[0]} is no figure of this report"


def _names(doc: Advice) -> list[str]:
    """What holds numbers that are no figures of the document, longest first.

    Names (``H100 SXM5 80 GB``), figures on which sources differ, and remarks on the request.
    """
    gpu = doc.scenario.gpu
    asked = doc.scenario
    each = {card.name for card in asked.cards}
    found = each | {asked.model.name, gpu.name if gpu else "", asked.draft_model or ""}
    found.add(doc.break_even.smaller_card or "")
    found.add(str(doc.request.get("gpu") or ""))
    for item in doc.recommendations:
        setup = item.setup
        each_setup = [setup, *(other.setup for other in item.alternatives)]
        cards = {s.gpu or "" for s in each_setup}
        found |= cards | {name for pair in cards for name in pair.split(TOGETHER)}
        found |= {s.model for s in each_setup}
        found.add(setup.draft_model or "")
    found |= {*_disputed(doc), *doc.warnings, *asked.read_as}
    return sorted(found - {""}, key=lambda name: (-len(name), name))


_latest: list[tuple[Advice, _Known]] = []
"""The document looked at last: its sentences come one after another."""


def _known(doc: Advice) -> _Known:
    if not _latest or _latest[0][0] is not doc:
        _latest[:] = [(doc, _Known(doc))]
    return _latest[0][1]


def _disputed(doc: Advice) -> list[str]:
    """The figures of the card that sources give differently, as they are quoted."""
    gpu = doc.scenario.gpu
    return [plain(value) for values in gpu.disputed.values() for value in values] if gpu else []


class _Known:
    """Every figure of a document, as numbers and as printed."""

    def __init__(self, doc: Advice) -> None:
        self.names = _names(doc)
        numbers = list(_numbers(to_builtins(doc), ""))
        sizes = {value for key, value in numbers if key.endswith("_bytes")}
        memory = doc.memory
        needed = memory.required_bytes
        host = ("host_weights_bytes", "host_kv_cache_bytes", "host_compute_bytes")
        sizes.add(sum(value for key, value in numbers if key in host))
        sizes |= {c.high_bytes - may_wait(memory.held_sequences, c) for c in memory.per_gpu}
        sizes |= {needed - item.after.required_bytes for item in doc.recommendations}
        if memory.capacity_bytes is not None and memory.usable_bytes is not None:
            sizes.add(memory.capacity_bytes - memory.usable_bytes)
        if memory.usable_bytes is not None:
            larger = max(needed, memory.usable_bytes)
            sizes.add(rest_bytes(larger, min(needed, memory.usable_bytes)))
        if ram := doc.scenario.ram_bytes:
            sizes |= {rest_bytes(ram, i.after.host_bytes) for i in doc.recommendations}
        in_ram = map(doc.facts.get, ("host.ram_needed", "options.part_ram"))
        sizes |= {float(size) for size in in_ram if isinstance(size, int | float)}
        self._sizes = {abs(size) for size in sizes}
        self._nominal = memory.nominal_weights_gb
        self.speeds = {rate(value) for key, value in numbers if key in _SPEED_KEYS}
        self.counts = _counts(numbers, doc)
        gpus = doc.scenario.gpus
        hardware = [value for key, value in numbers if key in {"tdp_w", "bandwidth_bytes_s"}
                    or key.endswith("_bandwidth_bytes_s")]  # fmt: skip
        self._hardware = {scaled for value in hardware for scaled in (value, value * gpus)}

    def has_size(self, text: str, unit: str) -> bool:
        value = float(text.replace(",", ""))
        slack = 0.5 * 10.0 ** -len(text.partition(".")[2]) + 1e-9
        base = GIB if unit == "GiB" else GB
        nominal = self._nominal is not None and abs(self._nominal - value) <= slack
        return nominal or any(abs(size / base - value) <= slack for size in self._sizes)

    def has_hardware(self, text: str) -> bool:
        value = float(text.replace(",", ""))
        return any(
            abs(known / unit - value) <= 0.5 * 10.0 ** -len(text.partition(".")[2]) + 1e-9
            for known in self._hardware
            for unit in (1, 1e9, 1e12)
        )


def _counts(numbers: list[tuple[str, float]], doc: Advice) -> set[str]:
    keys = ("_tokens", "batch", "gpus", "rank", "max_batch", "mtp", "_sequences")
    found = {f"{value:,.0f}" for key, value in numbers if key.endswith(keys)}
    image = doc.scenario.model.image_tokens or ""
    written = {int(digits.replace(",", "")) for digits in re.findall(r"\d[\d,]*", image)}
    return found | {f"{value:,}" for value in (*written, counted_sequences(doc))}


def _numbers(value: object, key: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _numbers(inner, str(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _numbers(inner, key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield key, float(value)
