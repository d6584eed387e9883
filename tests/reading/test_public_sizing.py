"""Repositories of the public list are sized as what they are, or refused."""

from __future__ import annotations

import json
from datetime import date
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.bulk.reverse.answers import Settings
from advisor.bulk.reverse.cards import CardFilter, gpus_for
from advisor.errors import RequestError, UserError
from advisor.files import data_dir
from advisor.knowledge import load_knowledge
from advisor.models import stored_shapes
from advisor.models.stored_tensors import Model
from advisor.reading import read_model
from advisor.reading.format_patterns import why_unread
from advisor.reading.known import read_format
from advisor.reading.public_list import FILE, PublicModel, exact
from advisor.reading.public_made import SAME_WITHIN, most_caching
from advisor.reading.public_sizing import model_of
from advisor.reading.published import FILE as SOURCES
from advisor.reading.published import is_packed, published_format, unpacked_name
from advisor.scenario.asked_model import find_model_named
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.cli.running import advise, run

ONE_IN = 67
"""The whole list takes half a minute: benchmarks/public_list.py."""


@cache
def sampled() -> list[PublicModel]:
    lines = (data_dir("knowledge") / FILE).read_text("ascii").splitlines()[2::ONE_IN]
    return [one for line in lines if (one := exact(line.partition("\t")[0]))]


def listed(hf_id: str) -> PublicModel:
    found = exact(hf_id)
    assert found is not None
    return found


@cache
def sized(public: PublicModel) -> Model | str:
    try:
        return model_of(public, load_knowledge())
    except UserError as error:
        return str(error)


def stored_with(model: Model) -> set[int]:
    """Elements of its files: parameters, with the head that drafts or old masks beside them."""
    counts, shape = model.shape.counts, model.shape
    layer = counts.layers[-1] + 2 * shape.hidden**2 if counts else 0
    lent = counts.embedding + counts.output if counts else 0
    masked = shape.model_type in {"gpt2", "gpt_neo", "gpt_neox", "gptj"}
    masks = shape.layers * (shape.trained_context or 0) ** 2 if masked else 0
    halved = masks // 2 if shape.model_type == "gpt_neo" else 0
    twice = counts.embedding if counts and shape.tied else 0
    return {
        model.parameters + more
        for more in (0, masks, halved, shape.mtp_layers * layer, layer + lent, twice)
    }


def test_no_repository_is_taken_for_another_model() -> None:
    known = load_knowledge().models
    for public in sampled():
        model = sized(public)
        if isinstance(model, str) or model.origin == "knowledge" or is_packed(public):
            continue
        if not (stated := public.parameters_raw):
            continue
        near = [abs(n - stated) <= SAME_WITHIN * stated for n in stored_with(model)]
        assert any(near), public.hf_id
        assert model.hf_id == public.hf_id
        assert model.name not in known or model.hf_id != known[model.name].hf_id


def test_shapes_are_the_lists_own() -> None:
    for public in sampled():
        model = sized(public)
        if isinstance(model, str) or model.origin == "knowledge":
            continue
        shape = model.shape
        assert shape.layers == (public.num_hidden_layers or shape.layers), public.hf_id
        assert shape.hidden == (public.hidden_size or shape.hidden), public.hf_id
        if not shape.mla and public.num_key_value_heads and shape.kv_heads_by_layer is None:
            assert shape.kv_heads == public.num_key_value_heads, public.hf_id


def test_what_cannot_be_sized_says_what_is_missing() -> None:
    said = [told for public in sampled() if isinstance(told := sized(public), str)]
    assert said
    for text in said:
        assert any(
            w in text
            for w in (
                "not in the public list",
                "cannot size yet",
                "missing",
                "too little",
                "packed",
                "formula",
                "its name says",
            )
        )


@pytest.mark.parametrize(
    ("hf_id", "base"),
    [
        ("NousResearch/Hermes-3-Llama-3.1-8B", "Llama-3.1-8B"),
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
        ("unsloth/Qwen3-8B", "Qwen3-8B"),
    ],
)
def test_a_copy_is_sized_as_its_base_under_its_own_name(hf_id: str, base: str) -> None:
    model, known = sized(listed(hf_id)), find_model_named(base, load_knowledge())
    assert isinstance(model, Model)
    assert model.shape.counts == known.shape.counts
    assert (model.hf_id, model.origin) == (hf_id, "list")


@pytest.mark.parametrize(
    ("hf_id", "held"),
    [
        ("Qwen/Qwen3-32B-AWQ", "AWQ 4-bit"),
        ("Qwen/Qwen3.6-27B-FP8", "FP8"),
        ("nvidia/Qwen3-14B-NVFP4", "NVFP4"),
        ("lmstudio-community/Qwen3.8-27B-MLX-4bit", "MLX 4-bit"),
        ("mlx-community/Qwen3-30B-A3B-4bit", "MLX 4-bit"),
        ("unsloth/Qwen2.5-14B-bnb-4bit", "NF4"),
        ("unsloth/Qwen3-8B-GGUF", "Q4_K_M"),
        ("Qwen/Qwen3-8B", None),
    ],
)
def test_the_published_format_is_read_from_name_and_list(hf_id: str, held: str | None) -> None:
    assert published_format(listed(hf_id)) == held


SOURCED = [
    line.split("\t")
    for line in (data_dir("knowledge") / SOURCES).read_text("ascii").splitlines()
    if not line.startswith("#")
]


def test_published_formats_have_a_source_and_are_not_said_elsewhere() -> None:
    knowledge = load_knowledge()
    records = {record.hf_id for record in knowledge.models.values()}
    names = [line[0] for line in SOURCED]
    assert names == sorted(set(names), key=str.lower)
    for name, format_name, source, seen in SOURCED:
        public = listed(name)
        assert public.hf_id == name
        assert name not in records
        assert not is_packed(public), "its name says it"
        assert format_name in knowledge.formats
        assert source.startswith("https://")
        assert date.fromisoformat(seen)


@pytest.mark.parametrize(
    ("hf_id", "formats", "inherited"),
    [
        ("moonshotai/Kimi-K2-Thinking", ("INT4 (experts)",), False),
        ("zai-org/GLM-5.3", ("FP8",), False),
        ("tencent/Hy3", (), False),
        ("zai-org/GLM-5.3-BF16", (), False),
        ("deepseek-ai/DeepSeek-V4-Flash-Base", ("FP8",), False),
        ("deepseek-ai/DeepSeek-V4-Pro-Base", ("FP4+FP8",), True),
    ],
)
def test_the_published_format_is_that_of_a_source_else_of_the_shape(
    hf_id: str, formats: tuple[str, ...], *, inherited: bool
) -> None:
    model = sized(listed(hf_id))
    assert isinstance(model, Model)
    assert (model.native_formats, model.native_inherited) == (formats, inherited)


@pytest.mark.parametrize(
    ("hf_id", "told"),
    [
        ("moonshotai/Kimi-K2-Thinking", "is published in INT4 (experts), so that is what is sized"),
        ("tencent/Hy3", "vLLM takes the 16 bits published"),
        ("deepseek-ai/DeepSeek-V4-Pro-Base", "The published format of DeepSeek-V4-Pro-Base is not"),
    ],
)
def test_a_report_says_whether_the_published_format_is_known(
    hf_id: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = run(capsys, "advise", "--gpu", "8x H200", "--model", hf_id, "--framework", "vllm")
    assert told in " ".join(outcome.out.split())


def test_published_formats_are_formats_here() -> None:
    known = load_knowledge()
    held = {one for public in sampled() if (one := published_format(public))}
    for one in held - set(known.formats):
        assert why_unread(one) or read_format(known, one).formats, one


@pytest.mark.parametrize(
    ("name", "unpacked"),
    [
        ("Qwen3-32B-AWQ", "Qwen3-32B"),
        ("gemma-3-27b-it-GPTQ-4b-128g", "gemma-3-27b-it-GPTQ-4b-128g"),
        ("Llama-3.1-8B-Instruct-quantized.w4a16", "Llama-3.1-8B-Instruct"),
        ("gemma-4-31B-it-FP8-dynamic", "gemma-4-31B-it"),
        ("Mistral-7B-Instruct-v0.3-bnb-4bit", "Mistral-7B-Instruct-v0.3"),
        ("Qwen3-8B", "Qwen3-8B"),
        ("GPTQ", "GPTQ"),
    ],
)
def test_what_says_the_packing_comes_off_a_name(name: str, unpacked: str) -> None:
    assert unpacked_name(name) == unpacked


def test_a_packed_repository_is_asked_for_in_its_own_format_and_served() -> None:
    request = Request(gpu="RTX 4090", model="Qwen/Qwen3-32B-AWQ", framework="vllm")
    scenario = resolve(request, load_knowledge())
    assert scenario.precision.name == "AWQ 4-bit"
    assert scenario.model.parameters == 32_762_123_264


def test_the_command_serves_what_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    for asked in ("Qwen/Qwen3-32B-AWQ", "NousResearch/Hermes-3-Llama-3.1-8B"):
        framework = {"precision": "AWQ"} if "AWQ" in asked else {"precision": "bf16"}
        told = advise(capsys, "--framework", "vllm", gpu="A100 80GB PCIe", model=asked, **framework)
        assert f"vllm serve {asked} " in told.out, told.err


def test_a_packed_copy_is_sized_as_the_repository_it_was_made_from() -> None:
    packed, base = sized(listed("nvidia/Qwen3-14B-NVFP4")), sized(listed("Qwen/Qwen3-14B"))
    assert isinstance(packed, Model)
    assert isinstance(base, Model)
    assert packed.shape.counts == base.shape.counts
    assert (packed.held_format, packed.native_formats) == ("NVFP4", ())


def changed(**fields: object) -> PublicModel:
    return replace(listed("Qwen/Qwen3-8B"), **{"hf_id": "me/tuned-8z", **fields})


def test_more_parameters_than_the_shape_makes_are_taken_and_told() -> None:
    model = sized(changed(parameters_raw=8_600_000_000))
    assert isinstance(model, Model)
    assert model.parameters == 8_600_000_000
    assert "what its files hold: 8.60 billion parameters, 5% of them" in model.notes[0]
    model = sized(changed(parameters_raw=9_600_000_000))
    assert "approximate" in model.notes[0]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("hf_id", "text", "vision"),
    [
        ("dots-studio/dots.ocr", "qwen2", 1_262_091_264),
        ("HuggingFaceTB/SmolVLM2-500M-Video-Instruct", "llama", 98_229_504),
    ],
)
def test_towers_are_what_files_hold_beside_the_text_model(
    hf_id: str, text: str, vision: int
) -> None:
    model = sized(listed(hf_id))
    assert isinstance(model, Model)
    assert model.shape.counts
    assert (model.shape.model_type, model.vision_parameters) == (text, vision)
    assert model.parameters == listed(hf_id).parameters_raw == model.shape.counts.total
    assert not any("approximate" in note for note in model.notes)


@pytest.mark.parametrize(
    ("hf_id", "drafting"), [("deepseek-ai/DeepSeek-V4-Flash-0731", 3), ("tencent/Hy3", 1)]
)
def test_layers_that_draft_are_told_by_the_number_of_parameters(hf_id: str, drafting: int) -> None:
    model = sized(listed(hf_id))
    assert isinstance(model, Model)
    assert (model.shape.mtp_layers, list(model.notes)) == (drafting, [])


@pytest.mark.parametrize("hf_id", ["facebook/mms-tts-eng"])
def test_a_class_that_keeps_no_cache_is_sized_by_what_its_files_hold(hf_id: str) -> None:
    model = sized(listed(hf_id))
    assert isinstance(model, Model)
    assert (model.parameters, model.shape.role) == (listed(hf_id).parameters_raw, "encoder")
    assert "its class keeps no cache" in model.notes[0]


def test_far_fewer_elements_than_the_shape_makes_are_refused() -> None:
    told = sized(changed(parameters_raw=2_000_000_000))
    assert isinstance(told, str)
    assert "packed" in told


def test_of_an_unknown_architecture_the_cache_is_a_range() -> None:
    public = changed(architecture="novel", parameters_raw=3_000_000_000)
    model = sized(public)
    assert isinstance(model, Model)
    assert model.parameters == 3_000_000_000
    assert (model.shape.described, model.shape.cache_loose) == (False, 1.0)
    assert "approximate: it is of architecture 'novel'" in model.notes[0]
    assert "at most that of full attention in every layer" in model.notes[0]


@pytest.mark.parametrize(
    "unstated",
    [
        ("num_attention_heads",),
        ("num_attention_heads", "hidden_size"),
        ("num_attention_heads", "hidden_size", "num_hidden_layers"),
    ],
)
def test_without_heads_the_cache_is_at_most_that_of_models_as_large(unstated: list[str]) -> None:
    model = sized(changed(architecture="novel", **dict.fromkeys(unstated)))
    assert isinstance(model, Model)
    assert model.parameters == 8_190_735_360
    assert (model.shape.described, model.shape.cache_loose) == (False, 1.0)
    assert "what models of as many parameters keep" in model.notes[0]
    assert read_model(load_knowledge(), "hexgrad/Kokoro-82M").model.parameters == 82_000_000


def test_no_known_model_caches_more_than_the_most_that_is_assumed() -> None:
    knowledge = load_knowledge()
    sizable = (name for name, one in stored_shapes(knowledge).items() if bytes(one)[:1] == b"{")
    for name in sizable:
        shape = find_model_named(name, knowledge).shape
        if shape.role == "encoder" or shape.mla or shape.cells or not shape.counts:
            continue
        blank = dict.fromkeys(("num_hidden_layers", "hidden_size", "num_attention_heads"))
        most = most_caching(changed(parameters_raw=shape.counts.total, **blank))
        heads = shape.kv_heads_by_layer or (shape.kv_heads,) * shape.layers
        kept = sum(n for n, kind in zip(heads, shape.layer_kinds, strict=True) if kind in "FSHC")
        assert kept * shape.head_dim <= most.layers * most.hidden, name


def test_a_packed_repository_of_an_unknown_architecture_is_estimated_from_its_widths() -> None:
    model = sized(changed(architecture="nothing_yet", format="awq"))
    assert isinstance(model, Model)
    assert abs(model.parameters / 8_190_735_360 - 1) <= model.shape.spread
    assert "'nothing_yet'" in model.notes[0]
    assert "estimated from its widths" in model.notes[0]


@pytest.mark.parametrize("packed", ["", "awq"])
def test_a_number_that_nobody_counted_proves_nothing(packed: str) -> None:
    model = sized(changed(parameters_raw=None, hidden_size=4160, format=packed))
    assert isinstance(model, Model)
    assert model.shape.counts
    assert model.parameters == model.shape.counts.total
    assert "approximate" in model.notes[0]
    assert sized(changed(parameters_raw=None)).sized_as.endswith(  # type: ignore[union-attr]
        "is sized as Qwen3-8B: the public list gives it that shape."
    )


@pytest.mark.parametrize(
    ("hf_id", "parameters"),
    [("BAAI/bge-base-zh-v1.5", 102_267_648), ("Xenova/all-MiniLM-L6-v2", 22_713_216)],
)
def test_an_encoder_that_nobody_counted_is_counted_by_its_shape(
    hf_id: str, parameters: int
) -> None:
    model = sized(listed(hf_id))
    assert isinstance(model, Model)
    assert model.parameters == parameters
    assert not any("approximate" in note for note in model.notes)


def test_a_repository_without_a_shape_has_that_of_one_that_counts_the_same() -> None:
    blank = dict.fromkeys(("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"))
    flash = listed("zai-org/GLM-5.3-Flash")
    model = sized(replace(flash, hf_id="me/tuned-9", **blank))
    assert isinstance(model, Model)
    assert model.shape.layer_kinds == "RRRF" * 11 + "R"
    assert model.hf_id == "me/tuned-9"


def test_a_repository_is_the_same_model_whenever_it_is_asked_for() -> None:
    knowledge = load_knowledge()
    asked = [find_model_named("NousResearch/Hermes-3-Llama-3.1-8B", knowledge) for _ in range(2)]
    assert asked[0] is asked[1]


def test_an_unlisted_repository_stays_unknown() -> None:
    with pytest.raises(RequestError, match="nobody/nothing"):
        find_model_named("nobody/nothing", load_knowledge())


@pytest.mark.parametrize(
    ("hf_id", "layers", "hidden", "parameters"),
    [
        ("openai-community/gpt2", 12, 768, 124_439_808),
        ("openai-community/gpt2-xl", 48, 1600, 1_557_611_200),
        ("distilbert/distilgpt2", 6, 768, 81_912_576),
        ("bigscience/bloom-560m", 24, 1024, 559_214_592),
    ],
)
def test_a_shape_that_only_one_number_of_layers_makes_is_solved(
    hf_id: str, layers: int, hidden: int, parameters: int
) -> None:
    model = sized(listed(hf_id))
    assert isinstance(model, Model)
    assert (model.shape.layers, model.shape.hidden) == (layers, hidden)
    assert model.parameters == parameters


def test_a_number_of_parameters_that_no_shape_makes_is_approximate() -> None:
    odd = replace(listed("openai-community/gpt2"), hf_id="me/odd", parameters_raw=124_439_809)
    model = sized(odd)
    assert isinstance(model, Model)
    assert model.parameters == 124_439_809
    assert "no known model" in model.notes[0]


@pytest.mark.parametrize(
    ("hf_id", "kinds"),
    [
        ("google/gemma-4-12B-it", "SSSSSF" * 8),
        ("google/gemma-4-E2B-it", "SSSSF" * 3 + "X" * 20),
        ("google/gemma-4-E4B-it", "SSSSSF" * 4 + "X" * 18),
        ("zai-org/GLM-5.3-Flash", "RRRF" * 11 + "R"),
        ("thinkingmachines/Inkling", "SSSSSF" * 11),
        ("poolside/Laguna-XS.2", "FSSS" * 10),
        ("ibm-granite/granite-embedding-small-english-r2", "N" * 12),
    ],
)
def test_layers_are_those_of_the_class(hf_id: str, kinds: str) -> None:
    model = sized(listed(hf_id))
    assert isinstance(model, Model)
    assert model.shape.layer_kinds == kinds


@pytest.mark.parametrize(
    ("hf_id", "told"),
    [
        ("NousResearch/Hermes-3-Llama-3.1-8B", "is sized as Llama-3.1-8B: the public list"),
        (
            "nvidia/Qwen3-14B-NVFP4",
            "is sized as Qwen3-14B, which it holds in NVFP4 (the public list",
        ),
        ("google/gemma-4-12B-it", "is sized by its own record (the shape makes 0.44%"),
        ("EleutherAI/pythia-410m", "is sized by its own figures in the public list"),
    ],
)
def test_a_report_says_as_what_a_repository_was_read(hf_id: str, told: str) -> None:
    scenario = resolve(Request(model=hf_id), load_knowledge())
    assert any(f"{hf_id} {told}" in line for line in scenario.read_as)


@pytest.mark.parametrize(
    ("hf_id", "parameters"),
    [
        ("Qwen/Qwen-72B", 72_287_920_128),
        ("microsoft/codebert-base", 124_645_632),
        ("nvidia/llama-nemotron-embed-1b-v2", 1_235_814_400),
    ],
)
def test_relatives_of_known_classes_are_counted(hf_id: str, parameters: int) -> None:
    model = sized(listed(hf_id))
    assert isinstance(model, Model)
    assert abs(model.parameters - parameters) <= SAME_WITHIN * parameters


def test_a_gguf_repository_is_sized_as_the_file_that_is_taken_of_it() -> None:
    scenario = resolve(Request(model="unsloth/Qwen3-8B-GGUF"), load_knowledge())
    assert (scenario.precision.name, scenario.model.name) == ("Q4_K_M", "Qwen3-8B")
    assert scenario.model.hf_id == "unsloth/Qwen3-8B-GGUF"
    assert "in Q4_K_M, which llama.cpp takes where no file is named" in scenario.read_as[0]


def test_packed_weights_without_a_format_here_are_told() -> None:
    model = sized(changed(hf_id="me/tuned-8z-5bit"))
    assert isinstance(model, Model)
    assert model.held_format is None
    assert "packed weights in a form that has no name here" in model.notes[-1]


def test_cards_for_a_packed_repository_are_those_that_run_its_format() -> None:
    _, found = gpus_for("Qwen/Qwen3-32B-AWQ", Settings(), CardFilter(), load_knowledge(), limit=3)
    assert {row.answer.scenario.precision.name for row in found.rows} == {"AWQ 4-bit"}


def test_a_plan_takes_each_repository_in_the_format_that_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = ["unsloth/Qwen3-8B", "Qwen/Qwen3-8B-AWQ", "unsloth/Qwen3-8B-GGUF"]
    (tmp_path / "plan.yaml").write_text(
        f"gpus: [RTX 4090]\nmodels: [{', '.join(models)}]\n", "utf-8"
    )
    out = tmp_path / "out"
    told = run(capsys, "batch", str(tmp_path / "plan.yaml"), "--out", str(out), "--workers", "1")
    assert told.code == 0, told.err
    lines = (out / "index.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["precision"] for line in lines] == ["Q4_K_M", "AWQ 4-bit", "Q4_K_M"]


def test_a_head_that_drafts_is_sized_by_what_its_files_hold() -> None:
    model = sized(listed("RadixArk/Kimi-K3-DSpark"))
    assert isinstance(model, Model)
    assert model.parameters == model.shape.counts.total  # type: ignore[union-attr]
    assert "a head that drafts" in model.notes[0]
