"""Placeholders about the cards where they are unequal."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from advisor.report import figures as f
from advisor.report.words import say
from advisor.units import plain

if TYPE_CHECKING:
    from advisor.advice.document import Advice, EachCardDoc, GpuDoc


def unequal_view(doc: Advice, gpu: GpuDoc) -> dict[str, str]:
    """Write out cards that differ; ``gpu`` holds the least of each figure."""
    each = doc.scenario.cards
    runs = [list(run) for _, run in groupby(each, key=lambda card: card.name)]
    return {
        "gpu.cards": f.listed([cards_named(run[0].name, len(run)) for run in runs]),
        "gpu.unequal_cards": f.listed([_described(run[0], len(run)) for run in runs]),
        "gpu.card_shares": f.listed(
            [
                say(
                    "card.share",
                    required=f.amount(card.required_bytes),
                    card=card.name,
                    usable=f.amount(card.usable_bytes),
                )
                for card in doc.memory.per_gpu
            ]
        ),
        "gpu.name": gpu.name,
        "gpu.vendor": gpu.vendor,
        "gpu.architecture": gpu.architecture,
        "gpu.bandwidth": f.quantity(gpu.bandwidth_bytes_s, "GB/s"),
        "gpu.bandwidth_class": str(doc.facts.get("gpu.bandwidth_class", "")).replace("_", " "),
        "gpu.tdp": f.quantity(gpu.tdp_w, "W"),
        "gpu.disputed_figures": disputed_figures(gpu),
    }


def cards_named(name: str, count: int) -> str:
    """Name one card or several equal ones: the GeForce RTX 4090, or 2 GeForce RTX 4090 cards."""
    return say("card.some", n=count, card=name) if count > 1 else say("card.the", card=name)


def _described(card: EachCardDoc, count: int) -> str:
    read = f.quantity(card.bandwidth_bytes_s, "GB/s")
    named, memory = cards_named(card.name, count), f.size(card.vram_bytes)
    told = say("card.each" if count > 1 else "card.with", card=named, memory=memory)
    return say("card.read", card=told, bandwidth=read) if read else told


def disputed_figures(gpu: GpuDoc) -> str:
    """Name the figures on which sources differ, with their values."""
    return f.listed(
        [
            f"{field.replace('_', ' ')} ({plain(' or '.join(values))})"
            for field, values in gpu.disputed.items()
        ]
    )


def proof_view(doc: Advice) -> f.Strings:
    """Why nothing helps; empty where something does."""
    facts = doc.facts
    least, most = facts.get("options.least_needed"), facts.get("options.most_memory")
    return {
        "options.least_needed": f.amount(least) if isinstance(least, float) else "",
        "options.most_memory": f.amount(most) if isinstance(most, float) else "",
        "options.smallest_format": str(facts.get("options.smallest_format", "")),
        "options.largest_machine": str(facts.get("options.largest_machine", "")),
    }
