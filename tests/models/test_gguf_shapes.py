"""What a GGUF header says of an architecture."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import UserError
from advisor.knowledge import load_knowledge
from advisor.models.config import read_config
from advisor.models.gguf import read_gguf
from advisor.models.shape import Shape
from tests.models.gguf_files import Entry, metadata_of, tiny, tiny_metadata, tiny_tensors, write

# ---- shapes


def kinds(
    folder: Path, architecture: str, layers: int, **changes: object
) -> tuple[str, int | None]:
    metadata = tiny_metadata(architecture, block_count=layers, **changes)
    shape = read_gguf(write(folder / "x.gguf", metadata, tiny_tensors(layers))).shape
    return shape.layer_kinds, shape.window


@pytest.mark.parametrize(
    ("architecture", "window", "expected"),
    [
        ("gemma2", None, ("SFSFSF", 4096)),
        ("gemma3", 1024, ("SSSSSF", 1024)),
        ("gemma3", None, ("FFFFFF", None)),
        ("gpt-oss", 128, ("SFSFSF", 128)),
        ("cohere2", 4096, ("SSSFSS", 4096)),
        ("smallthinker", 4096, ("FSSSFS", 4096)),
        ("llama4", None, ("CCCFCC", 8192)),
        ("llama4", 0, ("FFFFFF", None)),
        ("llama", 4096, ("FFFFFF", None)),
        ("phi3", 2047, ("FFFFFF", None)),
        ("exaone-moe", None, ("SSSFSS", 128)),
    ],
)
def test_which_layers_slide(
    tmp_path: Path, architecture: str, window: int | None, expected: tuple[str, int | None]
) -> None:
    assert kinds(tmp_path, architecture, 6, attention__sliding_window=window) == expected


def test_a_stated_pattern_counts_more_than_the_usual_one(tmp_path: Path) -> None:
    change = {"attention__sliding_window": 512}
    pattern = [True, True, False, True]
    listed = kinds(tmp_path, "gemma4", 4, attention__sliding_window_pattern=pattern, **change)
    assert listed == ("SSFS", 512)
    period = kinds(tmp_path, "gemma3", 4, attention__sliding_window_pattern=2, **change)
    assert period == ("SFSF", 512)


def test_layers_that_share_a_cache_keep_none(tmp_path: Path) -> None:
    found = kinds(
        tmp_path, "gemma3n", 4, attention__sliding_window=512, attention__shared_kv_layers=2
    )
    assert found == ("SSXX", 512)


def test_layers_of_gemma_3n_share_caches_unsaid(tmp_path: Path) -> None:
    found = kinds(tmp_path, "gemma3n", 30, attention__sliding_window=512)
    assert found == ("SSSSF" * 4 + "X" * 10, 512)


def test_full_layers_may_have_wider_heads(tmp_path: Path) -> None:
    changes: dict[str, object] = {
        "attention__sliding_window": 512,
        "attention__sliding_window_pattern": [True, False],
    }
    for width, name in ((64, "key_length"), (64, "value_length")):
        changes |= {f"attention__{name}": width, f"attention__{name}_swa": width // 4}
    metadata = tiny_metadata("gemma4", **changes)
    shape = read_gguf(write(tmp_path / "x.gguf", metadata, tiny_tensors())).shape
    assert (shape.layer_kinds, shape.head_dim, shape.kv_heads_by_layer) == ("SF", 16, (2, 8))


def test_keys_and_values_of_different_widths_are_cached_together(tmp_path: Path) -> None:
    shape = read_gguf(tiny(tmp_path, attention__key_length=192, attention__value_length=128)).shape
    assert 2 * shape.head_dim == 192 + 128


def test_heads_may_be_listed_per_layer(tmp_path: Path) -> None:
    shape = read_gguf(tiny(tmp_path, attention__head_count_kv=[1, 4])).shape
    assert (shape.kv_heads, shape.kv_heads_by_layer) == (4, (1, 4))
    assert (
        read_gguf(tiny(tmp_path, attention__head_count_kv=[2, 2])).shape.kv_heads_by_layer is None
    )
    assert read_gguf(tiny(tmp_path, feed_forward_length=[96, 128])).shape.intermediate == 128


def test_layers_for_multi_token_prediction_are_told_apart(tmp_path: Path) -> None:
    metadata = tiny_metadata("glm4moe", block_count=3, nextn_predict_layers=1)
    stored = read_gguf(write(tmp_path / "x.gguf", metadata, tiny_tensors(3)))
    assert stored.shape.layers == 2
    assert stored.shape.mtp_layers == 1
    assert stored.notes == (
        "1 layer for multi-token prediction in the file: loaded only to draft (--mtp).",
    )
    two = read_gguf(write(tmp_path / "y.gguf", tiny_metadata("glm4moe"), tiny_tensors(2)))
    assert stored.shape.counts == two.shape.counts


def test_the_cache_of_an_unknown_architecture_is_estimated(tmp_path: Path) -> None:
    shape = read_gguf(write(tmp_path / "x.gguf", tiny_metadata("novel"), tiny_tensors())).shape
    assert (shape.model_type, shape.layers) == ("novel", 2)
    assert not shape.described
    assert shape.layer_kinds == "FF"
    assert "Architecture 'novel' not described" in shape.doubts[0]


def test_blocks_that_run_again_keep_a_cache_for_every_pass(tmp_path: Path) -> None:
    file = write(tmp_path / "novel.gguf", tiny_metadata("novel", block_count=6), tiny_tensors(2))
    shape = read_gguf(file).shape
    assert (shape.layers, shape.layer_kinds) == (6, "FFFFFF")
    assert "run those of another again" in shape.doubts[1]


def test_without_heads_an_unknown_architecture_has_the_most_cache_or_none(tmp_path: Path) -> None:
    stated = tiny_metadata("novel")
    bare = {key: value for key, value in stated.items() if "head_count" not in key}
    shape = read_gguf(write(tmp_path / "x.gguf", bare, tiny_tensors())).shape
    assert shape.kv_heads * shape.head_dim == shape.hidden
    assert shape.cache_loose == 1.0
    known = {key: value for key, value in tiny_metadata().items() if "head_count" not in key}
    with pytest.raises(UserError, match=r"attention\.head_count is missing"):
        read_gguf(write(tmp_path / "y.gguf", known, tiny_tensors()))


def test_without_their_number_the_layers_of_an_unknown_architecture_are_those_stored(
    tmp_path: Path,
) -> None:
    bare = tiny_metadata("novel", block_count=None)
    assert read_gguf(write(tmp_path / "x.gguf", bare, tiny_tensors(3))).shape.layers == 3
    with pytest.raises(UserError, match="block_count is missing"):
        read_gguf(write(tmp_path / "y.gguf", tiny_metadata(block_count=None), tiny_tensors()))


def test_an_encoder_and_its_decoder_are_sized_with_an_input_as_long_as_the_context(
    tmp_path: Path,
) -> None:
    layers = [
        Entry(entry.name.replace("blk.", f"{part}.blk."), entry.dims, entry.kind)
        for part, count in (("enc", 2), ("dec", 3))
        for entry in tiny_tensors(count)
        if entry.name.startswith("blk.")
    ]
    metadata = tiny_metadata("t5", decoder_block_count=3)
    shape = read_gguf(write(tmp_path / "t5.gguf", metadata, [*tiny_tensors(0), *layers])).shape
    assert (shape.model_type, shape.layers, shape.layer_kinds) == ("t5", 3, "FFF")
    assert shape.encoder_positions == 0


def test_latents_that_an_old_file_does_not_compress_are_cached_as_heads(tmp_path: Path) -> None:
    metadata = tiny_metadata("deepseek2", attention__kv_lora_rank=32, rope__dimension_count=8)
    shape = read_gguf(write(tmp_path / "x.gguf", metadata, tiny_tensors())).shape
    assert shape.mla is None
    assert (shape.kv_heads, shape.head_dim) == (2, 16)


def test_a_file_without_file_type_is_named_after_most_of_its_weights(tmp_path: Path) -> None:
    metadata = {k: v for k, v in tiny_metadata().items() if k != "general.file_type"}
    stored = read_gguf(write(tmp_path / "x.gguf", metadata, tiny_tensors()))
    assert stored.format_name == "FP16"
    assert "most of its weights are FP16" in stored.notes[0]


HYBRIDS = {
    "AI21-Jamba-Mini-1.5": "jamba",
    "Falcon-H1-7B-Instruct": "falcon-h1",
    "LFM2-1.2B": "lfm2",
    "LFM2-8B-A1B": "lfm2moe",
    "Mamba-Codestral-7B-v0.1": "mamba2",
    "NVIDIA-Nemotron-3-Nano-30B-A3B": "nemotron_h",
    "Qwen3-Next-80B-A3B-Instruct": "qwen3next",
    "Qwen3.5-27B": "qwen35",
    "Qwen3.5-35B-A3B": "qwen35moe",
    "falcon-mamba-7b": "mamba",
    "granite-4.0-h-tiny": "granitehybrid",
}
_MIXERS = {
    "F": ("attn_q", "attn_k", "attn_v", "attn_output"),
    "R": ("ssm_in", "ssm_out"),
    "H": ("ssm_in", "ssm_out", "attn_q", "attn_k"),
    "N": (),
}
_FEEDS = {"D": ("ffn_up", "ffn_down"), "E": ("ffn_gate_inp", "ffn_up_exps"), "-": ()}


def mixed_tensors(shape: Shape, recurrent: str) -> list[Entry]:
    found = [Entry("token_embd.weight", (shape.hidden, shape.vocab))]
    if not shape.tied:
        found.append(Entry("output.weight", (shape.hidden, shape.vocab)))
    for index, (kind, feed) in enumerate(zip(shape.layer_kinds, shape.ffn_kinds, strict=True)):
        names = ["attn_norm", *_MIXERS[kind], *_FEEDS[feed]]
        for name in names:
            own = recurrent if name == "ssm_in" else name
            dims = (32, 32, shape.moe.experts) if name.endswith("_exps") and shape.moe else (32,)
            found.append(Entry(f"blk.{index}.{own}.weight", dims))
    return found


@pytest.mark.parametrize("name", sorted(HYBRIDS))
def test_hybrids_have_the_layers_and_states_of_their_config(tmp_path: Path, name: str) -> None:
    expected = read_config(load_knowledge().models[name].config, name, whole=False)
    architecture = HYBRIDS[name]
    state = expected.recurrent
    assert state is not None
    metadata = metadata_of(expected, architecture)
    pairs = [expected.kv_heads if kind in "FH" else 0 for kind in expected.layer_kinds]
    more = {
        "attention.head_count": expected.heads,
        "attention.head_count_kv": pairs if expected.heads else 0,
        "ssm.time_step_rank": state.dt_rank or state.heads,
        "shortconv.l_cache": state.conv_kernel,
    }
    metadata |= {f"{architecture}.{key}": value for key, value in more.items()}
    mixer = "shortconv.in_proj" if state.kind == "conv" else "ssm_in"
    path = write(tmp_path / "x.gguf", metadata, mixed_tensors(expected, mixer))
    shape = read_gguf(path).shape
    assert (shape.layer_kinds, shape.ffn_kinds) == (expected.layer_kinds, expected.ffn_kinds)
    assert (shape.heads, shape.kv_heads) == (expected.heads, expected.kv_heads)
    assert shape.recurrent == expected.recurrent
    assert shape.kv_heads_by_layer is None
