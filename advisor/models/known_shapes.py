"""Shapes of the known models: read once per state of knowledge, then taken from the cache.

Reading 300 configs takes a tenth of a second and a dozen modules; a warm start needs neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from msgspec import to_builtins

from advisor.errors import SourceFileError, UserError
from advisor.files import compiled
from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.models.shape import Blocks, Counts, Mla, Moe, Recurrent, Shape

_PARTS = {"mla": Mla, "moe": Moe, "recurrent": Recurrent, "blocks": Blocks}
_stored: dict[int, tuple[Knowledge, Mapping[str, object]]] = {}


def known_shape(record: ModelRecord, knowledge: Knowledge) -> Shape:
    """Give the shape of a model of the knowledge base.

    Raises:
        SourceFileError: The architecture cannot be sized; the message says why.
    """
    stored = stored_shapes(knowledge).get(record.name)
    if stored is None:
        return _read(record)
    if isinstance(stored, str):
        raise SourceFileError(stored)
    return restored(cast("Mapping[str, object]", stored))


def stored_shapes(knowledge: Knowledge) -> Mapping[str, object]:
    """Give every shape as plain data, or the message why it cannot be sized."""
    found = _stored.get(id(knowledge))
    if found is None or found[0] is not knowledge:
        data = compiled("shapes", knowledge.sha256, lambda: _all(knowledge), dict[str, object])
        found = _stored[id(knowledge)] = (knowledge, data)
    return found[1]


def _all(knowledge: Knowledge) -> dict[str, object]:
    shapes: dict[str, object] = {}
    for record in knowledge.models.values():
        try:
            shapes[record.name] = to_builtins(_read(record))
        except UserError as error:
            shapes[record.name] = str(error)
    return shapes


def _read(record: ModelRecord) -> Shape:
    from advisor.models.config import read_config  # noqa: PLC0415  a warm start does without

    return read_config(record.config, f"knowledge: {record.name}")


def restored(stored: Mapping[str, object]) -> Shape:
    """Build a shape from its plain data."""
    fields = dict(stored)
    for name, kind in _PARTS.items():
        if fields.get(name) is not None:
            fields[name] = kind(**cast("dict[str, int]", fields[name]))
    if fields.get("kv_heads_by_layer") is not None:
        fields["kv_heads_by_layer"] = tuple(cast("list[int]", fields["kv_heads_by_layer"]))
    if fields.get("counts") is not None:
        fields["counts"] = _counts(cast("dict[str, object]", fields["counts"]))
    return Shape(**fields)  # type: ignore[arg-type]  # written by to_builtins(Shape) above


def _counts(stored: Mapping[str, object]) -> Counts:
    fields = dict(stored)
    for name in ("layers", "experts"):
        fields[name] = tuple(cast("list[int]", fields[name]))
    return Counts(**fields)  # type: ignore[arg-type]  # written by to_builtins(Counts)
