"""knowledge/gpus/*.yaml: read and check the cards."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import get_args

from advisor.errors import UserError
from advisor.knowledge.entry import Parsed
from advisor.knowledge.fields import Record
from advisor.knowledge.tables import records_of
from advisor.knowledge.types import Segment, Vendor
from advisor.units import UnitError, parse_quantity, parse_size_as_sold

_QUANTITIES: Mapping[str, tuple[str, str]] = {
    "bandwidth": ("bandwidth_bytes_s", "bandwidth"),
    "fp16_tensor": ("fp16_tensor_tflops", "compute"),
    "fp16_tensor_fp32acc": ("fp16_tensor_tflops_fp32acc", "compute"),
    "fp16_shader": ("fp16_shader_tflops", "compute"),
    "int8": ("int8_tops", "compute"),
    "fp8": ("fp8_tflops", "compute"),
    "fp4": ("fp4_tflops", "compute"),
    "tdp": ("tdp_w", "power"),
    "nvlink": ("nvlink_bytes_s", "bandwidth"),
    "launch_price": ("launch_price_usd", "money"),
}
"""Key in the file -> field and dimension."""

_DIMENSIONS = {key: dimension for key, (_, dimension) in _QUANTITIES.items()} | {"vram": "memory"}

_GBIT_PER_PIN: Mapping[str, tuple[float, float]] = {
    "GDDR5": (3, 9.1),
    "GDDR5X": (7, 15),
    "GDDR6": (8, 20.5),
    "GDDR6X": (18, 24),
    "GDDR7": (17.5, 36),
    "HBM2": (1.2, 2.5),
    "HBM2e": (1.2, 3.7),
    "HBM3": (3.5, 6.5),
    "HBM3e": (4.5, 10),
}
"""Memory type -> the slowest and fastest data rate per pin on any board, Gbit/s."""

_GA100 = 8.0
_DENSE_LIMIT = 6
_DENSE_LIMIT_GA100 = 16.5
"""A dense FP16 matrix peak is about 4 times the shader peak; a sparse one 8 times. Tables give
the GA100 chip's shader peak with or without packed FP16, so 4 or 16 times there."""


def read_gpus(
    files: Mapping[str, bytes], ids: Collection[str], problems: list[UserError]
) -> list[Parsed]:
    """Read every card, in file order.

    Args:
        files: All knowledge files by relative path.
        ids: The declared source ids.
        problems: Takes what is wrong.
    """
    per_sm = read_cores_per_multiprocessor(files, ids, problems)
    return [
        Parsed(_gpu(record, ids, per_sm), record.place)
        for record in records_of(files, "gpus", problems)
    ]


def read_cores_per_multiprocessor(
    files: Mapping[str, bytes], ids: Collection[str], problems: list[UserError]
) -> Mapping[float, int]:
    """Read compute_capabilities*.yaml: capability -> FP32 cores per multiprocessor."""
    found: dict[float, int] = {}
    for record in records_of(files, "compute_capabilities", problems):
        capability = record.number("compute_capability")
        cores = record.count("cores_per_multiprocessor", required=True)
        record.sources(ids)
        record.finish()
        if capability is not None and cores is not None:
            found[capability] = cores
    return found


def _gpu(record: Record, ids: Collection[str], per_sm: Mapping[float, int]) -> Mapping[str, object]:
    fields: dict[str, object] = {
        "name": record.name,
        "aliases": record.texts("aliases"),
        "vendor": record.choice("vendor", get_args(Vendor), required=True),
        "segment": record.choice("segment", get_args(Segment), required=True),
        "architecture": record.text("architecture", required=True),
        "compute_capability": record.number("compute_capability"),
        "vram_bytes": record.whole("vram", "memory"),
        "vram_sizes": _sizes(record),
        "vram_type": record.text("vram_type"),
        "bus_width_bits": record.whole("bus_width", "bits"),
        "cores": record.count("cores"),
        "tensor_cores": record.count("tensor_cores"),
        "bf16": record.flag("bf16"),
        "pcie_gen": record.count("pcie_gen"),
        "pcie_lanes": record.count("pcie_lanes"),
        "unified_memory": record.flag("unified_memory"),
        "released": record.day("released"),
        "not_for_sale": record.text("not_for_sale"),
    }
    for key, (name, dimension) in _QUANTITIES.items():
        fields[name] = record.quantity(key, dimension)
    fields["multiprocessors"] = _multiprocessors(fields, per_sm)
    fields["disputed"] = _disputed(record)
    fields["sources"] = record.sources(ids)
    record.finish()
    _check(record, fields)
    kept = {key: value for key, value in fields.items() if value not in (None, (), {})}
    return {"aliases": (), **kept}


def _sizes(record: Record) -> tuple[int, ...]:
    """Read ``vram_sizes``: sizes as they are sold, in bytes."""
    found = []
    for text in record.texts("vram_sizes"):
        try:
            found.append(parse_size_as_sold(text))
        except UnitError as bad:
            record.problem(f"'vram_sizes': {bad}")
    return tuple(sorted(found))


def _multiprocessors(fields: Mapping[str, object], per_sm: Mapping[float, int]) -> int | None:
    cores, capability = fields["cores"], fields["compute_capability"]
    if not isinstance(cores, int) or not isinstance(capability, float):
        return None
    each = per_sm.get(capability)
    return cores // each if each and cores % each == 0 else None


def _disputed(record: Record) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for key, node in record.mapping("disputed").items():
        values = [item.text for item in node.value] if isinstance(node.value, list) else []
        if len(values) < len("ab"):
            record.problem(f"'disputed': '{key}' needs at least two values", at=node.source)
        elif key not in _DIMENSIONS:
            record.problem(f"'disputed' names the unknown field '{key}'", at=node.source)
        else:
            found[key] = tuple(values)
            _check_disputed(record, key, values)
    return found


def _check_disputed(record: Record, key: str, values: list[str]) -> None:
    for value in values:
        try:
            good = parse_quantity(value).dimension == _DIMENSIONS[key]
        except UnitError:
            good = False
        if not good:
            record.problem(f"'disputed': '{value}' is no {key}", at=record.at("disputed"))


def _check(record: Record, fields: Mapping[str, object]) -> None:
    _check_bandwidth(record, fields)
    capability, peak, shader = (
        fields[key] for key in ("compute_capability", "fp16_tensor_tflops", "fp16_shader_tflops")
    )
    if re.match(r"GeForce RTX 50\d\d", record.name) and capability not in (None, 12.0):
        record.problem(
            f"compute capability {capability} is not that of the RTX 50 series",
            at=record.at("compute_capability"),
            hint="It is 12.0; 10.0 is B200, 12.1 is GB10.",
        )
    if isinstance(peak, float) and isinstance(shader, float) and _modern(capability):
        limit = _DENSE_LIMIT_GA100 if capability == _GA100 else _DENSE_LIMIT
        if peak > limit * shader:
            record.problem(
                f"fp16_tensor is {peak / shader:.1f} times fp16_shader: a sparse figure",
                at=record.at("fp16_tensor"),
                hint="Write the dense one, half of it.",
            )
    accumulate = fields["fp16_tensor_tflops_fp32acc"]
    if isinstance(accumulate, float) and isinstance(peak, float) and accumulate > peak:
        record.problem(
            "fp16_tensor_fp32acc is above fp16_tensor", at=record.at("fp16_tensor_fp32acc")
        )


def _modern(capability: object) -> bool:
    return isinstance(capability, float) and capability >= 7  # noqa: PLR2004


def _check_bandwidth(record: Record, fields: Mapping[str, object]) -> None:
    bandwidth, width = fields["bandwidth_bytes_s"], fields["bus_width_bits"]
    limits = _GBIT_PER_PIN.get(str(fields["vram_type"]))
    if not (isinstance(bandwidth, float) and isinstance(width, int) and limits):
        return
    rate = bandwidth * 8 / width / 1e9
    if not limits[0] <= rate <= limits[1]:
        record.problem(
            f"bandwidth over {width} bits is {rate:.1f} Gbit/s per pin, "
            f"{fields['vram_type']} does {limits[0]:g} to {limits[1]:g}",
            at=record.at("bandwidth"),
            hint="Check bandwidth, bus_width and vram_type.",
        )
