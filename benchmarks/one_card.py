"""Speeds of one card measured for this project against what the product tells of it.

    python benchmarks/one_card.py

Reads knowledge/measurements/one_card.csv, which nothing is fitted to, and prints for each run what
was measured, what is told and its range; then what is inside, and the median error, by metric.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import advisor

ROWS = Path(__file__).parents[1] / "knowledge" / "measurements" / "one_card.csv"
RAM = {"ram": "128GB", "ram_bandwidth": "84 GB/s"}
"""What the machine had, read by sixteen threads."""


def told(row: Mapping[str, str]) -> tuple[float, float, float]:
    """Give estimate, low and high in tokens/s."""
    depth, prompt = int(row["depth_tokens"]), int(row["prompt_tokens"] or 0)
    halves = {name: int(row[name]) for name in ("gpu_layers", "cpu_experts") if row[name]}
    context = prompt or (depth + 64 if row["batch"] != "1" else max(depth + 128, 1024))
    report = advisor.advise(
        gpu=row["gpu"].removesuffix(" 141 GB"),
        model=row["model"],
        precision=row["precision"],
        framework="llama.cpp",
        batch=int(row["batch"]),
        context=context,
        kv_cache=row["cache"],
        **({} if prompt else {"depth": depth}),
        **halves,
        **(RAM if halves else {}),
    )
    speed = getattr(report.document.speed, row["metric"])
    return speed.estimate, speed.low, speed.high


def main() -> None:
    """Print every run, then the sums."""
    errors: dict[str, list[float]] = defaultdict(list)
    inside: dict[str, int] = defaultdict(int)
    with ROWS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["why"]:
                continue
            measured, (estimate, low, high) = float(row["value"]), told(row)
            setup = " ".join(filter(None, (row["model"], row["precision"], row["batch"])))
            print(
                f"{row['id']} {setup} {row['metric']} at {row['depth_tokens']}:"
                f" {measured:.1f} measured, {estimate:.1f} told ({low:.1f} to {high:.1f})"
            )
            errors[row["metric"]].append(abs(estimate / measured - 1))
            inside[row["metric"]] += low <= measured <= high
    for metric, found in errors.items():
        print(
            f"{metric}: {len(found)} runs, {inside[metric]} inside,"
            f" median error {100 * median(found):.1f} %"
        )


if __name__ == "__main__":
    main()
