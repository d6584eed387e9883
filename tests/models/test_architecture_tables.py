"""``knowledge/architectures.yaml``: what it names is there, and returns what its field wants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.errors import KnowledgeError
from advisor.knowledge import load_knowledge
from advisor.models.architecture import Family
from advisor.models.architectures import tables
from advisor.models.architectures.tables import FAMILIES, FILE, TOWERS, WRAPPERS

COUNTS = (
    "attention", "dense", "experts", "norms", "first", "final", "extras", "lookups", "expert",
    "embedding", "output", "read_width", "read_kv_heads", "encoder_positions",
)  # fmt: skip
WORDS = ("kinds", "ffn_kinds", "uncounted")


def functions(family: Family, field: str) -> Iterator[object]:
    value = getattr(family, field)
    yield from value if isinstance(value, tuple) else [value] if callable(value) else []


@pytest.mark.parametrize("name", FAMILIES)
def test_every_field_has_functions_that_return_what_it_wants(name: str) -> None:
    for fields, wanted in ((COUNTS, "int"), (WORDS, "str")):
        for field in fields:
            for one in functions(FAMILIES[name], field):
                assert callable(one)
                assert one.__annotations__.get("return", "int") == wanted, (field, one)


def test_an_entry_takes_over_all_but_names_and_files() -> None:
    llama, yi = FAMILIES["llama"], FAMILIES["yi"]
    assert (len(yi.attention), yi.window, yi.sizes) == (2, llama.window, llama.sizes)
    assert (yi.also, len(yi.gguf), yi.gguf[0].reads) == ((), 1, False)


def test_a_wrapper_names_a_text_model_and_a_tower_that_are_known() -> None:
    for name, wrapper in WRAPPERS.items():
        assert wrapper.text in FAMILIES or any(wrapper.text in f.also for f in FAMILIES.values())
        counted = wrapper.tower or tables.tower_of(wrapper.vision)
        assert counted or not wrapper.counted, name
    assert WRAPPERS["internvl_chat"].tower is TOWERS["internvl_vision"]


@pytest.mark.parametrize(
    ("said", "near"), [("projektions", "projections"), ({"wenn": ["bias", "all_bias"]}, "when")]
)
def test_a_function_that_is_not_there_is_told(said: object, near: str) -> None:
    with pytest.raises(KnowledgeError, match="no function of advisor/models") as found:
        tables._struct(Family, {"attention": [said]})
    assert f"'{near}'" in str(found.value.hint)


def test_one_of_a_user_is_not_read_and_said_to_be(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("families: {}\n")
    with pytest.raises(KnowledgeError, match="nothing is read from a file of this name"):
        load_knowledge(tmp_path)
