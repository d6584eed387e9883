"""Weight formats by the names that people type, resolved to records; patterns only where needed.

What knowledge/formats.yaml lists, by name or alias, is looked up there; what it lists as ``near``
and what follows a pattern is read by ``format_patterns``, which a plain name does without.
"""

from __future__ import annotations

from msgspec import Struct

from advisor.errors import RequestError
from advisor.knowledge.index import by_text
from advisor.knowledge.names import find_format_candidates
from advisor.knowledge.types import Format, Knowledge


class FormatRead(Struct, frozen=True):
    """What a precision stands for."""

    formats: tuple[Format, ...]
    """One, or those that bear the same word in different runtimes; never none."""
    remark: str = ""
    """What a size rests on, a clause; empty where the format is listed just so."""
    mixed: bool = False
    """A maker's own mix of types, of which the file may be smaller or larger."""

    def said(self, text: str, chosen: Format) -> tuple[str, ...]:
        """Say in a sentence which format was taken; nothing where it is listed just so."""
        return (f"{text.strip()} is sized as {chosen.name}{self.remark}.",) if self.remark else ()


@by_text
def read_format(knowledge: Knowledge, text: str) -> FormatRead:
    """Find the weight formats that a word stands for.

    Raises:
        RequestError: Unknown, with the nearest names.
    """
    try:
        return FormatRead(find_format_candidates(knowledge, text))
    except RequestError:
        from advisor.reading.format_patterns import patterned  # noqa: PLC0415  a plain name does without

        found = patterned(knowledge, text)
        if found is None:
            raise
        return FormatRead(*found)


def is_mix(knowledge: Knowledge, text: str) -> bool:
    """Say whether a word is a maker's own mix of types; what is no name of a format is none."""
    try:
        return read_format(knowledge, text).mixed
    except RequestError:
        return False
