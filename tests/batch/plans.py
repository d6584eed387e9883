"""Small plans, and what a run of one leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

TINY = """\
gpus: [RTX 4090, RTX 3060 12GB]
models: [llama-3-8b, gemma-2-27b]
formats: [Q4_K_M, AWQ]
contexts: [4096]
shard_size: 3
"""


def write(folder: Path, text: str, name: str = "plan.yaml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def index(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
