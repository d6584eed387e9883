"""A record between file and dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.errors import Source


@dataclass(frozen=True, slots=True)
class Parsed:
    """A record as JSON-able data, and where it stands."""

    fields: Mapping[str, object]
    place: Source
