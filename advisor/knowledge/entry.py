"""A record between file and type."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from advisor.errors import Source


class Parsed(Struct, frozen=True):
    """A record as JSON-able data, and where it stands."""

    fields: Mapping[str, object]
    place: Source
