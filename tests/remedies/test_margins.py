"""What leaves almost nothing free is marked, said, and comes after what leaves more."""

from __future__ import annotations

import re

from msgspec.structs import replace

from advisor.bulk.reverse.answers import Settings
from advisor.bulk.reverse.models import ModelFilter, models_for
from advisor.remedies import least_speed
from advisor.remedies.option import Base
from advisor.report.assembly import document
from advisor.scenario.figures import certainty_of, margin_of
from tests.remedies.asking import advised, advisor


def test_the_word_follows_the_bounds_of_the_policy() -> None:
    policy = advisor().knowledge.policy
    advice = advised(gpu="RTX 4060 Ti 16GB", model="qwen2.5-vl-7b", precision="FP16", context=16384)
    seen = set()
    for option in advice.options:
        free, usable = option.memory.headroom_bytes, option.memory.usable_bytes
        assert option.margin == (margin_of(option.memory, policy) if option.fits else None)
        if option.fits and free is not None and usable and option.scenario.gpus == 1:
            seen.add(option.margin)
            least = min(usable * policy["thin_below_percent"] / 100, policy["thin_below_bytes"])
            assert (option.margin == "thin") == (free < least)
    assert seen >= {"thin", "ample"}


SAID = "margin is thin|That is close|to the brim|one sequence fewer"


def test_a_thin_margin_is_said_in_the_text_and_in_the_document() -> None:
    doc = document(
        advised(gpu="RX 7900 XTX", model="qwen2.5-32b", precision="Q4_K_M", context=32768)
    )
    thin = [item for item in doc.recommendations if item.after.margin == "thin"]
    assert thin
    for item in thin:
        assert re.search(
            "margin is thin|That is close|to the brim|take one sequence fewer", item.text
        )
    others = [item for item in doc.recommendations if item.after.margin == "ample"]
    assert not any("to the brim" in item.text for item in others)


def test_a_shorter_context_leaves_a_margin() -> None:
    advice = advised(gpu="RTX 4090", model="gemma-3-27b", precision="Q4_K_M", context=131_072)
    shorter = next(o for o in advice.options if o.action == "shrink-context")
    assert shorter.margin != "thin"
    assert shorter.scenario.context_tokens < (advice.limits.max_context_tokens or 0)


def test_a_tight_fit_gets_advice() -> None:
    advice = advised(gpu="RTX 4090", model="llama-3.1-8b", precision="Q8_0", context=114_688)
    assert advice.state == "tight"
    actions = {item.option.action for item in advice.recommendations}
    assert "shrink-context" in actions
    base = Base(advice.request, advice.scenario, advice.memory, advice.speed, advisor().knowledge)
    assert least_speed(base) > 0


def test_rows_prefer_formats_that_leave_a_margin() -> None:
    known = advisor().knowledge
    _, found = models_for("RTX 4070", Settings(prefer="balanced"), ModelFilter(), known, limit=None)
    for row in found.rows:
        assert row.margin == margin_of(row.answer.memory, known.policy)
    assert any(row.margin == "ample" for row in found.rows)
    ernie = next(r for r in found.rows if r.answer.scenario.model.name == "ERNIE-4.5-21B-A3B-PT")
    assert ernie.margin != "thin"


def test_what_fits_to_the_byte_fits_and_is_thin() -> None:
    memory = advised(gpu="RTX 4090", model="phi-3-medium", precision="Q4_K_M").memory
    usable = memory.usable_bytes
    assert usable
    exact = replace(
        memory,
        headroom_bytes=0,
        deficit_bytes=0,
        per_gpu=tuple(
            replace(card, required_bytes=card.usable_bytes, high_bytes=card.usable_bytes)
            for card in memory.per_gpu
        ),
    )
    policy = advisor().knowledge.policy
    assert margin_of(exact, policy) == "thin"
    assert certainty_of(exact) == "unverified"
    tenth_free = [replace(c, required_bytes=c.usable_bytes * 9 // 10) for c in exact.per_gpu]
    assert certainty_of(replace(exact, per_gpu=tuple(tenth_free))) == "sure"
    lacking = replace(exact, deficit_bytes=1)
    assert margin_of(lacking, policy) is None
