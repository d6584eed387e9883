"""How people call cards: computers by product, the usual of several boards, words beside a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Struct, convert, field

from advisor.knowledge.field_kinds import Count, Kind, Text, Texts, sizes
from advisor.knowledge.types import Knowledge
from advisor.memo import by_identity


class Machine(Struct, frozen=True):
    """A computer or rented instance by its product name, and the cards it is sold with."""

    name: Text = field(name="machine")
    aliases: Texts
    cards: Texts
    """One of these; of several the chip has to be named too."""
    count: Count | None = None
    """How many equal ones it has, where that is fixed."""
    usual: Texts = ()
    """Of several chips those that are meant where none is named, the first that has the memory."""
    sizes: Annotated[tuple[int, ...], Kind(sizes)] = ()
    """Memory it is sold with where that is not what the chip is, the usual one first."""
    sources: Mapping[str, str] = field(default_factory=dict)


class CardNames(Struct, frozen=True):
    """What is known of names of cards beside the catalogue; stored in the index of names."""

    usual: tuple[str, ...] = ()
    """Names of cards that are meant where a name stands for several (usual_cards.yaml)."""
    of_memory: tuple[str, ...] = ()
    """Those that are taken where nothing but their memory is said."""
    words: tuple[str, ...] = ()
    """Words beside a card's name that mean nothing (card_words.yaml)."""
    machines: tuple[Machine, ...] = ()
    """Computers by their product names (computers.yaml)."""


@by_identity
def card_names(knowledge: Knowledge) -> CardNames:
    """Give them; nothing for knowledge that was made by hand."""
    return convert(knowledge.index.get("card_names", {}), CardNames)
