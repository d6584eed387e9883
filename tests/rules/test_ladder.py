import pytest

from advisor.errors import UserError
from advisor.knowledge.vocabulary import Vocabulary
from tests.parsed_rules import parse_rules
from tests.rules.texts import LADDER, TABLE


def shown(text: str, vocabulary: Vocabulary) -> dict[str, list[list[str]]]:
    rules = parse_rules({"l.yaml": text.encode()}, vocabulary)
    return {
        rule.id: [[f"{test.fact} {test.text}" for test in way] for way in rule.branches]
        for rule in rules
    }


def test_every_value_becomes_a_rule_over_its_range(vocabulary: Vocabulary) -> None:
    assert shown(LADDER, vocabulary) == {
        "bandwidth-class-low": [["gpu.bandwidth below 300 GB/s"]],
        "bandwidth-class-medium": [
            ["gpu.bandwidth at least 300 GB/s", "gpu.bandwidth below 1 TB/s"]
        ],
        "bandwidth-class-high": [["gpu.bandwidth at least 1000 GB/s"]],
    }


def test_rows_with_one_value_become_one_rule(vocabulary: Vocabulary) -> None:
    deficit = "memory.deficit above 0 GiB"
    assert shown(TABLE, vocabulary) == {
        "fit-gap-slight": [
            [deficit, "memory.deficit_share below 30 %", "model.parameters below 8 B"],
        ],
        "fit-gap-large": [
            [deficit, "memory.deficit_share at least 30 %", "model.parameters below 8 B"],
            [deficit, "model.parameters at least 8 B"],
        ],
    }


def test_expanded_rules_keep_what_the_ladder_says(vocabulary: Vocabulary) -> None:
    for rule in parse_rules({"l.yaml": LADDER.encode()}, vocabulary):
        assert rule.ladder == "bandwidth-class"
        assert rule.why == "Decoding follows the bandwidth."
        assert rule.reference == "spread of the cards on sale"
        assert list(rule.conclude) == ["gpu.bandwidth_class"]


def test_a_case_fires_the_rule_of_its_value_and_no_other(vocabulary: Vocabulary) -> None:
    rules = parse_rules({"l.yaml": (LADDER + TABLE).encode()}, vocabulary)
    found = {rule.id: [case.expect for case in rule.cases] for rule in rules}
    assert found == {
        "bandwidth-class-low": ["fires", "silent", "silent"],
        "bandwidth-class-medium": ["silent", "fires", "silent"],
        "bandwidth-class-high": ["silent", "silent", "fires"],
        "fit-gap-slight": ["fires", "silent", "silent"],
        "fit-gap-large": ["silent", "fires", "silent"],
    }


def test_a_table_with_a_hole_is_refused(vocabulary: Vocabulary) -> None:
    text = TABLE.replace("    - {model.parameters: {from: 8 B}, value: large}\n", (
        "    - {memory.deficit_share: {from: 30 %}, model.parameters: {from: 8 B}, value: large}\n"
    ))  # fmt: skip
    with pytest.raises(UserError) as caught:
        parse_rules({"l.yaml": text.encode()}, vocabulary)
    where = "memory.deficit_share to 30 % with model.parameters from 8 B"
    assert str(caught.value) == (f"l.yaml:7:3: no row covers {where}. Add a row, or move a bound.")


def test_rows_of_a_table_may_not_overlap(vocabulary: Vocabulary) -> None:
    text = TABLE.replace("model.parameters: {from: 8 B}", "model.parameters: {from: 7 B}")
    with pytest.raises(UserError, match=r"two rows overlap: memory\.deficit_share to 30 %"):
        parse_rules({"l.yaml": text.encode()}, vocabulary)


def test_a_ladder_may_stop_at_both_ends(vocabulary: Vocabulary) -> None:
    text = LADDER.replace("{to: 300", "{from: 10 GB/s, to: 300").replace(
        "{from: 1000 GB/s", "{from: 1 TB/s, to: 9 TB/s"
    )
    found = shown(text, vocabulary)
    assert found["bandwidth-class-low"][0][0] == "gpu.bandwidth at least 10 GB/s"
    assert found["bandwidth-class-high"][0][1] == "gpu.bandwidth below 9 TB/s"
