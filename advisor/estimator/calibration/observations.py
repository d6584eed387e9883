"""The carried measurements with known names: what is kept, and why the rest is not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import cast, get_args

from msgspec import Struct, field

from advisor.errors import UserError
from advisor.estimator.calibration.dataset import (
    Conditions,
    Row,
    conditions_of,
    name_rows,
    speed_rows,
)
from advisor.estimator.measured_speed import Measurement, Metric
from advisor.knowledge import names
from advisor.knowledge.catalogue import BACKEND_OF_WORD, MAKERS
from advisor.knowledge.index import model_key
from advisor.knowledge.types import Knowledge
from advisor.reading.known import catalogue_gpu
from advisor.runtimes import runtime_of
from advisor.runtimes.llamacpp import FRAMEWORK

_FILE_END = re.compile(r"\.gguf$|[-_]GGUF$", re.IGNORECASE)
_FORMAT_END = re.compile(
    r"[-_.](UD-|i1-)?(I?Q\d\w*|F16|BF16|FP8\w*|MXFP4|AWQ|\d-?bit).*$", re.IGNORECASE
)
_OLLAMA_END = re.compile(r"[:-](latest|instruct|\w*q\d\w*)$")
_RECIPE = re.compile(r"^UD-|_(XL|L|P)$|bpw$|custom|reap|dynamic", re.IGNORECASE)
_DYNAMIC = re.compile(r"\bUD-|[24568]_K_XL\b")
"""Unsloth's dynamic recipes; others' ``_XL`` ends Q3_K alone."""
_BUILD = re.compile(r"\((\d{4,5})\)|^(?:b?)(\d{4,5})$")
_FLASH_BY_ITSELF = "2025-09"
"""From here on llama.cpp uses flash attention where nothing is said (ggml-org/llama.cpp#15434)."""
_LEAST_NAME, _LEAST_PROMPT = 6, 64
_NOT_A_CARD = re.compile(r"cpu|rpc|section|tensorrt", re.IGNORECASE)
_UNSTATED = frozenset({"", "linux", "macos", "windows", "gguf", "mlx", "nvfp4", "mxfp4", "int4"})


class Spelling(Struct):
    """Lookup with a memory."""

    knowledge: Knowledge
    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    found: dict[tuple[str, ...], str | None] = field(default_factory=dict)
    keys: list[tuple[str, str]] = field(default_factory=list)
    exact: set[tuple[str, str]] = field(default_factory=set)
    """Spellings of models that name the model itself."""

    def __post_init__(self) -> None:
        """Index the table and the known model names."""
        for row in name_rows():
            key = f"{row['spelled']}@{row['params_b']}" if row["params_b"] else row["spelled"]
            self.tables.setdefault(row["kind"], {})[key] = row["name"]
        spelled = [
            (text, record.name)
            for record in self.knowledge.models.values()
            for text in (record.name, *record.aliases, (record.hf_id or "").rpartition("/")[2])
            if len(text) >= _LEAST_NAME
        ]
        keyed = {(model_key(text), name) for text, name in spelled}
        self.keys = sorted(keyed, key=lambda pair: (-len(pair[0]), pair))

    def gpu(self, row: Row) -> str | None:
        """Name the card; its memory tells apart boards that share a name."""
        return self._memory(("gpu", row["gpu"], row.get("vram_gb_each", "")), self._gpu)

    def model(self, row: Row) -> str | None:
        """Name the model, or the one it was trained on."""
        return self._memory(("model", row["model"], row.get("params_b", "")), self._model)

    def precision(self, row: Row, framework: str) -> str | None:
        """Name the weight format."""
        text = row["quant"].strip()
        known = self.tables["format"].get(text)
        name = known or (text if text in self.knowledge.formats else None)
        if name == "MXFP4" and runtime_of(self.knowledge.frameworks[framework]).gguf_alone:
            return "MXFP4_MOE"
        return name if name in self.knowledge.formats else None

    def is_exact(self, row: Row) -> bool:
        """Say whether a row names model and format as the knowledge base does.

        A model found inside a longer name was trained on; ``UD``, ``_XL`` and the like are recipes
        of their own.
        """
        return (row["model"], row.get("params_b", "")) in self.exact and not _RECIPE.search(
            row["quant"]
        )

    def framework(self, row: Row) -> str | None:
        """Name the runtime."""
        name = self.tables["framework"].get(row["framework"])
        return name if name in self.knowledge.frameworks else None

    def backend(self, row: Row, gpu: str, framework: str) -> str | None:
        """Name the backend; None for a processor, several machines or one that is not told."""
        text = row["backend"].strip().casefold()
        vendor = self.knowledge.gpus[gpu].vendor
        table = self.tables["backend"]
        known = table.get(f"{framework} {vendor} {text}")
        if known is not None:
            return known
        if text in _UNSTATED:
            return table.get(f"{framework} {vendor}", MAKERS[vendor].backends[0]) or None
        if _NOT_A_CARD.search(text):
            return None
        text = text.removeprefix(f"{FRAMEWORK}-")
        return next((name for word, name in BACKEND_OF_WORD.items() if text.startswith(word)), None)

    def _memory(self, key: tuple[str, ...], find: Callable[[str, str], str | None]) -> str | None:
        if key not in self.found:
            self.found[key] = find(key[1], key[2])
        return self.found[key]

    def _gpu(self, text: str, memory: str) -> str | None:
        known = self.tables["gpu"].get(text)
        if known is not None:
            return known if known in self.knowledge.gpus else None
        if text.startswith("CPU:") or "unstated" in text or "+" in text:
            return None
        plain = self._try(catalogue_gpu, text)
        sized = f"{text}:{round(float(memory))}GB" if memory else text
        return plain or self._try(catalogue_gpu, sized)

    def _model(self, text: str, params: str) -> str | None:
        table: Mapping[str, str] = self.tables["model"]
        for key in (f"{text}@{params}", text):
            if key in table:
                self.exact.add((text, params))
                return table[key] or None
        short = _FILE_END.sub("", text.rpartition("/")[2])
        bare = _FORMAT_END.sub("", short)
        for attempt in (text, short, bare, _OLLAMA_END.sub("", text)):
            name = self._try(names.find_model, attempt)
            if name:
                self.exact.add((text, params))
                return name
        key = model_key(bare)
        return next((name for known, name in self.keys if known in key), None)

    def _try(self, find: Callable[[Knowledge, str], object], text: str) -> str | None:
        try:
            return str(getattr(find(self.knowledge, text), "name", "")) or None
        except UserError:
            return None


_REPOSITORY = re.compile(r"(?:github:|https://github\.com/)([\w.-]+/[\w.-]+)")
_SHARED_RUN = re.compile(r"data/community/([\w.-]+)/")
_THREAD = re.compile(r"/(?:pull|issues|discussions)/\d+ \(([\w-]+)")
_USER = re.compile(r"user=([\w.-]+)")
_MACHINE = re.compile(r"\bmachine=([\w-]+)")
_RAW_OUTPUT = frozenset({
    "XiongjieDai/GPU-Benchmarks-on-LLM-Inference", "kyuz0/amd-strix-halo-toolboxes",
    "lhl/strix-halo-testing", "1337hero/rx7900xtx-llama-bench-vulcan", "PrismML-Eng/Bonsai-demo",
    "ghost91-/llama-bench", "LottoLottoLotto/4x3090-llm-benchmarks", "ggml-org/llama.cpp",
    "msb-msb/insiderllm-bench-results", "GoodOlClint/homelab", "notwitcheer/llm-bench-rig",
    "kyuz0/amd-r9700-ai-toolboxes", "hogeheer499-commits/strix-halo-guide", "jiegec/kb",
    "Memoriant/dgx-spark-kv-cache-benchmark",
})  # fmt: skip
"""Sources that show what a tool printed; the others report figures or are filled in by hand."""
_SELF_REPORTED = (
    "localmaxxing", "AlexsJones/", "albedan/", "dambergn/", "gparemsky/", "AlexHiesch/",
)  # fmt: skip


class Observation(Struct, frozen=True):
    """One usable row."""

    row: str
    """The row's id in the carried file."""
    measured: Measurement
    conditions: Conditions
    stated_bytes: float | None
    """Size of the weights as the row gives it."""
    source: str
    """The machine or person behind it."""
    raw: bool
    """Raw output of a tool."""
    self_reported: bool
    exact: bool
    """The row names this very model and format, not a relative of the same shape."""
    dynamic: bool
    """Its file follows a dynamic recipe."""

    @property
    def flash(self) -> bool:
        """Whether it ran with flash attention."""
        stated = self.conditions.flash
        return self.measured.date >= _FLASH_BY_ITSELF if stated is None else stated

    @property
    def build(self) -> int:
        """llama.cpp's build number, 0 where a version has none."""
        found = _BUILD.search(self.measured.framework_version)
        return int(found.group(1) or found.group(2)) if found else 0

    @property
    def prompts_between(self) -> float:
        """Prompt tokens of other streams that were read for each token written."""
        measured = self.measured
        if measured.batch == 1 or not self.conditions.prompts_between:
            return 0.0
        return (measured.prompt_tokens or 0) / (measured.gen_tokens or 1)

    def unfit(self, metric: str) -> str:
        """Say why nothing of this kind is to be learnt from it, if so."""
        if self.conditions.moved:
            return "weights or cache in system RAM in a share that is not stated"
        if metric == "prefill" and (self.measured.prompt_tokens or 0) < _LEAST_PROMPT:
            return f"a prompt of fewer than {_LEAST_PROMPT} tokens, or of unstated length"
        if self.measured.metric == "total_throughput_tok_s" and self.measured.batch == 1:
            return "prompt and answer together over the whole time"
        return ""

    def size_ratio(self, text_bytes: int) -> float | None:
        """Give the stated size of the weights over ours; None where no tool printed it."""
        return self.stated_bytes / text_bytes if self.raw and self.stated_bytes else None


class Observations(Struct, frozen=True):
    """All usable rows, and how many were dropped for what reason."""

    kept: Sequence[Observation]
    dropped: Mapping[str, int]


def observations(knowledge: Knowledge, rows: Sequence[Row] | None = None) -> Observations:
    """Name and filter rows, the carried ones where none are given."""
    spelling = Spelling(knowledge)
    kept: list[Observation] = []
    dropped: Counter[str] = Counter()
    for row in speed_rows() if rows is None else rows:
        conditions = conditions_of(row)
        found = _observation(row, conditions, spelling)
        if isinstance(found, str):
            dropped[found] += 1
        else:
            kept.append(found)
    return Observations(kept, dict(sorted(dropped.items(), key=lambda item: (-item[1], item[0]))))


def _observation(row: Row, conditions: Conditions, spelling: Spelling) -> Observation | str:
    reason = _unusable(row, conditions)
    if reason:
        return reason
    gpu, model, framework = spelling.gpu(row), spelling.model(row), spelling.framework(row)
    if gpu is None:
        return "the card is not in the knowledge base, or several unlike cards share the work"
    if framework is None:
        return "the program is not in the knowledge base, or is a fork of one"
    if model is None:
        return "the model is not in the knowledge base"
    precision = spelling.precision(row, framework)
    if precision is None:
        return "the weight format is not stated or not in the knowledge base"
    if precision in {"FP16", "BF16"} and model.startswith("gpt-oss"):
        if not row["weights_gib"]:
            return "GPT-OSS in 16 bits with no size stated: what is not in experts is in 8 or in 16"
        precision = "MXFP4_MOE"  # its files keep the experts in MXFP4 whatever the label says
    backend = spelling.backend(row, gpu, framework)
    if backend is None:
        return "no single known backend"
    measured = _measurement(row, conditions, (gpu, model, precision, framework, backend))
    weights = row["weights_gib"]
    source = source_of(row)
    return Observation(
        row["id"],
        measured,
        conditions,
        float(weights) * 2**30 if weights else None,
        source,
        raw=any(source.startswith(name) for name in _RAW_OUTPUT),
        self_reported=source.startswith(_SELF_REPORTED),
        exact=spelling.is_exact(row),
        dynamic=bool(_DYNAMIC.search(f"{row['quant']} {row['model']}")),
    )


_CAUTIONS = {
    "client-side prefill": "prompt speed computed by the client from the time to the first token",
    "implied": "more than 103 % of the card's bandwidth: wrong label or undeclared speculation",
    "prompt counted": "a speed that falls as the prompt grows: its time is in it",
}


def _unusable(row: Row, conditions: Conditions) -> str:
    for start, reason in _CAUTIONS.items():
        if row["caution"].startswith(start):
            return reason
    if row["caution"]:
        return "a card on a single-board computer: its host sets the pace"
    if conditions.processor:
        return "computed on a processor"
    if conditions.speculates:
        return "speculative decoding"
    if conditions.cache is None:
        return "a cache type that is not in the knowledge base"
    if conditions.several_devices or conditions.instances > 1 or conditions.pipelines > 1:
        return "several instances or pipelines, or more cards than the row counts"
    if conditions.bench_depth == -1:
        return "the quoted benchmark command is cut short, so its depth is unknown"
    if not row["batch"] or float(row["value"] or 0) <= 0:
        return "no batch or no speed is stated"
    return ""


def source_of(row: Row) -> str:
    """Name the machine or person a row comes from, as finely as the row tells."""
    text = row["source"]
    if text.startswith("localmaxxing"):
        user = _USER.search(row["note"])
        return f"localmaxxing.com: {user.group(1) if user else 'anonymous'}"
    repository = _REPOSITORY.search(text)
    name = repository.group(1) if repository else text.partition(" ")[0]
    shared = _SHARED_RUN.search(text) or _THREAD.search(text) or _MACHINE.search(row["note"])
    return f"{name}: {shared.group(1)}" if shared else name


def _measurement(
    row: Row, conditions: Conditions, names: tuple[str, str, str, str, str]
) -> Measurement:
    gpu, model, precision, framework, backend = names
    depth = _whole(row["context_depth"])
    return Measurement(
        gpu=gpu,
        gpus=int(row["n_gpu"] or 1),
        model=model,
        precision=precision,
        framework=framework,
        framework_version=row["framework_version"],
        backend=backend,
        prompt_tokens=_whole(row["prompt_tokens"]),
        gen_tokens=_whole(row["gen_tokens"]),
        depth_tokens=depth if conditions.bench_depth is None else conditions.bench_depth,
        batch=int(row["batch"]),
        metric=_metric(row["metric"]),
        tok_s=float(row["value"]),
        stdev=float(row["stdev"]) if row["stdev"] else None,
        date=_date(row["date"]),
        source=row["source"],
        note=row["note"],
    )


def _metric(text: str) -> Metric:
    found = next((metric for metric in get_args(Metric) if metric == text), None)
    assert found, text
    return cast("Metric", found)


def _whole(text: str) -> int | None:
    return round(float(text)) if text else None


def _date(text: str) -> str:
    """Write every date as ISO, the end of a span where one is given."""
    digits = text.replace("-", "")
    if re.fullmatch(r"20\d\d-20\d\d", text):
        return text[5:]
    if re.fullmatch(r"20\d{6}", digits):
        return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"
    return text
