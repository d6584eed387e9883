"""Requests drawn from the whole catalogue, and what every advice promises."""

from __future__ import annotations

import random

from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.advice.preparation import estimate, prepare
from advisor.errors import UserError
from advisor.estimator import free_bytes
from advisor.estimator.limits import largest_gpu_layers
from advisor.estimator.placement import host_fits
from advisor.knowledge.types import Knowledge
from advisor.remedies.assessment import outlook_of
from advisor.remedies.option import Base
from advisor.remedies.sharing import names_cards
from advisor.scenario.resolve import apply_change
from advisor.scenario.settings import Request

PRECISIONS = ("FP16", "INT8", "INT4", "Q4_K_M", "Q3_K_M", "Q8_0", "AWQ", "FP8", "NF4")


def drawn(advisor: Advisor, rng: random.Random) -> Request:
    """Draw one request."""
    known = advisor.knowledge
    cards = [card.name for card in known.gpus.values() if card.vram_bytes]
    return Request(
        gpu=rng.choice(cards),
        model=rng.choice(list(known.models)),
        precision=rng.choice(PRECISIONS),
        context=rng.choice((None, None, 2048, 8192, 32768, 131_072)),
        batch=rng.choice((None, None, 4, 16)),
        gpus=rng.choice((None, None, None, 2)),
        kv_cache=rng.choice((None, None, None, "q8_0")),
        framework=rng.choice((None, None, None, "llama.cpp", "vLLM")),
        prefer=rng.choice((None, "quality", "speed", "cost")),
        use=rng.choice((None, None, "batch", "none")),
        ram_gib=rng.choice((None, 32.0, 128.0)),
        ram_bandwidth_gb_s=rng.choice((None, 80.0)),
    )


def stated(advisor: Advisor, rng: random.Random) -> Request:
    """Draw one request that states what is seldom stated: split, layers, buffers, back end."""
    return replace(
        drawn(advisor, rng),
        context=rng.choice((None, 2, 2048, 32_768)),
        gpus=rng.choice((None, None, 2, 3, 8, 64)),
        framework=rng.choice((None, None, None, "llama.cpp", "Ollama", "vLLM", "SGLang", "TGI")),
        gpu_layers=rng.choice((*[None] * 5, 0, 10, 40)),
        cpu_experts=rng.choice((*[None] * 5, 4)),
        split=rng.choice((*[None] * 5, "layer", "row", "tensor")),
        flash_attention=rng.choice((*[None] * 5, False)),
        ubatch=rng.choice((*[None] * 4, 256, 2048)),
        mtp=rng.choice((*[None] * 5, 1)),
        kv_unified=rng.choice((*[None] * 5, False)),
        swa_full=rng.choice((*[None] * 5, True)),
        backend=rng.choice((*[None] * 5, "Vulkan")),
        stages=rng.choice((*[None] * 8, 2, 3)),
    )


def changes_that_differ(request: Request, knowledge: Knowledge) -> list[str]:
    """Apply every what-if's change to the request and name those that come out otherwise."""
    found = []
    for option in prepare(request, knowledge).options:
        try:
            again = estimate(
                apply_change(request, dict(option.change)),
                knowledge,
                all_cards=names_cards(option.change),
            )
            outlook = outlook_of(again.scenario, knowledge)
        except UserError as refused:
            found.append(f"{option.key}: {refused}")
            continue
        if (outlook.memory, outlook.fits) != (option.memory, option.fits):
            found.append(f"{option.key}: other memory")
        if outlook.speed != option.speed:
            found.append(f"{option.key}: another speed")
    return found


def _holds(again: Base) -> bool:
    """Whether the verdict of a request run again is that it fits: on the cards and in RAM."""
    return again.memory.deficit_bytes == 0 and host_fits(again.scenario, again.memory)


def most_layers_differ(advisor: Advisor, advice: Conclusions) -> list[str]:
    """Hold the largest number of layers that fits against trying every number."""
    scenario, known = replace(advice.scenario, gpu_layers=None), advisor.knowledge
    if scenario.framework.memory_model != "llama.cpp":
        return []
    free = (
        (layers, free_bytes(replace(scenario, gpu_layers=layers), known))
        for layers in range(scenario.model.shape.layers + 2)
    )
    best = max((layers for layers, left in free if left is not None and left >= 0), default=None)
    found = largest_gpu_layers(scenario, known)
    return [] if found == best else [f"layers: {found} found, {best} by trying all"]


def broken(advisor: Advisor, advice: Conclusions) -> list[str]:
    """Name the promises that this advice breaks."""
    found = []
    fits = advice.state in {"fits", "tight"}
    proven = advice.facts.get("options.none_exists") is True
    if not fits and not proven and not advice.recommendations:
        found.append("no remedy and no proof")
    barred = {item.option.key for item in advice.not_recommended}
    for item in advice.recommendations:
        option = item.option
        try:
            changed, named = apply_change(advice.request, dict(option.change)), option.change
            again = advisor.estimate(changed, all_cards=names_cards(named))
        except UserError as refused:
            found.append(f"refused: {option.key}: {refused}")
            continue
        if (again.memory, again.speed) != (option.memory, option.speed):
            found.append(f"run again it differs: {option.key}")
        if not option.fits or again.memory.deficit_bytes:
            found.append(f"does not fit: {option.key}")
        if not fits and not _holds(again):
            found.append(f"does not turn the verdict: {option.key}")
        if option.key in barred:
            found.append(f"barred: {option.key}")
    return found
