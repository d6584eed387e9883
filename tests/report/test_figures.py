"""Numbers as people read them."""

from __future__ import annotations

import pytest

from advisor.report import figures as f
from advisor.report import views
from advisor.scenario.figures import Figure
from advisor.units import GIB, plain, rate


def figure(estimate: float, low: float, high: float, evidence: str = "near") -> Figure:
    return Figure(estimate, low, high, evidence)  # type: ignore[arg-type]  # test data


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (f.size(24 * GIB), "24 GiB"),
        (f.size(23.25 * GIB), "23.2 GiB"),
        (f.size(None), ""),
        (f.amount(24 * GIB), "24.0 GiB"),
        (f.decimal_gb(28e9), "28.0 GB"),
        (f.nominal(28.0), "28 GB"),
        (f.nominal(10.8), "10.8 GB"),
        (f.nominal(None), ""),
        (f.billions(13_960_238_080), "13.96 billion"),
        (f.billions(7e9), "7 billion"),
        (f.billions(235_093_634_560), "235.1 billion"),
        (f.billions(494e6), "494 million"),
        (f.percent(62.4), "62 %"),
        (f.percent(9.96), "10 %"),
        (f.percent(3.6), "3.6 %"),
        (f.percent(None), ""),
        (f.percent(0.02), "under 0.1 %"),
        (f.percent(0.0), "0 %"),
        (f.dollars(1599), "$1,599"),
        (rate(8.44), "8.4"),
        (rate(9.96), "10"),
        (rate(95.2), "95"),
        (rate(1243.0), "1,240"),
        (f.count(16384), "16,384"),
        (f.listed([]), ""),
        (f.listed(["a"]), "a"),
        (f.listed(["a", "b", "c"]), "a, b and c"),
        (f.listed(["a", "b"], "or"), "a or b"),
        (f.speed_range(figure(95.2, 80.0, 112.3)), "about 95 tok/s (80 to 112)"),
        (f.speed_range(figure(95.2, 80.0, 112.3, "measured")), "95 tok/s (80 to 112)"),
        (f.speed_range(figure(95.2, 95.2, 95.2, "measured")), "95 tok/s"),
        (f.speed_range(None), ""),
        (f.evidence(figure(1, 1, 1)), "estimated from other models on this card"),
        (plain("a\tb\x00c\u200bd  e"), "a bcd e"),
        (plain("Größe 大"), "Größe 大"),
    ],
)
def test_printed(shown: str, expected: str) -> None:
    assert shown == expected


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (f.amount(1316.8 * GIB), "1,316.8 GiB"),
        (f.amount(1), "less than 0.01 GiB"),
        (f.amount(0), "0.0 GiB"),
        (rate(999.7), "1,000"),
        (views.image_tokens("576 (24x24, 336px/14)"), "576 tokens"),
        (views.image_tokens("256 (mm_tokens_per_image)"), "256 tokens"),
        (views.image_tokens("1176 (336x336) to 2928 (672x672); 2340 at 1024x768"),
         "1,176 to 2,928 tokens"),
        (views.image_tokens("(H/28)*(W/28); patch 14, merge 2"),
         "one token for every 28 x 28 pixels"),
        (views.image_tokens("144 per 336px tile (24x24/4), up to 16 tiles"),
         "144 tokens per 336-pixel tile"),
        (views.image_tokens("1 text token; up to 4 tiles"), "one token"),
        (views.image_tokens("it depends"), ""),
        (views.image_tokens(None), ""),
        (views.images_held("1176 (336x336) to 2928 (672x672)", 4096), "1"),
        (views.images_held("(H/28)*(W/28)", 4096), ""),
        (views.estimated_parts(["weights: by average", "weights: at 16 bits", "activations: x"]),
         "the weights (by average; at 16 bits) and the work buffers (x)"),
        (views.article("fp8"), "an"),
        (views.article("q8_0"), "a"),
    ],
)  # fmt: skip
def test_written_as_clauses(shown: str, expected: str) -> None:
    assert shown == expected
