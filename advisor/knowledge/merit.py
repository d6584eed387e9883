"""What public leaderboards say of models, on one scale for each use (docs/merit.md).

The figures stand in ``knowledge/merit.csv``, the boards in ``boards.yaml``. They are put on one
scale while the knowledge is compiled (``merit_scale``) and read when a model is first asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal

from msgspec import Raw, Struct, field

from advisor.knowledge.field_kinds import Flag, Kind, Number, Text, choices
from advisor.knowledge.types import Knowledge
from advisor.memo import decoded

Use = Literal["chat", "code", "reasoning", "vision", "agents", "embedding", "long-context"]
USES: Final[Sequence[Use]] = (
    "chat", "code", "reasoning", "vision", "agents", "embedding", "long-context",
)  # fmt: skip
_PURPOSES: Final = ("code", "coder", "devstral", "codestral", "math", "ocr", "guard")
"""Words by which a name says that a model is made for one thing."""


class Board(Struct, frozen=True):
    """A public leaderboard, and what it counts for."""

    name: Text = field(name="board")
    metric: Text
    """What it measures, with the unit."""
    uses: Annotated[tuple[str, ...], Kind(choices(USES))]
    weight: Number
    """Beside the other boards of a use."""
    sets_scale: Flag = False
    """Whether merit for its uses is told in its points."""
    on_scale_of: Text | None = None
    """The board in whose points it is told from the start."""
    sources: Mapping[str, str] = field(default_factory=dict)


class Figure(Struct, frozen=True, array_like=True):
    """What a board says of a model, in the board's own unit."""

    board: str
    value: float
    low: float | None
    """With ``high`` its interval, where the board gives one."""
    high: float | None
    seen: str
    """The day of the table that it was read from."""
    thinks: bool = False
    """Whether the model thought before it answered."""


class Merit(Struct, frozen=True, array_like=True):
    """How good a model is for a use, unquantised, in points of the board that sets the scale."""

    points: float
    band: float
    """How far boards differ about such a model, in points."""
    thinks: bool
    relative: str | None = None
    """The model whose figure this is; None: its own."""
    estimated: bool = False
    """Whether its boards estimated it from a part of their tests."""

    @property
    def unsure(self) -> bool:
        """Whether nobody measured this model itself, or not whole."""
        return self.estimated or self.relative is not None

    @property
    def counted(self) -> float:
        """The points that a model is ranked by: of an unsure figure the low end of its band."""
        return max(self.points - self.band, 0.0) if self.unsure else self.points


class Merits(Struct, frozen=True):
    """Everything that boards say, as it is kept in the index of the knowledge."""

    uses: Mapping[str, Mapping[str, Merit]] = {}
    """Use -> record, or repository of the public list, -> merit."""
    figures: Mapping[str, Sequence[Figure]] = {}
    boards: Mapping[str, Board] = {}
    scales: Mapping[str, str] = {}
    """Use -> the board in whose points its merit is told."""
    as_of: str = ""
    """The newest day of any figure."""


_Merits = dict[str, Merit]


class _Stored(Struct, frozen=True):
    """What most questions need of it: the rest is passed over."""

    uses: Mapping[str, Raw] = {}
    as_of: str = ""


def merits(knowledge: Knowledge) -> Merits:
    """Give everything that boards say."""
    return decoded(knowledge.index.get("merit"), Merits) or Merits()


def _stored(knowledge: Knowledge) -> _Stored:
    return decoded(knowledge.index.get("merit"), _Stored) or _Stored()


def _of_use(knowledge: Knowledge, use: str) -> Mapping[str, Merit]:
    return decoded(_stored(knowledge).uses.get(use), _Merits) or {}


def is_aged(knowledge: Knowledge, released: str | None) -> bool:
    """Whether a model is older than ``merit_oldest_years`` by the newest figure of any board."""
    newest = _stored(knowledge).as_of
    if not newest or not released:
        return False
    return released < f"{int(newest[:4]) - int(knowledge.policy['merit_oldest_years'])}{newest[4:]}"


def merit_of(knowledge: Knowledge, name: str, hf_id: str | None, use: str) -> Merit | None:
    """Give the merit of a model for a use; None where no board names it or a relative.

    By ``hf_id``, its repository, models of the public list are known.
    """
    found = _of_use(knowledge, use)
    return found.get(name) or found.get(hf_id or "")


def figures_for(
    knowledge: Knowledge, names: Sequence[str], use: str
) -> Iterator[tuple[Figure, Board]]:
    """Give what boards that count for a use say of a model, by the first of its names known."""
    kept = merits(knowledge)
    named = next((kept.figures[name] for name in names if name in kept.figures), ())
    for figure in named:
        if use in kept.boards[figure.board].uses:
            yield figure, kept.boards[figure.board]


_SAID: Final[Mapping[str, Use]] = {
    "chat": "chat", "chatting": "chat", "chatbot": "chat", "writing": "chat",
    "code": "code", "coding": "code", "coder": "code", "programming": "code",
    "reasoning": "reasoning", "thinking": "reasoning", "math": "reasoning", "maths": "reasoning",
    "vision": "vision", "images": "vision", "pictures": "vision", "screenshots": "vision",
    "agent": "agents", "agents": "agents", "agentic": "agents", "tools": "agents",
    "embedding": "embedding", "embeddings": "embedding", "retrieval": "embedding",
    "long-context": "long-context", "long documents": "long-context",
}  # fmt: skip
"""Words by which people say what a model is for."""


def use_said(phrase: str) -> Use | None:
    """Give the use that a phrase of a question says; None where it says none."""
    folded = phrase.casefold()
    return _SAID.get(folded) or next(filter(None, map(_SAID.get, folded.split())), None)


def purposes(name: str) -> set[str]:
    """Give what a name says that a model is made for; nothing where it is made for all."""
    return {"code" if "cod" in word or "dev" in word else word
            for word in _PURPOSES if word in name.casefold()}  # fmt: skip


FOR_IMAGES = re.compile(
    r"vl\d?\b|vlm|vision|ocr|llava|pixtral|molmo|internvl|minicpm-v|paligemma|moondream|florence"
    r"|idefics|multimodal|omni|\dv\b",
    re.IGNORECASE,
)
"""Names of models made to read images: who asks for one wants that part."""
