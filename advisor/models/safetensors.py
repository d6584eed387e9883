"""Safetensors files: the header of one (names, types and places of its tensors) and its format.

Layout and checks after the format's specification (safetensors 0.8): eight bytes of length,
a JSON object, then the tensors without gap or overlap up to the end of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import SourceFileError
from advisor.models.any_config import load_config
from advisor.models.shape import Shape
from advisor.models.stated_format import Recognised, recognise, stated_beside
from advisor.models.stored_tensors import (
    MAX_FILES,
    MAX_TENSORS,
    Part,
    StoredModel,
    StoredTensor,
    counts_of,
    exists,
    fail,
    is_folder,
    names_in,
    open_plain_file,
    place_of,
    plain_blocks,
    shown_name,
)

_DTYPES: Final = """
4 F4|6 F6_E2M3 F6_E3M2|8 BOOL U8 I8 F8_E4M3 F8_E5M2 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ
16 I16 U16 F16 BF16|32 I32 U32 F32|64 I64 U64 F64 C64
"""
DTYPE_BITS: Final[Mapping[str, int]] = {
    name: int(group.split()[0])
    for group in _DTYPES.strip().replace("\n", "|").split("|")
    for name in group.split()[1:]
}
_LENGTH_BYTES: Final = 8
MAX_HEADER_BYTES: Final = 48_000_000
_MAX_DIMS: Final = 16
_TOO_LARGE: Final = 1 << 63
_MARKS: Final = ((b"{", 1, 2), (b"[", 2, 2), (b":", 5, 200_000), (b",", 8, 200_000))
"""Marks of JSON: most of them per tensor, and most beside (in texts of the metadata)."""
_ENTRY: Final = frozenset({"dtype", "shape", "data_offsets"})


def load_header(path: Path, most: int) -> tuple[StoredTensor, ...]:
    """Read the header of a safetensors file of at most ``most`` tensors.

    Raises:
        SourceFileError: It is unreadable, not safetensors, cut off, or states something
            impossible.
    """
    with open_plain_file(path) as (file, size):
        return read_header(file, size, str(path), most)


def read_header(file: BinaryIO, size: int, shown: str, most: int) -> tuple[StoredTensor, ...]:
    """Read the header of an open safetensors file of ``size`` bytes.

    Raises:
        SourceFileError: It is not safetensors, cut off, or states something impossible.
    """
    length = _length(file, size, shown)
    entries = parse_object(read_exactly(file, length, shown), shown, most)
    entries.pop("__metadata__", None)
    if len(entries) > most:
        fail(shown, f"it holds {len(entries)} tensors, more than any model has.")
    placed = [_tensor(name, entry, shown) for name, entry in entries.items()]
    _check_places(placed, size - _LENGTH_BYTES - length, shown)
    return tuple(tensor for _, tensor in placed)


def _length(file: BinaryIO, size: int, shown: str) -> int:
    if size < _LENGTH_BYTES:
        fail(shown, f"this is not a safetensors file: it has only {size} bytes.")
    length = int.from_bytes(read_exactly(file, _LENGTH_BYTES, shown), "little")
    if length > size - _LENGTH_BYTES:
        text = f"its header is stated to be {length} bytes long, but the file has {size}"
        fail(shown, f"{text}: it is cut off or not a safetensors file.")
    if length > MAX_HEADER_BYTES:
        fail(shown, f"its header is stated to be {length} bytes long, more than any model needs.")
    return length


def read_exactly(file: BinaryIO, count: int, shown: str) -> bytes:
    """Read ``count`` bytes that the file's size says are there.

    Raises:
        SourceFileError: It ends before.
    """
    parts = []
    while count:
        part = file.read(count)
        if not part:
            fail(shown, "the file became shorter while it was read.")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def parse_object(content: bytes, shown: str, most: int) -> dict[str, object]:
    """Parse a JSON object about at most ``most`` tensors.

    Raises:
        SourceFileError: It is something else, or larger.
    """
    # Counting marks first bounds what the parser can allocate.
    for mark, each, spare in _MARKS:
        if content.count(mark) > each * most + spare:
            fail(shown, f"its header holds more than {most} tensors, more than any model has.")
    try:
        found: object = json.loads(content.decode())
    except (ValueError, RecursionError):
        fail(shown, "it does not hold valid JSON: the file is damaged or of another kind.")
    if not isinstance(found, dict):
        fail(shown, "it holds JSON, but not an object with tensor names.")
    return found


def _tensor(name: str, entry: object, shown: str) -> tuple[int, StoredTensor]:
    """Give a tensor with its place, its stated size checked against its type and shape."""
    if not isinstance(entry, dict) or entry.keys() != _ENTRY:
        fail(shown, f"the tensor {shown_name(name)} is not described as safetensors does.")
    bits = DTYPE_BITS.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if bits is None:
        fail(
            shown,
            f"the tensor {shown_name(name)} has type {shown_name(str(entry['dtype']))}, "
            "which advisor does not know.",
        )
    dims = _wholes(entry["shape"], _MAX_DIMS)
    places = _wholes(entry["data_offsets"], 2)
    if dims is None or places is None or len(places) != 2:  # noqa: PLR2004
        fail(shown, f"the tensor {shown_name(name)} has an impossible shape or place.")
    elements = prod(dims)
    start, end = places
    if end - start != elements * bits / 8 or elements * bits % 8:
        text = f"the tensor {shown_name(name)} takes {end - start} bytes by its place"
        fail(shown, f"{text}, but {elements * bits // 8} by its shape: the header is damaged.")
    return start, StoredTensor(name, elements, dims, str(entry["dtype"]), end - start)


def _wholes(value: object, most: int) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(value) > most:
        return None
    for number in value:
        if type(number) is not int or not 0 <= number < _TOO_LARGE:
            return None
    return tuple(value)


def _check_places(placed: list[tuple[int, StoredTensor]], data_bytes: int, shown: str) -> None:
    expected = 0
    for start, tensor in sorted(placed, key=lambda pair: (pair[0], pair[1].n_bytes)):
        if start != expected:
            where = f"starts at byte {start} of the data, expected at {expected}"
            fail(shown, f"the tensor {shown_name(tensor.name)} {where}: the header is damaged.")
        expected += tensor.n_bytes
    if expected > data_bytes:
        text = f"its tensors need {expected} bytes, but {data_bytes} follow the header"
        fail(shown, f"{text}: it is cut off.", "Download it again.")
    if expected < data_bytes:
        fail(shown, f"{data_bytes - expected} bytes behind its last tensor belong to none.")


_SUFFIX: Final = ".safetensors"
_INDEX: Final = ".safetensors.index.json"
_SHARD: Final = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.safetensors")
_WHOLE: Final = "model.safetensors"
_ADAPTER: Final = "adapter_model.safetensors"
_NOTHING: Final[Mapping[str, str]] = {}


class Shards(Struct, frozen=True):
    """The files of a model, and what its index says lies where."""

    files: tuple[Path, ...]
    tensors: Mapping[str, str]
    """Tensor -> file name; empty without an index."""
    index: Path | None = None


def shards_of(path: Path) -> Shards:
    """Find the files of a model from its folder, its index, or any of its files.

    Raises:
        SourceFileError: There are none, one is missing, or several models lie together.
    """
    if is_folder(path):
        return _in_folder(path)
    if path.name.endswith(_INDEX):
        return _indexed(path)
    named = _SHARD.fullmatch(path.name)
    if named is None or int(named[3]) == 1:
        _refuse_adapter(path)
        return Shards((path,), _NOTHING)
    index = path.with_name(f"{named[1]}{_INDEX}")
    return _indexed(index) if exists(index) else _numbered(path, named)


def _in_folder(folder: Path) -> Shards:
    names = names_in(folder)
    indexes = [name for name in names if name.endswith(_INDEX)]
    preferred = _WHOLE + ".index.json"
    if indexes:
        return _indexed(folder / (preferred if preferred in indexes else indexes[0]))
    files = [name for name in names if name.endswith(_SUFFIX)]
    if _WHOLE in files:
        return Shards((folder / _WHOLE,), _NOTHING)
    sets = {named[1]: name for name in files if (named := _SHARD.fullmatch(name))}
    if len(sets) == 1:
        return shards_of(folder / next(iter(sets.values())))
    if not files:
        fail(str(folder), "the folder holds no safetensors files.")
    if len(files) > 1:
        listed = ", ".join(shown_name(name) for name in files[:3])
        fail(str(folder), f"the folder holds several models ({listed}).", "Name one of the files.")
    return shards_of(folder / files[0])


def _refuse_adapter(path: Path) -> None:
    if path.name == _ADAPTER:
        fail(str(path), "this is an adapter (LoRA), not a model.", "Name the model it extends.")


def _numbered(path: Path, named: re.Match[str]) -> Shards:
    count = int(named[3])
    if count > MAX_FILES:
        fail(str(path), f"its name says it is one of {count} files, more than {MAX_FILES}.")
    names = (f"{named[1]}-{n:05}-of-{named[3]}{_SUFFIX}" for n in range(1, count + 1))
    return Shards(tuple(path.with_name(name) for name in names), _NOTHING)


def _indexed(path: Path) -> Shards:
    found = _weight_map(path)
    names = sorted(set(found.values()))
    if len(names) > MAX_FILES:
        fail(str(path), f"it names {len(names)} files, more than {MAX_FILES}.")
    for name in names:
        # A shard lies beside its index: no folders, no index of an index.
        if not name.endswith(_SUFFIX) or name != Path(name).name or "\\" in name or "\0" in name:
            fail(str(path), f"it names {shown_name(name)}, which is no safetensors file beside it.")
    return Shards(tuple(path.with_name(name) for name in names), found, path)


def _weight_map(path: Path) -> Mapping[str, str]:
    shown = str(path)
    with open_plain_file(path) as (file, size):
        if size > MAX_HEADER_BYTES:
            fail(shown, f"it has {size} bytes, more than the index of any model.")
        content = read_exactly(file, size, shown)
    stated = parse_object(content, shown, MAX_TENSORS).get("weight_map")
    if not isinstance(stated, dict) or not stated:
        fail(shown, "it lists no weights (weight_map), so it is no index of a model.")
    found = {name: file for name, file in stated.items() if isinstance(file, str)}
    if len(found) != len(stated):
        fail(shown, "its weight_map must give a file name for every tensor.")
    if len(found) > MAX_TENSORS:
        fail(shown, f"it lists {len(found)} tensors, more than any model has.")
    return found


_IGNORED: Final = "spare"


def read_safetensors(path: Path) -> StoredModel:
    """Read a model from its folder, its index, or one of its safetensors files.

    Raises:
        SourceFileError: A file is missing, unreadable or damaged, there is no config.json, or
            it describes a model that advisor cannot size.
    """
    shards = shards_of(path)
    folder = shards.files[0].parent
    tensors = _tensors(shards)
    _check_index(shards, tensors)
    shape = _shape(folder / "config.json", tensors)
    parts = {name: place_of(name, shape.layers).part for name in tensors}
    text = tuple(t for t in tensors.values() if parts[t.name] != "vision")
    format_ = recognise(stated_beside(folder / "config.json", shape), text)
    shape, notes = _counted(shape, tensors.values(), parts, format_)
    return StoredModel(
        name=folder.resolve().name if is_folder(path) else _stem(path, folder),
        shape=shape,
        format_name=format_.name,
        kind="safetensors",
        tensors=text,
        vision_tensors=tuple(t for t in tensors.values() if parts[t.name] == "vision"),
        files=shards.files,
        notes=(*filter(None, (format_.note,)), *notes),
    )


def _stem(path: Path, folder: Path) -> str:
    """A file called ``model`` is named after its folder."""
    usual = path.name.startswith("model") or path.name.startswith("consolidated")
    return folder.resolve().name if usual else path.stem


def _shape(config: Path, tensors: Mapping[str, StoredTensor]) -> Shape:
    if exists(config):
        return load_config(config)
    return plain_blocks({name: tensor.dims for name, tensor in tensors.items()})


def _tensors(shards: Shards) -> Mapping[str, StoredTensor]:
    found: dict[str, StoredTensor] = {}
    for file in shards.files:
        for tensor in _header(file, shards, MAX_TENSORS - len(found)):
            if tensor.name in found:
                text = f"the tensor {shown_name(tensor.name)} stands in two files of the model"
                fail(str(file), f"{text}.")
            found[tensor.name] = tensor
    return found


def _header(file: Path, shards: Shards, most: int) -> tuple[StoredTensor, ...]:
    try:
        tensors = load_header(file, most)
    except SourceFileError as error:
        if len(shards.files) > 1 and not error.hint:
            error.hint = f"The model consists of {len(shards.files)} files in one folder."
        raise
    if not tensors:
        fail(str(file), "it holds no tensors.")
    return tensors


def _check_index(shards: Shards, tensors: Mapping[str, StoredTensor]) -> None:
    missing = next((name for name in shards.tensors if name not in tensors), None)
    if missing is not None:
        fail(
            str(shards.index),
            f"it lists the tensor {shown_name(missing)}, which none of its files holds.",
        )


def _counted(
    shape: Shape, tensors: Iterable[StoredTensor], parts: Mapping[str, Part], format_: Recognised
) -> tuple[Shape, tuple[str, ...]]:
    """Hold the stored parameters against the formula's; without one, take the stored ones."""
    listed = [tensor for tensor in tensors if not _shares_embedding(shape, parts[tensor.name])]
    notes = _left_out(tensor for tensor in listed if parts[tensor.name] == _IGNORED)
    if format_.quantised:
        return shape, notes
    counts = counts_of(listed, shape.layers, shape.moe)
    if shape.counts is None or shape.spread:
        whole = all(counts.layers) and counts.embedding
        return (replace(shape, counts=counts, spread=0.0) if whole else shape), notes
    if counts.total != shape.counts.total:
        text = f"The files hold {counts.total:,} parameters"
        notes += (f"{text}, config.json describes {shape.counts.total:,}.",)
    return shape, notes


def _shares_embedding(shape: Shape, part: Part) -> bool:
    """A tied output matrix is loaded once even where a checkpoint stores it twice."""
    return shape.tied and part == "output"


def _left_out(tensors: Iterable[StoredTensor]) -> tuple[str, ...]:
    size = sum(tensor.n_bytes for tensor in tensors)
    if not size:
        return ()
    return (f"{size:,} bytes in the files are not loaded (multi-token prediction, buffers).",)
