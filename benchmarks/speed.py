"""What one speed estimate costs, in processor time.

    python benchmarks/speed.py

Rates and weights are worked out before the clock starts: within a report they are worked out once.
"""

from __future__ import annotations

import time

from msgspec.structs import replace

from advisor.estimator import estimate_memory
from advisor.estimator.speed import estimate_speed
from advisor.knowledge import load_knowledge
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

ROUNDS = 20_000
REQUESTS = {
    "dense, measured": Request(gpu="RTX 4090", model="llama-3-8b", precision="Q4_K_M"),
    "dense, modelled": Request(gpu="RTX 4060", model="qwen3-8b", precision="Q4_K_M"),
    "experts": Request(gpu="RTX 5090", model="qwen3-30b-a3b", precision="Q4_K_M"),
    "32 streams, vLLM": Request(
        gpu="A100 SXM4 80 GB", model="qwen2.5-7b", precision="FP16", framework="vLLM", batch=32
    ),
    "own draft head": Request(gpu="RTX 4090", model="Qwen3.6-27B", precision="Q4_K_M", mtp=2),
    "experts in system RAM": Request(
        gpu="RTX 4070", model="qwen3-30b-a3b", precision="Q4_K_M", cpu_experts="all",
        ram_gib=64, ram_bandwidth_gb_s=80,
    ),
}  # fmt: skip


def main() -> None:
    knowledge = load_knowledge()
    print("| scenario | microseconds |")
    print("|---|---:|")
    for name, request in REQUESTS.items():
        scenario = resolve(request, knowledge)
        memory = estimate_memory(scenario, knowledge)
        scenarios = [replace(scenario, depth_tokens=depth) for depth in range(8)]
        assert estimate_speed(scenario, memory, knowledge) is not None
        start = time.process_time()
        for count in range(ROUNDS):
            estimate_speed(scenarios[count % 8], memory, knowledge)
        print(f"| {name} | {(time.process_time() - start) / ROUNDS * 1e6:.1f} |")


if __name__ == "__main__":
    main()
