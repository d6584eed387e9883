"""What a runtime does on which card: rows of capabilities*.yaml, in the order of asking.

The rows are exceptions: what none of them answers, the lists of frameworks.yaml do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from msgspec import Struct, field

from advisor.knowledge.field_kinds import Flag, Kind, Number, Text, Texts, choice, choices

About = Literal[
    "card", "model", "task", "weights", "dtype", "kv_cache", "kv_pair", "split", "draft",
    "sequences", "upkeep",
]  # fmt: skip
"""What a row answers; capabilities.yaml says what each means."""
Answer = Literal["runs", "refused", "slow"]
Attention = Literal["heads", "mla"]


class Capability(Struct, frozen=True, omit_defaults=True):
    """One row; all conditions that are stated must hold."""

    name: Text = field(name="capability")
    framework: Text
    version: Text
    about: Annotated[About, Kind(choice(get_args(About)))]
    answer: Annotated[Answer, Kind(choice(get_args(Answer)))]
    why: Text
    """One clause."""
    at: Text
    """File and line of the source."""
    of: Texts = ()
    """Names in question; empty: all."""
    vendors: Texts = ()
    architectures: Texts = ()
    from_capability: Number | None = None
    below_capability: Number | None = None
    backends: Texts = ()
    attention: Annotated[tuple[str, ...], Kind(choices(get_args(Attention)))] = ()
    other_head_sizes: Texts = ()
    """Elements of a head that it does not hold for."""
    model_types: Texts = ()
    other_model_types: Texts = ()
    """Architectures that it does not hold for."""
    experts: Flag = False
    """For mixtures of experts alone."""
    sources: Mapping[str, str] = field(default_factory=dict)
