"""What llama-bench writes: JSON objects, CSV rows and Markdown tables.

Field names as in tools/llama-bench/llama-bench.cpp of ggml-org/llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from advisor.calibration.user.benchmark import Fields, Read, Run, Skipped, iso_date, one_line
from advisor.calibration.user.spelling import backend_of, of_gguf, of_model_type
from advisor.errors import UserError
from advisor.runtimes import llamacpp

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
