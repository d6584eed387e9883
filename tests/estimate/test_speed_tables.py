"""knowledge/calibration.yaml: complete, sourced, within physical bounds."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import cast

import pytest
import yaml

from advisor.errors import KnowledgeError
from advisor.estimate.speed_tables import read_tables
from advisor.knowledge.load import load_knowledge
from advisor.knowledge.types import Gpu

KNOWLEDGE = Path(__file__).parents[2] / "knowledge"
RAW: Mapping[str, object] = yaml.safe_load(
    (KNOWLEDGE / "calibration.yaml").read_text(encoding="utf-8")
)
TABLES = read_tables(RAW)


def group(name: str) -> dict[str, object]:
    return cast("dict[str, object]", RAW[name])


def card(name: str, architecture: str, memory: str | None = None) -> Gpu:
    return Gpu(name, (), "NVIDIA", "consumer", architecture, vram_type=memory)


def test_every_group_names_its_source() -> None:
    unsourced = [name for name in RAW if name not in {"architecture_of", "engines"}]
    assert [name for name in unsourced if not group(name).get("source")] == []
    own = [e for e in group("engines").values() if "like" not in cast("dict[str, object]", e)]
    assert all("source" in cast("dict[str, object]", engine) for engine in own)


def test_no_efficiency_exceeds_the_bandwidth() -> None:
    assert 0 < TABLES.base_efficiency <= TABLES.most_efficiency < 1
    for engine in TABLES.engines.values():
        if engine is not None:
            assert all(0 < share < 1 for share in engine.efficiency.values())


def test_every_range_factor_widens() -> None:
    limits = {"small_gib", "deep_tokens"}
    assert all(k > 1 for name, k in TABLES.ranges.items() if name not in limits)
    assert TABLES.ranges["near"] <= TABLES.ranges["modelled"] <= TABLES.ranges["alone"]


def test_every_matched_architecture_has_a_factor() -> None:
    assert {match.to for match in TABLES.matches} <= set(TABLES.architectures)
    assert {name for name, _ in TABLES.prefill.architectures} <= set(TABLES.architectures)


def test_card_offsets_are_moderate_and_name_known_cards() -> None:
    assert all(0.6 < factor < 1.6 for factor in TABLES.offsets.values())
    known = {
        entry["gpu"]
        for file in (KNOWLEDGE / "gpus").glob("*.yaml")
        for entry in yaml.safe_load(file.read_text(encoding="utf-8"))
    }
    assert {name for name, _ in TABLES.offsets} <= known
    assert {name for name, _ in TABLES.prefill.cards} <= known


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        (card("DGX Spark (GB10)", "Blackwell", "LPDDR5X"), "GB10"),
        (card("GeForce RTX 5090", "Blackwell", "GDDR7"), "Blackwell GDDR"),
        (card("B200 SXM", "Blackwell", "HBM3e"), None),
        (card("GeForce RTX 3090", "Ampere", "GDDR6X"), "Ampere GDDR"),
        (card("A100 SXM4 80 GB", "Ampere", "HBM2e"), "Ampere HBM"),
        (card("Jetson AGX Orin 64 GB", "Ampere", "LPDDR5"), None),
        (card("Tesla P100 PCIe 16 GB", "Pascal", "HBM2"), None),
        (card("Radeon 8060S", "RDNA 3.5"), "RDNA 3.5"),
        (card("Radeon RX 7900 XTX", "RDNA 3.0", "GDDR6"), "RDNA 3"),
        (card("Radeon RX 9070 XT", "RDNA 4.0", "GDDR6"), None),
        (card("Apple M4 Pro", "Apple GPU"), "Apple M4"),
        (card("H100 SXM5 80 GB", "Hopper", "HBM3"), None),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_cards_find_their_architecture(gpu: Gpu, expected: str | None) -> None:
    assert next((m.to for m in TABLES.matches if m.fits(gpu)), None) == expected


def test_gains_from_batching_never_fall_and_never_exceed_the_streams() -> None:
    for curve in (TABLES.batch_llamacpp, TABLES.batch_other):
        gains = [curve.at(n) for n in range(1, 130)]
        assert gains == sorted(gains)
        assert all(gain <= n for n, gain in enumerate(gains, start=1))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("decode", "base_efficiency"), None, r"'decode\.base_efficiency' must be a number"),
        (("decode", "base_efficiency"), True, r"'decode\.base_efficiency' must be a number"),
        (("prefill", "units"), 3, r"'prefill\.units' must be a mapping"),
        (("cards", "offsets"), "many", r"'cards\.offsets' must be a list"),
        (("batch", "other"), {"2": 1.9}, r"'batch\.other' must be .* starts at 1"),
        (("batch", "other"), {"two": 1.9}, r"'batch\.other' must be a mapping of counts"),
        (("cards", "offsets"), [{"gpu": 7}], r"'cards\.offsets\[0\]\.gpu' must be a text"),
    ],
)
def test_mistakes_are_named(place: tuple[str, str], value: object, message: str) -> None:
    changed = deepcopy(dict(RAW))
    cast("dict[str, object]", changed[place[0]])[place[1]] = value
    with pytest.raises(KnowledgeError, match=message):
        read_tables(changed)


def test_measured_lines_name_known_cards_models_and_formats() -> None:
    known = load_knowledge()
    for gpu, model, weights, backend in TABLES.measured:
        assert gpu in known.gpus
        assert model in known.models
        assert weights in known.frameworks["llama.cpp"].formats
        assert backend in TABLES.backends
