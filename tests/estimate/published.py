"""Published memory figures (tests/data/memory.csv.gz) against the estimator.

``exclusion`` says of every row why it cannot be compared, or nothing. What is left names a model, a
format and a context that ``advisor.knowledge.names`` knows, on one card. The rules were written
with the errors in view, so each goes by what a row states, never by how far off it is. A figure is
compared with the same quantity: what PyTorch allocated and what a log lists by buffer leave the
runtime's own memory out, a reading of the whole card includes it.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from advisor.errors import UserError
from advisor.estimator import estimate_memory
from advisor.knowledge import load_knowledge, names
from advisor.knowledge.types import Knowledge
from advisor.reading.known import catalogue_gpu
from advisor.scenario import Scenario
from advisor.scenario.figures import Memory
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from advisor.units import GIB

KNOWLEDGE = load_knowledge()
DATA = Path(__file__).parents[1] / "data" / "memory.csv.gz"
OUTLIER = 0.20
SMALLEST_GIB, LARGEST_GIB = 0.1, 1000.0
MOST_SEQUENCES = 64
REPEATS = 3
FULL_SHARE = 0.97
LEANEST = 0.9
"""Of the weights of a format: a reading below that cannot hold all of them."""
SHALLOW = 65
"""Fewer layers than this on the card may leave some in RAM; 99 and 999 mean all."""
POOLS = frozenset({"vllm", "sglang", "nvidia tensorrt-llm", "optimum nvidia", "deepspeed"})
BUFFERS = ("weights", "kv_cache", "compute_buffer")

Row = Mapping[str, str]

MODELS = {
    "Meta-Llama-3-8.03B": "Meta-Llama-3-8B",
    "LLaMA-33B": "llama-30b",
    "Llama 33B": "llama-30b",
    "RedHatAI/Qwen3-14B-FP8-dynamic": "Qwen3-14B",
    "meta-llama/Meta-Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "cpatonn/Qwen3-Coder-30B-A3B-Instruct-GPTQ-4bit": "Qwen3-Coder-30B-A3B-Instruct",
}
"""Spellings that name a model we know under another name: same tensors, checked by hand."""
MISTAKEN = frozenset({"Qwen/Qwen-1.8B-Chat"})
"""Names that the catalogue finds although it means another model (here Qwen1.5)."""
FORMATS = {
    "GPTQ-Int4": "GPTQ 4-bit",
    "GPTQ-Int8": "GPTQ 8-bit",
    "GPTQ": "GPTQ 4-bit",
    "AWQ-INT4": "AWQ 4-bit",
    "AWQ": "AWQ 4-bit",
    "GPTQ 4bit g128": "GPTQ 4-bit",
    "GPTQ 3bit g128": "GPTQ 3-bit",
    "GPTQ-INT4 g128": "GPTQ 4-bit",
    "GPTQ-INT4 g128 act": "GPTQ 4-bit",
    "FP16 16bit": "FP16",
}
FRAMEWORKS = {"GPTQ-for-LLaMa": "transformers", "transformers (pytorch)": "transformers"}
"""Programs that run the model classes of transformers with other linear layers, or as they are."""
CARDS = {"NVIDIA A100 80GB": "A100 SXM4 80 GB"}
"""The PCIe and the SXM card differ in speed only."""
CACHES = {"q8": "exl-q8", "fp16": "f16", "bf16": "bf16", "": "f16", "auto": "f16", "default": "f16"}
KINDS = {
    "QwenLM/Qwen3@a912d23": "transformers, Qwen2.5",
    "QwenLM/Qwen3@7a2f61f": "transformers, Qwen3",
    "qwopqwop200/": "transformers, LLaMA",
    "premAI-io/": "transformers, whole card",
    "XiongjieDai/": "llama.cpp, buffers",
    "kyuz0/": "vLLM, load log",
    "turboderp/": "ExLlama, allocated",
    "LottoLottoLotto/": "ExLlamaV3, whole card",
    "localmaxxing": "llama.cpp, self-reported",
}
ALLOCATED = ("QwenLM/", "qwopqwop200/", "turboderp/", "XiongjieDai/", "kyuz0/")
"""Sources that count buffers, not what the driver reports."""
DESIGN = "transformers, Qwen2.5"
"""The activations were read off these rows; they are not evidence for them."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One published figure and ours; GiB."""

    ids: str
    kind: str
    component: str
    card: str
    scenario: Scenario
    published: float
    estimate: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Ours over the published figure, less one."""
        return self.estimate / self.published - 1

    @property
    def covered(self) -> bool:
        """Whether our range holds the figure, 1 % for rounding and units allowed."""
        return self.low * 0.99 <= self.published <= self.high * 1.01

    def said(self, usable: float) -> str:
        """What is said of so much usable memory, GiB: see ``certainty_of``."""
        if self.high <= usable:
            return "sure"
        if self.estimate <= usable:
            return "may_exceed"
        return "may_fit" if self.low <= usable else "beyond"


STEPS = tuple(percent / 100 for percent in range(75, 130, 5))
"""Memories that a published need is held against, as shares of it; it fits from 1 on."""


def certainties(items: Iterable[Comparison]) -> Counter[tuple[str, bool]]:
    """Count what is said of memories near each published need, and whether it fits there."""
    return Counter(
        (item.said(item.published * share), share >= 1) for item in items for share in STEPS
    )


@cache
def published() -> tuple[Row, ...]:
    """All rows of the file."""
    with gzip.open(DATA, "rt", encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def noted(row: Row, key: str) -> str:
    """Read ``key=value`` from a row's note."""
    found = re.search(rf"\b{key}=([^;]*)", row["note"])
    return found[1].strip() if found else ""


def kind_of(row: Row) -> str:
    return next((kind for part, kind in KINDS.items() if part in row["source"]), "")


def model_name(row: Row) -> str:
    exl = re.sub(r"-exl3-[\w.-]+$", "", row["model"])
    return MODELS.get(row["model"], exl)


def format_name(row: Row) -> str:
    exl = re.match(r"exl3-(\d\.\d)bpw", row["quant"])
    return f"EXL3 {exl[1]}bpw" if exl else FORMATS.get(row["quant"], row["quant"])


def _known(find: Callable[[Knowledge, str], object], text: str) -> bool:
    try:
        find(KNOWLEDGE, text)
    except UserError:
        return False
    return True


@cache
def _repeated() -> Counter[tuple[str, ...]]:
    """How many contexts one person gave the very same figure for."""
    contexts: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in published():
        contexts[_same(row)].add(row["context"])
    return Counter({key: len(found) for key, found in contexts.items()})


def _same(row: Row) -> tuple[str, ...]:
    return (noted(row, "user"), row["gpu"], row["model"], row["quant"], row["value_gib"])


def exclusion(row: Row) -> str:
    """Say why a row cannot be compared; empty: it can."""
    return _by_source(row) or _by_setup(row) or _by_name(row) or _by_value(row)


def _by_source(row: Row) -> str:
    source, framework = row["source"], row["framework"].casefold()
    if row["component"] == "cuda_overhead":
        return "graph captures of vLLM: the range of the policy is made of these rows"
    if "AlexHiesch/" in source:
        return "memory of a process on unified memory: mapped files and other pages count or do not"
    if row["component"] == "peak" and framework in POOLS:
        return "a pool claimed in advance: the share of the card, not the need"
    if "premAI-io/" in source and row["quant"] in {"INT4", "INT8"}:
        return "a width without its format"
    return ""


def _by_setup(row: Row) -> str:
    if row["gpu"].startswith("CPU"):
        return "computed on a processor"
    if int(row["n_gpu"] or 1) > 1 or "+" in row["gpu"]:
        return "several cards: sums with pipeline copies, or replicas"
    if "exps=CPU" in row["note"] or "-ot" in row["note"]:
        return "experts in system RAM"
    if not row["context"]:
        return "no context stated"
    if row["batch"] and float(row["batch"]) > MOST_SEQUENCES:
        return "the batch is llama.cpp's batch size, not a number of sequences"
    if noted(row, "spec") == "yes":
        return "speculative decoding with a draft that is not named"
    if _split(row):
        return "part of the layers in system RAM"
    return ""


def _split(row: Row) -> bool:
    placed, _, all_layers = row["offloaded_layers"].partition("/")
    if all_layers:
        return placed != all_layers
    return placed.isdigit() and int(placed) < SHALLOW


def _by_name(row: Row) -> str:
    if row["model"] in MISTAKEN or not _known(names.find_model, model_name(row)):
        return "a model we do not know by this name"
    if not _known(names.find_format_candidates, format_name(row)):
        return "a weight format we do not know"
    framework = FRAMEWORKS.get(row["framework"], row["framework"])
    if not _known(names.find_framework, framework):
        return "a program we do not model"
    if row["kv_dtype"].startswith("turbo"):
        return "a type of the cache that forks alone have"
    if not kind_of(row):
        return "a source nobody has read"
    on_card = not any(part in row["source"] for part in ALLOCATED)
    if on_card and not _known(catalogue_gpu, CARDS.get(row["gpu"], row["gpu"])):
        return "a card that is unknown or sold in several sizes"
    return ""


def _by_value(row: Row) -> str:
    value = float(row["value_gib"])
    if row["component"] == "peak" and not SMALLEST_GIB <= value <= LARGEST_GIB:
        return "a broken figure"
    if noted(row, "user") and _repeated()[_same(row)] >= REPEATS:
        return "one figure repeated for three or more contexts"
    if "localmaxxing" in row["source"]:
        card = catalogue_gpu(KNOWLEDGE, row["gpu"])
        if card.vram_bytes and value * GIB >= FULL_SHARE * card.vram_bytes:
            return "as much as the card holds, or more: what spilled is not in it"
    if row["component"] == "peak" and _comparable(row) and value < _weights_gib(row):
        return "less than the weights alone: part of them lies elsewhere"
    if row["component"] == "kv_cache" and "kyuz0/" in row["source"] and "gpt-oss" in row["model"]:
        return "tokens of a pool whose layers keep different lengths"
    return "" if _comparable(row) else "refused by the estimator"


def _weights_gib(row: Row) -> float:
    return _sized(row)[1].weights_bytes * LEANEST / GIB


def _comparable(row: Row) -> bool:
    try:
        _sized(row)
    except UserError:
        return False
    return True


def request_of(row: Row) -> Request:
    """Write the request a row describes."""
    cards = not any(part in row["source"] for part in ALLOCATED)
    context = row["context"]
    if tokens := re.search(r"KV pool for ([\d,]+) tokens", row["note"]):
        context = tokens[1].replace(",", "")
    notebooks = "XiongjieDai/" in row["source"]
    cache_type = CACHES.get(row["kv_dtype"], row["kv_dtype"])
    flash = {"True": True, "False": False}.get(noted(row, "fa"))
    return Request(
        gpu=CARDS.get(row["gpu"], row["gpu"]) if cards else None,
        model=model_name(row),
        precision=format_name(row),
        context=int(float(context)),
        batch=int(float(row["batch"] or 1)),
        framework=FRAMEWORKS.get(row["framework"], row["framework"]),
        kv_cache=None if row["kv_dtype"] == "bf16" else cache_type,
        flash_attention=False if notebooks else flash,
        logits_rows=512 if notebooks else None,
        text_only=True if _without_tower(row) else None,
    )


def _without_tower(row: Row) -> bool:
    """Whether images were left out: llama.cpp reads a tower where a command says ``--mmproj``.

    It also comes with ``-hf``; ``llama-bench`` knows neither.
    """
    said = row["note"].replace("=", " ").split()
    return row["framework"] == "llama.cpp" and not {"--mmproj", "-mm", "-hf", "-hfr"} & {*said}


def _sized(row: Row) -> tuple[Scenario, Memory]:
    scenario = resolve(request_of(row), KNOWLEDGE)
    return scenario, estimate_memory(scenario, KNOWLEDGE)


@cache
def comparisons() -> tuple[Comparison, ...]:
    """Every comparable row, and the sums of rows that list one run by buffer."""
    kept = [row for row in published() if not exclusion(row)]
    found = [_compared(row) for row in kept]
    runs: dict[str, list[Row]] = defaultdict(list)
    for row in kept:
        if kind_of(row) == "llama.cpp, buffers":
            runs[row["source"]].append(row)
    return (*found, *(_total(run) for run in runs.values() if len(run) == len(BUFFERS)))


def _compared(row: Row) -> Comparison:
    scenario, memory = _sized(row)
    part = row["component"]
    sizes = (memory.required_bytes, memory.low_bytes, memory.high_bytes)
    if part in BUFFERS:
        sizes = (getattr(memory, f"{part}_bytes"),) * 3
    return _comparison([row], part, scenario, sizes)


def _total(run: Sequence[Row]) -> Comparison:
    scenario, memory = _sized(run[0])
    sizes = (memory.required_bytes, memory.low_bytes, memory.high_bytes)
    return _comparison(run, "total", scenario, sizes)


def _comparison(
    run: Sequence[Row], component: str, scenario: Scenario, sizes: tuple[int, int, int]
) -> Comparison:
    first = run[0]
    return Comparison(
        ids=first["id"] if len(run) == 1 else f"{first['id']} to {run[-1]['id']}",
        kind=kind_of(first),
        component=component,
        card=first["gpu"],
        scenario=scenario,
        published=sum(float(row["value_gib"]) for row in run),
        estimate=sizes[0] / GIB,
        low=sizes[1] / GIB,
        high=sizes[2] / GIB,
    )


def totals() -> tuple[Comparison, ...]:
    """What a whole run took: peaks, and sums of all buffers."""
    return tuple(item for item in comparisons() if item.component in {"peak", "total"})


def held_out() -> tuple[Comparison, ...]:
    """Totals that share neither a model nor a card with those the activations were made on."""
    design = [item for item in totals() if item.kind == DESIGN]
    models = {item.scenario.model.name for item in design}
    return tuple(
        item
        for item in totals()
        if item.scenario.model.name not in models and "A100" not in item.card
    )


def median_error(items: Iterable[Comparison]) -> float:
    return median(abs(item.error) for item in items)


def share_within(items: Sequence[Comparison], limit: float) -> float:
    return sum(abs(item.error) <= limit for item in items) / len(items)


def coverage(items: Sequence[Comparison]) -> float:
    return sum(item.covered for item in items) / len(items)


def reason(item: Comparison) -> str:
    """Explain a figure that is off by more than 20 %; empty where nobody has."""
    if item.ids in EXPLAINED:
        return EXPLAINED[item.ids]
    if item.kind == "transformers, Qwen3" and item.error > 0:
        return PIECES
    if item.kind == DESIGN and item.scenario.precision.family == "awq" and item.error < 0:
        return TWICE
    return ""


PIECES = (
    "The publication shows 0.03 to 0.6 GiB beyond weights and cache whatever the prompt. It does "
    "not say why; computing the prompt in pieces, or reading it afterwards, would look so. "
    "Ours computes it at once; the range allows for either."
)
TWICE = (
    "With a prompt of one token the peak exceeds weights and cache by about the size of the input "
    "matrix, with longer prompts it does not. That fits a tied matrix held twice while the model "
    "loads; nobody says so."
)
EXPLAINED = {
    "M00418": (
        "The same person gives 5.6 GiB for the same model, format and context on another card "
        "(M00241). What made the difference is not stated."
    ),
}


def outliers() -> tuple[Comparison, ...]:
    """Everything that is off by more than 20 %."""
    return tuple(item for item in comparisons() if abs(item.error) > OUTLIER)
