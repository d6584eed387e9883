"""The header of one GGUF file: metadata that describes the model, and its tensors.

Layout after the GGUF specification (version 2 and 3, little-endian); what is refused follows
ggml's own reader (``ggml/src/gguf.cpp``), so that a file that passes here also loads there.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct

from advisor.files import table_rows
from advisor.models.gguf.cursor import Budget, Cursor
from advisor.models.stored_tensors import StoredTensor, open_plain_file, shown_name

_TYPES: Final = """
0 F32 1 4|1 F16 1 2|2 Q4_0 32 18|3 Q4_1 32 20|6 Q5_0 32 22|7 Q5_1 32 24|8 Q8_0 32 34|9 Q8_1 32 40
10 Q2_K 256 84|11 Q3_K 256 110|12 Q4_K 256 144|13 Q5_K 256 176|14 Q6_K 256 210|15 Q8_K 256 292
16 IQ2_XXS 256 66|17 IQ2_XS 256 74|18 IQ3_XXS 256 98|19 IQ1_S 256 50|20 IQ4_NL 32 18
21 IQ3_S 256 110|22 IQ2_S 256 82|23 IQ4_XS 256 136|24 I8 1 1|25 I16 1 2|26 I32 1 4|27 I64 1 8
28 F64 1 8|29 IQ1_M 256 56|30 BF16 1 2|34 TQ1_0 256 54|35 TQ2_0 256 66|39 MXFP4 32 17
40 NVFP4 64 36|41 Q1_0 128 18
"""

TENSOR_TYPES: Final[Mapping[int, tuple[str, int, int]]] = {
    int(number): (name, int(elements), int(size))
    for number, name, elements, size in (
        entry.split() for entry in _TYPES.replace("\n", "|").split("|") if entry
    )
}
"""Number -> name, elements of a block, bytes of a block."""

FILE_TYPES: Final[Mapping[int, str]] = {
    int(number): form for _, number, form, *_ in table_rows("gguf_file_types.tsv")
}
"""``general.file_type`` -> the format in knowledge/."""

_BY_TENSOR_TYPE: Final = {
    "F16": "FP16",
    "Q3_K": "Q3_K_M",
    "Q4_K": "Q4_K_M",
    "Q5_K": "Q5_K_M",
    "MXFP4": "MXFP4_MOE",
    "NVFP4": "NVFP4 (GGUF)",
}


def commonest_format(tensors: Iterable[StoredTensor]) -> str | None:
    """Name the format of the tensor type that most weights have."""
    counted: Counter[str] = Counter()
    for tensor in tensors:
        counted[tensor.type_name] += tensor.elements
    if not counted:
        return None
    name = counted.most_common(1)[0][0]
    found = _BY_TENSOR_TYPE.get(name, name)
    return found if found in FILE_TYPES.values() else None


_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_STRING, _ARRAY = 8, 9
_SCALARS: Final[Mapping[int, struct.Struct]] = {
    number: struct.Struct("<" + letter)
    for number, letter in enumerate("BbHhIif?..Qqd")
    if letter != "."
}
_MAX_KEY_BYTES: Final = 65_535
_MAX_NAME_BYTES: Final = 63
_MAX_TEXT_BYTES: Final = 1_024
_MAX_KEPT: Final = 10_000
_MAX_NESTING: Final = 3
_LIST_STEPS: Final = 16
_MAX_DIMS: Final = 4
_DEFAULT_ALIGNMENT: Final = 32
_MAX_ALIGNMENT: Final = 1 << 20
_LEAST_ENTRY_BYTES: Final = 13
_LEAST_TENSOR_BYTES: Final = 32


class GgufHeader(Struct, frozen=True):
    """What one file states."""

    path: Path
    metadata: Mapping[str, object]
    """Without the tokenizer and without long texts."""
    tensors: tuple[StoredTensor, ...]
    spare_bytes: int
    """Bytes behind the last tensor beyond its padding."""


def load_header(path: Path, budget: Budget) -> GgufHeader:
    """Read the header of a GGUF file.

    Raises:
        SourceFileError: It is unreadable, not GGUF, cut off, or states something impossible.
    """
    with open_plain_file(path) as (file, size):
        return read_header(file, size, path, budget)


def read_header(file: BinaryIO, size: int, path: Path, budget: Budget) -> GgufHeader:
    """Read the header of an open GGUF file of ``size`` bytes.

    Raises:
        SourceFileError: It is not GGUF, cut off, or states something impossible.
    """
    cursor = Cursor(file, size, str(path))
    _check_start(cursor)
    tensors, entries = cursor.u64(), cursor.u64()
    _check_counts(cursor, tensors, entries, budget)
    metadata = _metadata(cursor, entries, budget)
    listed = list(_tensor_list(cursor, tensors))
    spare = _check_places(cursor, listed, _alignment(cursor, metadata))
    return GgufHeader(path, metadata, tuple(tensor for tensor, _ in listed), spare)


def _check_start(cursor: Cursor) -> None:
    if cursor.size < len(_MAGIC) or cursor.take(len(_MAGIC)) != _MAGIC:
        cursor.refuse("this is not a GGUF file: it does not start with 'GGUF'.")
    version = cursor.u32()
    if version & 0xFFFF == 0:
        cursor.refuse("this GGUF file is big-endian, which advisor does not read.")
    if version not in _VERSIONS:
        old = " of 2023" if version == 1 else ""
        cursor.refuse(
            f"this GGUF file has version {version}{old}; advisor reads 2 and 3.",
            hint="Convert the model again with a current llama.cpp.",
        )


def _check_counts(cursor: Cursor, tensors: int, entries: int, budget: Budget) -> None:
    budget.entries -= entries
    budget.tensors -= tensors
    if budget.entries < 0:
        cursor.refuse(f"it states {entries} metadata entries, more than any model has.")
    if budget.tensors < 0:
        cursor.refuse(f"it states {tensors} tensors, more than any model has.")
    needed = tensors * _LEAST_TENSOR_BYTES + entries * _LEAST_ENTRY_BYTES
    if needed > cursor.size - cursor.position:
        cursor.cut_off()


def _metadata(cursor: Cursor, entries: int, budget: Budget) -> dict[str, object]:
    found: dict[str, object] = {}
    seen: set[str] = set()
    for _ in range(entries):
        key = _text(cursor, "a metadata key", _MAX_KEY_BYTES)
        if key in seen:
            cursor.refuse(f"the metadata key {shown_name(key)} occurs twice.")
        seen.add(key)
        value = _value(cursor, cursor.u32(), budget, keep=not key.startswith("tokenizer."))
        if value is not None:
            found[key] = value
    return found


def _text(cursor: Cursor, what: str, most: int) -> str:
    length = cursor.u64()
    if length > most:
        cursor.refuse(f"{what} is stated to be {length} bytes long; at most {most} are allowed.")
    try:
        return cursor.take(length).decode()
    except UnicodeDecodeError:
        cursor.refuse(f"{what} is not UTF-8 text.")


def _value(cursor: Cursor, kind: int, budget: Budget, *, keep: bool) -> object:
    """Read a value; None where it is not kept."""
    scalar = _SCALARS.get(kind)
    if scalar is not None:
        value: object = scalar.unpack(cursor.take(scalar.size))[0]
        return value if keep else None
    if kind == _STRING:
        return _string(cursor, keep=keep)
    if kind != _ARRAY:
        cursor.refuse(f"it holds metadata of the unknown type {kind}.")
    return _array(cursor, budget, keep=keep)


def _string(cursor: Cursor, *, keep: bool) -> str | None:
    length = cursor.u64()
    if not keep or length > _MAX_TEXT_BYTES:
        cursor.skip(length)
        return None
    return cursor.take(length).decode(errors="replace")


def _array(cursor: Cursor, budget: Budget, *, keep: bool, depth: int = 1) -> object:
    kind, count = cursor.u32(), cursor.u64()
    scalar = _SCALARS.get(kind)
    if scalar is not None:
        if not keep or count > _MAX_KEPT:
            cursor.skip(count * scalar.size)
            return None
        return _numbers(cursor, scalar, count, budget)
    budget.strings -= count * (1 if kind == _STRING else _LIST_STEPS)
    if budget.strings < 0:
        cursor.refuse(f"a list in it states {count} entries, more than any tokenizer has.")
    if kind == _STRING:
        cursor.skip_strings(count)
    elif kind == _ARRAY and depth < _MAX_NESTING:
        for _ in range(count):
            _array(cursor, budget, keep=False, depth=depth + 1)
    else:
        cursor.refuse(f"it holds a list of the unknown type {kind}, or nested too deeply.")
    return None


def _numbers(
    cursor: Cursor, scalar: struct.Struct, count: int, budget: Budget
) -> tuple[object, ...]:
    budget.values -= count
    if budget.values < 0:
        cursor.refuse("its metadata holds more numbers than any model has.")
    return tuple(value for (value,) in scalar.iter_unpack(cursor.take(count * scalar.size)))


def _tensor_list(cursor: Cursor, count: int) -> Iterator[tuple[StoredTensor, int]]:
    """Give every tensor with its stated place in the data."""
    seen: set[str] = set()
    for _ in range(count):
        name = _text(cursor, "a tensor's name", _MAX_NAME_BYTES)
        if name in seen:
            cursor.refuse(f"the tensor {shown_name(name)} occurs twice.")
        seen.add(name)
        yield _tensor(cursor, name), cursor.u64()


def _tensor(cursor: Cursor, name: str) -> StoredTensor:
    count = cursor.u32()
    if not 1 <= count <= _MAX_DIMS:
        cursor.refuse(f"the tensor {shown_name(name)} states {count} dimensions; 1 to 4 exist.")
    dims = tuple(cursor.u64() for _ in range(count))
    number = cursor.u32()
    if number not in TENSOR_TYPES:
        cursor.refuse(
            f"the tensor {shown_name(name)} has type {number}, which advisor does not know.",
            hint="The file may be newer than this advisor, or made for a fork of llama.cpp.",
        )
    type_name, block, block_bytes = TENSOR_TYPES[number]
    elements = _product(dims)
    if not elements or dims[0] % block:
        shape = " x ".join(map(str, dims))
        cursor.refuse(f"the tensor {shown_name(name)} of {shape} cannot be of type {type_name}.")
    return StoredTensor(name, elements, dims, type_name, elements // block * block_bytes)


def _product(dims: tuple[int, ...]) -> int:
    elements = 1
    for size in dims:
        elements *= size
    return elements


def _alignment(cursor: Cursor, metadata: Mapping[str, object]) -> int:
    stated = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(stated, int) or not 1 <= stated <= _MAX_ALIGNMENT or stated & (stated - 1):
        cursor.refuse("general.alignment must be a power of two up to 2^20.")
    return stated


def _check_places(cursor: Cursor, listed: list[tuple[StoredTensor, int]], alignment: int) -> int:
    """Tensors must follow one another without gap or overlap, inside the file."""
    start = _padded(cursor.position, alignment)
    expected = end = 0
    for tensor, place in listed:
        if place != expected:
            where = f"is stated at byte {place} of the data, expected at {expected}"
            cursor.refuse(f"the tensor {shown_name(tensor.name)} {where}: the header is damaged.")
        end = place + tensor.n_bytes
        expected = _padded(end, alignment)
    if listed and start + end > cursor.size:
        cursor.refuse(
            f"its tensors need {start + end} bytes, but the file has {cursor.size}: it is cut off.",
            hint="Download it again.",
        )
    return max(0, cursor.size - start - expected)


def _padded(number: int, alignment: int) -> int:
    return -(-number // alignment) * alignment
