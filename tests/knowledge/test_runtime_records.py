"""Every mistake in a runtime file is told with its place and what to do."""

from __future__ import annotations

import pytest

from advisor.errors import UserError
from advisor.knowledge.parsing import parse as parse_files
from advisor.knowledge.types import FormatLimit, GgmlType, Knowledge

SOURCES = "- {id: book, what: A book, kind: datasheet, as_of: 2026-11}\n"
GGML = "- {ggml_type: Q8_0, block_elements: 32, block_bytes: 34 bytes, source: book}\n"
FORMAT = """\
- format: Q8_0
  family: gguf-legacy
  kind: gguf
  bits_per_weight: 8.5 bit
  class_bits: 8
  quality_loss: 0.04 %
  source: book
"""
KV = "- {kv_type: f16, bits: 16 bit, source: book}\n"
FRAMEWORK = """\
- framework: runner
  aliases: [rn]
  version: 1.0
  vendors: [NVIDIA]
  formats: [Q8_0]
  model_types: [llama]
  kv_types: [f16]
  memory_model: llama.cpp
  memory_fraction: 90 %
  source: book
"""
COMMAND = """\
- command: start
  framework: runner
  version: 1.0
  what: serves
  lines: [["run -m {gguf}", "-c {context}", {when: shared_cache, add: --shared}]]
  kv_types: {f16: half}
  by_format: {word: {Q8_0: eight}}
  cannot: {ubatch: It is fixed.}
  source: book
"""
POLICY = (
    "- {policy: reserve_bytes, value: 1 GiB, between: 0 GiB and 2 GiB, kind: policy, why: Because.,"
    " source: book}\n"
)
GOOD = {
    "sources.yaml": SOURCES,
    "ggml_types.yaml": GGML,
    "formats.yaml": FORMAT,
    "kv_types.yaml": KV,
    "frameworks.yaml": FRAMEWORK,
    "commands.yaml": COMMAND,
    "policy.yaml": POLICY,
}


def parse(**changed: str) -> tuple[Knowledge, list[str]]:
    texts = GOOD | {f"{name}.yaml": text for name, text in changed.items()}
    problems: list[UserError] = []
    made = parse_files({name: text.encode() for name, text in texts.items()}, problems)
    return made, [str(problem) for problem in problems]


def test_good_files_give_plain_records_in_base_units() -> None:
    made, problems = parse()
    assert problems == []
    weights, runner = made.formats["Q8_0"], made.frameworks["runner"]
    assert weights.bits_per_weight == 8.5
    assert weights.aliases == ()
    assert weights.min_compute_capability is None
    book = {"": "book"}
    assert made.ggml_types == {"Q8_0": GgmlType("Q8_0", 32, 34, book)}
    assert runner.memory_fraction == 0.9
    assert runner.speculative is None
    (command,) = runner.commands
    assert command.name == "start"
    assert command.sources == book
    assert made.policy["reserve_bytes"] == 2**30


def test_a_second_file_of_the_same_table_adds_to_the_first() -> None:
    more = FORMAT.replace("Q8_0", "Q9_0")
    made, problems = parse(**{"formats-mine": more})
    assert problems == []
    assert list(made.formats) == ["Q8_0", "Q9_0"]


def test_a_framework_may_support_what_another_does() -> None:
    twin = FRAMEWORK.replace("runner", "twin").replace("[rn]", "[tw]")
    twin = twin.replace("model_types: [llama]", "model_types_of: runner")
    made, problems = parse(frameworks=FRAMEWORK + twin)
    assert problems == []
    assert made.frameworks["twin"].model_types == ("llama",)


def test_of_an_engine_cards_are_taken_over_but_not_that_it_was_measured() -> None:
    twin = FRAMEWORK.replace("runner", "twin").replace("[rn]", "[tw]")
    said = FRAMEWORK + "  not_on: [Kepler]\n  memory_checked: yes\n"
    made, problems = parse(frameworks=said + twin)
    assert problems == []
    assert made.frameworks["twin"].not_on == ("Kepler",)
    assert not made.frameworks["twin"].memory_checked


def test_what_is_sized_itself_is_no_variant_of_another() -> None:
    twin = FRAMEWORK.replace("runner", "twin").replace("[rn]", "[tw]")
    _, problems = parse(frameworks=FRAMEWORK + twin + "  variants: {rn: It is built on it.}\n")
    (problem,) = problems
    assert "'variants' has 'rn', which is 'runner' and sized itself" in problem


def test_a_piece_for_a_models_own_code_needs_the_models() -> None:
    piece = "[{when: own_code, add: --trust}, "
    _, problems = parse(commands=COMMAND.replace("[[", f"[{piece}"))
    (problem,) = problems
    assert "a piece under 'own_code' and the list 'own_code' belong together" in problem


def test_a_framework_may_run_a_family_of_formats_in_fewer_places() -> None:
    limits = "  format_limits: {exl2: {vendors: [AMD], model_types_of: runner, one_card: yes}}\n"
    twin = FRAMEWORK.replace("runner", "twin").replace("[rn]", "[tw]")
    made, problems = parse(frameworks=FRAMEWORK + twin + limits)
    assert problems == []
    assert made.frameworks["runner"].format_limits == {}
    assert made.frameworks["twin"].format_limits == {
        "exl2": FormatLimit(("AMD",), ("llama",), "runner", one_card=True)
    }


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("{exl: {one_card: yes}}", "no family of weight formats 'exl'. Did you mean 'exl"),
        ("{exl2: yes}", "'exl2' must be a mapping"),
        ("{exl2: {vendors: [AMB]}}", "'AMB' is not valid in 'vendors'. Did you mean 'AMD'?"),
        ("{exl2: {onecard: yes}}", "format limit 'runner, exl2': unknown key 'onecard'."),
        ("{exl2: {model_types_of: llama}}", "there is no framework before it 'llama'."),
    ],
)
def test_a_wrong_limit_is_told_with_its_place(limit: str, words: str) -> None:
    _, problems = parse(frameworks=f"{FRAMEWORK}  format_limits: {limit}\n")
    assert len(problems) == 1
    assert words in problems[0]
    assert problems[0].startswith("frameworks.yaml:11:")


@pytest.mark.parametrize(
    ("table", "old", "new", "place", "words"),
    [
        ("ggml_types", "34 bytes", "34 %", "ggml_types.yaml:1:54", "block_bytes"),
        ("ggml_types", "32", "0", "ggml_types.yaml:1:37", "above zero"),
        ("ggml_types", "block_elements: 32, ", "", "ggml_types.yaml:1:3", "is missing"),
        ("formats", "gguf-legacy", "gguf-lagacy", "formats.yaml:2:11", "'gguf-legacy'"),
        ("formats", "kind: gguf", "kind: ggfu", "formats.yaml:3:9", "'gguf'"),
        ("formats", "8.5 bit", "8.5 GiB", "formats.yaml:4:20", "12 bit"),
        ("formats", "8.5 bit", "8.5", "formats.yaml:4:20", "without a unit"),
        ("formats", "class_bits", "clas_bits", "formats.yaml:5:3", "'class_bits'"),
        ("formats", "0.04 %", "-1 %", "formats.yaml:6:17", "above zero"),
        ("formats", "source: book", "source: bok", "formats.yaml:7:11", "'book'"),
        ("formats", "  source: book\n", "", "formats.yaml:1:3", "'source' is missing"),
        ("formats", "  class", "  aliases: [8-bit]\n  class", "formats.yaml:5:3", "class"),
        ("formats", "- format: Q8_0", "- fromat: Q8_0", "formats.yaml:1:3", "format"),
        ("kv_types", "16 bit", "16 tok/s", "kv_types.yaml:1:24", "bits"),
        ("frameworks", "[NVIDIA]", "[NVIDEA]", "frameworks.yaml:4:12", "'NVIDIA'"),
        ("frameworks", "[Q8_0]", "[Q8_0, Q8_O]", "frameworks.yaml:5:19", "'Q8_0'"),
        ("frameworks", "  model_types: [llama]\n", "", "frameworks.yaml:1:3", "model_types"),
        ("frameworks", "[f16]", "[f61]", "frameworks.yaml:7:14", "'f16'"),
        ("frameworks", "90 %", "900 %", "frameworks.yaml:9:3", "100 %"),
        ("frameworks", "  source", "  model_types_of: x\n  source", "frameworks.yaml:10:19", "x"),
        ("commands", "framework: runner", "framework: runer", "commands.yaml:2:14", "'runner'"),
        ("commands", "{context}", "{contxt}", "commands.yaml:5:29", "'context'"),
        ("commands", "shared_cache", "shared", "commands.yaml:5:45", "'shared_cache'"),
        ("commands", "add: --shared", "ad: --shared", "commands.yaml:5:45", "when: SWITCH"),
        ("commands", "run -m", "run '-m", "commands.yaml:5:12", "quote"),
        ("commands", "lines:", "liens:", "commands.yaml:5:3", "'lines'"),
        ("commands", "{f16: half}", "{f61: half}", "commands.yaml:6:14", "'f16'"),
        ("commands", "Q8_0: eight", "Q9: eight", "commands.yaml:7:22", "'Q9'"),
        ("commands", "ubatch: It", "ubach: It", "commands.yaml:8:12", "'ubatch'"),
        ("policy", "1 GiB", "1 gib", "policy.yaml:1:34", "unknown unit"),
        ("policy", "kind: policy", "kind: guess", "policy.yaml:1:73", "guess"),
        ("policy", "why: Because., ", "", "policy.yaml:1:3", "'why' is missing"),
    ],
)
def test_a_mistake_is_told_with_its_place(
    table: str, old: str, new: str, place: str, words: str
) -> None:
    text = GOOD[f"{table}.yaml"]
    assert text.count(old) >= 1
    _, problems = parse(**{table: text.replace(old, new, 1)})
    told = [problem for problem in problems if problem.startswith(place)]
    assert told, problems
    assert words in told[0]


def test_all_mistakes_come_at_once() -> None:
    _, problems = parse(formats=FORMAT.replace("8.5 bit", "x"), kv_types=KV.replace("16 bit", "y"))
    assert [problem.split(":")[0] for problem in problems] == ["formats.yaml", "kv_types.yaml"]


def test_a_name_that_stands_twice_is_told_with_both_places() -> None:
    _, problems = parse(kv_types=KV + KV)
    assert (
        "kv_types.yaml:2:3: the kv_type 'f16' stands twice (first in kv_types.yaml:1:3)"
        in (problems[0])
    )


def test_two_formats_share_a_name_only_where_the_framework_can_decide() -> None:
    server_format = FORMAT.replace("Q8_0", "Q8 (server)").replace(
        "  family", "  aliases: [q8-0]\n  family"
    )
    both = FORMAT + server_format
    server = FRAMEWORK.replace("runner", "server").replace("[rn]", "[srv]")
    apart = server.replace("[Q8_0]", "['Q8 (server)']")
    assert parse(formats=both, frameworks=FRAMEWORK + apart)[1] == []
    together = server.replace("[Q8_0]", "[Q8_0, 'Q8 (server)']")
    _, problems = parse(formats=both, frameworks=FRAMEWORK + together)
    assert problems[0].startswith("formats.yaml:9:3: format 'Q8 (server)': the name 'q8-0' already")


def test_frameworks_never_share_a_name() -> None:
    twin = FRAMEWORK.replace("runner", "twin")
    _, problems = parse(frameworks=FRAMEWORK + twin)
    assert "the name 'rn' already means 'runner'" in problems[0]
    assert problems[0].startswith("frameworks.yaml:12:3:")
