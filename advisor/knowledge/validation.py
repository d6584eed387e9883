"""The last check before knowledge is stored: every record against its type, by pydantic.

The readers know positions and units; this knows types. It runs when files are compiled, never
on a warm start.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields
from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from advisor.errors import KnowledgeError
from advisor.knowledge.types import Format, Framework, GgmlType, Gpu, KvType, ModelRecord

_TABLES = {
    "gpus": Gpu,
    "models": ModelRecord,
    "ggml_types": GgmlType,
    "formats": Format,
    "kv_types": KvType,
    "frameworks": Framework,
}


def type_problems(tables: Mapping[str, object]) -> Iterator[KnowledgeError]:
    """Name every field of every record whose type is not the one declared.

    Args:
        tables: Table -> record name -> fields, or their JSON text.
    """
    for table, kind in _TABLES.items():
        adapter: TypeAdapter[object] = TypeAdapter(_model(kind))
        records = tables[table]
        assert isinstance(records, Mapping)
        for name, stored in records.items():
            text = stored if isinstance(stored, str) else json.dumps(stored)
            yield from _problems(adapter, f"{table}: {name}", text)


def _problems(adapter: TypeAdapter[object], where: str, text: str) -> Iterator[KnowledgeError]:
    try:
        adapter.validate_json(text, strict=True)
    except ValidationError as error:
        for item in error.errors():
            place = ".".join(str(part) for part in item["loc"])
            yield KnowledgeError(f"{where}: {place}: {item['msg']}")


@cache
def _model(kind: type[Struct]) -> type[BaseModel]:
    """The pydantic model with the fields of a record."""
    hints = get_type_hints(kind)
    known = {f.name: ... if f.required else None for f in fields(kind)}
    declared: Mapping[str, Any] = {name: (_hint(hints[name]), known[name]) for name in known}
    return create_model(kind.__name__, **declared)


def _hint(hint: object) -> object:
    """The type with every record in it made a model."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _model(hint)
    origin = get_origin(hint)
    if origin is None or origin is Literal:
        return hint
    inside = [_hint(part) for part in get_args(hint)]
    return reduce(or_, inside) if origin in {Union, UnionType} else origin[tuple(inside)]
