"""Models in safetensors files: one file, or a folder with shards, beside a config.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import SourceFileError
from advisor.models.config import load_config
from advisor.models.config_keys import read_json_object
from advisor.models.safetensors.header import Shards, load_header, shards_of
from advisor.models.shape import Shape
from advisor.models.stored_tensors import (
    MAX_TENSORS,
    Part,
    StoredModel,
    StoredTensor,
    counts_of,
    exists,
    fail,
    is_folder,
    place_of,
    shown_name,
)

_PLAIN: Final = {"F16": "FP16", "BF16": "BF16", "F32": "F32", "F8_E4M3": "FP8"}
_EXL: Final = {
    "EXL2": ("2.5", "3.0", "3.5", "4.0", "4.65", "5.0", "6.0", "8.0"),
    "EXL3": ("1.6", "2.0", "2.5", "3.0", "3.5", "4.0", "5.0", "6.0", "8.0"),
}
_PACKED: Final = {"nvfp4": "NVFP4", "mxfp4": "MXFP4"}
_MLX_BITS: Final = frozenset({3, 4, 6, 8})
_HALF_WIDTH: Final = 8

_Config = Mapping[str, object]


class Recognised(Struct, frozen=True):
    """A format's name, or why there is none."""

    name: str | None
    quantised: bool
    note: str = ""


def recognise(stated: _Config | None, tensors: Iterable[StoredTensor]) -> Recognised:
    """Name the format of a checkpoint.

    Args:
        stated: Its ``quantization_config``, None where there is none.
        tensors: Those of the text model.
    """
    if not stated:
        return _by_dtype(tensors)
    method = _word(stated, "quant_method").casefold().replace("_", "-")
    reader = _METHODS.get(method or "mlx")
    name = reader(stated) if reader else None
    if name is None:
        label = shown_name(method) if method else "an unnamed method"
        text = f"The checkpoint is quantised by {label} in a format advisor has no name for"
        return Recognised(None, quantised=True, note=f"{text}; its sizes come from its files.")
    return Recognised(name, quantised=True)


def _by_dtype(tensors: Iterable[StoredTensor]) -> Recognised:
    counted: Counter[str] = Counter()
    for tensor in tensors:
        counted[tensor.type_name] += tensor.n_bytes
    if not counted:
        return Recognised(None, quantised=False, note="The files hold no weights.")
    dtype = counted.most_common(1)[0][0]
    name = _PLAIN.get(dtype)
    if name is None:
        text = f"Most weights are of type {dtype}, but config.json names no quantisation"
        return Recognised(None, quantised=True, note=f"{text}; sizes come from the files.")
    return Recognised(name, quantised=name == "FP8")


def _word(stated: _Config, key: str) -> str:
    value = stated.get(key)
    return value if isinstance(value, str) else ""


def _bits(stated: _Config, *names: str) -> int | None:
    value = next((stated[name] for name in names if stated.get(name) is not None), None)
    return value if type(value) is int else None


def _awq(stated: _Config) -> str | None:
    return "AWQ 4-bit" if _bits(stated, "bits", "w_bit") == 4 else None  # noqa: PLR2004


def _gptq(stated: _Config) -> str | None:
    bits = _bits(stated, "bits", "w_bit")
    return f"GPTQ {bits}-bit" if bits in {3, 4, 8} else None


def _auto_round(stated: _Config) -> str | None:
    packing = _word(stated, "packing_format") + _word(stated, "backend")
    return _awq(stated) if "awq" in packing else _gptq(stated)


def _fp8(_: _Config) -> str | None:
    return "FP8"


def _mxfp4(_: _Config) -> str | None:
    return "MXFP4"


def _bitsandbytes(stated: _Config) -> str | None:
    if stated.get("load_in_8bit") is True:
        return "INT8 (bitsandbytes)"
    if _word(stated, "bnb_4bit_quant_type") == "fp4":
        return None
    return "NF4 double quant" if stated.get("bnb_4bit_use_double_quant") is True else "NF4"


def _compressed(stated: _Config) -> str | None:
    """compressed-tensors: the groups must agree."""
    groups = stated.get("config_groups")
    listed = groups.values() if isinstance(groups, Mapping) else ()
    packing = _word(stated, "format")
    names = {_group(group, packing) for group in listed if isinstance(group, Mapping)}
    return names.pop() if len(names) == 1 else None


def _group(group: _Config, packing: str) -> str | None:
    weights = group.get("weights")
    if not isinstance(weights, Mapping):
        return None
    form = _word(group, "format") or packing
    for start, name in _PACKED.items():
        if form.startswith(start):
            return name
    bits = _bits(weights, "num_bits")
    if _word(weights, "type") == "float":
        return "FP8" if bits == _HALF_WIDTH else None
    if bits == _HALF_WIDTH and isinstance(group.get("input_activations"), Mapping):
        return "INT8 W8A8"
    return f"GPTQ {bits}-bit" if bits in {3, 4, 8} else None


def _modelopt(stated: _Config) -> str | None:
    algorithm = _word(stated, "quant_algo").upper()
    if algorithm.startswith("FP8"):
        return "FP8"
    return "NVFP4" if algorithm == "NVFP4" else None


def _hqq(stated: _Config) -> str | None:
    inner: object = stated.get("quant_config", stated)
    for key in ("weight_quant_params",):
        inner = inner.get(key, inner) if isinstance(inner, Mapping) else inner
    bits = _bits(inner, "nbits", "bits") if isinstance(inner, Mapping) else None
    return "HQQ 4-bit" if bits == 4 else None  # noqa: PLR2004


def _exl(label: str) -> Callable[[_Config], str | None]:
    def read(stated: _Config) -> str | None:
        bits = stated.get("bits")
        if isinstance(bits, bool) or not isinstance(bits, int | float):
            return None
        name = next((text for text in _EXL[label] if float(text) == bits), None)
        return f"{label} {name}bpw" if name else None

    return read


def _mlx(stated: _Config) -> str | None:
    bits = _bits(stated, "bits")
    if any(isinstance(value, Mapping) for value in stated.values()):
        return "MLX mixed" if bits in _MLX_BITS else None
    plain = _word(stated, "mode") in {"", "affine"} and "group_size" in stated
    return f"MLX {bits}-bit" if plain and bits in _MLX_BITS else None


_METHODS: Final[Mapping[str, Callable[[_Config], str | None]]] = MappingProxyType(
    {
        "awq": _awq,
        "gptq": _gptq,
        "auto-round": _auto_round,
        "intel/auto-round": _auto_round,
        "fp8": _fp8,
        "fbgemm-fp8": _fp8,
        "mxfp4": _mxfp4,
        "bitsandbytes": _bitsandbytes,
        "compressed-tensors": _compressed,
        "modelopt": _modelopt,
        "modelopt-fp4": _modelopt,
        "hqq": _hqq,
        "exl2": _exl("EXL2"),
        "exl3": _exl("EXL3"),
        "mlx": _mlx,
    }
)


_MODELOPT: Final = "hf_quant_config.json"
_IGNORED: Final = "spare"


def read_safetensors(path: Path) -> StoredModel:
    """Read a model from its folder, its index, or one of its safetensors files.

    Raises:
        SourceFileError: A file is missing, unreadable or damaged, there is no config.json, or
            it describes a model that advisor cannot size.
    """
    shards = shards_of(path)
    folder = shards.files[0].parent
    shape = _shape(folder, shards.files[0])
    tensors = _tensors(shards)
    _check_index(shards, tensors)
    parts = {name: place_of(name, shape.layers).part for name in tensors}
    text = tuple(t for t in tensors.values() if parts[t.name] != "vision")
    format_ = recognise(_quantisation(folder, shape), text)
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


def _shape(folder: Path, file: Path) -> Shape:
    config = folder / "config.json"
    if not exists(config):
        fail(
            str(file),
            "there is no config.json beside it, so its architecture is unknown.",
            hint="Put the model's config.json into the same folder.",
        )
    return load_config(config)


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


def _quantisation(folder: Path, shape: Shape) -> Mapping[str, object] | None:
    """What config.json states, else ModelOpt's own file."""
    if shape.quantization:
        return shape.quantization
    stated_in = folder / _MODELOPT
    if not exists(stated_in):
        return None
    stated = read_json_object(stated_in).get("quantization")
    return {"quant_method": "modelopt", **stated} if isinstance(stated, dict) else None


def _counted(
    shape: Shape, tensors: Iterable[StoredTensor], parts: Mapping[str, Part], format_: Recognised
) -> tuple[Shape, tuple[str, ...]]:
    """Hold the stored parameters against the formula's; without one, take the stored ones."""
    listed = [tensor for tensor in tensors if not _shares_embedding(shape, parts[tensor.name])]
    notes = _left_out(tensor for tensor in listed if parts[tensor.name] == _IGNORED)
    if format_.quantised:
        return shape, notes
    counts = counts_of(listed, shape.layers, shape.moe)
    if shape.counts is None:
        whole = all(counts.layers) and counts.embedding
        return (replace(shape, counts=counts) if whole else shape), notes
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
