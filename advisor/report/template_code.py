"""Compiled templates as functions, and where they are kept; jinja2 is not needed for either."""

from __future__ import annotations

import hashlib
import marshal
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import CodeType

from advisor.errors import Source, TemplateError
from advisor.files import user_cache_dir, write_whole
from advisor.report.variants import picked

Rendering = Callable[[Mapping[str, object]], str]
_FORMAT = 2
"""Rises when ``compiling`` or ``grammar`` changes what it makes of a template."""
_HASH_BYTES = 32
MAX_BYTES = 64 * 1024
"""Of one template; the largest built-in one has 9 KiB."""
_MOST_WRITTEN = 4_000_000
"""Characters of one rendering; the largest reports have a tenth of it."""
ESCAPED = (".html.j2", ".svg.j2")
"""Endings of templates in which placeholders are escaped."""


def first_upper(text: str) -> str:
    """Make the first letter a capital and leave the rest (``lower`` would spoil names)."""
    return text[:1].upper() + text[1:]


def _join(items: Iterable[object], between: str = "") -> str:
    return between.join(map(str, items))


def attribute(of: object, key: str) -> object:
    """Look a field up in a row of a table or in a record; nothing else has attributes here.

    Raises:
        TemplateError: There is none of this name.
    """
    if isinstance(of, dict):
        try:
            return of[key]
        except KeyError:
            known = tuple(of)
    else:
        known = tuple(getattr(type(of), "__struct_fields__", getattr(type(of), "_fields", ())))
        if key in known:
            return getattr(of, key)
    from advisor.suggest import did_you_mean  # noqa: PLC0415 - for mistakes only

    raise TemplateError(f"there is no '{key}' here", hint=did_you_mean(key, known))


def place_of(bad: Exception, name: str) -> Source:
    """Find the line of a template in which it failed, from the traceback."""
    line, trace = 0, bad.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename.endswith(".j2"):
            line = trace.tb_lineno
        trace = trace.tb_next
    return Source(f"templates/{name}", line)


class Writer:
    """Takes what a template with loops writes, as long as it stays within bounds."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self._left = _MOST_WRITTEN

    def add(self, piece: str) -> None:
        """Take one piece.

        Raises:
            TemplateError: It is too much.
        """
        self._left -= len(piece)
        if self._left < 0:
            message = f"the template writes more than {_MOST_WRITTEN:,} characters"
            raise TemplateError(message, hint="A loop writes too much.")
        self.out.append(piece)


def _escape(value: object) -> str:
    from markupsafe import escape  # noqa: PLC0415 - for HTML alone

    return escape(value)


FILTERS: Mapping[str, Callable[..., str]] = {
    "capitalize": str.capitalize,
    "first_upper": first_upper,
    "join": _join,
    "lower": str.lower,
}


def rendering(code: CodeType) -> Rendering:
    """Make the function of a compiled template."""
    names: dict[str, object] = {
        "Writer": Writer,
        "attribute": attribute,
        "escape": _escape,
        "picked": picked,
        **{f"f_{name}": filtered for name, filtered in FILTERS.items()},
    }
    exec(code, names)  # noqa: S102 - made by ``compiling`` from names and constants alone
    made: Rendering = names["rendering"]  # type: ignore[assignment]  # what the code defines
    return made


def kept(name: str, source: bytes) -> CodeType | None:
    """Read a compiled template from the user's cache; None where it is not there or broken."""
    try:
        content = _place(name, source).read_bytes()
    except OSError:
        return None
    digest, code = content[:_HASH_BYTES], content[_HASH_BYTES:]
    if hashlib.sha256(code).digest() != digest:
        return None
    found = marshal.loads(code)  # noqa: S302 - as Python reads its own .pyc files
    return found if isinstance(found, CodeType) else None


def keep(name: str, source: bytes, code: CodeType) -> None:
    """Write a compiled template whole or not at all; an unusable folder costs time only."""
    place, content = _place(name, source), marshal.dumps(code)
    with suppress(OSError):
        write_whole(place, [hashlib.sha256(content).digest(), content])


def _place(name: str, source: bytes) -> Path:
    digest = hashlib.sha256(f"{name}\0".encode() + source).hexdigest()
    folder = f"templates-{_FORMAT}-{sys.implementation.cache_tag}"
    return user_cache_dir() / folder / digest[:32]
