"""A user's knowledge over the built-in one, entry by entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import Problems, UserError
from advisor.knowledge import check_knowledge, find, load_knowledge, provenance_line
from advisor.knowledge.layers import user_record
from advisor.knowledge.types import Knowledge

HOUSE = "- {id: house, what: Ours., kind: background, as_of: 2026-11}\n"
ENTRIES = {
    "sources-mine.yaml": HOUSE,
    "gpus/mine.yaml": (
        "- {gpu: Lab 4090, based_on: GeForce RTX 4090, vram: 48 GiB, source: house}\n"
        "- {gpu: GeForce RTX 3090, based_on: GeForce RTX 3090, launch_price: 700 USD,"
        " source: house}\n"
        "- {disable: GeForce RTX 3080, reason: None left.}\n"
    ),
    "models/mine.yaml": (
        "- {model: Ours-4B, based_on: Phi-3-mini-4k-instruct, licence: ours, source: house}\n"
    ),
    "formats-mine.yaml": "- {format: Q4_K_M, based_on: Q4_K_M, quality_loss: 1 %, source: house}\n",
    "policy-mine.yaml": (
        "- {policy: tight_below_percent, replaces: tight_below_percent, value: 15 %, kind: policy,"
        " why: More room., source: house}\n"
    ),
}


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Knowledge:
    return load_knowledge(written(tmp_path_factory.mktemp("house"), ENTRIES))


@pytest.fixture(scope="module")
def built_in() -> Knowledge:
    return load_knowledge()


def test_a_card_takes_over_what_it_does_not_state(mine: Knowledge, built_in: Knowledge) -> None:
    card, base = mine.gpus["Lab 4090"], built_in.gpus["GeForce RTX 4090"]
    assert card.vram_bytes == 48 * 2**30
    assert card.bandwidth_bytes_s == base.bandwidth_bytes_s
    assert card.tdp_w == base.tdp_w
    assert not card.aliases
    assert mine.gpus["GeForce RTX 4090"] == base


def test_a_figure_that_is_taken_over_keeps_its_source(mine: Knowledge, built_in: Knowledge) -> None:
    card, base = mine.gpus["Lab 4090"], built_in.gpus["GeForce RTX 4090"]
    assert card.sources[""] == "house"
    assert card.sources["bandwidth"] == base.sources["bandwidth"]
    assert card.sources["tdp"] == base.sources[""]
    assert "vram" not in card.sources


def test_a_price_alone_is_changed(mine: Knowledge, built_in: Knowledge) -> None:
    card, base = mine.gpus["GeForce RTX 3090"], built_in.gpus["GeForce RTX 3090"]
    assert card.launch_price_usd == 700
    assert card.aliases == base.aliases
    assert (card.vram_bytes, card.bandwidth_bytes_s) == (base.vram_bytes, base.bandwidth_bytes_s)
    kept = [name for name in mine.gpus if name != "Lab 4090"]
    assert kept == [name for name in built_in.gpus if name != "GeForce RTX 3080"]


def test_other_tables_are_laid_the_same_way(mine: Knowledge, built_in: Knowledge) -> None:
    assert mine.formats["Q4_K_M"].quality_loss_percent == 1
    assert mine.formats["Q4_K_M"].family == built_in.formats["Q4_K_M"].family
    assert list(mine.formats) == list(built_in.formats)
    assert mine.policy["tight_below_percent"] == 15
    assert mine.policy.keys() == built_in.policy.keys()
    assert mine.models["Ours-4B"].hf_id is None
    assert mine.models["Ours-4B"].parameters == (
        built_in.models["Phi-3-mini-4k-instruct"].parameters
    )


def test_a_card_that_is_switched_off_is_gone_and_found_with_the_reason(mine: Knowledge) -> None:
    assert "GeForce RTX 3080" not in mine.gpus
    said = [shown for _, name, shown in find(mine, "rtx 3080") if name == "GeForce RTX 3080"]
    assert said == ["switched off by yours: knowledge/gpus/mine.yaml:3: None left."]


def test_every_entry_says_whose_it_is(mine: Knowledge, built_in: Knowledge) -> None:
    assert str(user_record(mine, "gpu", "Lab 4090")) == (
        "yours: knowledge/gpus/mine.yaml:1, own: vram; the rest from GeForce RTX 4090"
    )
    changed = str(user_record(mine, "policy", "tight_below_percent"))
    assert changed.startswith(
        "yours: knowledge/policy-mine.yaml:1, replaces the built-in tight_below_percent "
        "(knowledge/policy.yaml:"
    )
    assert user_record(mine, "gpu", "GeForce RTX 4090") is None
    assert user_record(built_in, "gpu", "GeForce RTX 4090") is None
    counted = "yours: 2 added, 3 in the place of built-in ones, 1 switched off"
    assert provenance_line(mine) == counted
    assert provenance_line(built_in) == ""
    assert any("; yours: knowledge/gpus/mine.yaml:1" in row[2] for row in find(mine, "lab"))


def test_the_cache_keeps_whose_it_is(tmp_path: Path, mine: Knowledge) -> None:
    again = load_knowledge(written(tmp_path, ENTRIES))
    assert again.user_entries == mine.user_entries
    assert again.sha256 == mine.sha256


MISTAKES = {
    "sources-mine.yaml": HOUSE,
    "gpus/a.yaml": (
        "- {gpu: GeForce RTX 4090, vendor: NVIDIA, segment: consumer, architecture: Ada Lovelace,"
        " vram: 24 GiB, source: house}\n"
        "- {gpu: X, based_on: GeForce RTX 4091, source: house}\n"
        "- {gpu: Y, replaces: RTX 3090, vendor: NVIDIA, segment: consumer, architecture: Ada,"
        " source: house}\n"
        "- {disable: GeForce RTX 3080}\n"
        "- {disable: GeForce RTX 3070, reason: x, note: y}\n"
        "- {disable: GeForce RTX 3070, reason: x}\n"
    ),
    "gpus/nvidia-volta.yaml": ("- {gpu: Z, based_on: GeForce RTX 4090, source: house}\n"),
    "formats-a.yaml": "- {disable: Q4_K_M, reason: x}\n",
    "mine.yaml": "- {gpu: Z}\n",
    "format.yaml": "",
    "gpu/x.yaml": "",
    "gpus.yaml": "",
    "models/x.yml": "",
    "measurments.csv": "",
    "README.md": "",
    "measurements/raw.csv": "",
}


def test_every_mistake_is_said_at_once_with_its_place(tmp_path: Path) -> None:
    found = [str(problem) for problem in check_knowledge(written(tmp_path, MISTAKES))]
    said = "\n".join(found).replace(f"{tmp_path}/", "")
    nothing = "nothing is read from a file of this name."
    for line in (
        "gpus/a.yaml:1:3: the gpu 'GeForce RTX 4090' is built in (at knowledge/gpus/nvidia-ada.",
        (
            "Write 'replaces: GeForce RTX 4090' to take its place, 'based_on: GeForce RTX 4090' to "
            "change some of its fields, or give yours another name."
        ),
        "gpus/a.yaml:2:12: 'based_on': there is no built-in gpu 'GeForce RTX 4091'. Did you mean",
        (
            "gpus/a.yaml:3:12: 'replaces': there is no built-in gpu 'RTX 3090'. "
            "Did you mean 'GeForce RTX 3090'?"
        ),
        "gpus/a.yaml:4:3: the key 'reason' is missing. Say why it is switched off.",
        "unknown key 'note'. 'disable' takes a 'reason' and nothing else.",
        (
            "the built-in gpu 'GeForce RTX 3070' is taken twice (first at gpus/a.yaml:5:3). "
            "Keep one of the two."
        ),
        (
            "gpus/nvidia-volta.yaml:1:1: this file takes the place of the built-in "
            "knowledge/gpus/nvidia-volta.yaml and leaves out"
        ),
        "Call it gpus/mine.yaml to add to the built-in entries.",
        "formats-a.yaml:1:3: a format cannot be switched off: other entries name it. Write a rule",
        f"mine.yaml: {nothing} Cards go into gpus/NAME.yaml, models into models/NAME.yaml,",
        f"format.yaml: {nothing} Did you mean formats-mine.yaml?",
        f"gpu/x.yaml: {nothing} Did you mean gpus/x.yaml?",
        f"gpus.yaml: {nothing} Did you mean gpus/mine.yaml?",
        f"models/x.yml: {nothing} Rename it to models/x.yaml.",
        f"measurments.csv: {nothing} Did you mean measurements.csv?",
    ):
        assert line in said
    assert "README" not in said
    assert "raw.csv" not in said
    assert "'X': " not in said, "what is based on nothing known is not read any further"


def test_a_wrong_entry_of_the_users_is_refused_when_it_is_loaded(tmp_path: Path) -> None:
    with pytest.raises((Problems, UserError), match="nothing is read from a file of this name"):
        load_knowledge(written(tmp_path, {"mine.yaml": ""}))


def test_what_breaks_a_built_in_file_is_said_of_that_file(tmp_path: Path) -> None:
    text = "- {format: Q4, replaces: Q4_K_M, kind: plain, family: awq, source: house}\n"
    folder = written(tmp_path, {"sources-mine.yaml": HOUSE, "formats-a.yaml": text})
    said = [str(problem) for problem in check_knowledge(folder)]
    assert any(line.startswith("knowledge/frameworks.yaml:") for line in said)


LISTED = """\
- framework: vLLM
  based_on: vLLM
  formats: {add: [Q4_K_M], remove: [FP16, INT8 W8A8]}
  vendors: {remove: [Intel]}
  source: house
"""


def frameworks(folder: Path, text: str) -> Path:
    return written(folder, {"sources-mine.yaml": HOUSE, "frameworks-mine.yaml": text})


def test_a_list_is_changed_where_it_stands(tmp_path: Path, built_in: Knowledge) -> None:
    base = built_in.frameworks["vLLM"]
    folder = frameworks(tmp_path / "a", LISTED)
    made = load_knowledge(folder).frameworks["vLLM"]
    kept = [name for name in base.formats if name not in {"FP16", "INT8 W8A8"}]
    assert list(made.formats) == [*kept, "Q4_K_M"]
    assert "Intel" in base.vendors
    assert list(made.vendors) == [name for name in base.vendors if name != "Intel"]
    assert check_knowledge(folder) == []
    upper = frameworks(
        tmp_path / "b",
        LISTED.replace(
            "{add: [Q4_K_M], remove: [FP16, INT8 W8A8]}", "{add: [FP16, Q5_K_M, Q4_K_M]}"
        ).replace("  vendors: {remove: [Intel]}\n", ""),
    )
    twice = load_knowledge([folder, upper]).frameworks["vLLM"]
    assert list(twice.formats) == [*kept, "Q4_K_M", "FP16", "Q5_K_M"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("formats: {remove: [FP17]}", "'formats' has no 'FP17' to remove. Did you mean 'FP16'"),
        ("memory_fraction: {add: [1]}", "'add' and 'remove' need a list 'memory_fraction'"),
        ("formats: {add: [FP99]}", "FP99"),
        ("formats: {add: [FP8], drop: [FP16]}", "formats"),
        ("formats: {}", "formats"),
    ],
)
def test_what_is_no_change_of_a_list_is_refused(tmp_path: Path, change: str, said: str) -> None:
    entry = f"- framework: vLLM\n  based_on: vLLM\n  {change}\n  source: house\n"
    found = [str(one) for one in check_knowledge(frameworks(tmp_path, entry))]
    assert any(said in one for one in found), found
    assert all("frameworks-mine.yaml:3:" in one for one in found), found


def test_a_change_needs_an_entry_below(tmp_path: Path) -> None:
    card = "- {gpu: Ours, vram: 24 GiB, vendor: NVIDIA, aliases: {add: [Mine]}, source: house}\n"
    folder = written(tmp_path, {"sources-mine.yaml": HOUSE, "gpus/mine.yaml": card})
    said = " ".join(str(one) for one in check_knowledge(folder))
    assert "'add' and 'remove' need a list 'aliases' in the entry that it is based on" in said


def test_a_shorter_list_is_told_by_checks_alone(tmp_path: Path) -> None:
    entry = "- {framework: vLLM, based_on: vLLM, formats: [FP8, Q4_K_M], source: house}\n"
    folder = frameworks(tmp_path, entry)
    (one,) = check_knowledge(folder)
    assert one.lint == "shorter-list"
    assert "leaves out AWQ 4-bit, GPTQ 4-bit, GPTQ 8-bit and 7 more. Write 'formats: {add" in str(
        one
    )
    assert load_knowledge(folder).unusual == ()
