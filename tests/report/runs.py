"""Eight-word runs of a text, hashed: how texts are compared without carrying them."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

RUN = 8
HASHES = Path(__file__).parents[1] / "data" / "reference_hashes.json"


def run_hashes(text: str) -> set[str]:
    words = re.findall(r"[a-z0-9]+", text.lower())
    runs = (" ".join(words[i : i + RUN]) for i in range(len(words) - RUN + 1))
    return {hashlib.sha256(run.encode()).hexdigest() for run in runs}


def reference_hashes() -> set[str]:
    return set(json.loads(HASHES.read_text(encoding="utf-8"))["sha256"])
