"""``advisor rules format``: one way to write a file, with the same meaning and all comments."""

import random
import re
from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from advisor.errors import RuleFileError, UserError
from advisor.files import data_dir
from advisor.knowledge.vocabulary import Vocabulary, load_vocabulary
from advisor.rules import Test, When
from advisor.rules.language.layout import formatted
from advisor.rules.language.model import Rule, as_stored
from tests.parsed_rules import parse_rules
from tests.rules.texts import FULL, LADDER, TABLE

ODD = """\
# header


# second
-   rule:   a-rule   # trailing
    # about when
    when:

        gpu.tdp: above 300 W     # hot


        # before vram
        gpu.vram: "at least 24 GB"
        any:
        - {gpu.nvlink: is known,   gpu.tdp: below 900 W}  # one
        # two
        - gpu.laptop: is no
    why: >-
        A long text
        over two lines

        and more
    source: a plain text that
        goes on here
    note:
        score: 5
        text: heat.md.j2
    cases:
    - expect: fires
      name: 'hot # not a comment'
      given:
         gpu: RTX 4090
         model: phi-3-mini
    # a remark in the cases
    - {name: cool, given: {gpu: RTX 4060,
          model: phi-3-mini}, expect: silent}
      # at the end of a case
    # at the end of the cases


- # odd place
  ladder: l
  over: gpu.bandwidth
  why: x
  rows: [ {to: 300 GB/s, value: low},  # first
          {from: 300 GB/s, value: high} ]
  conclude: gpu.bandwidth_class
  cases: []
# the end
"""
NEAT = """\
# header

# second
- rule: a-rule  # trailing
  why: >-
    A long text
    over two lines

    and more
  source: a plain text that
    goes on here
  # about when
  when:
    gpu.tdp: above 300 W  # hot

    # before vram
    gpu.vram: "at least 24 GB"
    any:
      - {gpu.nvlink: is known, gpu.tdp: below 900 W}  # one
      # two
      - gpu.laptop: is no
  note:
    text: heat.md.j2
    score: 5
  cases:
    - name: 'hot # not a comment'
      given:
        gpu: RTX 4090
        model: phi-3-mini
      expect: fires
    # a remark in the cases
    - {name: cool, given: {gpu: RTX 4060, model: phi-3-mini}, expect: silent}
    # at the end of a case
    # at the end of the cases

# odd place
- ladder: l
  why: x
  over: gpu.bandwidth
  conclude: gpu.bandwidth_class
  rows: [ {to: 300 GB/s, value: low},  # first
    {from: 300 GB/s, value: high} ]
  cases: []
# the end
"""
WHOLE = FULL + LADDER + TABLE


def form(text: str) -> str:
    return formatted(text.encode(), "r.yaml")


def test_order_indentation_spacing_and_comments() -> None:
    assert form(ODD) == NEAT


def test_the_canonical_form_stays() -> None:
    assert form(NEAT) == NEAT


@pytest.mark.parametrize("path", sorted(data_dir("rules").glob("*.yaml")), ids=lambda p: p.stem)
def test_the_built_in_rules_are_formatted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert formatted(path.read_bytes(), path.name) == text


def unplaced(rule: Rule) -> Rule:
    """A rule without the places of its parts."""
    score = rule.score
    if score is not None:
        score = replace(
            score,
            add=tuple(replace(term, source=None) for term in score.add),
            when=tuple(replace(t, tests=tuple(map(_test, t.tests))) for t in score.when),
        )
    cases = as_stored([replace(case, source=None) for case in rule.cases])
    return replace(rule, source=None, stored_cases=cases, when=_when(rule.when), score=score)


def _test(test: Test) -> Test:
    return replace(test, source=None)


def _when(when: When) -> When:
    blocks = tuple(tuple(map(_when, any_)) for any_ in when.any)
    return When(tuple(map(_test, when.tests)), blocks, tuple(map(_when, when.none)))


@cache
def words() -> Vocabulary:
    return load_vocabulary()


def compiled(text: str) -> list[Rule]:
    return [unplaced(rule) for rule in parse_rules({"r.yaml": text.encode()}, words())]


def disturbed(text: str, chance: random.Random) -> str:
    """Write the same rules another way: shuffled keys, another width, comments, empty lines."""
    entries = yaml.safe_load(re.sub(r": (yes|no)(?=[,}\n])", r": '\1'", text))
    flat = chance.choice([None, True, False])
    made = yaml.safe_dump(
        [_shuffled(entry, chance) for entry in entries],
        sort_keys=False,
        default_flow_style=flat,
        indent=chance.choice([2, 3, 4, 7]),
        width=chance.choice([40, 80, 300]),
        allow_unicode=True,
    )
    lines: list[str] = []
    for line in made.splitlines():
        if not flat and chance.random() < 0.15 and re.match(r" *(- )?[a-z_.]+:", line):
            lines.append(f"{' ' * chance.randrange(9)}# remark {len(lines)} é: 'x'")
        if not flat and chance.random() < 0.1 and re.match(r" *(- )?[a-z_.]+:", line):
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


def _shuffled(entry: dict[str, object], chance: random.Random) -> dict[str, object]:
    keys = list(entry)
    chance.shuffle(keys)
    return {key: entry[key] for key in keys}


@settings(max_examples=12)
@given(st.integers(0, 10**9))
def test_format_never_changes_the_compiled_rules(seed: int) -> None:
    text = disturbed(WHOLE, random.Random(seed))
    after = form(text)
    assert compiled(after) == compiled(text)
    assert sorted(re.findall("# .*", after)) == sorted(re.findall("# .*", text))
    assert form(after) == after


@settings(max_examples=50)
@given(st.data())
def test_whatever_is_typed_the_form_is_stable_or_refused(data: st.DataObject) -> None:
    lines = ODD.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        change = data.draw(st.sampled_from(["lose", "in", "out", "remark", "empty", "beside"]))
        if change == "lose":
            del lines[at]
        elif change == "in":
            lines[at] = f"  {lines[at]}"
        elif change == "out":
            lines[at] = lines[at].removeprefix("  ")
        elif change == "beside":
            lines[at] = f"{lines[at].rstrip()}  # beside {at}\n"
        else:
            lines.insert(at, "\n" if change == "empty" else f"{' ' * (at % 7)}# new {at}\n")
    try:
        after = form("".join(lines))
    except UserError:
        return
    assert form(after) == after


def test_conditions_keep_the_order_of_their_author() -> None:
    text = "- rule: x\n  when:\n    gpu.vram: is known\n    any: []\n    gpu.tdp: is known\n"
    assert form(text) == (
        "- rule: x\n  when:\n    gpu.vram: is known\n    gpu.tdp: is known\n    any: []\n"
    )


def test_braces_that_are_too_long_become_lines_but_a_request_stays() -> None:
    given = "given: {gpu: " + "x" * 130 + "}"
    text = f"- {{rule: x, why: {'word ' * 30}, cases: [{{name: a, {given}}}]}}\n"
    after = form(text)
    assert f"      {given}\n" in after
    assert after.startswith("- rule: x\n  why: word word")


def test_what_is_not_yaml_is_refused_with_its_place() -> None:
    with pytest.raises(RuleFileError, match=r"r\.yaml:2:1: a tab is used for indentation"):
        form("- rule: x\n\twhy: y\n")


def test_windows_line_ends_and_a_byte_order_mark_go() -> None:
    assert formatted(b"\xef\xbb\xbf- rule: x\r\n  why:  y\r\n", "r.yaml") == "- rule: x\n  why: y\n"


def test_a_file_without_entries_is_refused() -> None:
    with pytest.raises(RuleFileError, match="holds no list of rules"):
        form("# nothing yet\n[]\n")


def test_a_file_in_brackets_becomes_lines() -> None:
    assert form("[{rule: x, why: y}, {rule: z}]\n") == "- {rule: x, why: y}\n\n- {rule: z}\n"
