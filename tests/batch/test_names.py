"""Names of report files: readable, one for each request, safe everywhere."""

from __future__ import annotations

import ntpath
import re
from pathlib import PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.bulk.batch.formats import MOST_FOLDER, MOST_STEM, Namer
from advisor.knowledge import load_knowledge

NAMER = Namer.of(load_knowledge())
TEXTS = st.one_of(
    st.text(max_size=200),
    st.sampled_from(
        ["..", "../..", "/etc/passwd", "C:\\x", "con", "NUL", "aux.txt", "a/../b", "."]
    ),
)


def test_a_name_says_what_the_report_is_about() -> None:
    request = {
        "model": "Meta-Llama-3-8B", "gpu": "GeForce RTX 4090", "precision": "Q4_K_M",
        "context": 4096, "batch": 4, "gpus": 2, "framework": "llama.cpp",
    }  # fmt: skip
    wanted = "meta-llama-3-8b/geforce-rtx-4090_x2_q4-k-m_4096_b4_llama.cpp"
    assert NAMER.path(request) == wanted


def test_names_of_the_catalogue_need_no_hash_and_differ() -> None:
    known = load_knowledge()
    names = [
        NAMER.path({"model": model, "gpu": gpu, "precision": "FP16"})
        for model in list(known.models)[::7]
        for gpu in known.gpus
    ]
    assert len({name.casefold() for name in names}) == len(names)
    assert not [name for name in names if re.search(r"-[0-9a-f]{12}(/|$)", name)]


def reserved(name: str) -> bool:
    """Whether Windows has the name for itself; Python 3.13 moved who says so."""
    if hasattr(ntpath, "isreserved"):
        return bool(ntpath.isreserved(name))
    return PureWindowsPath(name).is_reserved()


@given(model=TEXTS, gpu=TEXTS, draft=TEXTS)
def test_any_text_gives_a_name_that_every_file_system_takes(
    model: str, gpu: str, draft: str
) -> None:
    name = NAMER.path({"model": model, "gpu": gpu, "draft_model": draft, "context": 4096})
    folder, _, stem = name.partition("/")
    for part, most in ((folder, MOST_FOLDER), (stem, MOST_STEM)):
        assert 0 < len(part) <= most
        assert re.fullmatch(r"[a-z0-9][a-z0-9._-]*", part), name
        assert not part.endswith(".")
        assert not reserved(f"{part}.md")


@given(TEXTS, TEXTS)
def test_different_cards_give_names_that_differ_even_without_case(one: str, other: str) -> None:
    names = {NAMER.path({"model": "x", "gpu": gpu}).casefold() for gpu in (one, other)}
    assert len(names) == len({one, other})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"ram_gib": 0.5}, {"ram_gib": 5.0}),
        ({"kv_cache_k": "q8_0"}, {"kv_cache_v": "q8_0"}),
        ({"gpus": 2}, {"batch": 2}),
        ({"swa_full": True}, {"kv_unified": True}),
        ({"depth": 12}, {"depth": 1, "gpu_layers": 2}),
    ],
)
def test_every_setting_is_told_apart(one: dict[str, object], other: dict[str, object]) -> None:
    base = {"model": "gemma-2-27b", "gpu": "GeForce RTX 4090"}
    assert NAMER.path({**base, **one}) != NAMER.path({**base, **other})
