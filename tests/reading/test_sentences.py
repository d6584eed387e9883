"""Questions in plain words: what is read, what is left out, what is refused."""

from __future__ import annotations

import itertools
import random
import re

import pytest

import advisor
from advisor.errors import RequestError, UserError
from advisor.knowledge.merit_scale import card_names
from advisor.reading import find_cards, read_model
from advisor.reading.sentence_cards import Read
from advisor.reading.sentences import read_sentence
from advisor.scenario.settings import KEYS
from advisor.units import UnitError, parse_whole
from tests.cli.running import run
from tests.reading.test_command_lines import known
from tests.reading.test_model_names import rows

FULL = "can I run qwen3 32b awq on two 3090s with vllm at 32k, 4 users"


def settings(text: str) -> dict[str, object]:
    return read_sentence(text, known()).settings


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            FULL,
            {
                "gpu": "2x 3090", "model": "qwen3 32b", "precision": "awq", "framework": "vLLM",
                "context": 32_768, "batch": 4,
            },
        ),
        (
            "what about Mixtral 8x7B q4_k_m with 64GB of RAM on an RTX 4090 using llama.cpp?",
            {
                "gpu": "RTX 4090", "model": "Mixtral 8x7B", "precision": "q4_k_m", "ram": "64GB",
                "framework": "llama.cpp",
            },
        ),
        (
            "qwen3-30b-a3b on a 4090 at 128K context with q8_0 kv cache",
            {
                "gpu": "4090", "model": "qwen3-30b-a3b", "context": 131_072, "kv_cache": "q8_0",
            },
        ),
        (
            "deepseek r1 on 8x H100 SXM5 80 GB with sglang, 1e5 tokens, tensor parallel",
            {
                "gpu": "8x H100 SXM5 80 GB", "model": "deepseek r1", "context": 100_000,
                "framework": "SGLang", "split": "tensor",
            },
        ),
        ("gpt-oss 20b on dual 3090", {"gpu": "2x 3090", "model": "gpt-oss 20b"}),
        ("qwen3 32b int4 on an L40S", {"gpu": "L40S", "model": "qwen3 32b", "precision": "INT4"}),
        ("qwen3 32b on two A40s", {"gpu": "2x A40", "model": "qwen3 32b"}),
        (
            "glm-5 on 8xB200 in vllm, 16k context 8 users",
            {
                "gpu": "8x B200", "model": "glm-5", "framework": "vLLM", "context": 16_384,
                "batch": 8,
            },
        ),
        (
            "Is my RTX 3060 12GB enough for gemma 2 27b in 4-bit with 20 layers on the gpu?",
            {"gpu": "RTX 3060 12GB", "model": "gemma 2 27b", "precision": "INT4", "gpu_layers": 20},
        ),
        (
            "run Qwen/Qwen3-32B-AWQ on RTX 4090, batch size 8, fp8 kv cache",
            {"gpu": "RTX 4090", "model": "Qwen/Qwen3-32B-AWQ", "batch": 8, "kv_cache": "fp8"},
        ),
        (
            "llama-3-8b fp16 on 7900 xtx with vulkan",
            {"gpu": "7900 xtx", "model": "llama-3-8b", "precision": "fp16", "backend": "Vulkan"},
        ),
    ],
)  # fmt: skip
def test_what_a_sentence_says(text: str, wanted: dict[str, object]) -> None:
    assert settings(text) == wanted
    assert settings(text.upper() if "/" not in text else text).keys() == wanted.keys()


CARDS = ("RTX 4090", "2x RTX 3090", "7900 xtx", "Tesla P40")
MODELS = ("llama 3.1 8b", "Qwen3-14B", "phi-3-medium", "gemma-2-9b")
MORE = (
    ("in q8_0", "precision", "q8_0"),
    ("at 16k", "context", 16_384),
    ("for 8 users", "batch", 8),
)


def test_parts_may_stand_in_any_order() -> None:
    chance = random.Random(3)
    for card, model in itertools.product(CARDS, MODELS):
        parts = [f"on {card}", f"run {model}", *(text for text, _, _ in MORE)]
        chance.shuffle(parts)
        found = settings(", ".join(parts))
        assert (found["gpu"], found["model"]) == (card, model), parts
        assert all(found[key] == value for _, key, value in MORE), parts
        assert set(found) <= set(KEYS)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("llama 3.1 8b on 8 * 4090", {"gpu": "8x 4090"}),
        ("llama 3.1 8b on two used RTX 3090s", {"gpu": "2x RTX 3090"}),
        ("llama 3.1 8b on dual-3090s", {"gpu": "2x 3090"}),
        ("llama 3.1 8b on \u56db\u5f2016G\u7684V100", {"gpu": "4x 16G V100"}),
        ("llama 3.1 8b on MBP M1Max 64GB", {"gpu": "MBP M1 Max 64GB"}),
        (
            "llama 3.1 8b on 4x RTX 5060 Ti 16GB + 1x RTX 2070 8GB",
            {"gpu": "4x RTX 5060 Ti 16GB + 1x RTX 2070 8GB"},
        ),
        ("llama 3.1 8b on a mac studio with 256GB ram", {"gpu": "mac studio 256GB"}),
        ("llama 3.1 8b on 3090 and 7900 xtx", {"gpu": "3090 and 7900 xtx"}),
        ("llama 3.1 8b on three dgx spark nodes", {"gpu": "3x dgx spark"}),
        ("llama 3.1 8b on 2 nodes of 8x H200", {"gpu": "16x H200 SXM 141 GB"}),
        ("llama 3.1 8b on a 3090, 32GB 5400MT", {"gpu": "3090", "ram": "32GB 5400MT"}),
        (
            "llama 3.1 8b on a 3090, 128 GB DDR5-5600 (4\u00d732 GB)",
            {"gpu": "3090", "ram": "128 GB DDR5-5600"},
        ),
        (
            "llama 3.1 8b on 2 L40S with 96GB VRAM and 256GB memory",
            {"gpu": "2 L40S 96GB", "ram": "256GB"},
        ),
        ("llama 3.1 8b, \u5185\u5b58640GB, L40 \u663e\u5b5848GB", {"ram": "640GB"}),
        ("qwen3-30b-a3b on a 4070 n_cpu_moe 20", {"cpu_experts": 20}),
        ("llama 3.1 8b on a 3090, q8_0 K and V cache", {"kv_cache": "q8_0"}),
        (
            "qwen3 32b exl3 4bpw, cache-mode 8,4, on a 3090",
            {"kv_cache_k": "exl-q8", "kv_cache_v": "exl-q4", "gpu": "3090"},
        ),
        ("qwen3 32b 6-bit on m4 max 64gb", {"precision": "6-bit"}),
        ("DeepSeekV4 Flash on 4x H200", {"model": "DeepSeek V4 Flash"}),
        ("serve qwen3 8b to 20 devs on an L40S", {"batch": 20}),
        ("qwen3 8b for 50 employees on an L40S", {"batch": 50}),
        ("llama 4 scout with 10 million tokens on 8xH200", {"context": 10_485_760}),
        (
            "batch size 64, seq len 2048, mistral 7b fp16, a10g, tgi",
            {"gpu": "a10g", "batch": 64, "context": 2048, "precision": "fp16", "framework": "TGI"},
        ),
        (
            "gpt-oss 120b on a 5090 with moe offload to cpu, 96gb ram",
            {"cpu_experts": "all", "ram": "96GB"},
        ),
        (
            "glm 4.5 air on a 3090 offloading the experts to ram 128gb",
            {"cpu_experts": "all", "ram": "128GB"},
        ),
        ("qwen3 8b on a 4090 with kv cache at q8_0 both k and v", {"kv_cache": "q8_0"}),
        (
            "Xeon E5-2690 v4 dual socket 256gb ddr4 2400, deepseek v3 q4",
            {"cpu": "dual Xeon E5-2690 v4", "ram": "256gb ddr4 2400"},
        ),
        ("llama4 maverick on a dgx spark cluster of 2", {"gpu": "2x dgx spark"}),
        ("dual socket epyc 7742, 512gb ddr4 3200, kimi k2", {"cpu": "dual epyc 7742"}),
    ],
)
def test_numbers_and_counts_of_threads_are_read(text: str, wanted: dict[str, object]) -> None:
    assert wanted.items() <= settings(text).items()


def test_what_is_not_understood_is_named() -> None:
    assert read_sentence("llama 3.1 8b on a 4090 please, purple", known()).left == ["purple"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello world", "nothing is understood"),
        ("llama 3.1 8b snowflake on a 4090", "'snowflake' beside"),
        ("qwen3 32b coder on a 4090", "beside"),
        ("snorlax-7b on a 4090", "unknown model"),
        ("llama 3.1 8b on an RTX 9999", "unknown GPU"),
        ("minimax m2 on a dgx spark + rtx 4090", "is a part of its machine"),
        ("mistral large 9 on 8xh200", "'9' beside 'mistral large'"),
        ("qwen3 32b on a dgx spark and nvidia 3060 egpu", "is a part of its machine"),
        ("qwen3 8b on a gtx 780m", "'gtx 780m' is not sized"),
        ("qwen3 8b on an m4 with 33gb ram", "no such card has 33 GB"),
        ("llama 3.1 8b on three of those 3090", "'three' beside"),
        ("falcon 40b on a 32gb powerbook", "'powerbook' is not understood"),
        ("llama 3.1 405b on four servers with h100", "how many cards"),
        ("can I fine-tune llama 3 8b on a 3090", "training is not sized"),
        ("7900 24gb best model", "names several cards|unknown GPU"),
        ("llama 3.3 70b on 17gb", "only 17 GB of memory"),
        ("foobar on a 3090", "no model is named"),
        ("k99 24gb llama 7b", "k99"),
        ("qwen 9000b on a 3090", "unknown model 'qwen 9000b'"),
        ("snorlax for my 4090", "no model is named"),
        ("mistarl 7b on a 3060", "Did you mean 'mistral-7b'"),
        ("zorkmoon 8b on 3070 8gb", "unknown model 'zorkmoon 8b'"),
        ("gema 3 27b 4090", "Did you mean 'gemma-3-27b'"),
        ("llama 3.1 8b on a toaster", "no card is named"),
        ("rtx 4090 12gb llama 8b", "no such card has 12 GB"),
        ("m3 pro 64gb llama 8b", "no such card has 64 GB"),
    ],
)
def test_never_an_answer_about_another_model_or_card(text: str, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        settings(text)


def test_any_text_is_read_or_refused() -> None:
    chance = random.Random(5)
    letters = "abz 0139 -_/.,:;!?'\"()x\u00e9\u4e2d\n\t"
    pieces = ("4090", "llama", "3.1", "8b", "32k", "two", "context", "x", "GB", "|", "|model|")
    for _ in range(300):
        noise = "".join(chance.choices(letters, k=12))
        text = " ".join([*chance.choices(pieces, k=4), noise])
        try:
            read_sentence(text, known())
        except RequestError:
            continue


def test_the_command_shows_how_it_read_and_answers(capsys: pytest.CaptureFixture[str]) -> None:
    asked = run(capsys, "ask", *FULL.split())
    quoted = run(capsys, FULL)
    assert asked == quoted
    first = asked.out.splitlines()[0]
    assert first.startswith("read as: --gpu '2x 3090' --model 'qwen3 32b' --precision awq")
    assert "but not with all 4" in asked.out
    machine = run(capsys, FULL, "--format", "json", "--fail-unless-fits")
    assert machine.code == 0
    assert machine.out.startswith("{")
    assert "read as:" in machine.err


CLAIM = "gpu_memory_utilization"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("4090 laptop mistral small 24b", {"gpu": "4090 laptop", "model": "mistral small 24b"}),
        (
            "can my laptop with 4060 8gb and 32 gb ram run llama 8b",
            {"gpu": "4060 8gb laptop", "model": "llama 8b", "ram": "32GB"},
        ),
        (
            "llama 8b on my laptop, 8gb vram",
            {"gpu": "GeForce RTX 4060 laptop", "model": "llama 8b"},
        ),
        ("a laptop with an m3 max, llama 8b", {"gpu": "m3 max", "model": "llama 8b"}),
        ("rtx 4090 64gb llama 8b", {"gpu": "rtx 4090", "model": "llama 8b", "ram": "64GB"}),
        ("2x 3090 48gb llama 8b", {"gpu": "2x 3090 48gb", "model": "llama 8b"}),
        ("rtx4O9O llama 8b", {"gpu": "rtx4O9O", "model": "llama 8b"}),
        ("llama 3 8b on an m3 max", {"gpu": "m3 max", "model": "llama 3 8b"}),
        ("qwen 3 32 b on rtx3090", {"gpu": "rtx3090", "model": "qwen 3 32b"}),
        (
            "llama 3 8b auf einer rtx 3060 mit 12 GB",
            {"gpu": "rtx 3060 12 GB", "model": "llama 3 8b"},
        ),
        ("radeon 780m 32gb ram llama 8b", {"gpu": "radeon 780m:32GB", "model": "llama 8b"}),
        (
            "dolphin 2.9 llama 3 8b on 3080 10gb",
            {"gpu": "3080 10gb", "model": "dolphin 2.9 llama 3 8b"},
        ),
        ("goliath 120b on 96gb", {"gpu": "RTX PRO 6000 Blackwell", "model": "goliath 120b"}),
        ("mythomax 13b on a 3060", {"gpu": "3060", "model": "mythomax 13b"}),
        (
            "llama 3 8b 16.384 tokens 3060",
            {"gpu": "3060", "model": "llama 3 8b", "context": 16_384},
        ),
        (
            "llama 3 8b, context of 128.000, 3060",
            {"gpu": "3060", "model": "llama 3 8b", "context": 128_000},
        ),
        (
            "llama 3 8b, 32 768 tokens, 3060",
            {"gpu": "3060", "model": "llama 3 8b", "context": 32_768},
        ),
        ("qwen 72b on rtx 3090 + rtx 4090", {"gpu": "rtx 3090 + rtx 4090", "model": "qwen 72b"}),
        ("gemma-3-12b-it-qat on 3060 12gb", {"gpu": "3060 12gb", "model": "gemma-3-12b-it-qat"}),
        ("RTX-4090 QWEN3-32B-AWQ", {"gpu": "RTX-4090", "model": "QWEN3-32B-AWQ"}),
        ("exaone 4 32b on 5090", {"gpu": "5090", "model": "exaone 4 32b"}),
        ("phi4:14b-q8_0 on a 4080 super", {"gpu": "4080 super", "model": "phi4:14b-q8_0"}),
        (
            "Qwen3.6-27B UD-Q4_K_XL on a 7900 XTX",
            {"gpu": "7900 XTX", "model": "Qwen3.6-27B", "precision": "UD-Q4_K_XL"},
        ),
        (
            "phi-4 14b q6_k 4090 koboldcpp 8192",
            {"gpu": "4090", "model": "phi-4 14b", "precision": "q6_k", "context": 8192}
            | {"framework": "llama.cpp"},
        ),
        (
            "gpt-oss-120b 3090 --cpu-moe",
            {"gpu": "3090", "model": "gpt-oss-120b", "cpu_experts": "all"},
        ),
        ("qwen3 14b 4090 n-cpu-moe 9", {"gpu": "4090", "model": "qwen3 14b", "cpu_experts": 9}),
        (
            "qwen3-235b-a22b 8x h20 vllm data parallel 8 and expert parallel",
            {"gpu": "8x h20", "model": "qwen3-235b-a22b", "split": "dp-attention"}
            | {"framework": "vLLM"},
        ),
        (
            "qwen3 8b 2x 4090 vllm dp=2",
            {"gpu": "2x 4090", "model": "qwen3 8b", "framework": "vLLM", "split": "data"},
        ),
        (
            "qwen3-32b 3bit mlx m4 max 64gb",
            {"gpu": "m4 max 64gb", "model": "qwen3-32b", "precision": "mlx 3bit"},
        ),
        ("deepseek r1 on 8x h200 tp8", {"gpu": "8x h200", "model": "deepseek r1", "gpus": 8}),
        (
            "llama 3 8b, sglang, mem-fraction-static 0.85, l4",
            {"gpu": "l4", "model": "llama 3 8b", "framework": "SGLang", CLAIM: 0.85},
        ),
        (
            "llama 3 8b on an l4 with tgi, 80% cuda memory fraction",
            {"gpu": "l4", "model": "llama 3 8b", "framework": "TGI", CLAIM: 0.8},
        ),
        (
            "vllm llama 3 8b l4 gpu_memory_utilization=0.95",
            {"gpu": "l4", "model": "llama 3 8b", "framework": "vLLM", CLAIM: 0.95},
        ),
        (
            "phi3 mini 128k on a 3050 4gb",
            {"gpu": "3050 4gb", "model": "phi3 mini 128k", "context": 131_072},
        ),
        (
            "llama 3 8b on 3060, q8 cache",
            {"gpu": "3060", "model": "llama 3 8b", "kv_cache": "q8"},
        ),
    ],
)
def test_cards_models_and_numbers_as_people_write_them(
    text: str, wanted: dict[str, object]
) -> None:
    assert settings(text) == wanted


SIXTEEN = "GeForce RTX 4060 Ti 16 GB"


@pytest.mark.parametrize(
    ("text", "asks", "said", "wanted"),
    [
        ("best model for 16gb vram", "models-for", {"gpu": SIXTEEN}, {}),
        ("what LLM should I run with 16 GB of VRAM?", "models-for", {"gpu": SIXTEEN}, {}),
        ("2x16gb, which model", "models-for", {"gpu": f"2x {SIXTEEN}"}, {}),
        ("what can I run on a 3090", "models-for", {"gpu": "3090"}, {}),
        ("3090", "models-for", {"gpu": "3090"}, {}),
        ("recommend me a 7b model for a gtx 1070", "models-for", {"gpu": "gtx 1070"},
         {"min_params": "6.3B", "max_params": "7.7B"}),
        ("70b q4 on 2x3090", "models-for", {"gpu": "2x 3090", "precision": "INT4"},
         {"min_params": "63B", "max_params": "77B"}),
        ("best 7b-14b model for a 3060", "models-for", {"gpu": "3060"},
         {"min_params": "7B", "max_params": "14B"}),
        ("best vision model under 14b on a 3060", "models-for", {"gpu": "3060"},
         {"modality": "vision", "max_params": "14B"}),
        ("which embedding model for a t4", "models-for", {"gpu": "t4"}, {"modality": "embedding"}),
        ("fastest model on a 4070 at 30 tok/s or more", "models-for", {"gpu": "4070"},
         {"min_speed": "30", "prefer": "speed"}),
        ("gpt oss on a 3090", "models-for", {"gpu": "3090"}, {"family": "gpt-oss"}),
        ("welches Modell f\u00fcr 16 GB VRAM", "models-for", {"gpu": SIXTEEN}, {}),
        ("which gpu for llama 3.3 70b q4", "gpus-for",
         {"model": "llama 3.3 70b", "precision": "INT4"}, {}),
        ("how much vram do I need for qwen3 32b at 32k", "gpus-for",
         {"model": "qwen3 32b", "context": 32_768}, {}),
        ("cheapest card for qwen3 32b under $1,000", "gpus-for", {"model": "qwen3 32b"},
         {"max_price": "1,000"}),
        ("budget 1500$, gpu for qwen3 32b", "gpus-for", {"model": "qwen3 32b"},
         {"max_price": "1500"}),
        ("can I run llama 3.3 70b", "gpus-for", {"model": "llama 3.3 70b"}, {}),
        ("is 24gb vram enough for qwen3.6 35b a3b", "advise",
         {"gpu": "GeForce RTX 3090", "model": "qwen3.6 35b a3b"}, {}),
        ("64gb mac, llama 3.3 70b", "advise", {"gpu": "64gb mac", "model": "llama 3.3 70b"}, {}),
    ],
)  # fmt: skip
def test_what_lacks_a_card_or_a_model_is_another_question(
    text: str, asks: str, said: dict[str, object], wanted: dict[str, str]
) -> None:
    read = read_sentence(text, known())
    assert (read.asks, read.settings, read.wanted) == (asks, said, wanted)
    assert bool(read.assumed) == str(read.settings.get("gpu", "")).endswith((SIXTEEN, "RTX 3090"))


def named(read: Read) -> tuple[str, str]:
    """Give cards and model as they are resolved."""
    cards = find_cards(known(), str(read.settings["gpu"])) if "gpu" in read.settings else None
    said = str(read.settings.get("model", ""))
    model = read_model(known(), said).model.name if said else ""
    return f"{cards.count}x {cards.gpu.name}" if cards else "", model


def test_a_size_alone_is_the_usual_model_where_no_machine_is_told() -> None:
    for text, model in (
        ("i want to run a 70b model at home, budget 2000 dollars, what should I get", "70b"),
        ("best gpu for 30b models under 1000 dollars", "30b"),
        ("70b model on a 3090", None),
        ("which 7b models on cpu with 24 GB of ram", None),
    ):
        read = read_sentence(text, known())
        assert read.settings.get("model") == model, text
        assert (read.asks == "gpus-for") == bool(model), text


def test_formats_to_choose_between_share_their_maker() -> None:
    asked = read_sentence("qwen3 32b mlx 4bit or 8bit on M4 Pro 48GB", known())
    assert asked.settings["precision"] == "mlx 4bit"
    assert asked.more == [{"precision": "mlx 8bit"}]
    assert read_sentence("qwen3 32b q4 or awq on a 3090", known()).more == [{"precision": "awq"}]


def test_formats_to_choose_between_are_questions_each() -> None:
    for text, formats in (
        ("difference between q4 and q8 of mistral small on a 24gb card", ["INT8"]),
        ("qwen3 14b q4_k_m, q5_k_m or q6_k on a 4070", ["q5_k_m", "q6_k"]),
        ("is fp8 or awq better for qwen3 32b on 2x4090 with vllm", ["awq"]),
        ("qwen3 14b q4_k_m on a 4070", []),
    ):
        read = read_sentence(text, known())
        assert [one["precision"] for one in read.more] == formats, text
        assert not set(read.left) & {"q8", "q6_k", "awq"}


def test_questions_of_forums_are_read_as_they_were_once_looked_through() -> None:
    """Nothing is read as another card or model, and what was understood still is."""
    other, lost = [], []
    for row in rows("asked.tsv"):
        text, asks, card, model = row
        try:
            read = read_sentence(text, known())
            found = (read.asks, *named(read))
        except UserError:
            lost += [text] if asks != "refused" else []
            continue
        other += [] if found == (asks, card, model) or asks == "refused" else [(text, found)]
    assert other == []
    assert lost == []


def test_a_speed_or_a_price_beside_card_and_model_is_named_as_left_out() -> None:
    read = read_sentence("llama 3.1 8b at 20 tokens per second on a 3060", known())
    assert read.settings == {"gpu": "3060", "model": "llama 3.1 8b"}
    assert read.left == ["min-speed 20"]


def test_every_memory_that_is_said_alone_is_that_of_a_card() -> None:
    taken = {known().gpus[n].vram_bytes or 0: n for n in reversed(card_names(known()).of_memory)}
    for size, name in taken.items():
        held = size // 2**30
        read = read_sentence(f"best model for {held} GB vram", known())
        assert read.settings == {"gpu": name}
        assert f"{held} GB are taken as those of a {name}" in read.assumed


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("how many 3090s for llama 3.3 70b q4 with vllm 32k", True),
        ("llama 3.1 405b fp8: how many H200 do I need?", True),
        ("wie viele RTX 3090 brauche ich f\u00fcr qwen3 32b fp16", True),
        ("how many gpus of type 4090 does mistral large 123b take", True),
        ("how many tokens per second does llama 3 8b do on a 3090", False),
        ("how many users can a 3090 serve with llama 3 8b", False),
        ("how many layers of llama 3.3 70b q4 go on a 3090", False),
    ],
)
def test_how_many_cards_is_told_from_how_many_else(text: str, *, asked: bool) -> None:
    assert read_sentence(text, known()).how_many is asked


def _said(capsys: pytest.CaptureFixture[str], question: str) -> str:
    return run(capsys, question).out


def test_the_fewest_cards_hold_it_and_one_less_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    said = _said(capsys, "how many 3090s for llama 3.3 70b q4_k_m with llama.cpp at 8k")
    count = int(re.search(r"--gpus (\d+)", said)[1])  # type: ignore[index]  # else it fails here
    assert f"It takes {count}, the fewest that hold it." in said

    def missing(cards: int) -> int | None:
        memory = advisor.estimate(
            gpu="RTX 3090", gpus=cards, model="llama 3.3 70b", precision="Q4_K_M",
            framework="llama.cpp", context=8192,
        ).memory  # fmt: skip
        return memory.deficit_bytes if memory else None

    assert missing(count) == 0
    assert missing(count - 1)


def test_where_no_number_of_cards_holds_all_requests_it_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = _said(
        capsys, "how many rtx 3060 12gb for llama 3.3 70b fp8 in vllm, 900 users at 128k each"
    )
    assert "to start; no number up to 32 holds all requests at once." in said
    said = _said(capsys, "how many gtx 1650 for kimi k2 fp8 in llama.cpp")
    assert "No number of these cards up to 32 holds it; one is sized." in said


def test_the_reverse_commands_answer(capsys: pytest.CaptureFixture[str]) -> None:
    models = run(capsys, "ask", "best vision model for 16gb vram")
    assert models.code == 0
    first, second, *_ = models.out.splitlines()
    assert first == f"read as: models-for --gpu '{SIXTEEN}' --modality vision"
    assert second.startswith("No card is named: 16 GB")
    asked = first.removeprefix("read as: ").replace("'", "").split(" --")
    flags = [word for part in asked[1:] for word in (f"--{part}".split(" ", 1))]
    assert run(capsys, asked[0], *flags).out in models.out
    cards = run(capsys, "ask", "which card for llama 3.3 70b", "--format", "json")
    assert cards.err.startswith("read as: gpus-for --model 'llama 3.3 70b'")
    assert cards.out.startswith("{")
    page = run(capsys, "ask", "what can I run on a 3090", "--format", "html")
    assert page.code == 1
    assert "a list is not written as html" in page.err


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("32k", 32_768),
        ("128K", 131_072),
        ("262k", 262_144),
        ("131K", 131_072),
        ("260k", 266_240),
        ("1e5", 100_000),
        ("32,768", 32_768),
        ("1M", 2**20),
    ],
)
def test_whole_numbers_have_units(text: str, number: int) -> None:
    assert parse_whole(text) == number


@pytest.mark.parametrize("text", ["", "k", "1.5", "many", "1e999", "4 5", "0x10", "9" * 400])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(UnitError, match="not a whole number"):
        parse_whole(text)


def test_flags_take_units(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("advise", "--gpu", "RTX 4090", "--model", "llama-3.1-8b", "--format", "json")
    one = run(capsys, *asked, "--context", "32k")
    assert one.out == run(capsys, *asked, "--context", "32768").out
    assert '"context": 32768' in one.out
