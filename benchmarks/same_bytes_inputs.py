"""What same_bytes.py asks: chains of commands, the same for every commit.

Names stand here and are not read from the knowledge base, so that a commit that moves files is
asked the same. Request number N is always the same one; a quick run asks the first of them.
"""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).resolve().parent.parent
BROKEN = sorted(path.name for path in (ROOT / "tests" / "rules" / "broken").glob("*.yaml"))

GPUS = """RTX 4090;RTX 3060 12GB;RTX 3090;RTX 4070;RTX 5090;H100 SXM5 80 GB;A100 SXM4 80 GB;Tesla T4
RTX 4060 Ti 16 GB;RTX 4070 Mobile;GTX 1080 Ti;GTX 1650;RTX 2080 Ti;RX 7900 XTX;RX 6700 XT;Arc A770
Radeon VII;Radeon Instinct MI300X;Arc B580;M4 Pro:48GB;Apple M2 Ultra:192GB;Apple M1:16GB;L40S;L4
Tesla V100 SXM2 32 GB;Tesla P40;RTX 6000 Ada Generation;RTX PRO 6000 Blackwell;B200 SXM;RTX 5080
Radeon 8060S:128GB;DGX Spark (GB10);Jetson AGX Orin 64 GB;H200 SXM 141 GB;GH200 144 GB;TITAN V
2x RTX 3090 + RTX 3060 12GB;RTX 4090 + RTX 3090;Intel Gaudi 3;RX 9070 XT;RTX 4090 Mobile;RTX A2000
A10 PCIe;RTX A6000;A16 PCIe;MI250X;Arc Pro B60;RTX 3050 6 GB;Quadro P6000;RTX 5060 Ti 16 GB
RX Vega 64"""
MODELS = """phi-3-medium;llama-3-8b;llama-3.1-70b;mixtral-8x7b;gemma-2-27b;qwen2.5-32b;qwen3-32b
phi-3-small;llava-1.6-13b;qwen3-30b-a3b;gpt-oss-20b;gpt-oss-120b;DeepSeek-V3;DeepSeek-V2-Lite;phi-4
mistral-7b-v0.1;Mistral-Small-24B-Instruct-2501;Qwen2.5-7B-Instruct;Qwen2.5-72B-Instruct;gemma-3-4b
gemma-3-27b-it;gemma-3n-E4B-it;whisper-large-v3;bge-m3;Qwen3-Embedding-4B;TinyLlama-1.1B-Chat-v1.0
GLM-4.5-Air;MiMo-7B-RL;falcon-mamba-7b;Falcon-H1-7B-Instruct;granite-4.0-h-tiny;Qwen3-VL-8B-Instruct
Llama-4-Scout-17B-16E-Instruct;Qwen3-Next-80B-A3B-Instruct;Kimi-K2-Instruct;MiniMax-M2;starcoder2-7b
NVIDIA-Nemotron-Nano-9B-v2;c4ai-command-r-v01;Yi-34B-Chat;Phi-3-mini-128k-instruct;phi-2;grok-1;dbrx
OLMoE-1B-7B-0924-Instruct;Llama-3.2-11B-Vision-Instruct;SmolLM3-3B;AI21-Jamba-Mini-1.5;Qwen3.5-27B
llama-2-7b;llama-2-70b;CodeLlama-34b-hf;Qwen3-0.6B;DeepSeek-R1-Distill-Qwen-14B;stablelm-2-12b-chat
LFM2-8B-A1B;Mistral-Nemo-Instruct-2407;embeddinggemma-300m;InternVL3-8B-hf;Qwen3.6-35B-A3B;gemma-7b
./config/afm-4.5b;./config/deepseek-v2-lite;./config/command-r7b;./config/codellama-34b"""
SERVERS = """RTX 4090;H100 SXM5 80 GB;L40S;RTX 5090;H200 SXM 141 GB;RTX 6000 Ada Generation;L4
RTX PRO 6000 Blackwell;RTX 4070;RTX 5080"""
CARDS = {"MLX-LM": "M4 Pro:48GB;Apple M2 Ultra:192GB;Apple M1:16GB;M4 Max (40-core GPU):128GB"}
SERVED = """phi-3-medium;llama-3-8b;llama-3.1-70b;mixtral-8x7b;gemma-2-27b;qwen2.5-32b;qwen3-32b
qwen3-30b-a3b;Qwen2.5-7B-Instruct;mistral-7b-v0.1;phi-4;gemma-3-27b-it;Mistral-Nemo-Instruct-2407"""
RUNTIMES = {
    "llama.cpp": "FP16;BF16;Q8_0;Q6_K;Q5_K_M;Q4_K_M;Q4_0;IQ4_XS;Q3_K_M;Q2_K;IQ2_XS;INT4;INT8",
    "vLLM": "FP16;BF16;FP8;AWQ 4-bit;GPTQ 4-bit;INT8 W8A8;NVFP4;INT4",
    "transformers": "FP16;BF16;NF4;INT8 (bitsandbytes);GPTQ 8-bit;HQQ 4-bit",
    "SGLang": "FP16;FP8;AWQ 4-bit", "TensorRT-LLM": "FP16;FP8;INT8 W8A8", "TGI": "FP16;GPTQ 4-bit",
    "Ollama": "Q4_K_M;Q8_0;FP16", "LM Studio": "Q4_K_M;Q6_K", "ExLlamaV3": "EXL3 4.0bpw",
    "ExLlamaV2": "EXL2 4.65bpw;GPTQ 4-bit", "MLX-LM": "MLX 4-bit;MLX 8-bit;BF16",
    "KTransformers": "Q4_K_M", "MLC-LLM": "FP16", "DeepSpeed": "FP16",
}  # fmt: skip
WEIGHTS = (16, 5, 2, 1, 0.6, 0.6, 1, 1, 0.6, 0.5, 1, 0.1, 0.1, 0.1)
SETTINGS = (
    (0.6, "context", "2048;4096;8192;16384;32768;131072"), (0.25, "batch", "2;4;8;32;128"),
    (0.25, "prefer", "quality;speed;cost"), (0.2, "use", "batch;none"), (0.3, "ram", "16GB;64GB"),
    (0.2, "ram-bandwidth", "50GB/s;80GB/s"), (0.1, "cpu-cores", "4;16"), (0.12, "gpus", "2;4;8"),
    (0.06, "gpu-layers", "0;10;20;all"), (0.03, "cpu-experts", "4;all"), (0.08, "ubatch", "256"),
    (0.12, "kv-cache", "q8_0;q4_0;fp8;bf16"), (0.03, "kv-cache-k", "q8_0"), (0.1, "depth", "1000"),
    (0.05, "split", "layer;row;tensor"), (0.06, "flash-attention", "off;on"), (0.02, "mtp", "1"),
    (0.05, "kv-unified", "off"), (0.05, "swa-full", "on"), (0.05, "logits-rows", "512"),
    (0.03, "backend", "Vulkan;CUDA"), (0.03, "draft-model", "Qwen3-0.6B;llama-3.2-1b"),
)  # fmt: skip
CONFIGS = """afm-4.5b all-minilm-l6-v2 aya-expanse-8b bert-base-uncased bge-small-en-v1.5
bloom-176b bloom-560m bloom-7b1 codellama-34b command-r-35b command-r-plus-104b command-r7b
dbrx-132b deepseek-coder-33b deepseek-llm-7b deepseek-v2 deepseek-v2-lite default-aria
default-axk1 default-bamba default-bert-generation default-biogpt default-codegen
default-cohere2_vision default-ctrl default-cwm default-deepseek_v32 default-deepseek_vl
default-dots3_note_text default-exaone_moe default-flex_olmo default-flint"""
RULES = """bandwidth-class-low fit-gap-slight verdict-tight verdict-too-big cache-exceeds-memory
mlx-needs-apple gguf-files-only cooling-at-high-power shared-memory-is-shared
context-beyond-training cache-is-large experts-all-stored format-costs-quality long-context-slows
fit-is-tight room-to-grow quantize-to-fit quantize-for-room combine-to-fit no-ruined-model
add-card-to-fit upgrade-to-fit rent-a-card-to-fit quantize-cache-for-room shrink-context-to-fit
grow-batch-for-throughput offload-layers-to-fit offload-experts-to-fit smaller-sibling-to-fit
serving-framework-for-throughput mlx-on-apple draft-model-for-speed"""
PREVIEWED = {
    '"RTX 4090" --model phi-3-medium': "add-gpus add-second-card cloud cooling smaller-model "
    "upgrade-gpu offload-layers quantize",
    '"RTX 3060 12GB" --model llama-3-8b --precision Q4_K_M': "grow-batch room-to-grow speculative",
    '"RTX 4090" --model mixtral-8x7b --precision Q4_K_M --ram 64GB --ram-bandwidth 80GB/s': (
        "offload-experts moe-routing change-framework"
    ),
    '"RTX 4090" --model llama-3.1-8b --precision Q8_0 --context 131072 --batch 4': (
        "combine cache-is-large shrink-context"
    ),
    '"RTX 3060 12GB" --model qwen2.5-7b-instruct --precision Q8_0 --context 32768 '
    "--flash-attention off": "flash-attention-on",
    '"RTX 3090" --model qwen2.5-32b --precision Q4_K_M --gpu-layers 20 --ram 64GB '
    "--ram-bandwidth 50GB/s": "more-on-card",
    '"RTX 4090" --model llama-3.1-8b --framework vLLM --batch 16': "quantize-kv shrink-batch",
    '"H100 SXM5 80 GB" --model GLM-4.5-Air --precision FP8 --gpus 4 --framework vLLM': "own-head",
}
LINTS = """action-never-meets always-fires bad-rule-name cannot-load case-does-not-match encoding
conclusion-cycle contradictory-conclude deprecated-without-replacement duplicate-case
duplicate-key duplicate-rule empty-file empty-value engine-limits fact-never-concluded
fact-never-used implied-by ladder-gap ladder-overlap missing-case missing-key missing-silent-case
missing-template missing-unit missing-verb needless-list never-fires no-option-named no-verdict
not-a-list not-about-concluded not-comparable not-concludable number-without-source
number-without-unit one-effect overlay same-as supersedes-cycle supersedes-never-meets tab
template-forbidden template-syntax template-title unknown-enum unknown-fact unknown-input
unknown-key unknown-placeholder unknown-rule unknown-verb unknown-template unknown-word
unused-placeholder unused-template wrong-case wrong-ladder wrong-value wrong-number
wrong-reference wrong-score wrong-shape wrong-unit wrong-verb yaml-extras yaml-limits yaml-syntax"""
COMMANDS = """;advise;estimate;models-for;gpus-for;batch;audit;site;calibrate;init;knowledge
knowledge find;knowledge check;measure;measure add;measure list;measure remove;rules;rules check
rules format;rules test;rules cover;rules diff;rules docs;rules explain;rules facts;rules mutate
rules schema;templates;templates check;templates preview"""
FORMATS = ("text", "markdown", "html", "json")
USUAL = ("--gpu", "RTX 4090", "--model", "phi-3-medium")
REVERSE = """--limit 5;--format json --limit 8;--format csv --limit all;--prefer speed --limit 8
--context 32768;--ram 64GB --ram-bandwidth 80GB/s --min-speed 5;--framework vLLM;--gpus 2
--prefer balanced --batch 8;--unmeasured --max-loss any;--released-after 2025;--precision INT4
--kv-cache q8_0 --context 16384 --format csv;--max-loss 3 --format json --limit 5"""
ERRORS = """advise;advise --gpu "RTX 4090";advise --gpu;nonsense;advise --nonsense;rules
rules nonsense;A --gpu "RTX 4091";A --gpu 3060;A --gpu A100;A --gpu "M3 Ultra"
A --model phi-3-medum;A --model dbr;A --precision Q4_K_X;A --precision q9;A --framework vlm
A --framework vLLM --precision Q4_K_M;A --gpu "RTX 4091" --model phi-3-medum --precision Q4_K_X
A --model phi-3-small --precision Q4_K_M;A --gpu "GTX 1080" --precision FP8;A --gpu-layers -1
A --gpu-layers some;A --cpu-experts 2;A --flash-attention maybe;A --ram lots;A --ram 0GB
A --ram-bandwidth "80 W";A --kv-cache q3_0;A --kv-cache fp8;A --backend CUDNN;A --depth 9000
A --draft-model llama-3-b;A --prefer qualty;A --use chatting;A --split diagonal
A --kv-cache q8_0 --flash-attention off;A --model ./no;A --model broken;A --rules nowhere
A --templates nowhere;A --knowledge nowhere;A --output no/a.txt;A --output ""
A --prefer fast --use chat --ram lots;A --format pdf;A --length long;A --offline
A --prefer fast --gpu-layers ten --context 0 --gpu "RTX 4091" --model phi-3-medum;A --gpu ""
A --fail-unless-fits;A --fail-unless-fits --precision Q8_0;A --gpu "2x RTX 3090 + " --gpus 2
A --gpu "0x RTX 3090";A --gpu "2x RTX 3090" --gpus 4;A --model "" ;A --precision "";--version
A --model ./bad/cut;A --model ./bad/list;A --model ./bad/none;A --model ./bad/layers
A --model ./bad/words;A --model ./bad/heads;A --model ./bad/cut/config.json;A --model ./bad/vocab
models-for;models-for --gpu "RTX 4091";models-for --gpu "RTX 4090" --prefer fun --max-loss many
models-for --gpu "RTX 4090" --min-params lots --family nobody --modality smell --limit none
models-for --gpu "RTX 4090" --released-after May --min-speed slow --format pdf
gpus-for --model nobody
gpus-for --model phi-4 --vendor Nvidea --form tower --max-price a --sort age
gpus-for --model phi-4 --gpus 0 --context 0 --batch -1 --max-power low --precision Q4_K_X
estimate nowhere.jsonl;estimate broken;estimate bad/mixed.jsonl;estimate bad/cells.csv
audit nowhere;audit broken --workers 1;site nowhere;site broken;batch nowhere.yaml --out x
batch bad/mixed.jsonl;batch bad/mixed.jsonl --out x --workers 1;batch bad/names.yaml --out x
batch bad/empty.yaml --out x;batch bad/keys.yaml --out x;batch bad/ranges.yaml --out x
batch bad/names.yaml --out broken;batch bad/cells.csv --out x --workers 1
batch bad/names.yaml --out x --formats pdf --workers 0;knowledge find zzz;knowledge find 4060
knowledge find qwen3;knowledge find vLLM;knowledge find Q4;knowledge find ""
knowledge check nowhere;knowledge check bad/knowledge;templates check nowhere
templates check bad/templates --format json;templates check bad/templates --format sarif
templates check bad/templates;templates check bad/templates --format github;knowledge find gemma
A --knowledge bad/knowledge;A --templates bad/templates;A --rules broken;rules facts nonsense
rules explain nonsense --gpu "RTX 4090" --model phi-4;rules check nowhere
rules check --explain no
rules explain cache-is-large --gpu "RTX 4091" --model phi-3-medium --use chat;rules test nowhere
templates preview nonsense --gpu "RTX 4090" --model phi-4;rules format broken/tab.yaml --check
measure add nowhere.csv;measure list;measure remove 12;measure add bad/cells.csv
calibrate --output;rules diff;rules mutate --rule nonsense;rules cover --sample 0
rules docs --format pdf"""
TOKENS = "--prompt-tokens 32 --gen-tokens 128"
MEASURED = {
    **dict.fromkeys(("llama-bench.csv", "llama-bench.json", "llama-bench.jsonl", "simple.csv"), ""),
    "llama-bench.md": "--model Qwen2.5-7B-Instruct", "sglang.jsonl": "--gpu L40S",
    "vllm-serve.json": "--gpu L40S", "SOURCE.md": "",
    "vllm-latency.json": f"--gpu L4 --model phi-4 --precision FP16 --batch 8 {TOKENS}",
    "vllm-throughput.json": f"--gpu L40S --model llama-3-8b --precision FP16 --batch 32 {TOKENS}",
}  # fmt: skip
NUMBERS = ("context", "batch", "gpus", "ubatch", "cpu-cores", "depth", "mtp", "logits-rows")
CONFIG = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
}  # fmt: skip
BAD = {
    "cut/config.json": '{"model_type": "llama", "hidden', "list/config.json": "[1, 2]",
    "none/config.json": '{"model_type": "no_such_thing", "hidden_size": 64}',
    "layers/config.json": json.dumps({**CONFIG, "num_hidden_layers": -1}),
    "words/config.json": json.dumps({**CONFIG, "hidden_size": "big"}),
    "heads/config.json": json.dumps({**CONFIG, "num_key_value_heads": 5}),
    "vocab/config.json": json.dumps({**CONFIG, "vocab_size": 1e300}),
    "mixed.jsonl": '{"id": 1, "gpu": "RTX 4090", "model": "phi-4"}\n{\n[]\n{"id": [], "model": 3}\n'
    '{"gpu": "RTX 4091", "model": "phi-5"}\n{"model": "/a/b", "contxt": 5}\n\n{"model": "phi-4"}\n',
    "cells.csv": "gpu,model,precision\nRTX 4091,phi-4,Q8_0\nRTX 4090,phi-4\n,phi-4,\nL4,phi-4,X\n",
    "names.yaml": "gpus: [RTX 4091, {vendor: Nvidea}]\nmodels: [poplar, phi-5]\nformats: [Q9]\n",
    "keys.yaml": "gpu: RTX 4090\nmodels: phi-4\nprefer: fun\nwith: {ramm: 3}\nshard_size: 0\n",
    "ranges.yaml": "gpus: [{vram: {min: 9 GB, max: 8 GB}}, {released: May}]\nmodels: /a\n",
    "empty.yaml": "", "knowledge/sources-bad.yaml": "- id: Page 2\n  kind: rumour\n",
    "knowledge/gpus/bad.yaml": "- gpu: Mine\n  vendor: NVIDIA\n  vram: 24 apples\n  bandwith: 3\n"
    "  source: page\n- card: Other\n",
    "knowledge/models/bad.yaml": "- model: test-7b\n  modality: txt\n  parameters: 7\n"
    "  config: {hidden_size: -1, layer_pattern: (SZ)2}\n  source: page\n",
    "templates/actions/quantize.md.j2": "# T\nIt is {{ option_formt }}.\n",
    "templates/actions/cloud.md.j2": "Rent one.\n", "templates/nots/cooling.md.j2": "Mind it.\n",
    "templates/notes/cooling.md.j2": "a {{ 1 + gpu_tdp }}\nb {% fi %}\n",
    "templates/notes/kv-heavy.md.j2": "It takes {{ request_batch }}.\nIt leaves 24.\n",
    "templates/notes/drivers.md.j2": "a\nb {% if gpu_tdp %}\n",
}  # fmt: skip
PLAN = """gpus: [RTX 4090, RTX 3060 12GB, RX 7900 XTX, "M4 Pro:48GB", H100 SXM5 80 GB, GTX 1080 Ti]
models: [llama-3-8b, phi-3-medium, qwen3-30b-a3b, gemma-3-27b-it, llava-1.6-13b, DeepSeek-V2-Lite]
formats: [FP16, Q8_0, Q4_K_M, AWQ 4-bit]
contexts: [4096, 32768]
"""
WIDE = PLAN.replace("GTX 1080 Ti]", "GTX 1080 Ti, Tesla T4, RTX 5090, Arc B580, RTX 4070 Mobile]")
FEW = "gpus: [RTX 4090, GTX 1080 Ti]\nmodels: [phi-3-medium, llama-3-8b]\nformats: [FP16, Q4_K_M]\n"
BLOCKS = """shard_size: 16
blocks:
  - {gpus: [RTX 3090, RX 7900 XTX], models: [llama-3.1-70b, phi-4], formats: [Q4_K_M, FP16],
     gpu_counts: [1, 2], kv_cache: [f16, q8_0], prefer: [quality, speed], with: {ram: 64 GB}}
  - {gpus: [{vendor: Intel, vram: {min: 12 GB}}], models: [{family: Phi-3}], formats: [INT4],
     frameworks: [llama.cpp], contexts: [4096, 131072], beyond_trained: yes}
"""


class Step(TypedDict, total=False):
    """One command: `name` of its document, files to `write` before, folders to `take` after."""

    name: str
    argv: list[str]
    stdin: str
    at: str
    write: dict[str, str]
    take: list[str]


Chain = list[Step]


def chains(*, quick: bool) -> Iterator[Chain]:
    """Commands that follow one another; the long ones first, for two processes."""
    yield _wide_batch(FEW if quick else WIDE)
    yield from ([] if quick else _workbench())
    yield from _rulebooks(quick=quick)
    yield from _small_batches(quick=quick)
    yield from _broken(quick=quick)
    yield from _advice(60 if quick else 640)
    yield _estimates(60 if quick else 800)
    yield from _reverse(4 if quick else 60)
    yield from _about_rules(quick=quick)
    yield _errors(("0", "many") if quick else ("0", "-1", "999999999999", "many", "4.5", ""))
    yield _starter(quick=quick)
    yield _measurements()
    yield [_step("help", *shlex.split(one), "--help") for one in _list(COMMANDS)]


def _list(text: str) -> list[str]:
    return [one.strip() for line in text.splitlines() for one in line.split(";")]


def _step(group: str, *argv: str, take: Sequence[str] = (), at: str = ".") -> Step:
    return {"name": f"{group}/{shlex.join(argv)}", "argv": [*argv], "take": [*take], "at": at}


def _asked(number: int) -> dict[str, str]:
    """Request number so and so: a card, a model, a format and what else is stated."""
    rng = random.Random(f"request {number}")
    runtime = rng.choices(list(RUNTIMES), WEIGHTS)[0]
    own = rng.random() < 0.1 or runtime in {"llama.cpp", "Ollama", "LM Studio", "transformers"}
    gpus, models = (GPUS, MODELS) if own else (CARDS.get(runtime, SERVERS), SERVED)
    asked = {"gpu": rng.choice(_list(gpus)), "model": rng.choice(_list(models))}
    asked["precision"] = rng.choice(RUNTIMES[runtime].split(";"))
    if runtime != "llama.cpp" or rng.random() < 0.2:
        asked["framework"] = runtime
    for share, key, values in SETTINGS:
        if rng.random() < (share if len(asked) < 7 else share / 3):
            asked[key] = rng.choice(values.split(";"))
    return asked


def _flags(asked: dict[str, str]) -> list[str]:
    return [word for key, value in asked.items() for word in (f"--{key}", value)]


def _advice(count: int) -> Iterator[Chain]:
    shown = {3: ["--why"], 6: ["--options"], 9: ["--memory"], 12: ["--why", "--memory"]}
    for first in range(0, count, 10):
        steps: Chain = []
        for number in range(first, first + 10):
            how = ["--format", FORMATS[number % 4]]
            how += shown.get(number % 17, [])
            how += ["--length", ("short", "full")[number % 2]] if number % 5 == 0 else []
            steps.append(_step("advise", "advise", *_flags(_asked(number)), *how))
        yield steps


def _row(number: int, *without: str) -> dict[str, object]:
    """The request as a line of a file."""
    row: dict[str, object] = {"id": number}
    for key, value in _asked(number).items():
        if key not in without:
            typed = {"on": True, "off": False}.get(value, value)
            row[key.replace("-", "_")] = int(value) if value.isdecimal() else typed
    return row


def _estimates(count: int) -> Chain:
    rows = [_row(2000 + number, "use") for number in range(count)]
    rows += [
        {"id": name, "config": f"config/{name}/config.json", "gpu": gpu, "precision": "Q8_0"}
        for name in CONFIGS.split()
        for gpu in ("RTX 4090", "L4")
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    table = "id,gpu,model,context\na,L4,phi-4,8192\nb,,phi-4,\nc,RTX 4090,llama-3-8b,4096\n"
    asked: Step = {"write": {"e/rows.jsonl": text, "e/rows.csv": table, "e/out/is": ""}}
    asked |= _step("estimate", "estimate", "e/rows.jsonl", "-o", "e/out/a.jsonl", take=["e/out"])
    piped = _step("estimate", "estimate", "-")
    piped["stdin"] = table
    return [asked, _step("estimate", "estimate", "e/rows.csv"), piped]


def _reverse(count: int) -> Iterator[Chain]:
    gpus, models, asked = _list(GPUS), _list(MODELS), _list(REVERSE)
    for number in range(count):
        how = shlex.split(asked[number % len(asked)])
        gpu, model = gpus[number % len(gpus)], models[number % len(models)]
        yield [
            _step("reverse", "models-for", "--gpu", gpu, *how),
            _step("reverse", "gpus-for", "--model", model, *how),
        ]


def _batch(folder: str, plan: str, *flags: str) -> Step:
    argv = ("batch", plan, "--out", folder, "--workers", "1", *flags)
    return _step("batch", *argv, take=[folder])


def _wide_batch(plan: str) -> Chain:
    made = _batch("wide", "wide.yaml", "--formats", "markdown,html,jsonl,parquet")
    made["write"] = {"wide.yaml": plan}
    again: Step = {"write": {"wide/markdown/meta-llama-3-8b/foreign.md": "Not a report.\n"}}
    again |= _step("audit", "audit", "wide", "--workers", "1", "--sample", "40")
    return [
        made,
        _step("site", "site", "wide", "--out", "public", "--workers", "1", take=["public"]),
        _step("audit", "audit", "public"),
        _step("audit", "audit", "wide", "--workers", "1", "--sample", "200", "--format", "json"),
        again,
    ]


def _small_batches(*, quick: bool) -> Iterator[Chain]:
    rows = [_row(3000 + number) for number in range(20 if quick else 250)]
    made = _batch("rows", "rows.jsonl", "--length", "short")
    made["write"] = {"rows.jsonl": "".join(json.dumps(row) + "\n" for row in rows)}
    yield [made]
    if quick:
        return
    blocks = _batch("blocks", "blocks.yaml", "--length", "full", "--formats", "markdown,html,jsonl")
    blocks["write"] = {"blocks.yaml": BLOCKS}
    url = ("--base-url", "https://example.org/gpus/")
    yield [
        blocks,
        _step("site", "site", "blocks", "--out", "p2", "--workers", "1", *url, take=["p2"]),
        _step("audit", "audit", "blocks", "--workers", "1"),
    ]


def _rulebooks(*, quick: bool) -> Iterator[Chain]:
    docs = ("rules", "docs", "--output")
    yield [_step("rulebook", *docs, "md", "--format", "md", "--sample", "0", take=["md"])]
    if not quick:
        yield [_step("rulebook", *docs, "html", "--sample", "40", take=["html"])]


def _workbench() -> Iterator[Chain]:
    yield [
        _step("rules", "rules", "cover", "--sample", "120", *how)
        for how in ((), ("--format", "json"), ("--format", "html"), ("--thresholds",))
    ]
    yield [
        _step("rules", "rules", "check", "--sample", "20"),
        _step("rules", "rules", "format", "--check"),
        _step("rules", "rules", "test", "--rule", "quantize-for-room"),
        _step("rules", "rules", "test", "--rule", "fit-gap", "--format", "json"),
        _step("rules", "rules", "mutate", "--rule", "quantize-for-room", "--limit", "0"),
        _step("templates", "templates", "check"),
        _step("knowledge", "knowledge", "check"),
    ]


def _broken(*, quick: bool) -> Iterator[Chain]:
    """Every broken file alone, all of them at once, and what the corrections make of them."""
    yield [_step("broken", "rules", "check", "--quick", "broken", "--format", "json")]
    for name in BROKEN[:: 24 if quick else 1]:
        yield [
            _step("broken", "rules", "check", "--quick", f"broken/{name}"),
            _step("broken", "rules", "format", "--diff", f"broken/{name}"),
        ]
    if not quick:
        yield [_step("broken", "rules", "check", "broken", "--diff")]
        yield [_step("broken", "rules", "check", "--quick", "broken", "--format", "sarif")]


def _about_rules(*, quick: bool) -> Iterator[Chain]:
    asked = [shlex.split(f"--gpu {request}") for request in PREVIEWED]
    for number, rule in enumerate(RULES.split()[: 6 if quick else None]):
        how = [] if number % 3 == 0 else ["--no-search"]
        yield [_step("rules", "rules", "explain", rule, *asked[number % len(asked)], *how)]
    for request, actions in list(zip(asked, PREVIEWED.values(), strict=True))[:: 4 if quick else 1]:
        for number, action in enumerate(actions.split()):
            how = [["--all-variants"], ["--format", "json"], ["--length", "short"]][number % 3]
            shown = ("templates", "preview", action, *request)
            yield [_step("templates", *shown), _step("templates", *shown, *how)]
    facts = ("", "fit.gap", "memory.kv_share", "option.family", "gpu.tdp", "--format json")
    yield [_step("rules", "rules", "facts", *fact.split()) for fact in facts]
    yield [_step("rules", "rules", "schema")]
    lints = LINTS.split()[: 20 if quick else None]
    yield [_step("lints", "rules", "check", "--explain", lint) for lint in lints]


def _errors(numbers: Sequence[str]) -> Chain:
    asked = ["advise", *USUAL]
    steps: Chain = [{"write": {f"bad/{name}": text for name, text in BAD.items()}}]
    for one in _list(ERRORS):
        first, *rest = shlex.split(one)
        steps.append(_step("errors", *(asked if first == "A" else [first]), *rest))
    wrong = [(f"--{flag}", value) for flag in NUMBERS for value in numbers]
    return steps + [_step("errors", *asked, *one) for one in wrong]


def _starter(*, quick: bool) -> Chain:
    own = [f"--{kind}=house/{kind}" for kind in ("rules", "templates", "knowledge")]
    mine = ("--gpu", "Example 48 GB card", "--model", "phi-3-medium")
    inside = [["advise", *mine], ["rules", "check", "--quick"], ["templates", "check"]]
    inside += [["knowledge", "check"], ["knowledge", "find", "Example"]]
    diff = _step("overlays", "rules", "diff", "built-in", "--sample", "60", *own)
    batch = _batch("own", "own.yaml", *own, "--formats", "markdown,jsonl")
    batch["write"] = {"own.yaml": "gpus: [Example 48 GB card, RTX 4090]\nmodels: [phi-4, dbrx]\n"}
    return [
        _step("overlays", "init", "house", take=["house"]),
        _step("overlays", "init", "./house"),
        *(_step("overlays", "advise", *mine, *own, "--format", how) for how in FORMATS),
        _step("overlays", "advise", *USUAL, *own, "--why"),
        *(_step("overlays", *argv, at="house") for argv in inside),
        _step("overlays", "models-for", mine[0], mine[1], own[2], "--limit", "9"),
        batch,
        *([] if quick else [_step("overlays", "rules", "test", at="house"), diff]),
    ]


def _measurements() -> Chain:
    known = ("--knowledge", "mine", "--date", "2026-03-31")
    card = ("--gpu", "RTX 4090", "--model", "llama-3-8b", "--precision", "Q4_K_M")
    steps: Chain = [{"write": {"mine/README.md": "Ours.\n"}}]
    for file, how in MEASURED.items():
        add = ("measure", "add", f"measured/{file}")
        steps.append(_step("measure", *add, *known, *how.split()))
        steps.append(_step("measure", *add, "--dry-run", "--format", "json"))
    steps.append(_step("measure", "measure", "list", *known[:2], take=["mine"]))
    steps.append(_step("measure", "measure", "list", *known[:2], "--format", "json"))
    steps += [_step("measure", "advise", *card, *known[:2], *how) for how in ([], ["--why"])]
    return steps
