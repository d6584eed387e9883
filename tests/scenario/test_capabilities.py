"""What runs where: every card, cache type and class of models is asked of the capability table."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from msgspec.structs import replace

from advisor.advice.preparation import variant_warnings
from advisor.estimator import estimate_memory
from advisor.knowledge import load_knowledge
from advisor.knowledge.parsing import parse
from advisor.knowledge.types import Framework, Gpu, Knowledge
from advisor.models.shape import Shape
from advisor.models.stored_tensors import Model
from advisor.reading import find_gpu
from advisor.reading.known import ModelRead
from advisor.remedies.assessment import outlook_of
from advisor.remedies.format_lists import sized_formats
from advisor.runtimes.commands import command_for
from advisor.scenario import support
from advisor.scenario.asked_model import model_named
from advisor.scenario.capability import asked, dtypes, slow_weights
from advisor.scenario.choices import runs, runs_as_stated
from advisor.scenario.instead import CannotRunError
from advisor.scenario.resolve import problems_of, resolve
from advisor.scenario.settings import Request

ADA = 8.9
AMPERE = 8.0
TURING = 7.5
PACKED = frozenset(
    f"{one} by compressed-tensors" for one in ("AWQ 4-bit", "GPTQ 4-bit", "GPTQ 8-bit")
)


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return load_knowledge()


def _model(knowledge: Knowledge, name: str) -> Model:
    read: ModelRead = model_named(name, knowledge)
    return read.model


def _cards(knowledge: Knowledge, low: float, high: float) -> Iterator[Gpu]:
    for card in knowledge.gpus.values():
        if card.compute_capability and low <= card.compute_capability < high:
            yield card


def _keeps(knowledge: Knowledge, framework: Framework, card: Gpu, shape: Shape) -> bool:
    kinds = [kind for name, kind in knowledge.kv_types.items() if name.startswith("fp8")]
    return any(support.runs_kv(framework, kind, card, shape) for kind in kinds)


@pytest.mark.parametrize("name", ["gpt-oss-120b", "DeepSeek-R1", "Kimi-K2-Instruct", "phi-3-mini"])
def test_no_fp8_cache_below_ada_for_sinks_latents_and_odd_heads(
    knowledge: Knowledge, name: str
) -> None:
    """Sinks, latents and heads of 96 elements fall to Triton, which reads FP8 from Ada on."""
    vllm, shape = knowledge.frameworks["vLLM"], _model(knowledge, name).shape
    assert not any(_keeps(knowledge, vllm, card, shape) for card in _cards(knowledge, 0, ADA))
    assert all(_keeps(knowledge, vllm, card, shape) for card in _cards(knowledge, ADA, 99))


def test_fp8_cache_of_usual_heads_from_ampere_on(knowledge: Knowledge) -> None:
    vllm, shape = knowledge.frameworks["vLLM"], _model(knowledge, "llama-3-8b").shape
    assert not any(_keeps(knowledge, vllm, card, shape) for card in _cards(knowledge, 0, AMPERE))
    assert all(_keeps(knowledge, vllm, card, shape) for card in _cards(knowledge, AMPERE, 99))


def test_a_refused_cache_is_told_with_its_reason(knowledge: Knowledge) -> None:
    request = Request(gpu="A100", model="gpt-oss-120b", framework="vLLM", kv_cache="fp8")
    (problem,) = problems_of(request, knowledge)
    assert "no attention kernel of vLLM reads FP8 there" in str(problem)
    assert "It keeps: f16, auto." in str(problem)


@pytest.mark.parametrize("pair", [*product(("f16", "q8_0", "q4_0", "q5_1", "iq4_nl"), repeat=2)])
@pytest.mark.parametrize("backend", ["CUDA", "Vulkan"])
def test_usual_builds_of_llamacpp_have_kernels_for_few_pairs(
    knowledge: Knowledge, pair: tuple[str, str], backend: str
) -> None:
    key, value = pair
    request = Request(
        gpu="RTX 4090", model="llama-3-8b", precision="Q4_K_M", backend=backend,
        kv_cache_k=key, kv_cache_v=value,
    )  # fmt: skip
    slow = support.slow_cache(resolve(request, knowledge))
    fast = key == value and key in {"f16", "q8_0", "q4_0"}
    assert bool(slow) == (backend == "CUDA" and not fast)


@pytest.mark.parametrize("name", ["gemma-2-9b", "gemma-3-12b", "GLM-4-9B-0414"])
@pytest.mark.parametrize("asked_for", ["FP16", "BF16"])
def test_models_that_refuse_float16_start_in_bfloat16(
    knowledge: Knowledge, name: str, asked_for: str
) -> None:
    for card in ("RTX A6000", "H100"):
        request = Request(gpu=card, model=name, precision=asked_for, framework="vLLM")
        assert "--dtype bfloat16" in command_for(resolve(request, knowledge))
    for kind in (asked_for, "AWQ"):
        turing = Request(gpu="T4", model=name, precision=kind, framework="vLLM")
        (problem,) = problems_of(turing, knowledge)
        assert "refuses float16" in str(problem)


def test_bfloat16_becomes_float16_on_turing(knowledge: Knowledge) -> None:
    vllm, shape = knowledge.frameworks["vLLM"], _model(knowledge, "qwen2.5-3b").shape
    for card in _cards(knowledge, TURING, AMPERE):
        assert dtypes(vllm, card, shape) == ("float16",)
    request = Request(gpu="T4", model="qwen2.5-3b", precision="BF16", framework="vLLM")
    assert "--dtype float16" in command_for(resolve(request, knowledge))


def test_sglang_takes_no_int8_experts_and_no_e4m3_cache_of_gemma_4_below_ada(
    knowledge: Knowledge,
) -> None:
    sglang, int8 = knowledge.frameworks["SGLang"], knowledge.formats["INT8 W8A8"]
    card = knowledge.gpus["A100 SXM4 80 GB"]
    dense, experts = (_model(knowledge, name) for name in ("qwen3-32b", "qwen3-30b-a3b"))
    assert not support.why_not(sglang, int8, card, dense)
    assert "Ascend alone" in support.why_not(sglang, int8, card, experts)
    gemma = _model(knowledge, "gemma-4-31b-it").shape
    kept = {
        name: support.runs_kv(sglang, knowledge.kv_types[name], card, gemma)
        for name in ("fp8_e4m3", "fp8_e5m2")
    }
    assert kept == {"fp8_e4m3": False, "fp8_e5m2": True}
    assert support.runs_kv(sglang, knowledge.kv_types["fp8_e4m3"], card, dense.shape)


@pytest.mark.parametrize("framework", ["vLLM", "SGLang", "TensorRT-LLM"])
def test_servers_without_machine_code_for_volta(knowledge: Knowledge, framework: str) -> None:
    runtime, model = knowledge.frameworks[framework], _model(knowledge, "llama-3-8b")
    for card in _cards(knowledge, 0, TURING):
        assert support.why_not(runtime, knowledge.formats["FP16"], card, model)
    request = Request(gpu="V100 SXM2 32 GB", model="llama-3-8b", framework=framework)
    if framework == "vLLM":  # an older release runs there
        said = variant_warnings(request, resolve(request, knowledge), knowledge)
        assert "0.19.1, the last release on PyTorch 2.10" in " ".join(said)
        speed = outlook_of(resolve(request, knowledge), knowledge).speed
        assert speed
        assert speed.first_token_s is None
    else:
        assert framework in str(problems_of(request, knowledge)[0])


@pytest.mark.parametrize(
    ("name", "mapped"),
    [
        ("qwen3-30b-a3b", False), ("DeepSeek-R1", False), ("mixtral-8x7b", False),
        ("qwen3-8b", True), ("llama-3-8b", True), ("gemma-3-12b", True),
    ],
)  # fmt: skip
def test_bitsandbytes_in_sglang_where_it_has_a_mapping(
    knowledge: Knowledge, name: str, *, mapped: bool
) -> None:
    runtime, model = knowledge.frameworks["SGLang"], _model(knowledge, name)
    card = knowledge.gpus["RTX A6000"]
    for kind in ("NF4", "INT8 (bitsandbytes)"):
        refused = support.why_not(runtime, knowledge.formats[kind], card, model)
        assert bool(refused) != mapped


@pytest.mark.parametrize(
    ("kind", "runs_from", "runs_below"),
    [
        ("FP8", 8.9, 99), ("NVFP4", 10, 99), ("AWQ 4-bit", 99, 99), ("GPTQ 4-bit", 99, 99),
        ("BF16", 8.0, 99),
    ],
)  # fmt: skip
def test_formats_of_tensorrt_llm_by_generation(
    knowledge: Knowledge, kind: str, runs_from: float, runs_below: float
) -> None:
    runtime, model = knowledge.frameworks["TensorRT-LLM"], _model(knowledge, "llama-3-8b")
    for card in _cards(knowledge, 0, 99):
        refused = support.why_not(runtime, knowledge.formats[kind], card, model)
        assert bool(refused) != (runs_from <= (card.compute_capability or 0) < runs_below)


@pytest.mark.parametrize(
    ("name", "kind", "runs_from", "runs_below"),
    [("gpt-oss-120b", "MXFP4", 9.0, 99), ("DeepSeek-V4-Flash", "FP8", 10.0, 12.0)],
)
def test_models_of_tensorrt_llm_by_generation(
    knowledge: Knowledge, name: str, kind: str, runs_from: float, runs_below: float
) -> None:
    """MXFP4 runs beside bf16 activations on Hopper, DeepSeek-V4 on Blackwell of servers alone.

    On RTX Blackwell it needs a type of cache that is not sized.
    """
    runtime, model = knowledge.frameworks["TensorRT-LLM"], _model(knowledge, name)
    for card in _cards(knowledge, 0, 99):
        refused = support.why_not(runtime, knowledge.formats[kind], card, model)
        assert bool(refused) != (runs_from <= (card.compute_capability or 0) < runs_below)


@pytest.mark.parametrize(
    ("name", "runs_from", "refused_from", "again_from"),
    [
        ("gemma-3-27b-it", 8.9, 10.0, 12.0),
        ("gemma-4-26B-A4B-it", 99, 99, 99),
        ("GLM-4.5-Air", 99, 99, 99),
        ("GLM-4.6", 99, 99, 99),
        ("Qwen3-32B", 9.0, 99, 99),
        ("Qwen3-Next-80B-A3B-Instruct", 9.0, 99, 99),
    ],
)
def test_tensorrt_llm_multiplies_fp8_by_channel_where_it_has_kernels(
    knowledge: Knowledge, name: str, runs_from: float, refused_from: float, again_from: float
) -> None:
    """The known repositories scale by channel, but for Qwen's by block; experts have no kernel."""
    runtime, model = knowledge.frameworks["TensorRT-LLM"], _model(knowledge, name)
    for card in _cards(knowledge, 0, 99):
        has = card.compute_capability or 0
        runs = runs_from <= has < refused_from or has >= again_from
        assert bool(support.why_not(runtime, knowledge.formats["FP8"], card, model)) != runs


@pytest.mark.parametrize(
    "name", ["Llama-4-Scout-17B-16E-Instruct", "Llama-4-Maverick-17B-128E-Instruct"]
)
def test_tensorrt_llm_takes_the_fp8_of_llama_4_that_is_scaled_by_tensor(
    knowledge: Knowledge, name: str
) -> None:
    """Others take the repository that scales by channel (TensorRT-LLM's issue 3554)."""
    asked_for = Request(gpu="8x H200 SXM", model=name, precision="FP8", framework="TensorRT-LLM")
    texts = [
        command_for(resolve(replace(asked_for, framework=one), knowledge))
        for one in ("TensorRT-LLM", "vLLM")
    ]
    assert [f"nvidia/{name}-FP8" in text for text in texts] == [True, False]


@pytest.mark.parametrize(
    ("name", "packed"), [("phi-4", True), ("qwen3-32b", True), ("Qwen2.5-72B-Instruct", False)]
)
def test_vllm_takes_integers_of_compressed_tensors_from_turing_on(
    knowledge: Knowledge, name: str, *, packed: bool
) -> None:
    """Of two models the known repository is packed so, of the third by GPTQ's own tools."""
    for named in ("8x V100 SXM2 32GB", "8x TITAN V"):
        request = Request(gpu=named, model=name, framework="vLLM", precision="INT4")
        assert (resolve(request, knowledge).precision.name == "GPTQ 4-bit") != packed, named
    vllm, asked_for = knowledge.frameworks["vLLM"], knowledge.formats["GPTQ 4-bit"]
    for card in _cards(knowledge, TURING, 99):
        assert not support.why_not(vllm, asked_for, card, _model(knowledge, name)), card.name


@pytest.mark.parametrize(
    ("name", "reads"),
    [
        ("Qwen3-8B", True), ("Qwen3-30B-A3B", False), ("gemma-3-12b-it", True), ("phi-4", True),
        ("llama-3.1-8b-instruct", True), ("gpt-oss-20b", False), ("Qwen3.6-27B", False),
        ("Qwen3-VL-8B-Instruct", False), ("GLM-4.5-Air", False), ("gemma-4-31B-it", False),
        ("gemma-2-9b-it", False), ("DeepSeek-V3", False), ("MiniMax-M2", True),
    ],
)  # fmt: skip
def test_the_gguf_plugin_of_vllm_reads_the_architectures_whose_names_it_maps(
    knowledge: Knowledge, name: str, *, reads: bool
) -> None:
    vllm, card = knowledge.frameworks["vLLM"], find_gpu(knowledge, "L40S")
    for written in ("Q4_K_M", "Q8_0"):
        asked_for, model = knowledge.formats[written], _model(knowledge, name)
        taken = runs_as_stated(knowledge, vllm, asked_for, card, model)
        assert taken is reads, written


@pytest.mark.parametrize("precision", ["AWQ", "GPTQ"])
@pytest.mark.parametrize("card", ["W7900", "RX 9070 XT", "MI300X"])
def test_experts_with_biases_in_packed_integers_run_on_no_amd_card(
    knowledge: Knowledge, card: str, precision: str
) -> None:
    request = Request(gpu=card, model="gpt-oss-20b", precision=precision, framework="vLLM")
    with pytest.raises(CannotRunError, match="add no biases"):
        resolve(request, knowledge)
    with pytest.raises(CannotRunError, match="linear layers alone"):
        resolve(replace(request, framework="transformers"), knowledge)


@pytest.mark.parametrize("precision", ["AWQ", "GPTQ", "GPTQ 8-bit"])
def test_sglang_reads_no_packed_integers_of_gpt_oss(knowledge: Knowledge, precision: str) -> None:
    request = Request(gpu="H100", model="gpt-oss-20b", precision=precision, framework="SGLang")
    with pytest.raises(CannotRunError, match="no place for their biases") as error:
        resolve(request, knowledge)
    assert error.value.instead is not None
    assert "MXFP4 in SGLang" in error.value.instead[0]


@pytest.mark.parametrize(
    ("card", "model", "runs"),
    [
        ("P40", "gemma-4-e4b-it", False),  # 0.10.0 is the last of pascal-pkgs-ci
        ("P40", "qwen3-8b", True),
        ("V100 SXM2 32 GB", "gemma-4-e4b-it", True),
        ("V100 SXM2 32 GB", "minicpm-v-4.6", False),  # 0.19.1 is the last with Volta
        ("T4", "gemma-4-e4b-it", True),
    ],
)
def test_builds_that_a_card_was_left_with_have_the_models_of_their_time(
    knowledge: Knowledge, card: str, model: str, *, runs: bool
) -> None:
    request = Request(gpu=card, model=model, precision="FP16", framework="vLLM")
    assert ([*problems_of(request, knowledge)] == []) is runs


@pytest.mark.parametrize("name", ["SmolLM3-3B", "GLM-4.7-Flash", "granite-4.0-h-small"])
def test_what_its_autodeploy_backend_alone_runs_is_said_so(knowledge: Knowledge, name: str) -> None:
    runtime, model = knowledge.frameworks["TensorRT-LLM"], _model(knowledge, name)
    card = next(iter(_cards(knowledge, 10.0, 10.1)))
    refused = support.why_not(runtime, knowledge.formats["BF16"], card, model)
    assert "its AutoDeploy backend alone runs it" in refused
    other = support.why_not(runtime, knowledge.formats["BF16"], card, _model(knowledge, "phi-2"))
    assert "TensorRT-LLM does not support the architecture 'phi'" in other


def test_kimi_k2_in_nvfp4_on_eight_b200(knowledge: Knowledge) -> None:
    request = Request(gpu="8x B200", model="kimi-k2", precision="NVFP4", framework="TensorRT-LLM")
    assert resolve(request, knowledge).precision.name == "NVFP4"


@pytest.mark.parametrize("framework", ["vLLM", "SGLang"])
@pytest.mark.parametrize("name", ["DeepSeek-V3.2", "GLM-5"])
def test_sparse_latent_attention_needs_hopper(
    knowledge: Knowledge, framework: str, name: str
) -> None:
    server, model = knowledge.frameworks[framework], _model(knowledge, name)
    for card in _cards(knowledge, AMPERE, 9.0):
        assert support.why_not(server, knowledge.formats["FP8"], card, model)
    for card in _cards(knowledge, 9.0, 11):
        assert not support.why_not(server, knowledge.formats["FP8"], card, model)


def test_what_no_row_answers_is_left_to_the_lists(knowledge: Knowledge) -> None:
    mlx, shape = knowledge.frameworks["MLX-LM"], _model(knowledge, "llama-3-8b").shape
    assert asked(mlx, "kv_cache", "mlx-4bit", None, shape) is None
    assert support.runs_kv(mlx, knowledge.kv_types["mlx-4bit"], None, shape)


def test_every_row_has_a_place_and_speaks_of_things_that_exist(knowledge: Knowledge) -> None:
    names = {
        "weights": {*knowledge.formats, "gguf", "FP8 by channel", "FP8 by block", *PACKED},
        "kv_cache": set(knowledge.kv_types),
        "dtype": {"float16", "bfloat16"},
    }  # fmt: skip
    for runtime in knowledge.frameworks.values():
        for row in runtime.capabilities:
            assert all((row.at, row.version, row.sources)), row.name
            assert set(row.of) <= names.get(row.about, set(row.of)), row.name


def test_a_row_about_an_unknown_runtime_is_told() -> None:
    row = (
        "- {capability: one, framework: vLMM, version: 1, about: card, answer: refused,"
        " why: no, at: 'a.py:1'}\n"
    )
    problems: list[Exception] = []
    parse({"capabilities-mine.yaml": row.encode()}, problems)  # type: ignore[arg-type]
    assert any("there is no framework 'vLMM'" in str(problem) for problem in problems)


def test_servers_whose_time_is_over_are_not_proposed(knowledge: Knowledge) -> None:
    ended = {n for n, f in knowledge.frameworks.items() if support.upkeep(f)}
    assert ended == {"TGI", "ExLlamaV2"}


@pytest.mark.parametrize("card", ["RTX A6000", "L40S", "H100", "B200"])
@pytest.mark.parametrize("framework", ["vLLM", "SGLang"])
def test_no_gptq_in_eight_bits_where_the_card_has_units_for_another(
    knowledge: Knowledge, card: str, framework: str
) -> None:
    """FP8 comes first where the card multiplies it, INT8 W8A8 on Ampere."""
    model = "llama-3.1-8b-instruct"
    request = Request(gpu=card, model=model, precision="BF16", framework=framework)
    listed = [f.name for f, _ in sized_formats(resolve(request, knowledge), knowledge)]
    assert "GPTQ 8-bit" not in listed
    first = next(name for name in listed if name in {"FP8", "INT8 W8A8"})
    assert first == ("INT8 W8A8" if card == "RTX A6000" else "FP8")


@pytest.mark.parametrize(
    ("framework", "allows"),
    [
        ("vLLM", "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1"),
        ("SGLang", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"),
    ],
)
def test_a_context_beyond_the_trained_one_is_allowed_to_servers_in_so_many_words(
    knowledge: Knowledge, framework: str, allows: str
) -> None:
    """Both refuse to start otherwise, and need no leave for what the model was trained for."""
    asked_for = Request(gpu="H100", model="phi-2", framework=framework, context=2_048)
    usual = command_for(resolve(asked_for, knowledge))
    longer = Request(gpu="H100", model="phi-2", framework=framework, context=2_049)
    assert allows not in usual
    assert command_for(resolve(longer, knowledge)).startswith(f"{allows} ")


def test_models_without_a_pipeline_are_not_shared_by_layer(knowledge: Knowledge) -> None:
    """Six cards divide no power of two of heads, and Gemma 3 has no pipeline in SGLang."""
    for framework, model in (("SGLang", "gemma-3-27b"), ("vLLM", "Idefics3-8B-Llama3")):
        request = Request(gpu="6x H100", model=model, framework=framework, precision="BF16")
        assert tuple(problems_of(request, knowledge))
        stated = replace(request, split="layer")
        problems = "; ".join(str(one) for one in problems_of(stated, knowledge))
        assert f"{framework} has no pipeline for it" in problems
    assert resolve(Request(gpu="6x H100", model="llama-3.3-70b", framework="SGLang"), knowledge)


def test_sglang_drafts_in_no_pipeline(knowledge: Knowledge) -> None:
    """With three cards Qwen3-32B is a pipeline there, with two it is not."""
    request = Request(
        gpu="3x H100", model="qwen3-32b", framework="SGLang", draft_model="qwen3-0.6b"
    )
    problems = "; ".join(str(one) for one in problems_of(request, knowledge))
    assert "in a pipeline SGLang drafts with EAGLE heads alone" in problems
    assert not tuple(problems_of(replace(request, gpu="2x H100"), knowledge))


@pytest.mark.parametrize(("card", "refused"), [("RTX A6000", True), ("L40S", False)])
def test_gemma_4_keeps_no_fp8_cache_before_ada(
    knowledge: Knowledge,
    card: str,
    refused: bool,  # noqa: FBT001
) -> None:
    """Its heads of two sizes make vLLM attend in Triton there."""
    request = Request(gpu=card, gpus=2, model="gemma-4-31b-it", framework="vLLM", kv_cache="fp8")
    problems = "; ".join(str(one) for one in problems_of(request, knowledge))
    assert ("attended to by Triton" in problems) is refused


@pytest.mark.parametrize(
    ("card", "model", "refused"),
    [
        ("RTX 3090", "gemma-3-12b-it", True),
        ("RTX 4090", "gemma-3-12b-it", False),
        ("RTX 3090", "qwen3-8b", False),
    ],
)
def test_models_whose_images_see_each_other_keep_no_fp8_cache_before_ada(
    knowledge: Knowledge,
    card: str,
    model: str,
    refused: bool,  # noqa: FBT001
) -> None:
    request = Request(gpu=card, model=model, framework="vLLM", kv_cache="fp8", precision="AWQ")
    problems = "; ".join(str(one) for one in problems_of(request, knowledge))
    assert ("tokens of an image see each other" in problems) is refused


@pytest.mark.parametrize(
    ("model", "refused"), [("gemma-4-26b-a4b-it", True), ("gemma-4-31b-it", False)]
)
def test_sglang_packs_no_experts_of_gemma_4_while_it_loads(
    knowledge: Knowledge,
    model: str,
    refused: bool,  # noqa: FBT001
) -> None:
    request = Request(gpu="RTX PRO 6000", model=model, framework="SGLang", precision="NF4")
    problems = "; ".join(str(one) for one in problems_of(request, knowledge))
    assert ("whose name ends in .weight alone" in problems) is refused
    packed = replace(request, precision="AWQ")
    problems = "; ".join(str(one) for one in problems_of(packed, knowledge))
    assert ("compute SiLU alone" in problems) is refused


@pytest.mark.parametrize(
    ("text", "name"),
    [("4 bits", "Q4_K_M"), ("8-bits", "Q8_0"), ("int8_float16", "Q8_0"), ("16fp", "FP16")],
)
def test_bits_are_read_in_the_plural_and_beside_the_type_that_computes(
    knowledge: Knowledge, text: str, name: str
) -> None:
    request = Request(gpu="RTX 3090", model="llama-3.1-8b", precision=text)
    assert resolve(request, knowledge).precision.name == name


@pytest.mark.parametrize("framework", ["ExLlamaV3", "MLX-LM", "TGI"])
def test_runtimes_that_write_text_embed_nothing(knowledge: Knowledge, framework: str) -> None:
    model = _model(knowledge, "Qwen3-Embedding-8B")
    runtime = knowledge.frameworks[framework]
    for precision in runtime.formats:
        assert support.why_not(runtime, knowledge.formats[precision], None, model)


@pytest.mark.parametrize(
    ("asked_for", "said"),
    [
        ({"model": "Qwen3.5-9B"}, "does not support the architecture 'qwen3_5'"),
        ({"model": "gpt-oss-20b"}, "does not support the architecture 'gpt_oss'"),
        ({"model": "qwen3-8b", "precision": "AWQ"}, "has no code of its own for this model"),
        ({"model": "OLMoE-1B-7B-0924", "gpus": 2}, "transformers 4.51 does not divide it"),
        ({"model": "qwen3-8b", "kv_cache": "fp8_e5m2"}, "only to models that it has code of its"),
        ({"model": "phi-2", "kv_cache": "fp8_e5m2"}, "which has no FP8 cache"),
        ({"model": "qwen3-8b", "gpus": 2}, ""),
        ({"model": "qwen2.5-7b", "precision": "AWQ", "kv_cache": "fp8_e5m2", "gpus": 2}, ""),
    ],
)
def test_tgi_runs_what_its_transformers_knows(
    knowledge: Knowledge, asked_for: dict[str, object], said: str
) -> None:
    """Its lock names transformers 4.51.0; formats, splits and caches want code of its own."""
    request = replace(Request(gpu="H100", framework="TGI"), **asked_for)
    problems = "; ".join(str(one) for one in problems_of(request, knowledge))
    assert said in problems
    assert bool(problems) == bool(said)


_INTEGERS = {
    "Q8_0",
    "INT8 W8A8",
    "GPTQ 8-bit",
    "INT8 (bitsandbytes)",
    "MLX 8-bit",
    "INT8 (ModelOpt)",
}


@pytest.mark.parametrize("card", ["T4", "A100", "RTX 4090", "H100", "B200", "M3 Max"])
@pytest.mark.parametrize("model", ["phi-3-small", "llama-3.1-8b", "DeepSeek-R1", "gemma-3-12b"])
def test_int8_means_integers_and_never_fp8(knowledge: Knowledge, card: str, model: str) -> None:
    """Where nothing runs them the request is refused with what runs."""
    for framework in (None, "vLLM", "SGLang", "TensorRT-LLM"):
        request = Request(gpu=card, model=model, precision="INT8", framework=framework)
        if not tuple(problems_of(request, knowledge)):
            assert resolve(request, knowledge).precision.name in _INTEGERS


def test_int8_takes_what_starts_each_operation_from_python_last(knowledge: Knowledge) -> None:
    """Phi-3-small runs in SGLang and transformers; SGLang is some ten times as fast there."""
    small = resolve(Request(gpu="RTX 4090", model="phi-3-small", precision="INT8"), knowledge)
    assert (small.framework.name, small.precision.name) == ("SGLang", "INT8 W8A8")


def test_sglang_attends_apart_on_powers_of_two_alone(knowledge: Knowledge) -> None:
    """Its prompt chunk is divided among the cards in whole pages."""
    three = Request(gpu="3x H200", model="DeepSeek-R1", framework="SGLang", split="dp-attention")
    assert "whole pages" in "; ".join(str(one) for one in problems_of(three, knowledge))
    four = replace(three, gpu="4x H200")
    assert not any("pages" in str(one) for one in problems_of(four, knowledge))


@pytest.mark.parametrize(
    ("card", "backend", "types", "slow"),
    [
        ("M3 Max", None, "q8_0-q8_0", False),
        ("M3 Max", None, "q5_1-q5_1", False),
        ("M3 Max", None, "q8_0-q4_0", True),
        ("M3 Max", None, "iq4_nl-iq4_nl", True),
        ("RX 7900 XTX", "Vulkan", "q8_0-q4_0", False),
        ("RX 7900 XTX", "Vulkan", "iq4_nl-iq4_nl", False),
        ("RX 7900 XTX", "Vulkan", "q8_0-bf16", True),
        ("RX 7900 XTX", None, "q8_0-q4_0", True),
        ("RTX 4090", "Vulkan", "q5_1-q5_1", False),
        ("Arc A770", "SYCL", "q8_0-q8_0", False),
        ("Arc A770", "SYCL", "q5_1-q5_1", True),
        ("Arc A770", "SYCL", "q8_0-q4_0", True),
        ("Arc A770", "Vulkan", "q8_0-q4_0", False),
    ],
)
def test_cache_types_are_slow_by_back_end(
    knowledge: Knowledge,
    card: str,
    backend: str | None,
    types: str,
    slow: bool,  # noqa: FBT001
) -> None:
    """Metal and SYCL want one type for both halves, Vulkan takes any but bf16 beside another."""
    key, value = types.split("-")
    request = Request(
        gpu=card, model="llama-3.1-8b", precision="Q4_K_M", framework="llama.cpp",
        backend=backend, kv_cache_k=key, kv_cache_v=value, context=4_096,
    )  # fmt: skip
    assert bool(support.slow_cache(resolve(request, knowledge))) is slow


@pytest.mark.parametrize(
    ("card", "framework", "reason"),
    [
        ("RTX 3090", "transformers", "unpacks FP8 to BF16"),
        ("RX 7900 XTX", "transformers", "no E4M3 there"),
        ("RX 7900 XTX", "vLLM", "save for files in blocks"),
        ("MI210", "vLLM", "begin with CDNA 3 and RDNA 4"),
    ],
)
def test_fp8_weights_are_refused_where_they_are_unpacked_or_have_no_kernel(
    knowledge: Knowledge, card: str, framework: str, reason: str
) -> None:
    asked_for = Request(gpu=card, model="Qwen3-4B", precision="FP8", framework=framework)
    (problem,) = problems_of(asked_for, knowledge)
    assert reason in str(problem)


@pytest.mark.parametrize(
    ("card", "framework"),
    [
        ("RTX 4090", "transformers"),
        ("MI300X", "vLLM"),
        ("RTX 3090", "vLLM"),
        ("RX 9070 XT", "vLLM"),
    ],
)
def test_fp8_weights_run_where_kernels_are(knowledge: Knowledge, card: str, framework: str) -> None:
    asked_for = Request(gpu=card, model="Qwen3-4B", precision="FP8", framework=framework)
    assert not list(problems_of(asked_for, knowledge))


@pytest.mark.parametrize(("second", "says"), [("RTX 3060 12GB", True), ("RTX 4090", False)])
def test_sglang_is_told_that_a_smaller_card_is_not_occupied(
    knowledge: Knowledge, *, second: str, says: bool
) -> None:
    cards = f"RTX 3090 + {second}"
    asked_for = Request(gpu=cards, model="qwen3-14b", precision="AWQ", framework="SGLang")
    told = "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0 "
    assert command_for(resolve(asked_for, knowledge)).startswith(told) is says


@pytest.mark.parametrize(
    ("card", "precision", "told"),
    [
        ("Radeon RX 7900 XTX", "GPTQ 8-bit", True),
        ("Instinct MI300X", "GPTQ 8-bit", True),
        ("Radeon RX 7900 XTX", "GPTQ 4-bit", False),
        ("GeForce RTX 3090", "GPTQ 8-bit", False),
    ],
)
def test_eight_bits_of_gptq_are_computed_in_float16_on_amd_cards(
    knowledge: Knowledge, card: str, precision: str, *, told: bool
) -> None:
    request = Request(gpu=card, model="qwen3-8b", precision=precision, framework="vLLM")
    command = command_for(resolve(request, knowledge))
    assert ("--dtype float16" in command) is told


def test_eight_bits_of_gptq_are_refused_there_where_the_model_refuses_float16(
    knowledge: Knowledge,
) -> None:
    request = Request(
        gpu="Radeon RX 7900 XTX", model="gemma-3-12b-it", precision="GPTQ 8-bit", framework="vLLM"
    )
    said = [str(problem) for problem in problems_of(request, knowledge)]
    assert any("ExLlama's takes eight bits" in one for one in said)


@pytest.mark.parametrize(
    ("gpu", "model", "framework", "holds"),
    [
        ("H200", "command-a-03-2025", "SGLang", False),
        ("4x H100 SXM", "command-a-03-2025", "SGLang", True),
        ("H200", "command-a-03-2025", "vLLM", True),
        ("RTX A5000", "c4ai-command-r7b-12-2024", "SGLang", True),
        ("RTX 3060 12GB", "c4ai-command-r7b-12-2024", "SGLang", False),
        ("RTX 4060 Ti 16GB", "Qwen3-8B", "SGLang", True),
    ],
)
def test_sglang_lays_16_bits_on_the_card_before_it_makes_fp8_of_them(
    knowledge: Knowledge, gpu: str, model: str, framework: str, *, holds: bool
) -> None:
    """Nobody publishes the first two in FP8; vLLM packs module by module, Qwen3-8B is published."""
    request = Request(gpu=gpu, model=model, framework=framework, precision="FP8")
    memory = estimate_memory(resolve(request, knowledge), knowledge)
    assert (memory.deficit_bytes == 0) == holds


@pytest.mark.parametrize(
    ("card", "framework", "precision", "quicker"),
    [
        ("2x RX 7900 XTX", "vLLM", "AWQ 4-bit", "GPTQ 4-bit"),
        ("MI300X", "SGLang", "AWQ 4-bit", "FP8"),
        ("Arc B580", "llama.cpp", "IQ3_S", "Q3_K_S"),
    ],
)
def test_weights_that_a_runtime_reads_slowly_are_slower_than_others_of_no_fewer_bits(
    knowledge: Knowledge, card: str, framework: str, precision: str, quicker: str
) -> None:
    request = Request(gpu=card, model="qwen3-8b", precision=precision, framework=framework)
    tok_s = []
    for one in (request, replace(request, precision=quicker)):
        speed = outlook_of(resolve(one, knowledge), knowledge).speed
        assert speed is not None
        tok_s.append(speed.decode_tok_s.estimate)
    slow, quick = tok_s
    assert quick > 1.2 * slow


@pytest.mark.parametrize(
    ("model", "slow"),
    [("qwen3-14b", True), ("gemma-4-31b-it", False), ("qwen3-coder-30b-a3b-instruct", False)],
)
def test_awq_packed_by_compressed_tensors_has_kernels_on_amd_cards(
    knowledge: Knowledge, model: str, *, slow: bool
) -> None:
    by, of = knowledge.frameworks["vLLM"], knowledge.formats["AWQ 4-bit"]
    for card in ("RX 7900 XTX", "RX 9070 XT"):
        row = slow_weights(by, of, find_gpu(knowledge, card), _model(knowledge, model))
        assert (row is not None) is slow


@pytest.mark.parametrize("precision", ["GPTQ 4-bit", "NF4"])
def test_sglang_has_no_such_kernels_for_cards_from_amd(
    knowledge: Knowledge, precision: str
) -> None:
    request = Request(gpu="MI300X", model="qwen3-8b", precision=precision, framework="SGLang")
    with pytest.raises(CannotRunError, match="formats that it takes there"):
        resolve(request, knowledge)


@pytest.mark.parametrize(("card", "runs"), [("H100", False), ("B200", True), ("RTX 5090", True)])
def test_gemma_4_in_tensorrt_llm_before_blackwell_is_not_known_to_run(
    knowledge: Knowledge, card: str, *, runs: bool
) -> None:
    request = Request(gpu=card, model="gemma-4-31b-it", precision="FP8", framework="TensorRT-LLM")
    assert (not [*problems_of(request, knowledge)]) is runs


@pytest.mark.parametrize("precision", ["AWQ", "GPTQ 8-bit", "NF4", "INT8 (bitsandbytes)"])
@pytest.mark.parametrize(("model", "runs"), [("qwen3-30b-a3b", False), ("qwen3-14b", True)])
def test_transformers_packs_no_experts(
    knowledge: Knowledge, model: str, precision: str, *, runs: bool
) -> None:
    request = Request(gpu="A100", model=model, precision=precision, framework="transformers")
    said = "; ".join(str(one) for one in problems_of(request, knowledge))
    assert ("experts of a mixture are plain" not in said) is runs


@pytest.mark.parametrize(
    ("card", "model", "precision", "why"),
    [
        ("RTX 4090", "qwen3-30b-a3b", "NF4", ""),
        ("RTX 4090", "gpt-oss-20b", "NF4", "experts that are tensors of their own"),
        ("RTX 4090", "qwen3-30b-a3b", "INT8 (bitsandbytes)", "no experts in eight bits"),
        ("P40", "qwen3-14b", "NF4", "compute capability 7.0"),
    ],
)
def test_vllm_reads_bitsandbytes_through_a_plugin(
    knowledge: Knowledge, card: str, model: str, precision: str, why: str
) -> None:
    request = Request(gpu=card, model=model, precision=precision, framework="vLLM")
    said = "; ".join(str(one) for one in problems_of(request, knowledge))
    assert bool(said) is bool(why)
    if not why:
        assert "--quantization bitsandbytes" in command_for(resolve(request, knowledge))


def test_exllamav3_says_that_amd_cards_are_new_to_it(knowledge: Knowledge) -> None:
    request = Request(gpu="RX 7900 XTX", model="qwen3-8b", framework="ExLlamaV3")
    said = [*variant_warnings(request, resolve(request, knowledge), knowledge)]
    assert any("since release 1.6.0" in one and "preliminary" in one for one in said)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("Arc A770", "qwen3-14b", "vLLM", "AWQ"), "made for Xe2"),
        (("Arc A770", "qwen3-14b", "SGLang", "BF16"), "B series"),
        (("Arc Pro B60", "qwen3-14b", "vLLM", "AWQ"), ""),
        (("MI300X", "gpt-oss-120b", "SGLang", "MXFP4"), "gfx95 alone"),
        (("MI355X", "gpt-oss-120b", "SGLang", "MXFP4"), ""),
        (("8x RTX PRO 6000 Blackwell", "deepseek-v3.2", "SGLang", "FP8"), "GLM-5 alone"),
        (("8x RTX PRO 6000 Blackwell", "glm-5", "SGLang", "FP8"), ""),
        (("A100", "qwen3-32b", "TGI", "FP8"), "below compute capability 8.9"),
        (("H100", "qwen3-32b", "TGI", "FP8"), ""),
        (("A100", "gemma-3-27b-it", "TGI", "FP8"), ""),
        (("DGX Spark", "gemma-3-27b-it", "TGI", "BF16"), "x86-64 alone"),
        (("RTX 4090", "qwen3-14b", "transformers", "FP8"), ""),
        (("RTX 4090", "gemma-3-12b-it", "transformers", "FP8"), "at the first pass"),
    ],
)
def test_cells_that_were_read_in_the_source(
    knowledge: Knowledge, given: tuple[str, str, str, str], why: str
) -> None:
    card, model, framework, precision = given
    request = Request(gpu=card, model=model, precision=precision, framework=framework)
    said = "; ".join(str(one) for one in problems_of(request, knowledge))
    assert (why in said) if why else not said


@pytest.mark.parametrize(("card", "keeps"), [("RTX 3090", False), ("RTX 4090", True)])
def test_the_cache_of_an_encoder_s_output_takes_no_fp8_before_ada(
    knowledge: Knowledge, card: str, *, keeps: bool
) -> None:
    shape = _model(knowledge, "whisper-large-v3").shape
    assert (
        _keeps(knowledge, knowledge.frameworks["vLLM"], find_gpu(knowledge, card), shape) is keeps
    )


def test_what_was_asked_before_of_another_model_changes_nothing(knowledge: Knowledge) -> None:
    """Two models of one type: files of compressed-tensors are known of one, GPTQ's of the other."""
    card, by = find_gpu(knowledge, "RTX 4080"), knowledge.frameworks["transformers"]
    form = knowledge.formats["GPTQ 4-bit"]
    found = [
        runs(knowledge, by, form, card, _model(knowledge, n)) for n in ("qwen3-8b", "qwen3-14b")
    ]
    assert found == [False, True]


@pytest.mark.parametrize(
    ("card", "model", "framework", "unasked"),
    [
        ("RTX PRO 6000 Blackwell", "glm-5", "vLLM", "fp8"),
        ("B200", "glm-5", "vLLM", "fp8"),
        ("B200", "DeepSeek-V3.2", "vLLM", "f16"),
        ("H200", "glm-5", "vLLM", "f16"),
        ("B200", "DeepSeek-V3.2", "SGLang", "fp8_e4m3"),
        ("H200", "DeepSeek-V3.2", "SGLang", "f16"),
        ("B200", "qwen3-8b", "vLLM", "f16"),
    ],
)
def test_a_server_that_takes_another_cache_unasked_is_sized_with_it(
    knowledge: Knowledge, card: str, model: str, framework: str, unasked: str
) -> None:
    request = Request(gpu=card, gpus=8, model=model, framework=framework)
    found = resolve(request, knowledge)
    assert {found.kv_cache_k.name, found.kv_cache_v.name} == {unasked}
    assert (f"{framework} keeps the cache in {unasked} unasked" in " ".join(found.read_as)) is (
        unasked != "f16"
    )


def test_rtx_blackwell_reads_picked_latents_in_fp8_alone(knowledge: Knowledge) -> None:
    """A token takes 656 bytes a layer: 512 in FP8, four scales, 64 of its position in 16 bits."""
    card = "RTX PRO 6000 Blackwell"
    asked_for = Request(gpu=card, gpus=8, model="glm-5", framework="vLLM", kv_cache="f16")
    (problem,) = problems_of(asked_for, knowledge)
    assert "the one kernel for picked latents there reads them in FP8" in str(problem)
    unasked = Request(gpu=card, gpus=8, model="glm-5", framework="vLLM", context=131072)
    fp8 = estimate_memory(resolve(unasked, knowledge), knowledge)
    index = 132 * 131072 * 78
    assert fp8.kv_cache_bytes == pytest.approx(8 * (656 * 131072 * 78 + index), rel=0.02)


@pytest.mark.parametrize("card", ["8x B200", "8x H100 SXM5 80 GB"])
def test_sglang_has_no_fp4_experts_for_a_model_that_weighs_what_goes_into_them(
    card: str, knowledge: Knowledge
) -> None:
    """Its kernels for such experts assert against it; vLLM's take it."""
    asked_for = {"gpu": card, "model": "llama-4-scout-17b-16e-instruct", "precision": "NVFP4"}
    problems = problems_of(Request(**asked_for, framework="SGLang"), knowledge)  # type: ignore[arg-type]
    assert any("weighs what goes into an expert" in str(one) for one in problems)
    assert not problems_of(Request(**asked_for, framework="vLLM"), knowledge)  # type: ignore[arg-type]
