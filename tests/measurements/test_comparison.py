"""What new measurements change, as ``advisor measure add`` tells it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.estimator.calibration.user import Stored
from advisor.estimator.calibration.user.comparison import Comparison, compare
from advisor.estimator.measured_speed import Measurement
from tests.measurements.examples import KNOWLEDGE
from tests.measurements.test_effect import CARD, MEASURED, MOE, OTHER, SETUP, decode, faster, over


def added(*figures: Measurement) -> Comparison:
    fresh = [Stored(line, m) for line, m in enumerate(figures, start=2)]
    return compare(KNOWLEDGE, over(*figures), fresh)


def test_the_setup_the_card_and_other_models_are_told() -> None:
    found = added(faster(1.5))
    (setup,) = found.setups
    assert setup.before
    assert setup.after
    assert setup.after.evidence == "measured"
    assert setup.after.estimate == pytest.approx(1.5 * setup.before.estimate)
    (card,) = found.cards
    assert (card.card.gpu, card.card.engine, card.experts) == (CARD, "llama.cpp", False)
    before, after = card.factor
    assert before < after < 1.5 * before, "a single figure is shrunk"


def test_other_models_are_a_smaller_an_equal_and_a_larger_one_that_fit() -> None:
    found = added(faster(1.5)).others
    names = [change.scenario.model.name for change in found]
    assert len(names) == len(set(names)) == 3
    assert SETUP.model not in names
    sizes = [change.scenario.model.parameters / 8.03e9 for change in found]
    assert sizes[0] < 0.7 < sizes[1] < 1.3 < sizes[2]
    for change in found:
        assert change.scenario.gpu
        assert change.scenario.gpu.name == CARD
        assert change.scenario.batch == 1
        assert not change.scenario.model.shape.moe
        assert change.after.estimate > change.before.estimate
        assert change.after.evidence != "measured"


def test_a_card_is_told_once_however_many_figures_it_has() -> None:
    found = added(faster(1.4), faster(1.4, OTHER))
    assert len(found.setups) == 2
    assert len(found.cards) == 1


def test_mixtures_of_experts_are_told_apart_from_dense_models() -> None:
    moe = replace(SETUP, model=MOE, precision="MXFP4_MOE")
    found = added(faster(1.4), faster(0.8, moe))
    assert {card.experts for card in found.cards} == {False, True}
    dense, experts = sorted(found.cards, key=lambda card: card.experts)
    assert dense.factor[1] > dense.factor[0]
    assert experts.factor[1] < experts.factor[0]


def test_a_figure_that_moves_no_card_is_told_with_its_setup_alone() -> None:
    several = added(replace(faster(1.5), batch=4))
    assert len(several.setups) == 1
    assert not several.cards
    assert not several.others


def test_what_is_never_estimated_has_no_figure_beside_it() -> None:
    odd_prompt = replace(MEASURED, metric="prefill_tok_s", prompt_tokens=300, tok_s=4000.0)
    (setup,) = added(odd_prompt).setups
    assert (setup.before, setup.after) == (None, None)
    total = replace(MEASURED, metric="total_throughput_tok_s", batch=8, tok_s=500.0)
    (setup,) = added(total).setups
    assert (setup.before, setup.after) == (None, None)


def test_the_range_told_is_the_wider_side() -> None:
    """A card nobody published: from what its kind reaches to what it was measured at."""
    unpublished = replace(SETUP, gpu="RTX 4500 Ada Generation")
    assert decode(unpublished).evidence != "near"
    found = added(faster(1.2, unpublished))
    (card,) = found.cards
    assert card.evidence[1] == "near"
    for figure, spread in zip(
        (found.others[1].before, found.others[1].after), card.spread, strict=True
    ):
        below, above = figure.estimate / figure.low, figure.high / figure.estimate
        assert max(below, above) <= spread * 1.02, "the roofline may cut this model's upper end"
    assert card.spread[0] >= card.spread[1] > 1
