"""The last check before knowledge is stored: every record against its dataclass, by pydantic.

The readers know positions and units; this knows types. It runs when files are compiled, never
on a warm start.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from pydantic import TypeAdapter, ValidationError

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
        adapter: TypeAdapter[object] = TypeAdapter(kind)
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
