"""What vLLM and SGLang benchmarks write: one JSON object per run.

Field names as in vllm/benchmarks/serve.py, throughput.py and latency.py of vllm-project/vllm and
python/sglang/bench_serving.py of sgl-project/sglang. Time to first token is not taken: it holds
queueing, and a prefix cache may have answered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from advisor.calibration.user.benchmark import Fields, Read, Run, Skipped, iso_date
from advisor.calibration.user.spelling import of_hub
from advisor.errors import UserError
from advisor.runtimes import sglang, vllm

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
        note=_note(row),
    )


def _server(row: Fields) -> Fields:
    """Give what SGLang adds about its server; empty without it."""
    found = row.values.get("server_info")
    known = {str(k): v for k, v in found.items()} if isinstance(found, Mapping) else {}
    return Fields(known, row.file, row.line)


def _engine(row: Fields) -> str:
    """Name the engine that was asked; an OpenAI interface may hide any, mostly vLLM."""
    backend = row.text("backend").casefold()
    known = (sglang.FRAMEWORK, vllm.FRAMEWORK)
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


def _note(row: Fields) -> str:
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
