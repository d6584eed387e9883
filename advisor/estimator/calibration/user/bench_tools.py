"""What benchmark tools write: llama-bench, and the serving benchmarks of vLLM and SGLang.

Field names as in tools/llama-bench/llama-bench.cpp of ggml-org/llama.cpp, vllm/benchmarks/serve.py,
throughput.py and latency.py of vllm-project/vllm, and python/sglang/bench_serving.py of
sgl-project/sglang. Time to first token is not taken: it holds queueing, and a prefix cache may have
answered.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from advisor.errors import UserError
from advisor.estimator.calibration.user.benchmark import (
    Fields,
    Read,
    Run,
    Skipped,
    backend_of,
    iso_date,
    of_gguf,
    of_hub,
    of_model_type,
    one_line,
)
from advisor.runtimes import llamacpp, vllm
from advisor.runtimes.server import SGLANG

_COLUMNS = {
    "model": "model_type", "size": "model_size", "params": "model_n_params", "backend": "backends",
    "ngl": "n_gpu_layers", "sm": "split_mode", "threads": "n_threads", "nkvo": "no_kv_offload",
    "fa": "flash_attn", "embd": "embeddings", "dev": "devices", "ts": "tensor_split",
    "ot": "tensor_buft_overrides",
}  # fmt: skip
_TEST = re.compile(r"(?:pp ?(\d+))?(?:(?<=\d)\+)?(?:tg ?(\d+))?(?: ?@ ?d ?(\d+))?")
_UNITS = {"B": 1e9, "M": 1e6, "K": 1e3, "T": 1e12, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10}
_DEVICES = (
    re.compile(r"Device \d+: ([^,|]+),"),
    re.compile(r"ggml_vulkan: \d+ = (.+?)(?: \([^()]*\))? \|"),
    re.compile(r"(?:picking default device|GPU name): *(Apple [^\n(]+)"),
)
_BUILD = re.compile(r"^build: ([0-9a-f]+) \((\d+)\)", re.MULTILINE)


def is_llama_bench(keys: Sequence[str]) -> bool:
    """Whether an object or a CSV with these fields comes from llama-bench."""
    return "avg_ts" in keys or {"n_prompt", "n_gen"} <= set(keys)


def read_row(row: Fields) -> Read:
    """Read one JSON object or CSV row."""
    try:
        return _useless(row) or _run(row)
    except UserError as error:
        return error


def _useless(row: Fields) -> Skipped | None:
    prompt, gen = row.count("n_prompt") or 0, row.count("n_gen") or 0
    backend, remote = backend_of(row.text("backends"))
    overrides = row.text("tensor_buft_overrides")
    caches = {row.text("type_k") or "f16", row.text("type_v") or "f16"}
    reasons = {
        f"pp{prompt}+tg{gen} is one figure of reading and writing together": prompt and gen,
        "it measures embeddings, not text": row.flag("embeddings"),
        "it ran on the CPU": row.said("backends") and not backend and not remote,
        "part of it ran on another machine (RPC)": remote,
        "no layer was on the card": row.layers("n_gpu_layers") == 0,
        "experts were in system RAM, and how many is not stored": row.count("n_cpu_moe"),
        "tensors were placed by hand": overrides not in {"", "none"},
        "the KV cache was in system RAM": row.flag("no_kv_offload"),
        f"the KV cache was {' and '.join(sorted(caches))}; figures are kept for f16": (
            caches != {"f16"}
        ),
    }
    return next((Skipped(row.line, reason) for reason, holds in reasons.items() if holds), None)


def _run(row: Fields) -> Read:
    prompt, gen = row.count("n_prompt") or 0, row.count("n_gen") or 0
    if not prompt and not gen:
        raise row.error("neither n_prompt nor n_gen is above 0")
    cards = _cards(row)
    if len(set(cards)) > 1:
        return Skipped(row.line, f"different cards worked together ({', '.join(cards)})")
    if len(cards) > 1 and row.text("split_mode") not in {"", "layer"}:
        return Skipped(row.line, f"split mode {row.text('split_mode')} is not estimated here")
    models, precision = of_gguf(row.text("model_filename"))
    precisions = (precision, of_model_type(row.text("model_type")))
    return Run(
        line=row.line,
        metric="decode_tok_s" if gen else "prefill_tok_s",
        tok_s=row.speed("avg_ts"),
        stdev=row.spread("stddev_ts"),
        gpu=cards[0] if cards else "",
        gpus=len(cards) or None,
        gpu_layers=row.layers("n_gpu_layers"),
        models=models if row.said("model_filename") else (),
        precisions=tuple(dict.fromkeys(p for p in precisions if p)),
        framework=llamacpp.FRAMEWORK,
        framework_version=_build(row),
        backend=backend_of(row.text("backends"))[0],
        prompt_tokens=prompt,
        gen_tokens=gen,
        depth_tokens=row.count("n_depth") or 0,
        batch=1,
        date=iso_date(row.text("test_time")),
        note=_note(row),
        architecture=row.text("model_type").partition(" ")[0],
        parameters=row.number("model_n_params"),
        file_bytes=row.number("model_size"),
    )


def _cards(row: Fields) -> list[str]:
    """Name the cards that took part, one name for each."""
    known = [name.strip() for name in row.text("gpu_info").split(",") if name.strip()]
    if len(known) <= 1:
        return known
    devices = [d for d in row.text("devices").split("/") if d not in {"", "auto"}]
    places = [int(found.group()) for d in devices if (found := re.search(r"\d+$", d))]
    shares = [float(s) for s in re.findall(r"[\d.]+", row.text("tensor_split")) if _is_number(s)]
    if not places and row.text("split_mode") == "none":
        places = [row.count("main_gpu") or 0]
    elif not places and any(shares):
        places = [place for place, share in enumerate(shares) if share]
    return [known[p] for p in places if p < len(known)] or known


def _is_number(text: str) -> bool:
    return text.count(".") <= 1 and text != "."


def _build(row: Fields) -> str:
    number, commit = row.text("build_number"), row.text("build_commit")
    return f"b{number} ({commit})" if number and commit else commit or number


def _note(row: Fields) -> str:
    """Keep the settings that move the speed."""
    kept = ("n_gpu_layers", "flash_attn", "n_batch", "n_ubatch", "n_threads")
    return "; ".join(f"{key}={one_line(str(row.values[key]))}" for key in kept if row.said(key))


def read_markdown(text: str, file: str) -> Iterator[Read]:
    """Read every table of a Markdown text; the card may stand in log lines around them."""
    devices = [name.strip() for pattern in _DEVICES for name in pattern.findall(text)]
    build = _BUILD.search(text)
    around: dict[str, object] = {"gpu_info": ", ".join(devices)}
    if build:
        around |= {"build_commit": build.group(1), "build_number": build.group(2)}
    header: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.strip().startswith("|"):
            continue
        if "t/s" in cells and "test" in cells:
            header = cells
        elif header and not set(line) <= set("|-: \t"):
            yield _table_row(header, cells, around, Fields({}, file, number))


def _table_row(
    header: Sequence[str], cells: Sequence[str], around: dict[str, object], place: Fields
) -> Read:
    if len(cells) != len(header):
        return place.error(f"the row has {len(cells)} cells, the table {len(header)} columns")
    cell = dict(zip(header, cells, strict=True))
    values = around | {_COLUMNS.get(name, name): text for name, text in cell.items()}
    test = _TEST.fullmatch(cell["test"])
    if not test or not any(test.groups()[:2]):
        return place.error(f"test is '{cell['test']}'", "llama-bench writes pp512, tg128 ...")
    speed, _, spread = cell["t/s"].replace("+-", "±").partition("±")
    values |= {
        "n_prompt": test.group(1) or 0,
        "n_gen": test.group(2) or 0,
        "n_depth": test.group(3) or 0,
        "avg_ts": speed.strip(),
        "stddev_ts": spread.strip(),
        "model_size": _scaled(cell.get("size", "")),
        "model_n_params": _scaled(cell.get("params", "")),
    }
    return read_row(Fields(values, place.file, place.line, {"avg_ts": "t/s", "stddev_ts": "t/s"}))


def _scaled(text: str) -> float | None:
    number, _, unit = text.partition(" ")
    try:
        return float(number) * _UNITS[unit.strip()]
    except (ValueError, KeyError):
        return None


_DTYPES = {"bfloat16": "BF16", "float16": "FP16", "half": "FP16"}


def is_serving(keys: Sequence[str]) -> bool:
    """Whether an object with these fields is the result of a serving benchmark."""
    return "output_throughput" in keys or "mean_tpot_ms" in keys


def is_offline(keys: Sequence[str]) -> bool:
    """Whether it is the result of ``vllm bench throughput`` or ``vllm bench latency``."""
    return "avg_latency" in keys or {"tokens_per_second", "elapsed_time"} <= set(keys)


def read_serving(row: Fields) -> Iterator[Read]:
    """Read one serving run: the speed of one stream, and all generated tokens per second."""
    try:
        yield from _serving(row)
    except UserError as error:
        yield error


def _serving(row: Fields) -> Iterator[Read]:
    if not row.count("completed"):
        raise row.error("no request was completed")
    if row.said("accept_length"):
        yield Skipped(row.line, "a draft model took part; such figures are not kept")
        return
    total = replace(_setup(row), tok_s=row.speed("output_throughput"))
    tpot = row.number("mean_tpot_ms")
    if tpot:
        tok_s = 1e3 / row.speed("mean_tpot_ms")
        spread = row.spread("std_tpot_ms")
        stdev = None if spread is None else tok_s * spread / tpot
        yield replace(total, metric="decode_tok_s", tok_s=tok_s, stdev=stdev)
    yield total


def _setup(row: Fields) -> Run:
    requests = row.count("completed") or 1
    prompt = round((row.count("total_input_tokens") or 0) / requests)
    server = _server(row)
    models, precision = of_hub(row.text("model_id") or server.text("model_path"))
    stored = of_hub(f"-{server.text('quantization')}")[1] or _DTYPES.get(server.text("dtype"), "")
    engine = _engine(row)
    return Run(
        line=row.line,
        metric="total_throughput_tok_s",
        tok_s=0.0,
        gpus=server.count("tp_size"),
        models=models,
        precisions=tuple(p for p in (precision, stored) if p)[:1],
        framework=engine,
        usual_framework=engine or vllm.FRAMEWORK,
        framework_version=server.text("version"),
        prompt_tokens=prompt,
        gen_tokens=round((row.count("total_output_tokens") or 0) / requests),
        depth_tokens=prompt,
        batch=_streams(row),
        date=iso_date(row.text("date")),
        note=_server_note(row),
    )


def _server(row: Fields) -> Fields:
    """Give what SGLang adds about its server; empty without it."""
    found = row.values.get("server_info")
    known = {str(k): v for k, v in found.items()} if isinstance(found, Mapping) else {}
    return Fields(known, row.file, row.line)


def _engine(row: Fields) -> str:
    """Name the engine that was asked; an OpenAI interface may hide any, mostly vLLM."""
    backend = row.text("backend").casefold()
    known = (SGLANG, vllm.FRAMEWORK)
    return next((name for name in known if backend.startswith(name.casefold())), "")


def _streams(row: Fields) -> int | None:
    """Count the streams at once; None where requests came at a rate or without a limit."""
    most = row.count("max_concurrency")
    if not most:
        return None
    rate = row.values.get("request_rate", "inf")
    endless = rate == "inf" or (isinstance(rate, float) and math.isinf(rate))
    if not endless and most > 1:
        return None
    return min(most, row.count("num_prompts") or most, row.count("completed") or most)


def _server_note(row: Fields) -> str:
    kept = ("backend", "dataset_name", "request_rate", "max_concurrency", "num_prompts", "failed")
    return "; ".join(f"{key}={row.text(key)}" for key in kept if row.said(key))


def read_offline(row: Fields) -> Read:
    """Read a throughput or latency run; model, lengths and streams are not in its file."""
    try:
        if "avg_latency" in row.values:
            run = Run(
                line=row.line,
                metric="total_throughput_tok_s",
                tok_s=1 / row.speed("avg_latency"),
                per="batch",
            )
        else:
            run = Run(
                line=row.line,
                metric="total_throughput_tok_s",
                tok_s=row.speed("tokens_per_second"),
                per="prompts too",
            )
    except UserError as error:
        return error
    return replace(run, framework=vllm.FRAMEWORK, usual_framework=vllm.FRAMEWORK)
