"""What a plan is to the rest: so many scenarios, cut into numbered shards."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from msgspec import Struct

SHARD_SIZE = 256
"""Scenarios in a shard unless the plan says otherwise."""
MOST_IN_A_SHARD = 4096


class Item(Struct, frozen=True):
    """One scenario to be reported."""

    request: Mapping[str, object]
    """Keys of a request; in their canonical spelling unless ``line`` says where they stood."""
    line: int = 0
    """Line of the file of requests, 0 for a plan in YAML."""
    id: object = None
    """As stated in the file of requests."""


class Shard(Struct, frozen=True):
    """A run of neighbouring scenarios; its number, from 0, depends on the plan alone."""

    number: int
    items: tuple[Item, ...]


class Plan(Protocol):
    """Everything that is to be reported."""

    @property
    def scenarios(self) -> int:
        """How many there are."""

    @property
    def shard_size(self) -> int:
        """Scenarios in every shard but the last."""

    @property
    def skipped(self) -> Mapping[str, int]:
        """Combinations left out because they cannot run, by reason."""

    @property
    def described(self) -> Mapping[str, object]:
        """The plan as plain data in canonical spelling, for the manifest."""

    def shards(self, wanted: Collection[int]) -> Iterator[Shard]:
        """Give the shards of these numbers, in order."""


def shard_count(plan: Plan) -> int:
    """How many shards a plan is cut into."""
    return shards_of(plan.scenarios, plan.shard_size)


def shards_of(scenarios: int, size: int) -> int:
    """How many shards of a size, 1 or more, so many scenarios are cut into."""
    return -(-scenarios // size)
