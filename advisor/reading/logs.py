"""A log or error text -> what it says: program, cards, model, sizes, settings, and the cause.

Of several runs in one log the last one counts. Nothing is computed here but sums over devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from advisor.knowledge.log_patterns import CAUSES, FIELDS, Form, LogLine, LogPatterns, factor
from advisor.knowledge.programs import starts
from advisor.reading.log_file import LogText
from advisor.units import base_factor

_MOST_PLACES = 6
"""Places in one line at which a form is tried."""
_MOST_JOINED = 3
"""Lines that a terminal may have broken one message into."""
_HOST = re.compile(r"(?:CPU|Host)(?![a-z])|[A-Za-z]+_Host\b")
_NUMBERED = re.compile(r"(?:[A-Za-z_]+)?(\d+)")
_SIZES = re.compile(r"(\d{1,15}+(?:\.\d{1,15}+)?+)[ \t]*+((?:[KMGT]i?)?B)\b")
_OF_THE_MACHINE = ("capacity", "free")
_LONGEST_PART = 500
"""Characters of a line that a terminal broke off."""
_HAS_FLAG = re.compile(r"(?:^|\s)--?[a-z]")
_GOES_ON = ("\\", "^")
_BEFORE_PROGRAM = ("", " ", "\t", "/", "\\", "`", "'", '"')
_AFTER_PROGRAM = ("", " ", "\t", ".")
_MOST_COMMANDS, _MOST_PARTS, _LONGEST_COMMAND = 5, 40, 8_000
WHOLE = ""
"""The device of a figure that no device is named for."""


class Said(Struct, frozen=True):
    """One thing that the log says."""

    field: str
    value: float | str
    """Memory in bytes."""
    device: str
    of: str
    line: int
    """Counted from 1."""
    entry: str
    firm: bool = False


class CauseSaid(Struct, frozen=True):
    """An error that the log shows."""

    cause: str
    line: int
    text: str


class Log(Struct):
    """What a log says."""

    runtime: str = ""
    """A framework; empty where the log does not tell."""
    said: dict[tuple[str, str], Said] = field(default_factory=dict)
    """By field and device; a later line counts instead of an earlier one."""
    causes: list[CauseSaid] = field(default_factory=list)
    cards: dict[str, str] = field(default_factory=dict)
    """Device -> the card's name as printed, by the most trusted of those that name any."""
    trust: int = 0
    """How far they are trusted: 2 the program, 1 a table of the driver, 0 a person."""
    certain: bool = False
    """Whether a line tells the program that no other prints."""
    commands: list[tuple[str, str]] = field(default_factory=list)
    """The last lines that start a known program: whole, and from the program on."""
    lines: int = 0
    known_lines: int = 0
    left_out_bytes: int = 0

    def text(self, name: str) -> str:
        """Give the last text of a field; empty for none."""
        found = self._of(name)
        return str(max(found, key=lambda said: said.line).value) if found else ""

    def figure(self, name: str) -> float | None:
        """Give a figure of all: what is said of all, else what is said of each, else the sum."""
        found = self._of(name)
        if not found:
            return None
        whole = [said for said in found if said.of != "device"]
        if whole:
            return float(max(whole, key=lambda said: said.line).value)
        return sum(float(said.value) for said in found)

    def on_cards(self, name: str) -> float | None:
        """Give the sum over the cards; what is said of each card is not summed."""
        found = [said for said in self._of(name) if not is_host(said.device)]
        if any(said.of != "device" for said in found):
            return self.figure(name)
        return sum(float(said.value) for said in found) if found else None

    def in_ram(self, name: str) -> float | None:
        """Give the sum over what is no card."""
        found = [said for said in self._of(name) if said.of == "device" and is_host(said.device)]
        return sum(float(said.value) for said in found) if found else None

    def each(self, name: str) -> bool:
        """Whether a figure is said of each card alike."""
        return any(said.of == "card" for said in self._of(name))

    def alone(self, name: str) -> str:
        """Name the only card that a figure is said of; empty where all or several are."""
        found = [said for said in self._of(name) if not is_host(said.device)]
        return found[0].device if len(found) == 1 and found[0].of == "device" else ""

    def apart(self, name: str, other: str) -> float:
        """Give the sum over the cards of which another figure is not said."""
        there = {said.device for said in self._of(other)}
        return sum(float(said.value) for said in self._of(name) if said.device not in there)

    def capacity(self, device: str) -> float | None:
        """Give the memory of a card, bytes."""
        said = self.said.get(("capacity", device))
        return float(said.value) if said else None

    def place(self, name: str) -> int:
        """Give the line that says it last; 0 for none."""
        return max((said.line for said in self._of(name)), default=0)

    def cause(self) -> CauseSaid | None:
        """Give the most telling error; of several the last."""
        telling = [one for one in self.causes if one.cause != CAUSES[-1]]
        found = telling or self.causes
        return found[-1] if found else None

    def _of(self, name: str) -> list[Said]:
        return [said for (key, _), said in self.said.items() if key == name]


def is_host(device: str) -> bool:
    """Whether a device is the computer around the cards: ``CPU_Mapped``, ``CUDA_Host``."""
    return bool(_HOST.match(device))


def read_lines(text: LogText, patterns: LogPatterns) -> Log:
    """Read what the lines of a log say."""
    log = Log(lines=len(text.lines), left_out_bytes=text.left_out_bytes)
    reader = _Reader(log, patterns)
    whole = "\n".join(text.lines)
    asked = [line for line in patterns.lines if any(form.needle in whole for form in line.forms)]
    for at, line in enumerate(text.lines):
        if line:
            reader.take(at, text.lines, asked)
    log.commands = list(_commands(text.lines))[-_MOST_COMMANDS:]
    return log


def _commands(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Give what starts a known program with flags, its broken lines put together."""
    begins = [" ".join(start.words) for start in starts() if start.kind == "words"]
    rest = iter(enumerate(lines))
    for at, line in rest:
        place = max((_program_at(begin, line) for begin in begins), default=-1)
        if place < 0 or not _HAS_FLAG.search(" ".join(lines[at : at + 2])):
            continue
        parts = [line]
        while parts[-1].rstrip().endswith(_GOES_ON) and len(parts) < _MOST_PARTS:
            parts.append(next(rest, (0, ""))[1])
        whole = "\n".join(parts)[:_LONGEST_COMMAND]
        yield whole, whole[place:]


def _program_at(begin: str, line: str) -> int:
    """Give the place where the words that start a program stand by themselves; -1 for none."""
    place = line.find(begin)
    if place < 0:
        return -1
    before, after = line[max(0, place - 1) : place], line[place + len(begin) :][:1]
    return place if before in _BEFORE_PROGRAM and after in _AFTER_PROGRAM else -1


class _Reader:
    """Puts together what the lines say."""

    def __init__(self, log: Log, patterns: LogPatterns) -> None:
        self._log = log
        self._words = patterns.words
        self._device = WHOLE

    def take(self, at: int, lines: Sequence[str], asked: Iterable[LogLine]) -> None:
        """Read the line at a place, with those that follow where it is broken."""
        line, known = lines[at], False
        for entry in asked:
            if entry.where and entry.where not in line:
                continue
            for form in entry.forms:
                if form.needle not in line and (not form.head or form.head not in line):
                    continue
                found = _matched(form, at, lines)
                if found is not None:
                    known = True
                    self._put(entry, at + 1, found, line)
                    break
        self._log.known_lines += known

    def _put(
        self, entry: LogLine, line: int, found: list[tuple[str, float | str]], text: str
    ) -> None:
        log = self._log
        if entry.begins:
            log.said = {key: said for key, said in log.said.items() if _outlasts(key[0])}
        if entry.begins or entry.recovers:
            log.causes.clear()
        if entry.runtime and (not entry.weak or not log.runtime):
            log.runtime = entry.runtime
            log.certain |= not entry.weak
        if entry.cause:
            log.causes.append(CauseSaid(entry.cause, line, text.strip()[:300]))
        self._keep(entry, line, [*found, *entry.sets.items()])

    def _keep(self, entry: LogLine, line: int, found: Sequence[tuple[str, float | str]]) -> None:
        named = next((str(value) for name, value in found if name == "device"), "")
        if named:
            self._device = _device(named)
        device = self._device if entry.of == "device" else WHOLE
        sums: dict[str, float] = {}
        for name, value in found:
            if name == "card":
                self._card(entry, str(value))
            elif FIELDS[name] == "text" and name != "device":
                self._text(
                    Said(name, self._meant(name, str(value)), "", "", line, entry.name, entry.firm)
                )
            elif name != "device":
                sums[name] = sums.get(name, 0.0) + float(value)
        for name, total in sums.items():
            self._figure(Said(name, total, device, entry.of, line, entry.name), adds=entry.adds)

    def _text(self, said: Said) -> None:
        before = self._log.said.get((said.field, ""))
        if said.value and not (before and before.firm and not said.firm):
            self._log.said[said.field, ""] = said

    def _figure(self, said: Said, *, adds: bool) -> None:
        key = (said.field, said.device)
        before = self._log.said.get(key)
        if adds and before and before.entry == said.entry:
            total = float(before.value) + float(said.value)
            said = Said(said.field, total, said.device, said.of, said.line, said.entry)
        self._log.said[key] = said

    def _card(self, entry: LogLine, name: str) -> None:
        log = self._log
        if is_host(self._device):
            return
        trust = 2 if entry.runtime else 0 if entry.weak else 1
        if trust > log.trust:
            log.cards.clear()
        if trust >= log.trust or not log.cards:
            log.trust = trust
            if log.cards.get(WHOLE) == name:  # named before without its device
                del log.cards[WHOLE]
            log.cards[self._device] = name

    def _meant(self, name: str, text: str) -> str:
        """Give what a text of a log is called here."""
        key = "cache_type" if name.startswith("cache_type") else name
        words = self._words.get(key, {})
        plain = text.strip().strip("'\"")
        return words.get(plain, plain)


def _outlasts(name: str) -> bool:
    """Whether a field holds for the next run too."""
    return FIELDS[name] != "memory" or name in _OF_THE_MACHINE


def _device(text: str) -> str:
    """Call a device by its number: 0 for ``CUDA0`` and ``0``; others as they are."""
    numbered = _NUMBERED.fullmatch(text)
    return numbered[1] if numbered and not is_host(text) else text


def _matched(form: Form, at: int, lines: Sequence[str]) -> list[tuple[str, float | str]] | None:
    """Read a form in a line, else in the line with those behind it, broken as terminals do."""
    line = lines[at]
    if form.needle in line and (found := _in_line(form, line)) is not None:
        return found
    if len(line) > _LONGEST_PART or not form.head or form.head not in line or not form.fields:
        return None
    following = [one[:_LONGEST_PART] for one in lines[at + 1 : at + _MOST_JOINED] if one]
    if any(form.begin in " ".join(one.split()) for one in following):  # lines of their own
        return None
    if not any(form.needle in one for one in (line, *following)):
        return None
    for between in ("", " "):
        if (found := _in_line(form, between.join([line, *following]))) is not None:
            return found
    return None


def _in_line(form: Form, line: str) -> list[tuple[str, float | str]] | None:
    pattern = re.compile(form.pattern)  # a hundred forms: the module keeps five hundred
    for place in _places(form.head, line):
        if match := pattern.match(line, place):
            return list(_values(form, match))
    return None


def _places(head: str, line: str) -> Iterator[int]:
    if not head:
        yield 0
        return
    place = -1
    for _ in range(_MOST_PLACES):
        place = line.find(head, place + 1)
        if place < 0:
            return
        yield place


def _values(form: Form, match: re.Match[str]) -> Iterator[tuple[str, float | str]]:
    groups = iter(match.groups())
    for name, unit in form.fields:
        text = next(groups)
        if unit == "sizes":
            sizes = _SIZES.findall(text)
            yield name, sum(float(number) * _own(unit) for number, unit in sizes)
        elif FIELDS[name] == "text":
            yield name, text.strip()
        else:
            number = float(text.replace(",", ""))
            yield name, number * (_own(next(groups)) if unit == "size" else factor(name, unit))


def _own(unit: str) -> float:
    return base_factor("bytes" if unit == "B" else unit)
