"""``knowledge/architectures.yaml``: what it names is there, and returns what its field wants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.errors import KnowledgeError, SourceFileError
from advisor.knowledge import load_knowledge
from advisor.models.architecture import NAMES, Arch, Family
from advisor.models.architectures import tables
from advisor.models.architectures.tables import FAMILIES, FILE, TOWERS, WRAPPERS
from advisor.models.config import read_config
from advisor.models.config_keys import Keys
from advisor.models.vision_towers import Tower

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
    with pytest.raises(KnowledgeError, match="no formula, and no function") as found:
        tables._struct(Family, {"attention": [said]})
    assert f"'{near}'" in str(found.value.hint)


FORMULAS = tables._TABLES["formulas"]


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_names_sizes_formulas_and_functions_that_are_there(name: str) -> None:
    words = re.findall(r"(?<![\w.\[])[a-z]\w*(?![\w.:|\]])", f"{FORMULAS[name]}")
    sizes = {*Arch.__struct_fields__, *Tower.__struct_fields__, *dir(Arch), *dir(Tower)}
    assert all(word in sizes or callable(tables._named(word)) for word in words)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hidden - 2 * (heads + 1)", 64 - 2 * 5),
        ("vocab // heads * layers", 25 * 2),
        ("[n_positions]", 32),
        ("[absent:7] + [absent|hidden]", 7 + 64),
        ("moe.width", 0),
        ("shared_gate", 64),
    ],
)
def test_a_formula_is_worked_out(text: str, found: int) -> None:
    keys = Keys({"n_positions": 32}, "config.json")
    a = Arch(keys, "gpt2", 64, 2, 100, 4, 4, 16, 256, tied=True)
    assert tables.Formula(text)(a) == found


@pytest.mark.parametrize("text", ["[absent]", "[zero|hidden]", "recurrent.inner"])
def test_a_formula_refuses_what_is_not_stated(text: str) -> None:
    a = Arch(Keys({"zero": 0}, "config.json"), "gpt2", 64, 2, 100, 4, 4, 16, 256, tied=True)
    with pytest.raises(SourceFileError):
        tables.Formula(text)(a)


def test_one_in_a_copied_folder_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("families: {}\n")
    assert load_knowledge(tmp_path).models.keys() == load_knowledge().models.keys()
    assert "llama" in tables._read()["families"]


@pytest.mark.parametrize("size", ["n_embd", "d_model", "emb_dim"])
def test_a_size_is_read_by_each_of_its_names(size: str) -> None:
    config = {
        "model_type": "gpt2", size: 64, "n_layer": 2, "n_head": 4, "vocab_size": 100,
        "n_positions": 32,
    }  # fmt: skip
    assert read_config(config, "config.json").hidden == 64


def test_every_size_has_more_than_one_name() -> None:
    assert all(len(names) > 1 for names in NAMES.values())
    assert NAMES["hidden"][0] == "hidden_size"
