"""Formats, cache types, runtimes and policy: read and check the runtime side of knowledge/.

The name of a file tells its table: ``formats.yaml`` and ``formats-mine.yaml`` hold formats.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import get_args

from msgspec import Struct

from advisor.errors import KnowledgeError, Source, UserError
from advisor.knowledge.command_records import command_fields
from advisor.knowledge.fields import Record, report_duplicates
from advisor.knowledge.format_limit_records import format_limits, link_limits
from advisor.knowledge.tables import records_of, source_ids
from advisor.knowledge.tokens import plain_key
from advisor.knowledge.types import SPLITS, TensorHeads, Vendor
from advisor.suggest import did_you_mean
from advisor.units import UnitError, parse_quantity
from advisor.yamlfile import Node

FAMILIES = (
    "unquantized", "gguf-k", "gguf-i", "gguf-legacy", "gguf-mxfp4", "gguf-nvfp4", "awq", "gptq",
    "bnb", "int8", "fp8", "mxfp4", "nvfp4", "exl2", "exl3", "hqq", "mlx",
)  # fmt: skip
CLASS_NAMES = frozenset({"int8", "8bit", "q8", "w8", "int4", "4bit", "q4", "w4"})
"""Names that stand for every format of a class, so that no format may claim them."""

ANY = "*"

_Fields = dict[str, object]
_Reader = Callable[[Record], _Fields]


class _Read(Struct, frozen=True):
    """A record as JSON-able data beside where it stands."""

    fields: _Fields
    record: Record

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def spellings(self) -> Iterator[str]:
        yield self.name
        aliases = self.fields.get("aliases", ())
        assert isinstance(aliases, tuple)
        yield from aliases


def parse_runtime(files: Mapping[str, bytes], problems: list[UserError]) -> dict[str, object]:
    """Read ggml types, formats, cache types, frameworks and policy.

    Args:
        files: All knowledge files by relative path.
        problems: Takes what is wrong.

    Returns:
        Tables ``ggml_types``, ``formats``, ``kv_types`` and ``frameworks`` of name -> fields of
        the type in ``types``, and ``policy`` of name -> number in base units.
    """
    ids = source_ids(files)
    ggml = _read(files, "ggml_types", problems, _ggml_type)
    formats = _read(files, "formats", problems, _format)
    kinds = _read(files, "kv_types", problems, _kv_type)
    frameworks = _read(files, "frameworks", problems, _framework)
    commands = _read(files, "commands", problems, command_fields)
    policy = _read(files, "policy", problems, _policy)
    _link(frameworks, formats, kinds)
    _share_engines(frameworks)
    _check_commands(commands, frameworks, [*FAMILIES, *(f.name for f in formats)], kinds)
    for table in (ggml, formats, kinds, frameworks, commands, policy):
        _finish(table, ids, problems)
    _hand_over(commands, frameworks)
    _check_names(formats, _runners(frameworks), problems)
    _check_names(frameworks, {}, problems)
    return {
        "ggml_types": _table(ggml),
        "formats": _table(formats),
        "kv_types": _table(kinds),
        "frameworks": _table(frameworks),
        "policy": {read.name: read.fields["value"] for read in policy if "value" in read.fields},
    }


def _read(
    files: Mapping[str, bytes],
    table: str,
    problems: list[UserError],
    reader: _Reader,
) -> list[_Read]:
    return [_Read(reader(record), record) for record in records_of(files, table, problems)]


def _table(table: Collection[_Read]) -> dict[str, object]:
    return {read.name: {"name": read.name, **read.fields} for read in table}


def _finish(table: Collection[_Read], ids: Collection[str], problems: list[UserError]) -> None:
    for read in table:
        sources = read.record.sources(ids)
        if "sources" in read.fields:
            read.fields["sources"] = sources
        read.record.finish()
    if table:
        kind = next(iter(table)).record.kind
        report_duplicates(((r.name, r.record.place) for r in table), kind, problems)


# ---- readers: one record each; a field that is unknown is left out, so its default applies


def _ggml_type(record: Record) -> _Fields:
    return {
        "block_elements": record.count("block_elements", required=True) or 1,
        "block_bytes": round(record.quantity("block_bytes", "memory", required=True) or 1),
    }


def _format(record: Record) -> _Fields:
    offered = record.flag("offered")
    vendors = record.choices("vendors", get_args(Vendor))
    return {
        "aliases": record.texts("aliases"),
        "family": record.choice("family", FAMILIES, required=True) or FAMILIES[0],
        "kind": record.choice("kind", ("gguf", "plain"), required=True) or "plain",
        "bits_per_weight": record.quantity("bits_per_weight", "bits"),
        "class_bits": record.count("class_bits"),
        "nominal_bytes_per_weight": record.number("nominal_bytes_per_weight"),
        "quality_loss_percent": record.quantity("quality_loss", "share", zero=True),
        "quality_by_size": _by_size(record, "quality_by_size"),
        "exam_loss": _by_size(record, "exam_loss"),
        "offered": offered is not False,
        "min_compute_capability": record.number("min_compute_capability"),
        "native_compute_capability": record.number("native_compute_capability"),
        "vendors": vendors or None,
        "note": record.text("note") or "",
        "sources": {},
    }


def _by_size(record: Record, key: str) -> tuple[tuple[float, float], ...]:
    """Read losses by the size of the model they were measured on, the smallest model first."""
    found = []
    for size, node in record.mapping(key).items():
        try:
            parameters, loss = parse_quantity(size), parse_quantity(node.text)
        except UnitError as bad:
            record.problem(f"'{key}': {bad}", at=node.source, hint="Write {8 B: 0.5 %}.")
            continue
        if (parameters.dimension, loss.dimension) != ("parameters", "share"):
            message = f"'{key}' holds a share in % for each size"
            record.problem(message, at=node.source, hint="Write {8 B: 0.5 %}.")
            continue
        found.append((parameters.value, loss.value))
    return tuple(sorted(found))


def _kv_type(record: Record) -> _Fields:
    return {
        "bits": record.quantity("bits", "bits", required=True) or 16.0,
        "quality_loss_percent": record.quantity("quality_loss", "share", zero=True),
        "needs_flash_attention": record.flag("needs_flash_attention") is True,
        "min_compute_capability": record.number("min_compute_capability"),
        "sources": {},
    }


def _framework(record: Record) -> _Fields:
    if record.get("model_types") is None and record.get("model_types_of") is None:
        record.problem(
            "'model_types' is missing",
            hint="List them, write [\"*\"] for any, or name a framework in 'model_types_of'.",
        )
    return {
        "aliases": record.texts("aliases"),
        "version": record.text("version", required=True) or "",
        "vendors": record.choices("vendors", get_args(Vendor)),
        "not_on": record.texts("not_on"),
        "formats": record.texts("formats"),
        "format_limits": format_limits(record),
        "model_types": record.texts("model_types"),
        "mtp_model_types": record.texts("mtp_model_types"),
        "kv_types": record.texts("kv_types"),
        "memory_model": record.text("memory_model", required=True) or "none",
        **_abilities(record),
        "memory_fraction": _fraction(record),
        "commands": [],
        "licence": record.text("licence"),
        "notes": record.text("notes") or "",
        "sources": {},
    }


def _abilities(record: Record) -> _Fields:
    flags = (
        "cpu_offload",
        "expert_offload",
        "embedding_in_ram",
        "flash_attention",
        "paged_kv",
        "serves_batches",
        "speculative",
    )
    return {
        "min_compute_capability": record.number("min_compute_capability"),
        "multi_gpu": record.choices("multi_gpu", SPLITS),
        "not_sized": _not_sized(record),
        "vision": record.flag("vision"),
        **{name: record.flag(name) for name in flags},
    }


def _engine(record: Record) -> _Fields:
    """Read what belongs to the engine inside, as far as it is stated."""
    flags = ("card_free", "places_layers", "pipeline", "whole_inputs", "one_latent_type")
    found: _Fields = {
        **{name: record.flag(name) for name in flags},
        "tensor_heads": record.choice("tensor_heads", get_args(TensorHeads)),
        "sized_states": record.choices("sized_states", ("encoder", "rwkv")) or None,
        "draft_padding": record.count("draft_padding"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _not_sized(record: Record) -> dict[str, str]:
    node = record.get("not_sized")
    if node is not None:
        _check_names_in(record, node, "split", SPLITS)
    return {way: reason.text for way, reason in record.mapping("not_sized").items()}


def _fraction(record: Record) -> float | None:
    share = record.quantity("memory_fraction", "share")
    if share is not None and share > 100:  # noqa: PLR2004 - percent
        record.problem("'memory_fraction' is above 100 %", at=record.at("memory_fraction"))
    return None if share is None else share / 100


def _policy(record: Record) -> _Fields:
    record.choice("kind", ("sourced", "derived", "policy"), required=True)
    record.text("why", required=True)
    node = record.get("value", required=True)
    if node is None:
        return {}
    try:
        return {"value": parse_quantity(node.text).value}
    except UnitError as bad:
        record.problem(f"'value': {bad}", at=node.source, hint="Write it like '12 GiB' or '5 %'.")
        return {}


# ---- checks across tables


def _link(
    frameworks: Collection[_Read], formats: Collection[_Read], kinds: Collection[_Read]
) -> None:
    """Check what frameworks name, and fill in ``model_types_of``."""
    earlier: dict[str, object] = {}
    for read in frameworks:
        _check_known(read.record, "formats", "weight format", [f.name for f in formats])
        _check_known(read.record, "kv_types", "KV-cache type", [k.name for k in kinds])
        _check_known(read.record, "model_types_of", "framework before it", list(earlier))
        as_other = read.record.text("model_types_of")
        if as_other in earlier:
            read.fields["model_types"] = earlier[as_other]
        link_limits(read.record, read.fields, earlier)
        _check_keys(read.record, "format_limits", "family of weight formats", FAMILIES)
        earlier[read.name] = read.fields["model_types"]


def _share_engines(frameworks: Collection[_Read]) -> None:
    """Give what is not said of an engine from the first framework of its memory model."""
    engines: dict[object, _Fields] = {}
    for read in frameworks:
        engine = engines.setdefault(read.fields["memory_model"], {})
        stated = _engine(read.record)
        engine.update({name: value for name, value in stated.items() if name not in engine})
        read.fields.update(stated)
    for read in frameworks:
        read.fields.update(engines[read.fields["memory_model"]] | read.fields)


def _check_commands(
    commands: Collection[_Read],
    frameworks: Collection[_Read],
    formats: Collection[str],
    kinds: Collection[_Read],
) -> None:
    """Check the frameworks, formats and cache types that programs name."""
    for read in commands:
        _check_known(read.record, "framework", "framework", [f.name for f in frameworks])
        _check_keys(read.record, "kv_types", "KV-cache type", [k.name for k in kinds])
        for key in ("by_format", "on_load"):
            for node in read.record.mapping(key).values():
                _check_names_in(read.record, node, "weight format or family", formats)


def _hand_over(commands: Collection[_Read], frameworks: Collection[_Read]) -> None:
    """Give every framework its programs, in file order."""
    by_name = {read.name: read for read in frameworks}
    for read in commands:
        owner = by_name.get(str(read.fields["framework"]))
        if owner is not None:
            own = owner.fields["commands"]
            assert isinstance(own, list)
            own.append({"name": read.name, **read.fields})


def _check_keys(record: Record, key: str, what: str, names: Collection[str]) -> None:
    node = record.get(key)
    if node is not None:
        _check_names_in(record, node, what, names)


def _check_names_in(record: Record, node: Node, what: str, names: Collection[str]) -> None:
    if not isinstance(node.value, Mapping):
        return
    for name in node.value:
        if name not in names:
            hint = did_you_mean(name, names) or f"Known: {', '.join(names)}."
            at = (node.key_sources or {}).get(name, node.source)
            record.problem(f"there is no {what} '{name}'.", at=at, hint=hint)


def _check_known(record: Record, key: str, what: str, names: Collection[str]) -> None:
    node = record.get(key)
    if node is None:
        return
    for item in node.value if isinstance(node.value, list) else [node]:
        if item.text not in names:
            record.problem(
                f"there is no {what} '{item.text}'.",
                at=item.source,
                hint=did_you_mean(item.text, names) or f"Known: {', '.join(names)}.",
            )


def _runners(frameworks: Collection[_Read]) -> Mapping[str, Collection[str]]:
    """List the frameworks of every format."""
    found: dict[str, set[str]] = {}
    for read in frameworks:
        formats = read.fields["formats"]
        assert isinstance(formats, tuple)
        for name in formats:
            found.setdefault(name, set()).add(read.name)
    return found


def _check_names(
    table: Collection[_Read], runners: Mapping[str, Collection[str]], problems: list[UserError]
) -> None:
    """Collect class names used as names, and names that two records share.

    Two formats may share a name when no framework runs both: the framework then decides.
    """
    owners: dict[str, list[_Read]] = {}
    for read in table:
        for spelling in read.spellings:
            key = plain_key(spelling)
            if key in CLASS_NAMES and read.record.kind == "format":
                _say_class(read, spelling, problems)
            others = owners.setdefault(key, [])
            for other in others:
                if other is not read and not _apart(read, other, runners):
                    _say_shared(read, other, spelling, problems)
            others.append(read)


def _apart(one: _Read, other: _Read, runners: Mapping[str, Collection[str]]) -> bool:
    if not runners.get(one.name) or not runners.get(other.name):
        return False
    return not set(runners[one.name]) & set(runners[other.name])


def _say_class(read: _Read, spelling: str, problems: list[UserError]) -> None:
    message = f"format '{read.name}': '{spelling}' stands for a whole class of formats"
    hint = "Leave it out; class_bits already says which class this format is in."
    problems.append(KnowledgeError(message, source=_place(read), hint=hint))


def _say_shared(read: _Read, other: _Read, spelling: str, problems: list[UserError]) -> None:
    kind = read.record.kind
    message = f"{kind} '{read.name}': the name '{spelling}' already means '{other.name}'"
    hint = f"It stands at {other.record.place}; a name belongs to one {kind}."
    problems.append(KnowledgeError(message, source=_place(read), hint=hint))


def _place(read: _Read) -> Source:
    return read.record.at("aliases")
