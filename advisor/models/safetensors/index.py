"""Which safetensors files make up a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from advisor.models.safetensors.header import MAX_HEADER_BYTES, parse_object, read_exactly
from advisor.models.stored_tensors import (
    MAX_FILES,
    MAX_TENSORS,
    exists,
    fail,
    is_folder,
    names_in,
    open_plain_file,
    shown_name,
)

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
