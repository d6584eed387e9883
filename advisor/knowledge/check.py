"""What ``advisor knowledge`` does: check the files, look names up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from advisor.errors import KnowledgeError, UserError
from advisor.knowledge.load import moved_to, read_files
from advisor.knowledge.provenance import switched_off_records, user_record
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge, KvType, ModelRecord
from advisor.units import GIB, format_quantity

_WORD = re.compile(r"[a-z0-9]+(?:\.[0-9]+)*")

Row = tuple[str, str, str]
"""Table, name, short description."""


def check_knowledge(
    folder: Path, *checks: Callable[[Mapping[str, bytes]], Sequence[UserError]]
) -> list[UserError]:
    """Parse and check a folder, laid over the built-in one; gives every problem.

    Args:
        folder: Of knowledge files.
        checks: What more finds problems in the files, by relative path.
    """
    from advisor.knowledge.parsing import parse  # noqa: PLC0415 - pydantic: looking up does without

    try:
        files, user = read_files(folder)
    except KnowledgeError as missing:
        return [missing]
    problems: list[UserError] = []
    parse(files, problems)
    problems += [problem for check in checks for problem in check(files)]
    return sorted(
        (moved_to(problem, str(folder), user) for problem in problems),
        key=lambda problem: (str(problem.source), problem.message),
    )


def provenance_line(knowledge: Knowledge) -> str:
    """Count what is the user's: what is added, replaced or changed, and switched off."""
    tables = cast("Mapping[str, Mapping[str, Sequence[str | None]]]", knowledge.user_entries)
    rows = [row for kind, table in tables.items() if kind != "id" for row in table.values()]
    counts = {
        "added": sum(row[1] is None for row in rows),
        "in the place of built-in ones": sum(row[1] is not None for row in rows),
        "switched off": sum(1 for _ in switched_off_records(knowledge)),
    }
    said = [f"{number} {what}" for what, number in counts.items() if number]
    return f"yours: {', '.join(said)}" if said else ""


def find(knowledge: Knowledge, text: str) -> list[Row]:
    """List every record in which each word of ``text`` begins a word of a name or alias."""
    wanted = _WORD.findall(text.casefold())
    if not wanted:
        return []
    return [
        (table, name, f"{shown}{_whose(knowledge, table, name)}")
        for table, name, aliases, shown in _rows(knowledge)
        if any(_begins(wanted, spelling) for spelling in (name, *aliases))
    ] + [
        (kind, off.name, str(off))
        for kind, off in switched_off_records(knowledge)
        if _begins(wanted, off.name)
    ]


def _whose(knowledge: Knowledge, table: str, name: str) -> str:
    entry = user_record(knowledge, table, name)
    return f"; {entry}" if entry else ""


def _begins(wanted: Sequence[str], spelling: str) -> bool:
    words = _WORD.findall(spelling.casefold())
    return all(any(word.startswith(part) for word in words) for part in wanted)


def _rows(knowledge: Knowledge) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    for gpu in knowledge.gpus.values():
        yield "gpu", gpu.name, gpu.aliases, _gpu(gpu)
    for model in knowledge.models.values():
        names = (*model.aliases, *([model.hf_id] if model.hf_id else []))
        yield "model", model.name, names, _model(model)
    for weights in knowledge.formats.values():
        yield "format", weights.name, weights.aliases, _format(weights)
    for kind in knowledge.kv_types.values():
        yield "kv_type", kind.name, (), _kv_type(kind)
    for framework in knowledge.frameworks.values():
        yield "framework", framework.name, framework.aliases, _framework(framework)


def _gpu(gpu: Gpu) -> str:
    size = f"{gpu.vram_bytes / GIB:g} GB" if gpu.vram_bytes else "memory not stated"
    speed = format_quantity(gpu.bandwidth_bytes_s, "GB/s") if gpu.bandwidth_bytes_s else ""
    return _joined(f"{size} {gpu.vram_type or ''}".rstrip(), speed, gpu.architecture, gpu.segment)


def _model(model: ModelRecord) -> str:
    size = format_quantity(model.parameters, "B") if model.parameters else "size not stated"
    context = model.trained_context_tokens
    return _joined(size, model.modality, f"{context} tokens" if context else "", model.family)


def _format(weights: Format) -> str:
    bits = weights.bits_per_weight
    return _joined(weights.family, f"{bits:g} bits per weight" if bits else "")


def _kv_type(kind: KvType) -> str:
    return f"{kind.bits:g} bits per element"


def _framework(framework: Framework) -> str:
    return _joined(framework.version, ", ".join(framework.vendors))


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
