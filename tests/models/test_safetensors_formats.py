"""Which format a checkpoint is in."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from advisor.errors import SourceFileError
from advisor.models.safetensors import read_safetensors
from tests.models.safetensors_files import Dims, configure, llama, write
from tests.models.stored_profile import stored_profile


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    configure(tmp_path)
    return tmp_path


# ---- formats


def compressed(form: str, bits: int, kind: str, *, activations: bool = False) -> dict[str, object]:
    group = {
        "weights": {"num_bits": bits, "type": kind},
        "input_activations": {"num_bits": bits} if activations else None,
    }
    groups = {"group_0": group}
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": groups}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "AWQ 4-bit"),
        ({"quant_method": "awq", "bits": 3}, None),
        ({"quant_method": "gptq", "bits": 4}, "GPTQ 4-bit"),
        ({"quant_method": "gptq", "bits": 8}, "GPTQ 8-bit"),
        ({"quant_method": "gptq", "bits": 3}, "GPTQ 3-bit"),
        ({"quant_method": "gptq", "bits": 2}, None),
        ({"quant_method": "gptq", "bits": "4"}, None),
        ({"quant_method": "auto-round", "bits": 4}, "GPTQ 4-bit"),
        (
            {"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round:auto_awq"},
            "AWQ 4-bit",
        ),
        ({"quant_method": "fp8", "activation_scheme": "dynamic"}, "FP8"),
        ({"quant_method": "fbgemm_fp8"}, "FP8"),
        ({"quant_method": "mxfp4", "modules_to_not_convert": []}, "MXFP4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "INT8 (bitsandbytes)"),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
            "NF4",
        ),
        (
            {
                "quant_method": "bitsandbytes",
                "bnb_4bit_quant_type": "nf4",
                "bnb_4bit_use_double_quant": True,
            },
            "NF4 double quant",
        ),
        ({"quant_method": "bitsandbytes", "bnb_4bit_quant_type": "fp4"}, None),
        (compressed("float-quantized", 8, "float", activations=True), "FP8"),
        (compressed("int-quantized", 8, "int", activations=True), "INT8 W8A8"),
        (compressed("pack-quantized", 4, "int"), "GPTQ 4-bit"),
        (compressed("nvfp4-pack-quantized", 4, "float", activations=True), "NVFP4"),
        (compressed("mxfp4-pack-quantized", 4, "float"), "MXFP4"),
        ({"quant_method": "compressed-tensors", "config_groups": 3}, None),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "NVFP4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}, "FP8"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, None),
        (
            {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4}}},
            "HQQ 4-bit",
        ),
        ({"quant_method": "exl2", "bits": 4.65}, "EXL2 4.65bpw"),
        ({"quant_method": "exl3", "bits": 3.0}, "EXL3 3.0bpw"),
        ({"quant_method": "exl3", "bits": 3.14}, None),
        ({"group_size": 64, "bits": 4}, "MLX 4-bit"),
        ({"group_size": 64, "bits": 4, "model.layers.0": {"bits": 6}}, "MLX mixed"),
        ({"quant_method": "\x1b[31m"}, None),
        ({"quant_method": 7}, None),
    ],
)
def test_quantised_checkpoints_are_recognised(
    tmp_path: Path, stated: dict[str, object], expected: str | None
) -> None:
    configure(tmp_path, quantization_config=stated)
    path = write(tmp_path / "model.safetensors", llama())
    stored = read_safetensors(path)
    assert stored.format_name == expected
    assert bool(stored.notes) == (expected is None)
    assert all(note.isprintable() for note in stored.notes)


def test_every_recognised_name_is_in_the_knowledge_base() -> None:
    text = (Path(__file__).parents[2] / "knowledge" / "formats.yaml").read_text(encoding="utf-8")
    known = {line.removeprefix("- format: ") for line in text.splitlines()}
    marks = test_quantised_checkpoints_are_recognised.pytestmark  # type: ignore[attr-defined]  # set by pytest
    names = {expected for _, expected in marks[0].args[1] if expected}
    assert names <= known


def test_packed_weights_take_their_stored_bytes(tmp_path: Path) -> None:
    configure(tmp_path, quantization_config={"quant_method": "awq", "bits": 4})
    packed: dict[str, Dims] = {}
    for name, dims in llama().items():
        if "_proj" not in name:
            packed[name] = dims
            continue
        start = name.removesuffix("weight")
        packed[start + "qweight"] = (dims[1], dims[0] // 8)
        packed[start + "qzeros"] = (1, dims[0] // 8)
        packed[start + "scales"] = (1, dims[0])
    path = write(tmp_path / "model.safetensors", packed, "F16")
    stored = read_safetensors(tmp_path)
    assert (stored.format_name, stored.notes) == ("AWQ 4-bit", ())
    assert stored.shape.counts is not None
    length = struct.unpack("<Q", path.read_bytes()[:8])[0]
    assert stored_profile(stored).total_bytes == path.stat().st_size - 8 - length


def test_modelopt_states_its_format_beside_the_config(folder: Path) -> None:
    write(folder / "model.safetensors", llama())
    own = folder / "hf_quant_config.json"
    own.write_text('{"quantization": {"quant_algo": "NVFP4"}}', encoding="utf-8")
    assert read_safetensors(folder).format_name == "NVFP4"
    own.write_text("{", encoding="utf-8")
    with pytest.raises(SourceFileError, match=r"hf_quant_config.json:1:2: this is not valid JSON"):
        read_safetensors(folder)


@pytest.mark.parametrize(
    ("dtype", "expected"), [("F16", "FP16"), ("F32", "F32"), ("F8_E4M3", "FP8"), ("I8", None)]
)
def test_without_quantisation_the_type_of_most_bytes_counts(
    folder: Path, dtype: str, expected: str | None
) -> None:
    write(folder / "model.safetensors", llama(), dtype)
    assert read_safetensors(folder).format_name == expected
