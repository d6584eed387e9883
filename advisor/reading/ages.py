"""How old what is known is: records, boards, the public list, and what they lack of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from advisor.knowledge.merit import merits
from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.reading.public_list import PublicModel, every
from advisor.reading.published import is_packed

_MANY: Final = 50_000
"""Downloads from which a repository is one that people look for."""


class Age(Struct, frozen=True):
    """One part of the knowledge."""

    what: str
    entries: int
    newest: str
    """Day of the youngest entry; empty where none is dated."""
    undated: int


def ages(knowledge: Knowledge) -> Iterator[Age]:
    """Give every part with its youngest entry."""
    records = knowledge.models.values()
    yield _age("models, by release", (record.released for record in records))
    yield _age("cards, by release", (gpu.released for gpu in knowledge.gpus.values()))
    kept = merits(knowledge)
    for board in kept.boards:
        figures = (one.seen for many in kept.figures.values() for one in many if one.board == board)
        yield _age(f"board {board}, by table", figures)
    yield _age("public list, by release", (public.release_date or None for public in every()))


def _age(what: str, days: Iterable[str | None]) -> Age:
    found = list(days)
    known = [day for day in found if day]
    return Age(what, len(found), max(known, default=""), len(found) - len(known))


class Behind(Struct, frozen=True):
    """A family whose newest record is older than what its publisher has since published."""

    family: str
    newest: str
    """Release of its newest record."""
    since: Sequence[str]
    """Repositories of the list, the most downloaded first."""


def behind(knowledge: Knowledge) -> Iterator[Behind]:
    """Find families whose publisher has newer models of the same architecture on the list."""
    own = {(record.hf_id or "").casefold() for record in knowledge.models.values()}
    listed = [
        public for public in every() if _is_wanted(public) and public.hf_id.casefold() not in own
    ]
    families: dict[str, list[ModelRecord]] = {}
    for record in knowledge.models.values():
        families.setdefault(record.family, []).append(record)
    for family, records in families.items():
        newest = max((record.released or "" for record in records), default="")
        kinds = {
            ((r.hf_id or "").partition("/")[0], str(r.config.get("model_type"))) for r in records
        }
        since = sorted(
            (public for public in listed
             if (public.hf_id.partition("/")[0], public.architecture) in kinds
             and newest and public.release_date > newest),
            key=lambda public: -(public.hf_downloads or 0),
        )  # fmt: skip
        if since:
            yield Behind(family, newest, [public.hf_id for public in since])


def _is_wanted(public: PublicModel) -> bool:
    return (public.hf_downloads or 0) >= _MANY and not is_packed(public) and not public.format


def without_record(knowledge: Knowledge, most: int) -> Sequence[PublicModel]:
    """List those of the most downloaded repositories that have no record of their own.

    Args:
        knowledge: What is known.
        most: How many of the most downloaded are looked at.
    """
    own = {(record.hf_id or "").casefold() for record in knowledge.models.values()}
    ranked = sorted(every(), key=lambda public: -(public.hf_downloads or 0))[:most]
    return [public for public in ranked if public.hf_id.casefold() not in own]
