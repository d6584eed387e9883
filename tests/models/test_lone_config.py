"""A config.json alone: the format that it states is the one that is sized."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.errors import RequestError
from advisor.estimator.weights import weights_of
from advisor.knowledge import load_knowledge
from advisor.models import model_from_path
from advisor.models.config import read_config
from advisor.models.shape import kept_in_full
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.models.conftest import reference_configs


def group(bits: int, kind: str, **more: object) -> dict[str, object]:
    return {"group_0": {"weights": {"num_bits": bits, "type": kind, **more}}}


def packed(form: str, bits: int, kind: str, **more: object) -> dict[str, object]:
    groups = group(bits, kind)
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": groups, **more}


STATED = [
    ({"quant_method": "awq", "bits": 4, "group_size": 128}, "AWQ 4-bit"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "GPTQ 4-bit"),
    ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "GPTQ 8-bit"),
    ({"quant_method": "gptq_marlin", "bits": 4}, "GPTQ 4-bit"),
    ({"quant_method": "auto-round", "bits": 4, "data_type": "int"}, "GPTQ 4-bit"),
    ({"quant_method": "auto-round", "bits": 4, "data_type": "mx_fp"}, "MXFP4"),
    ({"quant_method": "auto-round", "bits": 4, "data_type": "nv_fp"}, "NVFP4"),
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "FP8"),
    ({"quant_method": "mxfp4"}, "MXFP4"),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "INT8 (bitsandbytes)"),
    ({"quant_method": "bitsandbytes", "bnb_4bit_quant_type": "nf4"}, "NF4"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "NVFP4"),
    ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}}, "MXFP4"),
    (packed("float-quantized", 8, "float"), "FP8"),
    (packed("pack-quantized", 4, "int"), "GPTQ 4-bit"),
    (packed("pack-quantized", 4, "int", ignore=["re:.*self_attn.*"]), "INT4 (experts)"),
    (packed("nvfp4-pack-quantized", 4, "float"), "NVFP4"),
    ({"quant_method": "exl3", "bits": 4.25}, "EXL3 4.25bpw"),
    ({"group_size": 64, "bits": 4}, "MLX 4-bit"),
]


def folder(path: Path, stated: object, key: str = "quantization_config") -> Path:
    config = {**reference_configs()["llama-3-8b"], key: stated}
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return path


def taken(path: Path) -> str:
    return resolve(Request(model=str(path)), load_knowledge()).precision.name


@pytest.mark.parametrize(("stated", "expected"), STATED)
def test_the_stated_format_is_sized(tmp_path: Path, stated: object, expected: str) -> None:
    assert model_from_path(folder(tmp_path, stated)).held_format == expected
    assert expected in load_knowledge().formats


def test_experts_may_be_stated_apart(tmp_path: Path) -> None:
    path = folder(tmp_path, {"quant_method": "fp8", "weight_block_size": [128, 128]})
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    stated = json.dumps({**config, "expert_dtype": "fp4"})
    (path / "config.json").write_text(stated, encoding="utf-8")
    assert taken(path) == "FP4+FP8"


def test_mlx_states_it_under_a_name_of_its_own(tmp_path: Path) -> None:
    assert taken(folder(tmp_path, {"group_size": 64, "bits": 8}, "quantization")) == "MLX 8-bit"


def test_modelopt_states_it_in_a_file_of_its_own(tmp_path: Path) -> None:
    folder(tmp_path, None)
    stated = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(stated), encoding="utf-8")
    assert taken(tmp_path) == "FP8"


def of_groups(*listed: dict[str, object]) -> dict[str, object]:
    groups = {f"group_{at}": one for at, one in enumerate(listed)}
    return {"quant_method": "compressed-tensors", "config_groups": groups}


W8 = {"num_bits": 8, "type": "float"}
W4 = {"num_bits": 4, "type": "float", "group_size": 16}
EIGHT_BITS_DOWN = 4.15625 + (8.1875 - 4.15625) * 58_720_256 / 218_103_808


@pytest.mark.parametrize(
    ("stated", "name", "bits"),
    [
        (
            {"quant_method": "gptq", "bits": 4, "group_size": 128,
             "dynamic": {"+:.*down_proj.*": {"bits": 8}}},
            "GPTQ 4-bit", EIGHT_BITS_DOWN,
        ),
        (
            {"quant_method": "auto-round", "bits": 4, "group_size": 128,
             "extra_config": {".*down_proj.*": {"bits": 8}, "lm_head": {"bits": 16}}},
            "GPTQ 4-bit", EIGHT_BITS_DOWN,
        ),
        (
            {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}},
             "layer_quant_config": {"*down_proj": {"weight": {"dtype": "fp4"}}}},
            "FP8", 8 - 3.75 * 58_720_256 / 218_103_808,
        ),
        (
            of_groups(
                {"targets": ["re:.*down_proj"], "weights": W8},
                {"targets": ["Linear"], "weights": W4},
            ),
            "NVFP4", 4.5 + 3.5 * 58_720_256 / 218_103_808,
        ),
    ],
)  # fmt: skip
def test_layers_that_are_packed_apart_are_weighed(
    tmp_path: Path, stated: object, name: str, bits: float
) -> None:
    model = model_from_path(folder(tmp_path, stated))
    assert model.held_format == name
    assert model.held_bits == pytest.approx(bits, rel=1e-3)


@pytest.mark.parametrize("method", ["mxfp4", "nvfp4"])
def test_what_a_checkpoint_holds_goes_before_its_namesake_in_gguf(
    tmp_path: Path, method: str
) -> None:
    path = folder(tmp_path, packed(f"{method}-pack-quantized", 4, "float"))
    asked = Request(model=str(path), gpu="RTX 4090")
    found = resolve(asked, load_knowledge())
    assert (found.precision.name, found.framework.name) == (method.upper(), "vLLM")


def test_bitsandbytes_had_no_name_once(tmp_path: Path) -> None:
    stated = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
    assert taken(folder(tmp_path, stated)) == "NF4"
    neither = {"quant_method": "bitsandbytes", "load_in_4bit": False, "load_in_8bit": False}
    assert model_from_path(folder(tmp_path, neither)).held_format is None


def weights_gib(path: Path, framework: str = "vLLM") -> float:
    knowledge = load_knowledge()
    model = model_from_path(path)
    precision = knowledge.formats[model.held_format or ""]
    runtime = knowledge.frameworks[framework]
    found = weights_of(model, precision, runtime, knowledge.ggml_types)
    return found.profile.total_bytes / 2**30


def packed_in_groups(size: int, *, symmetric: bool) -> dict[str, object]:
    """What llm-compressor writes of W4A16."""
    weights = {"num_bits": 4, "group_size": size, "type": "int", "symmetric": symmetric}
    return {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"group_0": {"weights": weights, "targets": ["Linear"]}},
    }


@pytest.mark.parametrize(
    ("stated", "name", "bits"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 32}, "AWQ 4-bit", 4.625),
        ({"quant_method": "gptq", "bits": 8, "group_size": 64}, "GPTQ 8-bit", 8.375),
        (packed_in_groups(32, symmetric=True), "GPTQ 4-bit", 4.5),
        (packed_in_groups(32, symmetric=False), "GPTQ 4-bit", 4.625),
        ({"group_size": 32, "bits": 4}, "MLX 4-bit", 5.0),
        ({"group_size": 32, "bits": 4, "mode": "mxfp4"}, "MLX 4-bit", 4.25),
        ({"group_size": 16, "bits": 4, "mode": "nvfp4"}, "MLX 4-bit", 4.5),
        ({"group_size": 32, "bits": 8, "mode": "mxfp8"}, "MLX 8-bit", 8.25),
        ({"quant_method": "exl3", "bits": 3.07}, "EXL3 3.0bpw", 3.07),
        ({"group_size": 64, "bits": 5}, "MLX 5-bit", None),
        ({"quant_method": "exl3", "bits": 4.25}, "EXL3 4.25bpw", None),
    ],
)
def test_groups_and_fractions_are_sized_as_stated_and_said(
    tmp_path: Path, stated: object, name: str, bits: float | None
) -> None:
    model = model_from_path(folder(tmp_path, stated))
    assert (model.held_format, model.held_bits) == (name, bits)
    told = (f"Its config makes {bits:.4g} bits per weight of it.",) if bits else ()
    assert model.notes == told


def test_other_groups_make_other_sizes(tmp_path: Path) -> None:
    usual = weights_gib(folder(tmp_path, {"quant_method": "gptq", "bits": 4}))
    fine = weights_gib(folder(tmp_path, {"quant_method": "gptq", "bits": 4, "group_size": 32}))
    assert fine - usual == pytest.approx((4.625 - 4.15625) / 8 * 6.98e9 / 2**30, rel=0.01)


LLAMA_405B = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 16384,
    "intermediate_size": 53248, "num_hidden_layers": 126, "num_attention_heads": 128,
    "num_key_value_heads": 16, "vocab_size": 128256, "tie_word_embeddings": False,
}  # fmt: skip
"""As the repository of its FP8 states it: key-value heads are held twice."""


def test_layers_that_the_config_leaves_in_16_bits_are_sized_so(tmp_path: Path) -> None:
    """The published FP8 of Llama 3.1 405B keeps attention and its first and last block: 462 GiB."""
    names = [f"model.layers.{n}.self_attn.{one}_proj" for n in range(126) for one in "qkvo"]
    names += [
        f"model.layers.{n}.mlp.{one}_proj" for n in (0, 125) for one in ("gate", "up", "down")
    ]
    stated = {"quant_method": "fbgemm_fp8", "modules_to_not_convert": names}
    config = {**LLAMA_405B, "quantization_config": stated}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert weights_gib(tmp_path) == pytest.approx(462, rel=0.005)
    assert "leaves" in model_from_path(tmp_path).notes[-1]


LINEAR = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
ATTENTION = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024)


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["lm_head"], 0),
        (["re:.*self_attn.*"], ATTENTION),
        (["*self_attn*"], ATTENTION),
        (["model.layers.*.self_attn.q_proj"], 32 * 4096 * 4096 * 0.4 / 0.4),
        (["self_attn"], ATTENTION),
        (["down_proj"], 32 * 4096 * 14336),
        (["model.layers.3"], LINEAR // 32),
        (["model.language_model.layers.3.mlp"], 3 * 4096 * 14336),
        (["re:(a+)+b", "re:(", 7, "layers.31."], 0),
    ],
)
def test_names_globs_and_patterns_are_read(names: list[object], kept: float) -> None:
    config = reference_configs()["llama-3-8b"]
    shape = read_config(config, "config.json")
    found = sum(kept_in_full({"ignore": names}, shape))
    assert found == pytest.approx(kept, rel=0.4 if "q_proj" in f"{names}" else 1e-3)


def test_a_packing_without_a_name_is_not_taken_for_16_bits(tmp_path: Path) -> None:
    path = folder(tmp_path, {"quant_method": "vptq"})
    with pytest.raises(RequestError, match=r"states a packing \(.*\) that has no name here"):
        taken(path)
    asked = Request(model=str(path), precision="FP16")
    assert resolve(asked, load_knowledge()).precision.name == "FP16"
