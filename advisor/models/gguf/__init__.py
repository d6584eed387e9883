"""GGUF files: headers, shapes and formats."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from advisor.errors import SourceFileError
from advisor.models.gguf.cursor import Budget
from advisor.models.gguf.header import FILE_TYPES, GgufHeader, commonest_format, load_header
from advisor.models.gguf.shape import shape_of
from advisor.models.shape import Counts, Shape
from advisor.models.stored_tensors import (
    MAX_FILES,
    StoredModel,
    StoredTensor,
    fail,
    names_in,
    shown_name,
)

_SHARD: Final = re.compile(r"(.+)-(\d{5})-of-(\d{5})(\.gguf)", re.IGNORECASE)
_TOWER: Final = "clip"
_ADAPTERS: Final = {
    "adapter": "a LoRA adapter",
    "imatrix": "an importance matrix",
    "controlvector": "a control vector",
}


def read_gguf(path: Path) -> StoredModel:
    """Read a model from a GGUF file, any one of its shards, and the tower beside it.

    Raises:
        SourceFileError: A file is missing, unreadable, damaged, or not a language model.
    """
    budget = Budget()
    given = load_header(path, budget)
    headers = _shards(given, budget)
    first = headers[0]
    _check_is_model(first)
    tensors = _joined(headers)
    shape, notes = shape_of(first.metadata, tensors, str(first.path))
    format_name, format_notes = _format(first, tensors)
    tower, tower_notes = _tower(first.path, shape)
    return StoredModel(
        name=_name(first.path),
        shape=_with_tower(shape, tower.tensors if tower else ()),
        format_name=format_name,
        kind="gguf",
        tensors=tensors,
        vision_tensors=tower.tensors if tower else (),
        files=(*(header.path for header in headers), *((tower.path,) if tower else ())),
        notes=(*notes, *format_notes, *tower_notes, *_spare(headers)),
    )


def _check_is_model(header: GgufHeader) -> None:
    kind = header.metadata.get("general.type")
    architecture = header.metadata.get("general.architecture")
    shown = str(header.path)
    if architecture == _TOWER or kind == "mmproj":
        fail(
            shown,
            "this is the image tower of a model (mmproj), not a language model.",
            hint="Name the .gguf file of the language model; a tower beside it is found.",
        )
    if isinstance(kind, str) and kind in _ADAPTERS:
        fail(shown, f"this is {_ADAPTERS[kind]}, not a model.", hint="Name the model's file.")


def _shards(given: GgufHeader, budget: Budget) -> tuple[GgufHeader, ...]:
    """Read the other shards of a model; the given header stands at its own place."""
    count = _count(given, "split.count")
    named = _SHARD.fullmatch(given.path.name)
    if count <= 1:
        return (given,)
    if count > MAX_FILES:
        fail(str(given.path), f"it states {count} files, more than {MAX_FILES}.")
    if named is None or int(named[3]) != count:
        fail(
            str(given.path),
            f"it is one of {count} files, but is not named like one.",
            hint=f"Name the files NAME-00001-of-{count:05}.gguf and so on.",
        )
    headers = tuple(
        _shard(given, given.path.with_name(f"{named[1]}-{n:05}-of-{named[3]}{named[4]}"), budget)
        for n in range(1, count + 1)
    )
    _check_set(headers, count)
    return headers


def _shard(given: GgufHeader, path: Path, budget: Budget) -> GgufHeader:
    if path.name == given.path.name:
        return given
    try:
        return load_header(path, budget)
    except SourceFileError as error:
        error.hint = error.hint or "All files of the model must lie in one folder."
        raise


def _check_set(headers: tuple[GgufHeader, ...], count: int) -> None:
    for index, header in enumerate(headers):
        stated = _count(header, "split.no"), _count(header, "split.count")
        if stated != (index, count):
            text = f"it states that it is file {stated[0] + 1} of {stated[1]}"
            fail(str(header.path), f"{text}, but is named {index + 1} of {count}.")
    stated_tensors = _count(headers[0], "split.tensors.count")
    found = sum(len(header.tensors) for header in headers)
    if stated_tensors and stated_tensors != found:
        text = f"it states {stated_tensors} tensors in all, but its files hold {found}"
        fail(str(headers[0].path), f"{text}: they do not belong together.")


def _count(header: GgufHeader, key: str) -> int:
    value = header.metadata.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        fail(str(header.path), f"{key} must be a whole number.")
    return value


def _joined(headers: Iterable[GgufHeader]) -> tuple[StoredTensor, ...]:
    found: dict[str, StoredTensor] = {}
    for header in headers:
        for tensor in header.tensors:
            if tensor.name in found:
                fail(
                    str(header.path),
                    f"the tensor {shown_name(tensor.name)} stands in two files of the model.",
                )
            found[tensor.name] = tensor
    return tuple(found.values())


def _name(path: Path) -> str:
    shard = _SHARD.fullmatch(path.name)
    return shard[1] if shard else path.stem


def _format(
    header: GgufHeader, tensors: tuple[StoredTensor, ...]
) -> tuple[str | None, tuple[str, ...]]:
    stated = header.metadata.get("general.file_type")
    if isinstance(stated, int) and stated in FILE_TYPES:
        return FILE_TYPES[stated], ()
    guessed = commonest_format(tensors)
    if guessed is None:
        return None, ("The file does not say which format it is in.",)
    return guessed, (f"The file does not state its format; most of its weights are {guessed}.",)


def _tower(model: Path, shape: Shape) -> tuple[GgufHeader | None, tuple[str, ...]]:
    """Find the one image tower beside a model."""
    if shape.role != "decoder":
        return None, ()
    names = [name for name in names_in(model.parent) if _is_tower(name)]
    if len(names) > 1:
        listed = ", ".join(shown_name(name) for name in names[:3])
        text = f"Several image towers lie beside the model ({listed}); none is counted."
        return None, (text,)
    if not names:
        return None, ()
    try:
        header = load_header(model.with_name(names[0]), Budget())
    except SourceFileError as error:
        return None, (f"The image tower beside the model is left out: {error.message}",)
    return _fitting(header, shape)


def _is_tower(name: str) -> bool:
    folded = name.casefold()
    return folded.startswith("mmproj") and folded.endswith(".gguf")


def _fitting(header: GgufHeader, shape: Shape) -> tuple[GgufHeader | None, tuple[str, ...]]:
    shown = shown_name(header.path.name)
    width = header.metadata.get("clip.vision.projection_dim", shape.hidden)
    if header.metadata.get("general.architecture") != _TOWER:
        return None, (f"{shown} beside the model is no image tower; it is left out.",)
    if width != shape.hidden:
        text = f"{shown} beside the model belongs to another model (width {width})"
        return None, (f"{text}; it is left out.",)
    return header, (f"The image tower {shown} beside the model is counted in.",)


def _with_tower(shape: Shape, tensors: tuple[StoredTensor, ...]) -> Shape:
    vision = sum(tensor.elements for tensor in tensors)
    counts = shape.counts
    if not vision or counts is None:
        return shape
    return replace(shape, counts=_more(counts, vision))


def _more(counts: Counts, vision: int) -> Counts:
    return replace(
        counts,
        total=counts.total + vision,
        active=counts.active + vision,
        vision=counts.vision + vision,
    )


def _spare(headers: Iterable[GgufHeader]) -> tuple[str, ...]:
    return tuple(
        f"{shown_name(header.path.name)} holds {header.spare_bytes} bytes behind its last tensor."
        for header in headers
        if header.spare_bytes
    )
