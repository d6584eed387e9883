"""Names of models as people type and paste them: the model meant, or a refusal; never another."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.advice.preparation import estimate, request_warnings
from advisor.errors import RequestError, UserError, otherwise
from advisor.files import data_dir
from advisor.knowledge import load_knowledge
from advisor.knowledge.index import model_core, model_key
from advisor.models.hub_names import label_in
from advisor.reading import read_model
from advisor.reading.format_patterns import FILE as TAGS
from advisor.reading.format_patterns import tag_of
from advisor.reading.known import ModelRead, read_format
from advisor.reading.name_parts import SIZE, words
from advisor.reading.public_list import every
from advisor.reading.published import is_packed
from advisor.scenario import Scenario
from advisor.scenario.asked_model import model_named
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.reading.random_names import LOOK_ALIKES, texts

HERE = Path(__file__).parent
KNOWN = load_knowledge()
QUESTION = 6
"""Cells of a line of questions.tsv; threads.tsv has more."""
SPOKEN = 0.97
"""Share of what people type that must be understood at once."""


def rows(name: str) -> list[list[str]]:
    lines = (HERE / name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


def read(text: str) -> ModelRead | None:
    try:
        return read_model(KNOWN, text)
    except UserError:
        return None


def billions(name: str) -> float | None:
    found = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z])", re.sub(r"[_: -]+", " ", name.lower()))
    return float(found[1]) if found else None


@pytest.mark.parametrize(
    ("text", "model", "held"),
    [
        ("Qwen3-Coder-30B-A3B-Instruct-FP8", "Qwen3-Coder-30B-A3B-Instruct", "FP8"),
        ("unsloth/Qwen3.6-27B-GGUF", "Qwen3.6-27B", "Q4_K_M"),
        (
            "hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q5_K_M",
            "Llama-3.2-3B-Instruct",
            "Q5_K_M",
        ),
        ("Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "Llama-3.1-8B-Instruct", "Q4_K_M"),
        ("Qwen3-235B-A22B-UD-Q2_K_XL-00001-of-00003.gguf", "Qwen3-235B-A22B", "Q2_K"),
        ("qwen2.5:14b-instruct-q5_K_M", "Qwen2.5-14B-Instruct", "Q5_K_M"),
        ("llama3.2", "Llama-3.2-3B-Instruct", "Q4_K_M"),
        ("llama3.2:1b", "Llama-3.2-1B-Instruct", "Q8_0"),
        ("deepseek-r1:8b", "DeepSeek-R1-0528-Qwen3-8B", "Q4_K_M"),
        ("qwen3.6-27b-autoround-int4", "Qwen3.6-27B", "GPTQ 4-bit"),
        ("Qwen3-14B-exl3 4.25bpw", "Qwen3-14B", "EXL3 4.25bpw"),
        ("Qwen3-14B-exl2-2.6763bpw", "Qwen3-14B", "EXL2 2.75bpw"),
        ("turboderp/Qwen3-14B-exl3@6.0bpw", "Qwen3-14B", "EXL3 6.0bpw"),
        ("bartowski/Qwen3-14B-exl2:6_5", "Qwen3-14B", "EXL2 6.5bpw"),
        ("TheBloke/Llama-2-7B-AWQ@gptq-4bit-32g-actorder_True", "Llama-2-7B-AWQ", "GPTQ 4-bit"),
        ("Qwen3-14B-exl3_3.05bpw_h5_ng5", "Qwen3-14B", "EXL3 3.25bpw"),
        ("some-org/GLM-5-GGUF-1.594bpw", "GLM-5", "IQ1_M"),
        ("ubergarm/Kimi-K2-Instruct-GGUF:smol-IQ4_KSS", "Kimi-K2-Instruct", "IQ4_XS"),
        ("Qwen3-235B-A22B-mix-IQ3_K-00001-of-00003.gguf", "Qwen3-235B-A22B", "IQ3_S"),
        ("Qwen3-14B-IQ2XXS-w2Q2K-AProjQ8-OutQ8-imatrix.gguf", "Qwen3-14B", "IQ2_XXS"),
        (
            "unsloth_Llama-3.1-8B-Instruct-GGUF_Llama-3.1-8B-Instruct-Q4_0.gguf",
            "Llama-3.1-8B-Instruct",
            "Q4_0",
        ),
        (
            "bartowski/mistralai_Mistral-Small-3.2-24B-Instruct-2506-GGUF:Q6_K_L",
            "Mistral-Small-3.2-24B-Instruct-2506",
            "Q6_K",
        ),
        ("Meta-Llama-3___1-70B-Instruct-AWQ-INT4", "Llama-3.1-70B-Instruct", "AWQ 4-bit"),
        ("unsloth/DeepSeek-R1-GGUF/DeepSeek-R1-Q4_K_M", "DeepSeek-R1", "Q4_K_M"),
        ("TinyLlama-1.1B-Chat-v1.0.F32.llamafile", "TinyLlama-1.1B-Chat-v1.0", "F32"),
        ("nvidia/Llama-3.3-70B-Instruct-FP4", "Llama-3.3-70B-Instruct", "NVFP4"),
        ("some-org/Qwen3-14B-w8a8", "Qwen3-14B", "INT8 W8A8"),
        ("Midnight-Miqu-70B-v1.5_GPTQ32G", "Midnight-Miqu-70B-v1.5", "GPTQ 4-bit"),
        ("Llama-2-7b-chat-hf-q3f16_1-MLC", "Llama-2-7b-chat-hf", "Q3_K_S"),
        ("Qwen3.6 35B-A3B-int4-ov", "Qwen3.6-35B-A3B", "INT4"),
        ("SUS-Chat-34B-6.0bpw-h6-exl2", "SUS-Chat-34B", "EXL2 6.0bpw"),
        ("Beyonder 4x7b-v2 q5_k_m", "Beyonder-4x7B-v2", "Q5_K_M"),
        ("Mistral 8*7B", "Mixtral-8x7B-Instruct-v0.1", None),
        ("google gemma 3 27b", "gemma-3-27b-it", None),
        ("llama v2 70b", "Llama-2-70b-chat-hf", None),
        ("llama 3.1 8b", "Llama-3.1-8B-Instruct", None),
        ("llama-3.1-8b", "Llama-3.1-8B", None),
        ("llama 3.1 8b base", "Llama-3.1-8B", None),
        ("gemma3:12b-it-qat", "gemma-3-12b-it", "Q4_0"),
        ("gemma3:12b", "gemma-3-12b-it", "Q4_K_M"),
        ("gemma 2 9b awq", "gemma-2-9b-it", "AWQ 4-bit"),
        ("Llama-3.1-8B-Q4_K_M.gguf", "Llama-3.1-8B", "Q4_K_M"),
        ("mistral-large-2411", "Mistral-Large-Instruct-2411", None),
        ("llama-7b-4bit", "llama-7b", "INT4"),
        ("mlx-community/Qwen3.5-9B-MXFP4", "Qwen3.5-9B", "MLX 4-bit"),
        ("someone/Qwen3-8B-MLX-mxfp4-q8", "Qwen3-8B", "MLX 4-bit"),
        ("https://huggingface.co/Qwen/Qwen3-14B/tree/main", "Qwen3-14B", None),
    ],
)
def test_a_name_tells_model_and_format(text: str, model: str, held: str | None) -> None:
    found = read_model(KNOWN, text)
    assert (found.model.name, found.model.told_format) == (model, held)
    assert bool(found.said) == (model_key(text) != model_key(model) and "tree" not in text)


@pytest.mark.parametrize(
    "text",
    [
        "K2 instruct thing",
        "baichuan 7 b zzz",
        "baichuan 7b",
        "microsoft llama 3 8b",
        "foo qwen3 8b",
        "qwen3-8b-sparkle",
        "llama-3.1-9b",
        "scout",
        "someone/nothing-like-it-Q4_K_M.gguf",
        "deepseek-r1:9b",
        "instruct",
        "",
        ":",
        "gguf",
        "hf.co/",
    ],
)
def test_a_word_that_nothing_explains_is_refused(text: str) -> None:
    with pytest.raises(RequestError):
        read_model(KNOWN, text)


def test_a_tuning_that_is_asked_for_is_served() -> None:
    """A record is often the base model: the command serves the repository that was asked for."""
    for text in (
        "Llama-3.1-8B-Instruct",
        "gemma-2-27b-it",
        "llama 3 70b instruct",
        "gemma-2-9b it",
    ):
        served = read_model(KNOWN, text).model.hf_id or ""
        assert {"instruct", "it"} & set(served.casefold().split("-")), (text, served)


def test_a_plus_is_a_word_of_the_name() -> None:
    for text in ("command r+", "Command-R Plus", "command-r+ 104b"):
        assert read_model(KNOWN, text).model.name == "c4ai-command-r-plus", text


def test_models_that_are_trained_on_a_known_one_have_its_sizes() -> None:
    sizes = {
        "bytedance-research/UI-TARS-7B-DPO": "Qwen2-VL-7B-Instruct",
        "UI-TARS-72B-DPO": "Qwen2-VL-72B-Instruct",
        "llama 33b": "llama-30b",
        "tulu 3 70b": "Llama-3.1-70B",
    }
    for text, base in sizes.items():
        own, of = (read_model(KNOWN, one).model.parameters for one in (text, base))
        assert own == of, text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("deepseekr1:7b", "DeepSeek-R1-Distill-Qwen-7B"),
        ("llama33:70b", "Llama-3.3-70B-Instruct"),
        ("qwen25coder:14b", "Qwen2.5-Coder-14B-Instruct"),
        ("Qwen3-8-27B", "Qwen3.8-27B"),
        ("qwen 3 30b a 3b", "Qwen3-30B-A3B"),
        ("Kimi-K2-Instruct:1t", "Kimi-K2-Instruct"),
        ("Qwen 3.6 MoE 35B", "Qwen3.6-35B-A3B"),
        ("qwen3.5-9b-64k:latest", "Qwen3.5-9B"),
        ("Mistral 7 billion instruct v0.3", "Mistral-7B-Instruct-v0.3"),
        ("hf-mirror.com/Qwen/Qwen3-8B", "Qwen3-8B"),
        ("llama-7b/ggml-model-q4_0.bin", "llama-7b"),
        ("MiniCPM 4.1", "MiniCPM4.1-8B"),
        ("phi-4-abliterated", "phi-4-abliterated"),
        ("Qwen3-8B-q4f16_1-MLC", "Qwen3-8B"),
    ],
)
def test_separators_marks_and_sizes_may_stand_elsewhere(text: str, name: str) -> None:
    assert read_model(KNOWN, text).model.name == name


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("frankenMoE-4x8B", "put together of several models"),
        ("flux dev", "makes images"),
        ("parakeet-tdt-0.6b-v2", "writes down speech"),
        ("deepseekr1:9b", "unknown model"),
        ("Qwen3 MoE 8B", "unknown model"),
        ("openbmb/MiniCPM-o-4_5", "MiniCPM-V-4_5 is as large without them"),
        ("internlm-xcomposer2d5-7b", "PLoRA"),
        ("grok", "grok-1 and grok-2 are mixtures"),
    ],
)
def test_what_is_no_one_language_model_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        read_model(KNOWN, text)


def test_a_tag_of_the_base_is_the_base() -> None:
    assert read_model(KNOWN, "gemma2:27b-text-q3_K_M").model.name == "gemma-2-27b"
    assert read_model(KNOWN, "llama3.1:8b-text-q4_0").model.hf_id == "meta-llama/Llama-3.1-8B"
    assert read_model(KNOWN, "qwen2.5:7b-base").model.hf_id == "Qwen/Qwen2.5-7B"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("exaone 4.5 33b awq", "EXAONE-4.5-33B"),
        ("falcon h1 34b", "Falcon-H1-34B-Instruct"),
        ("minicpm v 4.5", "MiniCPM-V-4_5"),
        ("nemotron 3.5 lightning 30b", "NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16"),
        ("qwen3 7b", None),
        ("gemma 5 27b", None),
    ],
)
def test_a_listed_name_may_leave_off_maker_and_marks_of_its_release(
    text: str, name: str | None
) -> None:
    found = read(text)
    assert (found.model.name if found else None) == name
    assert not found or any(str(name) in line for line in found.said)


def test_the_nearest_name_counts_words_whatever_separates_them() -> None:
    for text, near in (("deepsek r1", "DeepSeek-R1"), ("Qwen/Qwen3-9B", "Qwen3.5-9B")):
        with pytest.raises(RequestError) as refused:
            read_model(KNOWN, text)
        assert near in str(refused.value)


def test_what_people_type_is_understood() -> None:
    wrong, understood = [], 0
    spoken = rows("spellings.tsv")
    for text, parameters in spoken:
        found = read(text)
        if found is None:
            continue
        understood += 1
        if abs(found.model.parameters / int(parameters) - 1) > 0.01:
            wrong.append((text, found.model.name))
    assert wrong == []
    assert understood >= SPOKEN * len(spoken)


def test_models_of_threads_are_understood() -> None:
    wrong, understood = [], 0
    asked = rows("threads.tsv")
    for row in asked:
        found = read(row[3])
        if found is None:
            continue
        understood += 1
        meant = float(row[8]) if row[8] else billions(row[3])
        counts = (found.model.parameters / 1e9, found.model.label_parameters_b or 0)
        if meant and all(abs(count / meant - 1) > 0.12 for count in counts):
            wrong.append((row[3], found.model.name))
    assert wrong == []
    assert understood >= 0.94 * len(asked)


def asked(row: list[str]) -> tuple[Request, str]:
    """Give a question of a thread, and the parameters meant (billions) where they are stated."""
    if len(row) > QUESTION:
        _, card, cards, model, precision, framework, tokens, cache, meant = row
    else:
        (card, model, precision, framework, tokens, meant), cards, cache = row, "1", ""
    request = Request(
        gpu=card,
        gpus=int(cards) if cards != "1" else None,
        model=model,
        precision=precision or None,
        framework=framework or None,
        context=int(tokens) if tokens else None,
        kv_cache=cache or None,
    )
    return request, meant


def as_answered(request: Request) -> Scenario:
    """Give the scenario that a question is answered with, where need be the nearest that runs."""
    try:
        return resolve(request, KNOWN)
    except UserError as error:
        _, change = otherwise(error) or ((), {})
        if replace(request, **change) == request:
            raise
        return as_answered(replace(request, **change))


@pytest.mark.parametrize(("name", "least"), [("threads.tsv", 0.97), ("questions.tsv", 0.9)])
def test_whole_questions_are_understood_at_the_first_try(name: str, least: float) -> None:
    missed, wrong = [], []
    for request, stated in map(asked, rows(name)):
        try:
            model = as_answered(request).model
        except UserError as error:
            missed.append(str(error))
            continue
        meant = float(stated) if stated else billions(request.model or "")
        counts = (model.parameters / 1e9, model.label_parameters_b or 0)
        if meant and all(abs(count / meant - 1) > 0.12 for count in counts):
            wrong.append((request.model, model.name))
    assert wrong == []
    assert len(missed) <= (1 - least) * len(rows(name)), missed


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("L3.3-70B-Animus-V12.1", "Llama-3.3-70B-Instruct"),
        ("L3.3-MS-Evalebis-70b", "Llama-3.3-70B-Instruct"),
        ("L3.3-Damascus-R1", "Llama-3.3-70B-Instruct"),
        ("mradermacher/L3.1-8B-Niitama-v1.1-GGUF", "Llama-3.1-8B"),
        ("MN-12B-Lyra-v4", "Mistral-Nemo-Instruct-2407"),
        ("MS-24B-Instruct-Mullein-v0", "Mistral-Small-24B-Instruct-2501"),
        ("MS-Schisandra-22B-v0.3", "Mistral-Small-Instruct-2409"),
        ("G3-27B-Sparkle", "gemma-3-27b-it"),
        ("FuseO1-DeepSeekR1-QwQ-SkyT1-32B-Preview-exl2_4.65bpw", "Qwen2.5-32B-Instruct"),
        ("Minstral OpenOrca", "Mistral-7B-v0.1"),
        ("TheBloke/SynthIA-7B-v1.3-GGUF", "Mistral-7B-v0.1"),
        ("TheBloke/Synthia-70B-v1.5-GGUF", "Llama-2-70b-hf"),
        ("Manticore-Mistral-7B", "Mistral-7B-Instruct-v0.3"),
    ],
)
def test_abbreviations_of_fine_tunes_tell_the_base(text: str, base: str) -> None:
    found = read(text)
    assert found is not None
    assert f"is read as {base}, whose sizes it has as a fine-tune" in found.said[0]


@pytest.mark.parametrize(
    ("text", "name", "billion"),
    [
        ("glm4-9b-1m", "glm-4-9b-chat-1m", 9.484),
        ("InternVL2-Llama3-76B", "InternVL2-Llama3-76B", 76.26),
        ("InternVL2.5-78B", "InternVL2_5-78B", 78.41),
        ("Mini-InternVL-Chat-4B-V1-5", "Mini-InternVL-Chat-4B-V1-5", 4.15),
        ("Emu3", "Emu3-Chat", 8.49),
        ("ShareGPT4V-7B", "ShareGPT4V-7B", 7.06),
        ("bakllava", "BakLLaVA-1", 7.57),
        ("cogvlm-chat-hf", "cogvlm-chat-hf", 17.64),
        ("cogcom-base-17b", "CogCoM", 17.64),
        ("cogagent", "cogagent-chat-hf", 18.28),
        ("PandaGPT", "pandagpt_13b_max_len_400", 14.22),
        ("WebGLM 10B", "WebGLM", 9.88),
        ("LLaVA-Video-7B-Qwen2", "LLaVA-Video-7B-Qwen2", 8.03),
    ],
)
def test_models_that_see_and_releases_are_sized(text: str, name: str, billion: float) -> None:
    found = read(text)
    assert found is not None
    assert found.model.name == name
    assert found.model.parameters / 1e9 == pytest.approx(billion, rel=0.001)


def test_an_unpacked_repository_is_taken_in_the_16_bits_that_its_name_says() -> None:
    asked = Request(gpu="H100", model="unsloth/gpt-oss-20b-BF16")
    assert resolve(asked, KNOWN).precision.name == "BF16"


@pytest.mark.parametrize(
    "text",
    [
        "L3.1-Sparkle-12B", "L3.2-7B-Sparkle", "L3-8B-Sparkle-Vision", "L3-Sparkle", "L3-8x8B-Mix",
        "G4-38B-A12.5B", "MN-GRAND-23.5B-Sparkle", "MS-Sparkle", "mn", "ms", "ms llama 3 8b",
        "ms-marco-MiniLM-L-99-v2", "Koala-Qwen-7B", "MLewd-ReMM-L2-Chat-20B",
    ],
)  # fmt: skip
def test_an_abbreviation_beside_another_size_or_kind_is_refused(text: str) -> None:
    assert read(text) is None


def test_a_family_of_fine_tunes_has_the_base_of_its_version() -> None:
    for text, base in (
        ("vicuna 13b v1.5 16k", None),
        ("vicuna-13b", "llama-13b"),
        ("L3-8B-Lunaris", "Meta-Llama-3-8B"),
        ("MythoMax-L2-13B", "Llama-2-13b-hf"),
        ("TheDrummer/Cydonia-24B-v2", "Mistral-Small-24B-Instruct-2501"),
        ("Cydonia-24B-v4h", "Mistral-Small-24B-Instruct-2501"),
        ("dolphin-2_2-yi-34b.Q6_K.gguf", "Yi-34B-Chat"),
        ("Pygmalion 6B", "gpt-j-6b"),
    ):
        found = read(text)
        if base is None:
            assert found is None or found.model.origin == "list"
            continue
        assert found is not None, text
        assert f"is read as {base}, whose sizes it has as a fine-tune" in found.said[0]


def test_a_release_of_its_own_keeps_its_name_and_repository() -> None:
    """Sizes may be another's; what is downloaded, and for how long it was trained, is its own."""
    for text in ("mistral-large-instruct-2411", "Mistral-Large-2411", "mistral large 2411"):
        found = read(text)
        assert found is not None
        assert found.model.name == "Mistral-Large-Instruct-2411"
        assert found.model.hf_id == "mistralai/Mistral-Large-Instruct-2411"
        assert found.model.trained_context_tokens == 131_072
    assert len(words().releases) > 2
    for text, release in words().releases.items():
        found = read(text)
        assert found is not None
        assert found.model.hf_id == release.hf_id
        whole = read(release.hf_id)
        assert whole is not None
        assert (whole.model.name, whole.said) == (found.model.name, ())


def test_a_fine_tune_keeps_the_name_that_was_typed_and_lends_no_repository() -> None:
    for text, name in (
        ("skywork-or1-32b", "skywork-or1-32b"),
        ("MythoMax-L2-13B Q4_K_M", "MythoMax-L2-13B"),
        ("dolphin-2_2-yi-34b.Q6_K.gguf", "dolphin-2_2-yi-34b"),
        ("Vicuna 13B AWQ", "Vicuna-13B"),
    ):
        found = read(text)
        assert found is not None
        assert (found.model.name, found.model.hf_id) == (name, None)


def test_a_listed_release_states_the_context_that_it_was_trained_for() -> None:
    found = read("qwen3-235b-a22b-instruct-2507")
    assert found is not None
    assert found.model.trained_context_tokens == 262_144
    assert found.model.companions == {}


def test_bases_of_fine_tunes_are_models_that_are_read() -> None:
    known = words()
    sizes = ("", "-7b", "-8b", "-9b", "-12b", "-24b", "-3b", "-70b")
    for base in (*known.same.values(), *known.short.values()):
        assert any(read(base + size) for size in sizes), base
    for family, base in known.built_on.items():
        tried = [base.format(size=s) for s in (family.rpartition("-")[2], "7b", "8b", "13b")]
        assert any(read(one) for one in tried), (family, base)


def test_tags_of_ollama_hold_the_model_that_they_name() -> None:
    lines = (data_dir("knowledge") / TAGS).read_text("utf-8").splitlines()
    asked = [line.split("\t") for line in lines if not line.startswith("#")]
    wrong, understood = [], 0
    for family, tag, model, *_ in asked:
        found, meant = read(f"{family}:{tag}"), read(model)
        understood += found is not None
        if found and meant and found.model.parameters != meant.model.parameters:
            wrong.append((family, tag, found.model.name))
    assert wrong == []
    assert understood >= SPOKEN * len(asked)


def test_spelling_makes_no_other_model() -> None:
    """Words in another order, other case and separators, a maker's or packer's word before it."""
    rng, changed = random.Random(5), []
    packers = sorted(words().packers)
    for record in rng.sample(sorted(KNOWN.models.values(), key=lambda m: m.name), 60):
        for spelling in (record.name, *record.aliases):
            parts = spelling.split("-")
            shuffled = rng.sample(parts, len(parts))
            for text in (
                spelling.upper(),
                "_".join(parts),
                " ".join(shuffled),
                f"{rng.choice(packers)} {spelling}",
                f"{spelling} GGUF",
                spelling.translate(LOOK_ALIKES),
                f"{record.family} {spelling}",
            ):
                found, own = read(text), read(spelling)
                if found and own and found.model.parameters != own.model.parameters:
                    changed.append((text, found.model.name))
    assert changed == []


def test_family_and_size_name_the_newest_of_them() -> None:
    """It has every word that was said, none is newer, and the others are named in a line."""
    named = 0
    for record in KNOWN.models.values():
        family = model_key(record.family).split()[0]
        for size in {word for word in model_key(record.name).split() if SIZE.fullmatch(word)}:
            found = read(f"{family} {size}")
            if found is None or not found.said or "the newest" not in found.said[0]:
                continue
            named += 1
            taken = KNOWN.models.get(found.model.name, record)
            own = {*model_key(f"{taken.family} {taken.name}").split()}
            assert family in own
            assert size in own or f"{taken.label_parameters_b:g}b" == size
            for other in map(KNOWN.models.get, found.others):
                kind = {*model_key(other.name).split()} - own if other else set()
                newer = other and (other.released or "") > (taken.released or "9")
                assert not newer or any(map(str.isalpha, kind)), (family, size, other)
    assert named > 40


@pytest.mark.parametrize(
    ("text", "model", "other"),
    [
        ("llama 70b", "Llama-3.3-70B-Instruct", "Llama-3.1-70B"),
        ("qwen 32b awq", "Qwen3-32B", "Qwen2.5-32B-Instruct"),
        ("gemma 27b", "gemma-3-27b-it", "gemma-2-27b"),
        ("phi 14b", "phi-4", "Phi-3-medium-4k-instruct"),
        ("mistral small", "Mistral-Small-3.2-24B-Instruct-2506", "Mistral-Small-Instruct-2409"),
        ("qwen coder 32b", "Qwen2.5-Coder-32B-Instruct", None),
        ("llama 8b instruct", "Llama-3.1-8B-Instruct", "Meta-Llama-3-8B"),
    ],
)
def test_a_name_without_its_version(text: str, model: str, other: str | None) -> None:
    found = read_model(KNOWN, text)
    assert found.model.name == model
    assert "the newest of that name" in found.said[0]
    assert other is None or other in found.others


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("70b", "is a size and names no model"),
        ("8B", "--min-params 7.2B --max-params 8.8B"),
        ("llama", "names several models"),
        ("gpt oss", "names several models"),
        ("qwen coder", "names several models"),
        ("small 24b", "names several models"),
        ("coder 7b", "unknown model"),
    ],
)
def test_where_nothing_sensible_can_be_taken_it_is_refused(text: str, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        read_model(KNOWN, text)


def test_a_family_without_a_version_is_the_newest_and_its_first_one_just_as_written() -> None:
    found = read_model(KNOWN, "qwen 14b")
    assert found.model.name == "Qwen3-14B"
    assert found.said == (
        (
            "'qwen 14b' is read as Qwen3-14B, the newest of that name that is known here. It could "
            "also be Qwen2.5-14B-Instruct, Qwen1.5-14B-Chat, Qwen2.5-Coder-14B-Instruct, Qwen-14B."
        ),
    )
    first = read_model(KNOWN, "Qwen-7B")
    assert first.model.hf_id == "Qwen/Qwen-7B"
    assert first.said == (
        "Newer of that family and size: Qwen2.5-7B-Instruct, Qwen2-7B-Instruct, Qwen1.5-7B-Chat.",
    )


def test_a_verdict_that_hangs_on_the_version_is_said_louder() -> None:
    def lines(card: str) -> str:
        request = Request(gpu=card, model="qwen 14b", precision="Q4_K_M", context=8192)
        return " ".join(request_warnings(estimate(request, KNOWN)))

    assert "The name decides the verdict" in lines("RTX 3060 12 GB")
    assert "The name decides" not in lines("RTX 3090")


def test_a_word_more_never_makes_a_known_model() -> None:
    for record in list(KNOWN.models.values())[::15]:
        for word in ("zork", "reranker9", "vl2"):
            assert read(f"{record.name}-{word}") is None
        assert model_core(record.name)


def test_nothing_typed_makes_more_than_a_message() -> None:
    for text in texts(400, random.Random(2)):
        read(text)


@pytest.mark.parametrize(
    ("model", "precision", "tag"),
    [
        ("Llama-3.1-8B-Instruct", "Q4_K_M", "llama3.1:8b"),
        (
            "Llama-3.1-8B",
            "Q4_K_M",
            None,
        ),  # tulu3, dolphin3 are built on it
        ("Mixtral-8x7B-Instruct-v0.1", "Q4_0", "mixtral:8x7b"),
        ("Olmo-3-32B-Think", "Q4_K_M", "olmo-3:32b"),
        ("gpt-oss-20b", "MXFP4", "gpt-oss:20b"),
        ("Yi-9B", "Q4_0", None),
        ("Mistral-7B-v0.1", "Q4_0", None),
    ],
)
def test_a_tag_holds_a_model_itself_not_what_is_built_on_it(
    model: str, precision: str, tag: str | None
) -> None:
    found = tag_of(model, [precision])
    assert (found and found.name) == tag


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("Qwen3-Coder-Next 80B", "Qwen3-Coder-Next"),
        ("GLM-4.5-Air 106B A12B", "GLM-4.5-Air"),
        ("MiniMax M2 230B-A10B", "MiniMax-M2"),
        ("deepseek-r1 685b", "DeepSeek-R1"),
        ("Kimi-K2-Instruct 1T", "Kimi-K2-Instruct"),
        ("Qwen2.5-72-int4", "Qwen2.5-72B-Instruct"),
        ("llama-2-70", "Llama-2-70b-hf"),
        ("GLM-4.7 Flash (30B.A3B)", "GLM-4.7-Flash"),
        ("gemma:7b-instruct-v1.1-fp16", "gemma-7b-it"),
        ("phi4-reasoning:14b-plus-q4_K_M", "Phi-4-reasoning-plus"),
    ],
)
def test_a_size_beside_a_name_or_without_its_unit_has_to_be_that_of_the_model(
    text: str, model: str
) -> None:
    found = read(text)
    assert found is not None
    assert found.model.name == model
    assert found.said


@pytest.mark.parametrize(
    "text",
    [
        "GLM 4.6 200B",
        "Qwen3 30B A22B",
        "Qwen3-Coder-Next 70B",
        "Kimi-K2 2T",
        "llama-2-60",
        "phi-4 70b",
    ],
)
def test_a_size_that_no_such_model_has_is_refused(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    "text", ["Midnight-Miqu-103B-v1.5", "hermes-3-9b", "L3-34B-Stheno-v3.2", "Behemoth-MoE-123B"]
)
def test_a_fine_tune_of_another_size_than_its_base_is_refused(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("Airoboros-L2-70B-2.1", 68.98),
        ("airoboros-33b-gpt4-2.0.ggmlv3.q8_0.bin", 32.53),
        ("chronos-hermes-13b", 13.02),
        ("Ring-1T", 999.71),
        ("nous-hermes-13b.ggmlv3.q4_0.bin", 13.02),
        ("TheBloke/Llama-2-7B-32K-Instruct-GPTQ", 6.74),
        ("vsevolodl/Llama-3-70B-Instruct-Gradient-1048k-GGUF", 70.55),
        ("dolly-v2-12b", 11.85),
        ("Valkyrie 49B", 49.87),
        ("deepseek-r1-distill-qwen-14b-uncensored", 14.77),
        ("Behemoth-ReduX-123B-v1a", 122.61),
        ("gemma-26ba4b", 25.81),
        ("OPEA/DeepSeek-V3-int4-sym-gptq-inc", 671.03),
        ("coreml-community/coreml-llama-2-7b", 6.74),
    ],
)
def test_a_fine_tune_has_the_size_of_its_base(text: str, base: float) -> None:
    found = read(text)
    assert found is not None
    assert found.model.parameters / 1e9 == pytest.approx(base, rel=0.001)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Q4_K_M (GGUF)", "Q4_K_M"),
        ("i1-Q4_K_M", "Q4_K_M"),
        ("Q5_K - Small", "Q5_K_S"),
        ("W4A16 (compressed-tensors)", "GPTQ 4-bit"),
        ("4bit MLX", "MLX 4-bit"),
        ("GGUF", "Q4_K_M"),
        ("2.51bit", "IQ2_M"),
        ("GPTQ 4bit 64gs", "GPTQ 4-bit"),
        ("Q3_K_M mixed", "Q3_K_M"),
    ],
)
def test_a_format_may_stand_beside_words_that_say_nothing_of_it(text: str, name: str) -> None:
    assert [one.name for one in read_format(KNOWN, text).formats] == [name]


@pytest.mark.parametrize("text", ["Q4_K_M foo", "AWQ GPTQ", "9.5bit", "imatrix"])
def test_a_format_beside_a_word_that_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(RequestError):
        read_format(KNOWN, text)


@pytest.mark.parametrize(
    ("text", "billions_", "context"),
    [
        ("72b llava qwen", 72.67, 32768),
        ("OA_SFT_Llama_30B_6", 32.53, 2048),
        ("h2ogpt-oasst1-512-12b", 11.85, 2048),
        ("TigerBot-180B", 176.25, 2048),
        ("step35", 199.38, 262144),
        ("Yarn-Mistral-7b-128k", 7.24, 131072),
        ("NousResearch/Yarn-Mistral-7b-64k", 7.24, 65536),
        ("QVQ 72b", 73.41, 32768),
        ("aya 35b", 34.98, 8192),
        ("dsv3", 671.03, 163840),
        ("ds r1", 671.03, 163840),
        ("glm2", 6.24, 32768),
    ],
)
def test_what_threads_call_a_release_of_another_model(
    text: str, billions_: float, context: int
) -> None:
    found = read_model(KNOWN, text).model
    assert found.parameters / 1e9 == pytest.approx(billions_, abs=0.006)
    assert found.trained_context_tokens == context


def test_a_release_whose_window_is_its_whole_context_has_none() -> None:
    """sliding_window 131072 in the config of Yarn-Mistral-7b-128k; its base reads 4096."""
    assert read_model(KNOWN, "Yarn-Mistral-7b-128k").model.shape.window is None
    assert read_model(KNOWN, "Mistral-7B-v0.1").model.shape.window == 4096


def test_a_bare_name_of_a_packed_repository_is_that_repository() -> None:
    """Its maker's, else the most downloaded; a format beside a name leaves the repository open."""
    packed = [one for one in every() if one.format in {"awq", "gptq"} and is_packed(one)]
    packed.sort(key=lambda one: -(one.hf_downloads or 0))
    told = {one.name: found.model.hf_id for one in packed[:150] if (found := read(one.name))}
    assert len(told) > 100
    assert [
        name for name, at in told.items() if f"{at}".partition("/")[2].lower() != name.lower()
    ] == []
    assert told["Qwen3-32B-AWQ"] == "Qwen/Qwen3-32B-AWQ"
    free = read_model(KNOWN, "qwen3 32b awq").model
    assert (free.hf_id, free.named_format) in {
        ("Qwen/Qwen3-32B-AWQ", None),
        ("Qwen/Qwen3-32B", "AWQ 4-bit"),
    }
    file = read_model(KNOWN, "Qwen3-32B-Q4_K_M.gguf").model
    assert (file.hf_id, file.held_format) == (None, "Q4_K_M")


def test_of_several_the_one_whose_name_says_least_beside_it_is_meant() -> None:
    """``Deepseek 0528`` is R1 of that day, not what was distilled into another family's 8B."""
    assert model_named("Deepseek 0528", KNOWN).model.name == "DeepSeek-R1-0528"
    assert model_named("gemma 3n", KNOWN).model.name == "gemma-3n-E4B-it"


@pytest.mark.parametrize(
    ("text", "name", "form"),
    [
        ("/models/Qwen3-32B-AWQ", "Qwen3-32B", "AWQ 4-bit"),
        ("~/hub/models--Qwen--Qwen3-8B/snapshots/b968826", "Qwen3-8B", ""),
        ("C:\\models\\Qwen3-8B-Q4_K_M.gguf", "Qwen3-8B", "Q4_K_M"),
    ],
)
def test_a_path_that_is_not_here_is_the_model_it_is_called(text: str, name: str, form: str) -> None:
    read = model_named(text, KNOWN)
    assert (read.model.name, read.precision) == (name, form)
    assert read.said[0] == f"'{text}' is not on this machine: {name}, which it is called, is sized."


@pytest.mark.parametrize("text", ["/models/K2", "./nothing", "/models/my-model.gguf"])
def test_a_path_that_is_not_here_and_names_no_model_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="no such f"):
        model_named(text, KNOWN)


@pytest.mark.parametrize(
    "text", ["hf://unsloth/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf", "ollama://library/qwen3:8b"]
)
def test_schemes_of_other_programs_are_addresses(text: str) -> None:
    read = model_named(text, KNOWN)
    assert read.model.name == "Qwen3-8B"
    assert "Q4_K_M" in {read.precision, read.model.held_format}


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        ("Mimimax 2.7", "MiniMax-M2.7", "minimax for mimimax"),
        ("mistrla 7b", "Mistral-7B-Instruct-v0.3", "mistral for mistrla"),
        ("Lllama 70B chat GPTQ", "Llama-3.3-70B-Instruct", "llama for lllama"),
        ("kimi-vl-thinking-2506", "Kimi-VL-A3B-Thinking-2506", "all of these words"),
        ("Qwen3-8B (128k context)", "Qwen3-8B", "where --context states it"),
        ("qwen3 8b 32k ctx", "Qwen3-8B", "where --context states it"),
        ("olmOCR", "olmOCR-2-7B-1025", "It could also be olmOCR-7B-0825"),
        ("oig-oasst1-512-6_9b", "h2ogpt-oig-oasst1-512-6_9b", "all of these words"),
        ("tinyllama-1.1b-1t-openorca", "tinyllama-1.1b-openorca", "as TinyLlama-1.1B-Chat"),
        ("TinyLlama-1.1B-intermediate", "TinyLlama-1.1B-intermediate", "as a fine-tune"),
        ("Somebody--Qwen3.6-27B-Sparkle", "Qwen3.6-27B-Sparkle", "read as Qwen3.6-27B"),
    ],
)
def test_slips_contexts_and_fewer_words_are_read_and_told(text: str, name: str, told: str) -> None:
    read = model_named(text, KNOWN)
    assert read.model.name == name
    assert told in read.said[0]


@pytest.mark.parametrize(
    "text", ["LLaDA-13B", "internvl38b", "gemma31b-it-gguf", "deepseach-r1:671b", "mostral 9b chat"]
)
def test_other_names_and_two_slips_are_not_read_as_a_known_one(text: str) -> None:
    with pytest.raises(UserError):
        model_named(text, KNOWN)


def test_a_slip_in_a_listed_name_is_that_model_or_refused() -> None:
    chosen = random.Random(8)
    for public in [one for one in every() if one.parameters_raw and not is_packed(one)][::150]:
        word = max(re.findall("[a-z]+", public.name.lower()), key=len, default="")
        at = chosen.randrange(1, max(2, len(word) - 1))
        typed = public.name.lower().replace(word, word[:at] + word[at + 1 :], 1)
        try:
            read = model_named(typed, KNOWN)
            meant = model_named(public.hf_id, KNOWN)
        except UserError:
            continue
        assert abs(read.model.parameters / meant.model.parameters - 1) < 0.1, (typed, read.said)


def test_of_two_releases_of_one_size_the_first_is_sized() -> None:
    read = model_named("Deepseek V3/R1", KNOWN)
    assert read.model.name == "DeepSeek-V3"
    assert read.said[0] == "'Deepseek V3/R1' names two of one size: DeepSeek-V3 is sized."
    with pytest.raises(UserError):
        model_named("qwen 2.5/3", KNOWN)


def test_a_whole_name_is_not_a_model_of_another_kind_that_begins_so() -> None:
    read = model_named("snowflake-arctic", KNOWN)
    assert read.model.name == "snowflake-arctic-instruct"
    assert read.model.parameters > 4e11
    assert "read as snowflake-arctic-instruct" in read.said[0]
    assert model_named("snowflake arctic embed", KNOWN).model.parameters < 1e9


def test_a_packed_repository_may_tell_the_size_that_its_model_has() -> None:
    found = read_model(KNOWN, "turboderp/Mistral-Large-Instruct-2407-123B-exl2:4.0bpw")
    assert found.model.hf_id == "turboderp/Mistral-Large-Instruct-2407-123B-exl2"
    assert (found.model.name, found.precision) == ("Mistral-Large-Instruct-2407", "EXL2 4.0bpw")
    assert "turboderp/Mistral-Large-Instruct-2407-123B-exl2:4.0bpw" in found.said[0]
    with pytest.raises(UserError):
        read_model(KNOWN, "turboderp/Mistral-Large-Instruct-2407-70B-exl2")


@pytest.mark.parametrize("host", ["huggingface.co", "hf.co", "HuggingFace.co"])
def test_an_address_of_the_hub_needs_no_scheme(host: str) -> None:
    for page in ("", "/blob/main/config.json", "/tree/main"):
        assert model_named(f"{host}/Qwen/Qwen3-14B{page}", KNOWN).model.hf_id == "Qwen/Qwen3-14B"


def test_the_address_of_a_branch_tells_its_bits() -> None:
    address = "https://huggingface.co/turboderp/Qwen3-14B-exl3/tree/6.0bpw"
    assert read_model(KNOWN, address).precision == "EXL3 6.0bpw"


@pytest.mark.parametrize(
    ("text", "model", "other"),
    [
        ("hunyuan", "Hunyuan-A13B-Instruct", "Hunyuan-7B-Instruct"),
        ("command a", "c4ai-command-a-03-2025", "command-a-plus"),
        ("qwen3 235b", "Qwen3-235B-A22B", "Qwen3-VL-235B-A22B"),
        ("nomic", "nomic-embed-text-v1.5", ""),
        ("whisper", "whisper-base", ""),
    ],
)
def test_a_name_that_says_less_than_the_models_says_what_was_taken(
    text: str, model: str, other: str
) -> None:
    found = model_named(text, KNOWN)
    assert (found.model.name, len(found.said)) == (model, 1)
    assert f"read as {model}" in found.said[0]
    assert other in found.said[0]
    assert not model_named(model, KNOWN).said


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("miqu", "Llama-2-70b-hf"),
        ("GPT-NeoXT-Chat-Base-20B", "gpt-neox-20b"),
        ("KoboldAI_OPT-6.7B-Erebus", "opt-6.7b"),
        ("KoboldAI/GPT-J-6B-Janeway", "gpt-j-6b"),
        ("Ziya-LLaMA-13B-v1", "llama-13b"),
        ("ScholarCopilot", "Qwen2.5-7B-Instruct"),
        ("PatronusAI/Patronus-Lynx-70B-Instruct", "Meta-Llama-3-70B"),
        ("cogito v1 70b", "Llama-3.1-70B"),
        ("dolphin 3 24b", "Mistral-Small-24B-Instruct-2501"),
    ],
)
def test_a_fine_tune_in_no_list_has_the_base_of_its_card(text: str, base: str) -> None:
    found = read(text)
    assert found is not None
    assert f"is read as {base}, whose sizes it has as a fine-tune" in found.said[0]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("qwen3vl 235B22", "Qwen3-VL-235B-A22B-Instruct"),
        ("qwen3-30B3A", "Qwen3-30B-A3B"),
        ("Qwen3-30B/3A", "Qwen3-30B-A3B"),
        ("lama3_1_8b_instruct_q40", "Llama-3.1-8B-Instruct"),
        ("qwen3 8b2", None),
        ("qwen3 30b5", None),
    ],
)
def test_what_a_token_reads_may_stand_behind_the_size(text: str, name: str | None) -> None:
    found = read(text)
    assert (found and found.model.name) == name


def test_the_number_in_a_listed_name_is_its_label() -> None:
    """The rule of thumb counts with it; a number that is far from the parameters is none."""
    for text, label in (("granite-4.2-3b", 3), ("DeepScaleR-1.5B-Preview", 1.5)):
        found = read(text)
        assert found is not None
        assert found.model.label_parameters_b == label
    assert label_in("guard-head-70b", 10**9) is None


@pytest.mark.parametrize(
    ("card", "taken"), [("Core Ultra 9 285H", "Arc 140T Mobile"), ("i7-1260P", "processor")]
)
def test_a_processor_asked_with_a_back_end_of_graphics_is_answered(card: str, taken: str) -> None:
    found = as_answered(Request(gpu=card, model="qwen3-8b", backend="Vulkan"))
    assert found.gpu is not None
    assert found.gpu.name == taken


def test_bits_behind_a_format_in_a_name_are_its_own() -> None:
    """A name that tells 3.0 bits was sized in the usual four."""
    for text, held in (
        ("Llama-3.1-Nemotron-70B-Instruct-HF-exl2-3.0", "EXL2 3.0bpw"),
        ("Mixtral-8x7B-exl3-4.25", "EXL3 4.25bpw"),
    ):
        found = read(text)
        assert found is not None
        assert found.precision == held


def test_a_packer_may_write_a_name_in_one_word() -> None:
    found = read("TabbyML/DeepseekCoder-6.7B")
    assert found is not None
    assert found.model.parameters / 1e9 == pytest.approx(6.74, rel=0.01)
    assert read("Somebody/DeepseekCoder-6.7B") is None
