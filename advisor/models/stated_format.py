"""Which weight format a checkpoint is in, as its config.json or ModelOpt's own file states it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from advisor.models.config_keys import read_json_object
from advisor.models.shape import ALGORITHMS, Shape, packed_apart
from advisor.models.stored_tensors import StoredTensor, exists, shown_name

_PLAIN: Final = {"F16": "FP16", "BF16": "BF16", "F32": "F32", "F8_E4M3": "FP8"}
_PACKED: Final = {"nvfp4": "NVFP4", "mxfp4": "MXFP4"}
_FOURS: Final = {16: "NVFP4", 32: "MXFP4"}
"""Floats of four bits by the weights that share a scale."""
_ROUNDED: Final = {"mx_fp": "MXFP4", "nv_fp": "NVFP4", "fp": "FP8"}
"""Data types of AutoRound that are not whole numbers."""
_INDEX: Final = "model.safetensors.index.json"
_WIDTHS: Final = {"bfloat16": 2, "float16": 2, "float32": 4}
_UNLIKE: Final = 10
"""An index that counts so many times more or fewer is that of something else."""
_MODELOPT: Final = "hf_quant_config.json"
_EXPERTS_ALONE: Final = "INT4 (experts)"
EXPERTS: Final = "expert_dtype"
"""Where a config.json says what its experts are in, if not in what the rest is."""
_MLX_BITS: Final = frozenset({3, 4, 5, 6, 8})
_HALF_WIDTH: Final = 8
_EXL: Final = frozenset(
    "2.25 2.5 2.75 3.0 3.25 3.5 3.75 4.0 4.25 4.5 4.75 5.0 5.5 6.0 6.5 8.0".split()  # noqa: SIM905
)
_UNNAMED: Final = "The checkpoint has a fraction of bits that advisor has no name for"
_NEAR_EXL: Final = 0.5
"""A fraction has the name of the nearest format, and its own bits."""
_ONLY: Final = {"EXL2": {"4.65"}, "EXL3": {"1.6", "2.0"}}
_BY_BITS: Final = {8.0: "FP8", 4.5: "NVFP4"}
"""A mix has the name of its narrowest format."""
_USUAL_GROUP: Final = {"AWQ": 128, "GPTQ": 128, "MLX": 64, "HQQ": 64}
"""Weights that share a scale, as the sizes of these formats in knowledge/ take it."""
_SCALE: Final = 16
_PLAIN_BITS: Final = 16
_SCALE_AND_BIAS: Final = 32
"""Bits beside the weights of a group; AWQ and GPTQ add a zero of the weights' own width."""
_MLX_MODES: Final = {"mxfp4": 4.25, "nvfp4": 4.5, "mxfp8": 8.25}
"""Bits per weight with the scales of their groups (mlx-lm 0.32.2)."""

_Config = Mapping[str, object]


class Recognised(Struct, frozen=True):
    """A format's name, or why there is none."""

    name: str | None
    quantised: bool
    note: str = ""
    bits: float | None = None
    """Bits per weight where they are not the usual ones of the format."""


def recognise(stated: _Config | None, tensors: Iterable[StoredTensor]) -> Recognised:
    """Name the format of a checkpoint.

    ``stated`` is its ``quantization_config``; the tensors are those of the text model.
    """
    if not stated:
        return _by_dtype(tensors)
    found = format_of(stated)
    if found.name and found.bits and found.name.partition(" ")[0] in _ONLY:
        return Recognised(None, quantised=True, note=f"{_UNNAMED}; its sizes come from its files.")
    if found.name is None:
        return replace(found, note=f"{found.note}; its sizes come from its files.")
    return replace(found, note="")


def format_of(stated: Mapping[str, object], mixed: float | None = None) -> Recognised:
    """Name the format that a ``quantization_config`` states, with a remark on its size.

    ``mixed`` are the bits per weight where it mixes formats, as far as they are known.
    """
    method = _word(stated, "quant_method").casefold().replace("_", "-")
    reader = _METHODS.get(method or _unnamed_method(stated))
    name = reader(stated) if reader else None
    if name is None:
        label = shown_name(method) if method else "an unnamed method"
        text = f"The checkpoint is quantised by {label} in a format advisor has no name for"
        return Recognised(None, quantised=True, note=text)
    bits = mixed or _own_bits(stated, name)
    note = f"Its config makes {bits:.4g} bits per weight of it." if bits else ""
    return Recognised(name, quantised=True, note=note, bits=bits)


def _unnamed_method(stated: _Config) -> str:
    """Files from before bitsandbytes had a name, of ModelOpt and of MLX."""
    if any(f"load_in_{bits}bit" in stated for bits in (4, 8)):
        return "bitsandbytes"
    return "modelopt" if "quant_algo" in stated else "mlx"


def _own_bits(stated: _Config, name: str) -> float | None:
    """Give the bits per weight of groups or fractions that the format's name does not tell."""
    if name == "FP4+FP8":
        return ALGORITHMS.get(_word(stated, "moe_quant_algo"))
    of = {**stated, **_weights(stated)}
    maker, group = name.partition(" ")[0], _bits(of, "group_size")
    if maker in _ONLY:
        exact = stated["bits"]
        assert isinstance(exact, int | float)
        return None if name == f"{maker} {float(exact)}bpw" else float(exact)
    if maker == "MLX" and (mode := _word(stated, "mode")) in _MLX_MODES:
        return _MLX_MODES[mode]
    usual, bits = _USUAL_GROUP.get(maker), _bits(of, "bits", "w_bit", "num_bits")
    if usual is None or bits is None or not group or group in {usual, -1}:
        return None
    zero = 0 if of.get("symmetric") is True else bits
    return bits + (_SCALE_AND_BIAS if maker in {"MLX", "HQQ"} else _SCALE + zero) / group


def _weights(stated: _Config) -> _Config:
    """Give what compressed-tensors says of the weights of its one group; nothing of others."""
    listed = _groups(stated)
    weights = listed[0].get("weights") if len(listed) == 1 else None
    return weights if isinstance(weights, Mapping) else {}


def stated_beside(config: Path, shape: Shape) -> Mapping[str, object] | None:
    """Give what a config.json says of its format, else what ModelOpt's own file beside it says.

    Raises:
        SourceFileError: That file is there and cannot be read.
    """
    if shape.quantization:
        return as_listed(shape.quantization)
    file = config.parent / _MODELOPT
    if not exists(file):
        return None
    stated = read_json_object(file).get("quantization")
    return {"quant_method": "modelopt", **stated} if isinstance(stated, dict) else None


def counted_beside(config: Path, shape: Shape) -> Shape:
    """Take the parameters of what no table describes from the index of its files, if it is there.

    Raises:
        SourceFileError: The index cannot be read.
    """
    file, counts = config.parent / _INDEX, shape.counts
    if not (shape.spread and counts and not shape.quantization and exists(file)):
        return shape
    told = read_json_object(file).get("metadata")
    metadata = told if isinstance(told, dict) else {}
    size, width = _bits(metadata, "total_size"), _WIDTHS.get(shape.dtype or "")
    held = _bits(metadata, "total_parameters") or (size // width if width and size else 0)
    if not 1 / _UNLIKE < held / counts.total < _UNLIKE:
        return shape
    said = f"Its parameters are those that {_INDEX} counts."
    scaled = counts.scaled(held / counts.total)
    return replace(shape, counts=scaled, spread=0.0, doubts=(*shape.doubts, said))


def as_listed(stated: _Config) -> _Config:
    """Write what a config packs apart as ModelOpt lists it: layers, and the bits of each."""
    usual, apart = (None, {}) if "quantized_layers" in stated else _apart(stated)
    listed = {name: {"bits": bits} for name, bits in apart.items() if bits not in {usual, None}}
    if not listed or (usual is None and len({*apart.values()}) == 1):
        return stated
    rest = {} if usual is None else {"re:.": {"bits": usual}}
    return {**stated, "quantized_layers": {**listed, **rest}}


def _apart(stated: _Config) -> tuple[float | None, dict[str, float | None]]:
    """Give the bits per weight of most layers, and of those for which the config has rules."""
    groups = _groups(stated)
    if len(groups) > 1:
        found = {f"{name}": _group_bits(one, stated) for one in groups for name in _targets(one)}
        return found.pop("Linear", None), found
    rules = {**_rules(stated, "dynamic"), **_rules(stated, "extra_config")}
    if quark := _rules(stated, "layer_quant_config"):
        usual = _quark_bits(stated.get("global_quant_config"))
        return usual, {name: _quark_bits(how) for name, how in quark.items()}
    usual = _rule_bits("", {}, stated)
    return usual, {
        _pattern(name): _rule_bits(name, how, stated)
        for name, how in rules.items()
        if name.rpartition(".")[2] != "lm_head"
    }


def _rules(stated: _Config, key: str) -> dict[str, _Config]:
    rules = stated.get(key)
    pairs = rules.items() if isinstance(rules, Mapping) else ()
    return {f"{name}": how for name, how in pairs if isinstance(how, Mapping)}


def _pattern(name: str) -> str:
    """Rules of GPTQ begin with a sign and are patterns; those of AutoRound may be."""
    signed = name[:2] in {"+:", "-:"}
    return f"re:{name[2:] if signed else name}" if signed or ".*" in name else name


def _rule_bits(name: str, how: _Config, stated: _Config) -> float | None:
    bits = _PLAIN_BITS if name.startswith("-:") else _bits({**stated, **how}, "bits")
    group = _bits({**stated, **how}, "group_size") or -1
    if bits is None or bits >= _PLAIN_BITS or group < 1:
        return bits
    return bits + (_SCALE + bits) / group


def _targets(group: _Config) -> tuple[object, ...]:
    listed = group.get("targets")
    return tuple(listed) if isinstance(listed, list | tuple) else ()


def _group_bits(group: _Config, stated: _Config) -> float | None:
    name = _group(group, _word(stated, "format"))
    weights, usual = group.get("weights"), {"NVFP4": 4.5, "MXFP4": 4.25, "FP8": 8, "INT8 W8A8": 8}
    if not isinstance(weights, Mapping) or name is None or name in usual:
        return usual.get(name or "")
    bits, size = _bits(weights, "num_bits"), _bits(weights, "group_size")
    zero = 0 if weights.get("symmetric") is True else bits
    return bits + (_SCALE + zero) / size if bits and zero is not None and size else bits


def _quark_bits(how: object) -> float | None:
    weight = how.get("weight") if isinstance(how, Mapping) else None
    kind = weight.get("dtype") if isinstance(weight, Mapping) else None
    return {"fp8_e4m3": 8.0, "fp4": 4.25, "int8": 8.0}.get(f"{kind}")


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
    for start, name in _ROUNDED.items():
        if _word(stated, "data_type").startswith(start):
            return name if _bits(stated, "bits") == int(name[-1]) else None
    return _awq(stated) if "awq" in packing else _gptq(stated)


def _fp8(stated: _Config) -> str | None:
    return "FP4+FP8" if _word(stated, EXPERTS) == "fp4" else "FP8"


def _mxfp4(_: _Config) -> str | None:
    return "MXFP4"


def _bitsandbytes(stated: _Config) -> str | None:
    if stated.get("load_in_8bit") is True:
        return "INT8 (bitsandbytes)"
    if stated.get("load_in_4bit") is False or _word(stated, "bnb_4bit_quant_type") == "fp4":
        return None
    return "NF4 double quant" if stated.get("bnb_4bit_use_double_quant") is True else "NF4"


def _compressed(stated: _Config) -> str | None:
    """compressed-tensors: a mix has the name of its narrowest group, where all have one."""
    packing = _word(stated, "format")
    names = {_group(group, packing): _group_bits(group, stated) for group in _groups(stated)}
    name = min(names, key=lambda one: names[one] or 0, default=None) if all(names) else None
    return _EXPERTS_ALONE if name == "GPTQ 4-bit" and _keeps_attention(stated) else name


def _groups(stated: _Config) -> list[_Config]:
    groups = stated.get("config_groups")
    listed = groups.values() if isinstance(groups, Mapping) else ()
    return [group for group in listed if isinstance(group, Mapping)]


def _keeps_attention(stated: _Config) -> bool:
    """Whether attention stays in 16 bits, as in the checkpoints of Kimi, whose groups are of 32."""
    ignored = stated.get("ignore")
    listed = ignored if isinstance(ignored, list | tuple) else ()
    return any("self_attn" in f"{name}" for name in listed)


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
        return "FP8" if bits == _HALF_WIDTH else _FOURS.get(_bits(weights, "group_size") or 0)
    if bits == _HALF_WIDTH and isinstance(group.get("input_activations"), Mapping):
        return "INT8 W8A8"
    return f"GPTQ {bits}-bit" if bits in {3, 4, 8} else None


def _modelopt(stated: _Config) -> str | None:
    algorithm = _word(stated, "quant_algo").upper()
    bits = ALGORITHMS.get(algorithm) or min((bits for _, bits in packed_apart(stated)), default=0)
    return _BY_BITS.get(bits)


def _quark(stated: _Config) -> str | None:
    """AMD Quark: the type of the weights of all layers that are not listed apart."""
    inner: object = stated.get("global_quant_config")
    weight = inner.get("weight") if isinstance(inner, Mapping) else None
    kind = _word(weight, "dtype") if isinstance(weight, Mapping) else ""
    return {"fp8_e4m3": "FP8", "fp4": "MXFP4"}.get(kind)


def _hqq(stated: _Config) -> str | None:
    inner: object = stated.get("quant_config", stated)
    for key in ("weight_quant_params",):
        inner = inner.get(key, inner) if isinstance(inner, Mapping) else inner
    bits = _bits(inner, "nbits", "bits") if isinstance(inner, Mapping) else None
    return f"HQQ {bits}-bit" if bits in {2, 3, 4, 8} else None


def _exl(label: str) -> Callable[[_Config], str | None]:
    def read(stated: _Config) -> str | None:
        bits = stated.get("bits")
        if isinstance(bits, bool) or not isinstance(bits, int | float):
            return None
        known = sorted(_EXL | _ONLY[label], key=lambda name: abs(float(name) - bits))
        return f"{label} {known[0]}bpw" if abs(float(known[0]) - bits) <= _NEAR_EXL else None

    return read


def _mlx(stated: _Config) -> str | None:
    bits = _bits(stated, "bits")
    if any(isinstance(value, Mapping) for value in stated.values()):
        return "MLX mixed" if bits in _MLX_BITS else None
    plain = _word(stated, "mode") in {"", "affine", *_MLX_MODES} and "group_size" in stated
    return f"MLX {bits}-bit" if plain and bits in _MLX_BITS else None


_METHODS: Final[Mapping[str, Callable[[_Config], str | None]]] = {
    "awq": _awq,
    "gptq": _gptq,
    "auto-round": _auto_round,
    "intel/auto-round": _auto_round,
    "gptq-marlin": _gptq,
    "awq-marlin": _awq,
    "fp8": _fp8,
    "fbgemm-fp8": _fp8,
    "mxfp4": _mxfp4,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
    "modelopt-fp4": _modelopt,
    "quark": _quark,
    "hqq": _hqq,
    "exl2": _exl("EXL2"),
    "exl3": _exl("EXL3"),
    "mlx": _mlx,
}
