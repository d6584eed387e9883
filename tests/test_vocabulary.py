from pathlib import Path

import pytest

from advisor.errors import KnowledgeError, UserError
from advisor.knowledge.vocabulary import Vocabulary, load_vocabulary, show
from advisor.units import DIMENSIONS


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def vocabulary() -> Vocabulary:
    return load_vocabulary()


def written(folder: Path, text: str) -> Path:
    mine = folder / "mine"
    mine.mkdir()
    (mine / "facts.yaml").write_text(text, encoding="utf-8")
    return mine


def test_numbers_have_a_unit_of_their_dimension(vocabulary: Vocabulary) -> None:
    for fact in vocabulary.facts.values():
        if fact.kind == "number":
            assert fact.unit in DIMENSIONS[fact.dimension]
        else:
            assert (fact.unit, fact.dimension) == ("", "")
        assert bool(fact.values) == (fact.kind == "enum")


def test_kinds_and_origins_are_read(vocabulary: Vocabulary) -> None:
    state = vocabulary.fact("fit.state")
    assert (state.kind, state.origin) == ("enum", "rules")
    assert state.values == ("fits", "tight", "needs_offload", "too_big")
    assert vocabulary.fact("gpu.laptop").kind == "flag"
    assert vocabulary.fact("gpu.name").of == "gpus"
    gpus = vocabulary.fact("request.gpus")
    assert (gpus.kind, gpus.unit, gpus.dimension) == ("number", "", "count")
    assert vocabulary.fact("gpu.vram").as_sold
    assert not vocabulary.fact("memory.required").as_sold


def test_groups_are_the_names_before_the_dot(vocabulary: Vocabulary) -> None:
    assert vocabulary.groups[0] == "request"
    assert {"gpu", "option", "options", "fit"} <= set(vocabulary.groups)
    assert len(set(vocabulary.groups)) == len(vocabulary.groups)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("memory.defecit", "Did you mean 'memory.deficit'?"),
        ("Memory.Deficit", "Did you mean 'memory.deficit'?"),
        ("deficit", "Did you mean 'memory.deficit'?"),
        ("memory.vram", "Did you mean 'gpu.vram'?"),
        ("gpu.headroom", "Did you mean 'memory.headroom' or 'option.headroom'?"),
        ("foo.bar", ""),
    ],
)
def test_an_unknown_fact_is_named_with_its_neighbour(
    name: str, hint: str, vocabulary: Vocabulary
) -> None:
    with pytest.raises(KnowledgeError) as caught:
        vocabulary.fact(name)
    assert str(caught.value) == f"unknown fact '{name}'. {hint}".rstrip()


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("gpu.vram", 24.0 * 2**30, "24.0 GiB"),
        ("gpu.bandwidth", 1.008e12, "1,008 GB/s"),
        ("gpu.tdp", 450.0, "450 W"),
        ("model.parameters", 14e9, "14 B"),
        ("model.kv_bytes_per_token", 128.0 * 1024, "128 KiB"),
        ("option.quality_loss", 1.6, "1.6 %"),
        ("request.gpus", 2.0, "2"),
        ("request.context", 4096.0, "4,096 tokens"),
        ("gpu.laptop", False, "no"),
        ("gpu.laptop", True, "yes"),
        ("fit.state", "needs_offload", "needs_offload"),
    ],
)
def test_values_are_shown_with_their_unit(
    name: str, value: float | str, shown: str, vocabulary: Vocabulary
) -> None:
    assert show(vocabulary.fact(name), value) == shown


def test_the_cache_gives_the_same_vocabulary(vocabulary: Vocabulary) -> None:
    assert load_vocabulary() == vocabulary


def test_a_folder_adds_and_changes_facts(tmp_path: Path, vocabulary: Vocabulary) -> None:
    mine = written(
        tmp_path,
        "- {fact: fit.mood, values: [good, bad], from: rules, help: How it feels.}\n"
        "- {fact: gpu.tdp, unit: kW, from: knowledge, help: Board power.}\n",
    )
    found = load_vocabulary(mine)
    assert set(found.facts) - set(vocabulary.facts) == {"fit.mood"}
    assert show(found.fact("gpu.tdp"), 450.0) == "0.45 kW"
    assert found.sha256 != vocabulary.sha256


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("fact: gpu.name, unit: GiB, from: knowledge, help: x", "changes its kind, dimension, of"),
        ("fact: fit.state, values: [good, bad], from: rules, help: x", "changes its values"),
        ("fact: gpu.tdp, unit: GiB, from: knowledge, help: x", "changes its dimension"),
        ("fact: house.x, unit: GiB, from: estimate, help: x", "nothing gives 'house.x' a value"),
    ],
)
def test_a_folder_does_not_change_what_facts_mean(entry: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match=message) as caught:
        load_vocabulary(written(tmp_path, f"- {{{entry}}}\n"))
    assert str(caught.value).startswith("mine/facts.yaml:1:4: ")


def test_a_folder_without_the_file_changes_nothing(tmp_path: Path, vocabulary: Vocabulary) -> None:
    assert load_vocabulary(tmp_path) == vocabulary


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "fact: Bad, unit: W, from: input, help: x",
            (
                "1:4: 'Bad' is not a fact name. Write "
                "group.name in small letters, digits and underscores."
            ),
        ),
        ("fact: a.b, unit: Wat, from: input, help: x", "1:15: unknown unit 'Wat'. "),
        (
            "fact: a.b, from: input, help: x",
            (
                "1:3: a fact has exactly one of 'unit', 'values' and "
                "'type'. Numbers have 'unit', enums 'values', the rest 'type: flag' or "
                "'type: text'."
            ),
        ),
        ("fact: a.b, unit: W, type: flag, from: input, help: x", "1:3: a fact has exactly one of"),
        (
            "fact: a.b, type: flg, from: input, help: x",
            ("1:21: unknown type 'flg'. Did you mean 'flag'?"),
        ),
        (
            "fact: a.b, type: flag, from: inputs, help: x",
            ("1:33: unknown from 'inputs'. Did you mean 'input'?"),
        ),
        (
            "fact: a.b, type: text, of: gpu, from: input, help: x",
            ("1:31: unknown of 'gpu'. Did you mean 'gpus'?"),
        ),
        (
            "fact: a.b, type: flag, of: gpus, from: input, help: x",
            ("1:27: 'of' is for facts of 'type: text'."),
        ),
        (
            "fact: a.b, values: [], from: input, help: x",
            ("1:15: 'values' must be a list with at least one name."),
        ),
        ("fact: a.b, values: [on, off], from: input, help: x", "1:24: 'on' is not a name. Put it "),
        ("fact: a.b, values: [x, x], from: input, help: x", "1:15: a value stands twice."),
        (
            "fact: a.b, unit: W, as_sold: maybe, from: input, help: x",
            ("1:33: 'as_sold' must be yes or no, not 'maybe'."),
        ),
        ("fact: a.b, unit: W, from: input", "1:3: the key 'help' is missing."),
        ("fact: a.b, unit: W, from: input, help: ''", "1:37: 'help' is empty."),
        (
            "fact: a.b, unit: W, from: input, help: one, two",
            (
                "1:48: unknown key 'two'. Between { } "
                "a comma ends the value: put a value with commas in quotes."
            ),
        ),
    ],
)
def test_mistakes_are_named_with_their_place(entry: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        load_vocabulary(written(tmp_path, f"- {{{entry}}}\n"))
    assert str(caught.value).startswith(f"mine/facts.yaml:{message}")


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    entries = "- {fact: a.b, unit: Wat, from: input, help: x}\n- {fact: a.c, unit: W}\n"
    twice = "- {fact: a.d, unit: W, from: rules, help: x}\n" * 2
    with pytest.raises(UserError) as caught:
        load_vocabulary(written(tmp_path, entries + twice))
    found = [line.split(": ")[0] for line in str(caught.value).splitlines()]
    assert found == [f"mine/facts.yaml:{at}" for at in ("1:15", "2:3", "2:3", "4:4")]
