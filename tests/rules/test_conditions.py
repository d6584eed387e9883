import pytest

from advisor.knowledge.vocabulary import Vocabulary
from advisor.rules.language import parse_rules
from advisor.rules.language.model import Rule, Test
from tests.rules.texts import note

GIB, GB = 2**30, 10**9


def only_rule(when: str, vocabulary: Vocabulary) -> Rule:
    (rule,) = parse_rules({"r.yaml": note(when).encode()}, vocabulary)
    return rule


def only_test(entry: str, vocabulary: Vocabulary) -> Test:
    (test,) = only_rule(f"    {entry}\n", vocabulary).when.tests
    return test


@pytest.mark.parametrize(
    ("entry", "verb", "value"),
    [
        ("memory.deficit: above 2 GB", "above", 2.0 * GB),
        ("memory.deficit: above 2 GiB", "above", 2.0 * GIB),
        ("memory.deficit: above 80000 MB", "above", 80.0 * GB),
        ("gpu.vram: at least 24 GB", "at least", 24.0 * GIB),
        ("gpu.vram: at least 24 GiB", "at least", 24.0 * GIB),
        ("host.ram: below 64 GB", "below", 64.0 * GIB),
        ("gpu.bandwidth: above 1 TB/s", "above", 1e12),
        ("gpu.tdp: at most 0.35 kW", "at most", 350.0),
        ("model.parameters: below 8 B", "below", 8e9),
        ("model.parameters: below 350M", "below", 350e6),
        ("option.speed_gain: above -5 %", "above", -5.0),
        ("request.context: above 32_768 tokens", "above", 32768.0),
        ("request.context: above 32,768 tokens", "above", 32768.0),
        ("request.gpus: is 1", "is", 1.0),
        ("request.gpus: is not 1", "is not", 1.0),
        ("memory.deficit: above 0 GB", "above", 0.0),
        ("gpu.vendor: is NVIDIA", "is", "NVIDIA"),
        ("gpu.segment: is not apple", "is not", "apple"),
        ("gpu.segment: one of apple, edge", "one of", ("apple", "edge")),
        ("gpu.segment: one of apple", "one of", ("apple",)),
        ("gpu.architecture: is Ada Lovelace", "is", "Ada Lovelace"),
        ("gpu.laptop: is yes", "is", True),
        ("gpu.laptop: is no", "is", False),
        ("gpu.tdp: is known", "is known", None),
        ("gpu.tdp: is unknown", "is unknown", None),
        ("framework.name: is llama.cpp", "is", "llama.cpp"),
    ],
)
def test_a_condition_gives_verb_and_base_value(
    entry: str, verb: str, value: object, vocabulary: Vocabulary
) -> None:
    test = only_test(entry, vocabulary)
    assert (test.verb, test.value, test.other) == (verb, value, None)
    assert test.text == entry.partition(": ")[2]
    assert type(test.value) is type(value)


@pytest.mark.parametrize(
    ("entry", "other"),
    [
        ("memory.weights: above memory.usable", "memory.usable"),
        ("option.bandwidth: at least gpu.bandwidth", "gpu.bandwidth"),
        ("option.framework: is not framework.name", "framework.name"),
        ("option.gpu_segment: is gpu.segment", "gpu.segment"),
        ("model.kv_bytes_per_token: above option.saved", "option.saved"),
    ],
)
def test_a_value_may_be_another_fact(entry: str, other: str, vocabulary: Vocabulary) -> None:
    test = only_test(entry, vocabulary)
    assert (test.value, test.other) == (None, other)


def test_a_rule_is_about_options_even_if_only_the_value_names_one(vocabulary: Vocabulary) -> None:
    rule = only_rule("    memory.usable: above option.required\n", vocabulary)
    assert rule.per_option


def test_between_includes_both_ends_and_shares_the_unit(vocabulary: Vocabulary) -> None:
    for written in ("between 4 and 6 bit", "between 4 bit and 6 bit"):
        low, high = only_rule(f"    weights.bits_per_weight: {written}\n", vocabulary).when.tests
        assert [(low.verb, low.value), (high.verb, high.value)] == [
            ("at least", 4.0), ("at most", 6.0),
        ]  # fmt: skip
        assert (low.text, high.text) == ("at least 4 bit", "at most 6 bit")


def test_a_condition_knows_its_place(vocabulary: Vocabulary) -> None:
    test = only_test("gpu.tdp: above 300 W", vocabulary)
    assert str(test.source) == "r.yaml:5:14"


def test_blocks_nest(vocabulary: Vocabulary) -> None:
    when = only_rule(
        "    any:\n"
        "      - gpu.laptop: is yes\n"
        "      - any:\n"
        "          - gpu.tdp: above 1 W\n"
        "          - gpu.tdp: is unknown\n"
        "        not: {gpu.fp8: is yes}\n",
        vocabulary,
    ).when
    inner = when.any[0][1]
    assert len(inner.any[0]) == 2
    assert inner.none[0].tests[0].fact == "gpu.fp8"


def test_zero_needs_no_source(vocabulary: Vocabulary) -> None:
    text = note("    memory.deficit: above 0 GB\n").replace("  source: board maker\n", "")
    assert parse_rules({"r.yaml": text.encode()}, vocabulary)
