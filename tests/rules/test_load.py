import subprocess
import sys
from pathlib import Path

import pytest

from advisor.errors import RuleFileError, Source, UserError
from advisor.knowledge import load_knowledge
from advisor.knowledge.vocabulary import Vocabulary
from advisor.rules import all_tests
from advisor.rules.language import load_rules, read_as_far
from advisor.rules.language.model import PerTerm
from tests.parsed_rules import parse_rules
from tests.rules.texts import FULL, LADDER, TABLE, note


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rules = tmp_path / "mine"
    (rules / "deep").mkdir(parents=True)
    (rules / "full.yaml").write_text(FULL, encoding="utf-8")
    (rules / "deep" / "ladder.yaml").write_text(LADDER + TABLE, encoding="utf-8")
    (rules / "README.md").write_text("not a rule", encoding="utf-8")
    return rules


def test_rules_come_in_file_and_definition_order(folder: Path, vocabulary: Vocabulary) -> None:
    rules = load_rules(folder, vocabulary=vocabulary).rules
    assert [rule.id for rule in rules] == [
        "bandwidth-class-low", "bandwidth-class-medium", "bandwidth-class-high",
        "fit-gap-slight", "fit-gap-large",
        "too-big", "quantize-to-fit", "offload-layers", "no-two-bits", "mind-the-heat",
    ]  # fmt: skip


def test_a_rule_is_read_in_full(folder: Path, vocabulary: Vocabulary) -> None:
    rule = load_rules(folder, vocabulary=vocabulary).rule("quantize-to-fit")
    assert (rule.kind, rule.per_option, rule.action) == ("recommend", True, "quantize")
    assert (rule.status, rule.since, rule.reference) == (
        "experimental", "0.1", "measured perplexities",
    )  # fmt: skip
    assert rule.supersedes == ("offload-layers",)
    assert rule.text == "quantize.md.j2"
    assert rule.source == Source("mine/full.yaml", 10, 3)
    by_fact = {test.fact: test for test in rule.when.tests}
    assert by_fact["fit.state"].value == ("needs_offload", "too_big")
    assert by_fact["option.fits"].value is True
    assert by_fact["option.quality_loss"].value == 5.0
    assert by_fact["option.quality_loss"].text == "at most 5 %"
    assert by_fact["option.required"].other == "memory.usable"
    assert by_fact["gpu.nvlink"].verb == "is unknown"
    (alternatives,) = rule.when.any
    assert [test.verb for test in alternatives[1].tests] == ["at least", "at most", "is"]
    assert [test.value for test in alternatives[1].tests] == [5e11, 2e12, False]
    (negated,) = rule.when.none
    assert negated.tests[1].value == 500.0


def test_a_score_is_read_in_base_units(folder: Path, vocabulary: Vocabulary) -> None:
    score = load_rules(folder, vocabulary=vocabulary).rule("quantize-to-fit").score
    assert score is not None
    assert score.base == 80
    shown = [(term.fact, term.points, term.per_value, term.cap) for term in score.add]
    assert shown == [
        ("option.quality_loss", -3, 1, None),
        ("option.decode_speed", 0.1, 1, 10),
        ("option.context", 2, 1000, None),
        ("option.steps", -4, 1, None),
    ]
    assert isinstance(score.add[0], PerTerm)
    assert score.when[0].text == "request.prefer is quality, option.bits_per_weight at least 6 bit"
    assert len(score.when[0].tests) == 2


def test_cases_keep_their_inputs(folder: Path, vocabulary: Vocabulary) -> None:
    fires, silent = load_rules(folder, vocabulary=vocabulary).rule("quantize-to-fit").cases
    assert (fires.expect, fires.rank, fires.says) == ("fires", 1, "smaller")
    assert fires.change == {"precision": "Q8_0"}
    assert fires.given["context"] == 4096
    assert silent.given["flash_attention"] is True
    assert silent.change is None


def test_notes_and_vetoes_are_read(folder: Path, vocabulary: Vocabulary) -> None:
    rules = load_rules(folder, vocabulary=vocabulary)
    heat, bits = rules.rule("mind-the-heat"), rules.rule("no-two-bits")
    assert (heat.kind, heat.text, heat.note) == ("note", "heat.md.j2", None)
    assert heat.score is not None
    assert heat.score.base == 20
    assert (bits.kind, bits.replaced_by) == ("veto", "quantize-to-fit")


def test_the_cache_gives_what_a_fresh_parse_gives(
    folder: Path, vocabulary: Vocabulary, own_cache: Path
) -> None:
    first = load_rules(folder, vocabulary=vocabulary)
    assert len(list(own_cache.glob("rules-*.json"))) == 1
    second = load_rules(folder, vocabulary=vocabulary)
    names = {"full.yaml": folder / "full.yaml", "deep/ladder.yaml": folder / "deep/ladder.yaml"}
    contents = {f"mine/{name}": path.read_bytes() for name, path in sorted(names.items())}
    assert first == second
    assert second.rules == parse_rules(contents, vocabulary)


def test_a_warm_load_imports_no_parser_and_no_openssl(folder: Path, own_cache: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from advisor.rules.language import load_rules\n"
        "from advisor.knowledge.vocabulary import load_vocabulary\n"
        f"load_rules(pathlib.Path({str(folder)!r}), vocabulary=load_vocabulary())\n"
        "print(sorted({'yaml', 'pydantic', 'jinja2', 'rich', '_hashlib'} & set(sys.modules)))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert own_cache.is_dir()
    assert "'yaml'" in runs[0].stdout
    assert runs[1].stdout.strip() == "[]"


def test_a_broken_cache_file_is_rebuilt(
    folder: Path, vocabulary: Vocabulary, own_cache: Path
) -> None:
    first = load_rules(folder, vocabulary=vocabulary)
    for path in own_cache.glob("*.json"):
        path.write_text("{", encoding="utf-8")
    assert load_rules(folder, vocabulary=vocabulary) == first


def test_a_vanished_template_is_found_in_spite_of_the_cache(
    folder: Path, vocabulary: Vocabulary
) -> None:
    every = ["quantize.md.j2", "offload.md.j2", "heat.md.j2"]
    load_rules(folder, vocabulary=vocabulary, templates=every)
    with pytest.raises(RuleFileError, match=r"unknown template 'heat\.md\.j2'"):
        load_rules(folder, vocabulary=vocabulary, templates=every[:2])


def test_names_are_checked_when_they_are_known(tmp_path: Path, vocabulary: Vocabulary) -> None:
    (tmp_path / "a.yaml").write_text(note("{gpu.name: is RTX 409}"), encoding="utf-8")
    load_rules(tmp_path, vocabulary=vocabulary)
    load_rules(tmp_path, vocabulary=vocabulary, names={"models": ["x"]})
    with pytest.raises(RuleFileError, match="Did you mean 'RTX 4090'"):
        load_rules(tmp_path, vocabulary=vocabulary, names={"gpus": ["RTX 4090"]})


def test_the_hash_follows_the_files(folder: Path, vocabulary: Vocabulary) -> None:
    first = load_rules(folder, vocabulary=vocabulary).sha256
    moved = folder.rename(folder.with_name("elsewhere"))
    assert load_rules(moved, vocabulary=vocabulary).sha256 == first
    (moved / "full.yaml").write_text(FULL + "\n", encoding="utf-8")
    assert load_rules(moved, vocabulary=vocabulary).sha256 != first


def test_a_folder_can_lie_over_another(
    folder: Path, tmp_path: Path, vocabulary: Vocabulary
) -> None:
    upper = tmp_path / "upper"
    upper.mkdir()
    (upper / "more.yaml").write_text(note("{gpu.tdp: above 1 W}", "warm"), encoding="utf-8")
    below = load_rules(folder, vocabulary=vocabulary).rules
    rules = load_rules(upper, vocabulary=vocabulary, over=folder).rules
    assert [rule.id for rule in rules] == [*(rule.id for rule in below), "warm"]
    assert rules[:-1] == below
    assert str(rules[-1].source) == "upper/more.yaml:1:3"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "there is no rule file in"),
        ({"a.txt": "x"}, "there is no rule file in"),
        ({"a.yml": "x"}, "'new/a.yml' would not be read. Rename it to end in .yaml."),
    ],
)
def test_a_folder_without_rules_is_an_error(
    files: dict[str, str], message: str, tmp_path: Path, vocabulary: Vocabulary
) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(RuleFileError) as caught:
        load_rules(folder, vocabulary=vocabulary)
    assert message in str(caught.value)


def test_a_misnamed_file_hides_nothing(tmp_path: Path, vocabulary: Vocabulary) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    for name in ("a.yml", "b.yml", "c.yaml"):
        (folder / name).write_text("- rule: X\n", encoding="utf-8")
    found = [str(error) for error in read_as_far(folder, vocabulary=vocabulary).problems]
    for name in ("a.yml", "b.yml"):
        assert sum(f"{name}' would not be read" in line for line in found) == 1
    assert any("c.yaml:1" in line for line in found)


NAMED = """\
- rule: one
  why: x
  source: x
  when: {{{}}}
  note: x
  cases:
    - {{name: a, given: {{gpu: RTX 4090, model: phi-3-mini}}, expect: fires}}
    - {{name: b, given: {{gpu: RTX 4060, model: phi-3-mini}}, expect: silent}}
"""


@pytest.mark.parametrize(
    ("condition", "name"),
    [
        ("gpu.name: is RTX 4090", "GeForce RTX 4090"),
        ("gpu.name: is not rtx4090", "GeForce RTX 4090"),
        ("gpu.name: is RTX 3080:12GB", "GeForce RTX 3080 12 GB"),
        ("framework.name: is LLAMACPP", "llama.cpp"),
        ("scenario.format: is q4-k-m", "Q4_K_M"),
    ],
)
def test_names_in_conditions_are_those_of_the_command_line(
    condition: str, name: str, vocabulary: Vocabulary
) -> None:
    condition = condition.replace("scenario.format", _format_fact(vocabulary))
    names = load_knowledge().names()
    text = NAMED.format(condition).encode()
    (rule,) = parse_rules({"a.yaml": text}, vocabulary, names=names)
    assert [test.value for test in all_tests(rule.when)] == [name]


def _format_fact(vocabulary: Vocabulary) -> str:
    return next(fact.name for fact in vocabulary.facts.values() if fact.of == "formats")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("RTX 4099", "is not a name of gpu.name. Did you mean"),
        ("M4 Pro:24GB", "Write 'Apple M4 Pro', and gpu.vram for the size"),
        ("A100", "names several cards"),
    ],
)
def test_a_name_that_is_not_one_record_is_refused(
    vocabulary: Vocabulary, name: str, said: str
) -> None:
    text = NAMED.format(f"gpu.name: is {name}").encode()
    with pytest.raises(RuleFileError, match=said):
        parse_rules({"a.yaml": text}, vocabulary, names=load_knowledge().names())


def test_a_missing_folder_is_an_error(tmp_path: Path, vocabulary: Vocabulary) -> None:
    with pytest.raises(UserError, match="there is no folder"):
        load_rules(tmp_path / "nowhere", vocabulary=vocabulary)
