"""Typed, bounded reading of the keys of a config.json.

Whatever is wrong becomes one sentence that names the key, its value and what is allowed.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NoReturn

from msgspec import Struct, field

from advisor.errors import NotDescribedError, Source, SourceFileError

MAX_WIDTH: Final = 10**9
MAX_LAYERS: Final = 10_000
_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
_MOST_TIMES: Final = 100
_SHOWN_LENGTH: Final = 60


class Seen(Struct):
    """What was looked at while a config was read; shared by all its parts."""

    read: set[tuple[str, str]] = field(default_factory=set)
    """Keys, each behind the name of the part that holds it."""
    assumed: dict[str, object] = field(default_factory=dict)
    """Keys that are not in the file, with the default that the reference class has for them."""


class Keys:
    """A mapping of a config file, with class defaults behind it.

    ``null`` counts as absent, but takes no default of the reference class. Where several names
    are given, the first one present counts.

    Args:
        data: The mapping as read.
        shown: The file name that messages carry.
        defaults: What absent keys mean in this architecture's reference class.
        inside: The key that holds this mapping, for messages (``text_config``).
        seen: Where it is noted what was read.
        fallback: The defaults of the very class that the file names; they go before others.
    """

    __slots__ = ("_data", "_defaults", "_fallback", "_inside", "_shown", "seen")

    def __init__(
        self,
        data: Mapping[str, object],
        shown: str,
        defaults: Mapping[str, object] = _NOTHING,
        inside: str = "",
        *,
        seen: Seen | None = None,
        fallback: Mapping[str, object] = _NOTHING,
    ) -> None:
        self.seen = seen or Seen()
        self._fallback = fallback
        self._data = data
        self._shown = shown
        self._defaults = defaults
        self._inside = inside

    @property
    def data(self) -> Mapping[str, object]:
        """The mapping as read, without defaults."""
        return self._data

    def with_defaults(self, defaults: Mapping[str, object]) -> Keys:
        """The same mapping with further class defaults behind it."""
        both = {**defaults, **self._defaults}
        return Keys(
            self._data, self._shown, both, self._inside, seen=self.seen, fallback=self._fallback
        )

    @property
    def of_class(self) -> Mapping[str, object]:
        """The defaults of its reference class."""
        return self._fallback

    def with_class(self, fallback: Mapping[str, object]) -> Keys:
        """The same mapping with the defaults of its reference class before all others."""
        return Keys(
            self._data, self._shown, self._defaults, self._inside, seen=self.seen, fallback=fallback
        )

    def part(self, inside: str, fallback: Mapping[str, object]) -> Keys:
        """A part that the file does not have and the reference class makes."""
        return Keys(_NOTHING, self._shown, inside=inside, seen=self.seen, fallback=fallback)

    def unread(self) -> dict[str, object]:
        """Keys of this mapping that nothing looked at."""
        read = self.seen.read
        return {k: v for k, v in self._data.items() if (self._inside, k) not in read}

    def _note(self, names: tuple[str, ...]) -> None:
        self.seen.read.update((self._inside, name) for name in names)

    def stated(self, *names: str) -> object:
        """The value as written in the file, None when absent."""
        self._note(names)
        return next((self._data[n] for n in names if self._data.get(n) is not None), None)

    def find(self, *names: str) -> tuple[str, object]:
        """Give the first name present and its value, or the first name and None."""
        self._note(names)
        # A null in the file does without the default of the reference class.
        null = any(name in self._data for name in names)
        for values in (self._data, {} if null else self._fallback, self._defaults):
            name = next((name for name in names if values.get(name) is not None), None)
            if name is not None:
                if values is not self._data:
                    self.seen.assumed[self._named(name)] = values[name]
                return name, values[name]
        return names[0], None

    def error(self, message: str) -> SourceFileError:
        """Build an error about this file."""
        return SourceFileError(message, source=Source(self._shown))

    def gap(self, message: str, hint: str = "") -> NotDescribedError:
        """Build an error about what nobody has described here; the file may be well-formed."""
        return NotDescribedError(message, source=Source(self._shown), hint=hint)

    def whole(self, *names: str, least: int = 1, most: int = MAX_WIDTH) -> int:
        """Give a whole number that must be there."""
        found = self.maybe(*names, least=least, most=most)
        if found is None:
            raise self.error(f"{self._named(names[0])} is missing, so the model cannot be sized.")
        return found

    def maybe(self, *names: str, least: int = 0, most: int = MAX_WIDTH) -> int | None:
        """Give a whole number, None when absent."""
        name, value = self.find(*names)
        if value is None:
            return None
        return self._checked(name, value, least, most)

    def number(self, name: str, default: int, *, least: int = 0, most: int = MAX_WIDTH) -> int:
        """Give a whole number, or ``default`` when absent."""
        found = self.maybe(name, least=least, most=most)
        return default if found is None else found

    def ratio(self, name: str, usual: float) -> float:
        """Give a number that need not be whole; the usual one where it is none that can be."""
        _, value = self.find(name)
        return value if isinstance(value, float) and 0 < value < _MOST_TIMES else usual

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Give a true or false switch."""
        _, value = self.find(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(f"{self._named(name)} is {_shown(value)}; it must be true or false.")
        return value

    def word(self, name: str) -> str | None:
        """Give a text, None when absent."""
        _, value = self.find(name)
        if value is not None and not isinstance(value, str):
            raise self.error(f"{self._named(name)} is {_shown(value)}; it must be a text.")
        return value

    def items(self, *names: str) -> tuple[object, ...] | None:
        """Give a list, None when absent."""
        name, value = self.find(*names)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise self.error(f"{self._named(name)} is {_shown(value)}; it must be a list.")
        return tuple(value)

    def wholes(self, *names: str) -> tuple[int, ...] | None:
        """Give a list of whole numbers from 0, None when absent."""
        listed = self.items(*names)
        if listed is None:
            return None
        return tuple(self._checked(names[0], value, 0, MAX_WIDTH) for value in listed)

    def uniform(self, *names: str) -> int | None:
        """Give a whole number that may be repeated in a list, one for every layer.

        Raises:
            SourceFileError: The layers differ.
        """
        name, value = self.find(*names)
        if not isinstance(value, list | tuple):
            return self.maybe(*names)
        differing = set(self.wholes(name) or ())
        if len(differing) != 1:
            text = f"{self._named(name)} differs from layer to layer"
            raise self.gap(f"{text}, which advisor cannot size yet.")
        return differing.pop()

    def most_of(self, listed: str, *names: str, most: int = MAX_WIDTH) -> int:
        """Give the largest number of a list by layer, else one whole number that must be there."""
        by_layer = self.wholes(listed) if self.stated(listed) else None
        return max(by_layer) if by_layer else self.whole(*names, most=most)

    def section(self, *names: str) -> Keys | None:
        """Give a nested mapping, None when absent."""
        name, value = self.find(*names)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.error(f"{self._named(name)} is {_shown(value)}; it must be an object.")
        return Keys(value, self._shown, inside=name, seen=self.seen)

    def _checked(self, name: str, value: object, least: int, most: int) -> int:
        if isinstance(value, float) and value.is_integer() and abs(value) <= most:
            text = f"{self._named(name)} is {_shown(value)}; write it as a whole number"
            raise self.error(f"{text} ({int(value)}).")
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            text = f"{self._named(name)} is {_shown(value)}"
            raise self.error(f"{text}; it must be a whole number from {least} to {most}.")
        return value

    def _named(self, name: str) -> str:
        return f"{self._inside}.{name}" if self._inside else name


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 3] + "..."


MAX_BYTES: Final = 10_000_000
MAX_DEPTH: Final = 40


def read_json_object(path: Path) -> Mapping[str, object]:
    """Read a JSON object.

    Raises:
        SourceFileError: The file is missing, unreadable, not a plain file, empty, larger
            than 10 MB, not JSON, nested too deeply, or not an object.
    """
    text = _text(path)
    try:
        found: object = json.loads(text, parse_constant=_constant)
    except json.JSONDecodeError as bad:
        message = f"this is not valid JSON ({bad.msg}); the file may be cut off"
        raise SourceFileError(message, source=Source(str(path), bad.lineno, bad.colno)) from None
    except RecursionError:
        _fail(path, f"this is nested deeper than {MAX_DEPTH} levels")
    except ValueError as bad:
        _fail(path, str(bad))
    if not isinstance(found, dict):
        _fail(path, "this is JSON, but not an object with keys")
    if _deeper(found, MAX_DEPTH):
        _fail(path, f"this is nested deeper than {MAX_DEPTH} levels")
    return found


def _text(path: Path) -> str:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            _fail(path, "this is not a plain file")
        if status.st_size > MAX_BYTES:
            _fail(path, f"this is larger than {MAX_BYTES // 10**6} MB, so no config.json")
        content = path.read_bytes()
    except FileNotFoundError:
        _fail(path, "there is no such file")
    except OSError as bad:
        _fail(path, f"the file cannot be read ({bad.strerror or bad})")
    except ValueError:
        _fail(path, "this is not the name of a file")
    return _decoded(path, content)


def _decoded(path: Path, content: bytes) -> str:
    if not content.strip():
        _fail(path, "the file is empty")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        _fail(path, "the file is not UTF-8 text")


def _deeper(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    if levels == 0:
        return True
    inner = value.values() if isinstance(value, dict) else value
    return any(_deeper(item, levels - 1) for item in inner)


def _constant(name: str) -> float:
    # Configs of Mamba-2 models state open limits as Infinity.
    if name != "NaN":
        return float(name.replace("Infinity", "inf"))
    text = "it holds NaN, which is not a number"
    raise ValueError(text)


def _fail(path: Path, reason: str) -> NoReturn:
    raise SourceFileError(f"{reason}.", source=Source(str(path)))
