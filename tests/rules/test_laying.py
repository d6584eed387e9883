"""A user's rules over others: replaced, added, switched off, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from advisor.errors import Problems, UserError
from advisor.knowledge.vocabulary import Vocabulary
from advisor.rules.language import load_rules
from advisor.rules.language.model import RuleSet
from tests.rules.texts import note

ADVICE = """\
- rule: {name}
  why: It fits then.
  source: ours
  when: {{option.family: is quantize}}
  recommend:
    action: quantize
    score: {{base: {base}}}
    text: quantize.md.j2
    supersedes: [{supersedes}]
  cases:
    - {{name: a, given: {{gpu: RTX 4090}}, expect: fires}}
    - {{name: b, given: {{gpu: RTX 4060}}, expect: silent}}
"""
LADDER = """\
- ladder: heat
  why: Power is heat.
  source: ours
  over: gpu.tdp
  conclude: cooling.class
  rows: [{to: 100 W, value: easy}, {from: 100 W, value: hot}]
  cases:
    - {name: a, given: {gpu: RTX 4060}, expect: easy}
    - {name: b, given: {gpu: RTX 4090}, expect: hot}
"""
HOT = "    cooling.class: is hot\n"


def advice(name: str, base: int = 50, supersedes: str = "") -> str:
    return ADVICE.format(name=name, base=base, supersedes=supersedes)


@pytest.fixture
def built_in(tmp_path: Path) -> Path:
    folder = tmp_path / "base" / "rules"
    folder.mkdir(parents=True)
    first = advice("take-small") + advice("take-large", 60, "take-small")
    (folder / "a.yaml").write_text(first, encoding="utf-8")
    (folder / "b.yaml").write_text(LADDER + note(HOT), encoding="utf-8")
    return folder


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "house" / "rules"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder.parent)
    return folder


def laid(own: Path, built_in: Path, vocabulary: Vocabulary, **files: str) -> RuleSet:
    for name, text in files.items():
        (own / f"{name}.yaml").write_text(text, encoding="utf-8")
    return load_rules(own, vocabulary=vocabulary, over=built_in)


def refused(own: Path, built_in: Path, vocabulary: Vocabulary, **files: str) -> list[str]:
    with pytest.raises(UserError) as caught:
        laid(own, built_in, vocabulary, **files)
    error = caught.value
    return [str(e) for e in error.errors] if isinstance(error, Problems) else [str(error)]


def ids(rules: RuleSet) -> list[str]:
    return [rule.id for rule in rules.rules]


def replacing(text: str, name: str) -> str:
    head, _, rest = text.partition("\n")
    return f"{head}\n  replaces: {name}\n{rest}"


def test_a_replacement_stands_where_the_replaced_rule_stood(
    own: Path, built_in: Path, vocabulary: Vocabulary
) -> None:
    mine = replacing(advice("take-small", 10), "take-small")
    rules = laid(own, built_in, vocabulary, z=mine)
    assert ids(rules) == ["take-small", "take-large", "heat-easy", "heat-hot", "hot-card"]
    rule = rules.rule("take-small")
    assert rule.score is not None
    assert rule.score.base == 10
    assert rule.overlay is not None
    assert (rule.overlay.replaces, str(rule.overlay.at)) == ("take-small", "rules/a.yaml:1:3")
    assert str(rule.source) == "rules/z.yaml:1:3"
    assert rules.rule("take-large").overlay is None
    assert rules.user_rules == (rule,)


def test_a_renamed_replacement_is_followed(
    own: Path, built_in: Path, vocabulary: Vocabulary
) -> None:
    mine = replacing(advice("take-tiny"), "take-small")
    rules = laid(own, built_in, vocabulary, z=mine)
    assert ids(rules)[:2] == ["take-tiny", "take-large"]
    assert rules.rule("take-large").supersedes == ("take-tiny",)


def test_a_ladder_is_replaced_as_a_whole(own: Path, built_in: Path, vocabulary: Vocabulary) -> None:
    mine = replacing(LADDER.replace("100 W", "200 W"), "heat")
    rules = laid(own, built_in, vocabulary, z=mine)
    assert ids(rules)[2:4] == ["heat-easy", "heat-hot"]
    hot = rules.rule("heat-hot")
    assert hot.when.tests[0].value == 200
    assert hot.overlay is not None
    assert hot.overlay.replaces == "heat"


def test_an_added_rule_comes_last_and_replaces_nothing(
    own: Path, built_in: Path, vocabulary: Vocabulary
) -> None:
    rules = laid(own, built_in, vocabulary, z=advice("mine"))
    assert ids(rules)[-1] == "mine"
    assert rules.rule("mine").overlay is not None
    assert not rules.rule("mine").overlay.replaces  # type: ignore[union-attr]  # said above


def test_a_rule_is_switched_off_with_a_reason(
    own: Path, built_in: Path, vocabulary: Vocabulary
) -> None:
    text = "- disable: take-small\n  reason: We never do.\n"
    rules = laid(own, built_in, vocabulary, z=text)
    assert "take-small" not in ids(rules)
    assert rules.rule("take-large").supersedes == ()
    (off,) = rules.disabled
    assert (off.rule.id, off.reason, str(off.source)) == (
        "take-small", "We never do.", "rules/z.yaml:1:3",
    )  # fmt: skip


def test_the_cache_gives_the_same_rules(own: Path, built_in: Path, vocabulary: Vocabulary) -> None:
    text = replacing(advice("mine"), "take-large") + "- disable: hot-card\n  reason: No.\n"
    first = laid(own, built_in, vocabulary, z=text)
    second = laid(own, built_in, vocabulary)
    assert second.rules == first.rules
    assert second.disabled == first.disabled
    assert first.sha256 != load_rules(built_in, vocabulary=vocabulary).sha256


def test_what_lies_behind_a_file_is_part_of_the_key(
    own: Path, built_in: Path, vocabulary: Vocabulary
) -> None:
    mine = LADDER.replace("100 W", "200 W") + note(HOT)
    first = laid(own, built_in, vocabulary, b=mine)
    (built_in / "b.yaml").write_text(LADDER + "\n" + note(HOT), encoding="utf-8")
    (built_in / "b.yaml").write_text("# moved\n" + LADDER + note(HOT), encoding="utf-8")
    second = laid(own, built_in, vocabulary)
    assert first.rule("heat-hot").overlay != second.rule("heat-hot").overlay
    assert str(second.rule("heat-hot").overlay.at) == "rules/b.yaml:2:3"  # type: ignore[union-attr]  # own


def test_an_edited_copy_of_a_file_replaces_what_it_changes(
    own: Path, built_in: Path, vocabulary: Vocabulary
) -> None:
    rules = laid(own, built_in, vocabulary, b=LADDER + note("    cooling.class: is easy\n"))
    assert rules.rule("hot-card").overlay is not None
    assert rules.rule("heat-hot").overlay is None
    assert ids(rules) == ids(load_rules(built_in, vocabulary=vocabulary))


def test_a_file_in_the_place_of_another_may_not_leave_rules_out(
    own: Path, built_in: Path, vocabulary: Vocabulary
) -> None:
    (problem,) = refused(own, built_in, vocabulary, b=advice("mine"))
    assert problem == (
        "rules/b.yaml:1:1: this file takes the place of the built-in rules/b.yaml and leaves out "
        "heat and hot-card. Give the file another name to add to the built-in rules, or write "
        "'- disable: heat' with a reason for each."
    )


def test_a_copy_of_the_whole_may_leave_rules_out(
    own: Path, built_in: Path, vocabulary: Vocabulary
) -> None:
    shutil.rmtree(own)
    shutil.copytree(built_in, own)
    rules = laid(own, built_in, vocabulary, a=advice("take-small"))
    assert "take-large" not in ids(rules)
    assert [off.reason for off in rules.disabled] == ["left out of rules/a.yaml"]
    assert not rules.user_rules


def test_the_built_in_folder_over_itself_is_itself(built_in: Path, vocabulary: Vocabulary) -> None:
    rules = load_rules(built_in, vocabulary=vocabulary, over=built_in)
    assert rules == load_rules(built_in, vocabulary=vocabulary)
    assert not rules.user_rules


OFF = "- disable: {}\n  reason: Not here.\n"
KEEP = "Keep one of the two."


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            advice("take-small"),
            [
                (
                    "rules/z.yaml:1:3: 'take-small' is a built-in rule (at rules/a.yaml:1:3). "
                    "Write 'replaces: take-small' to take its place, or give yours another name."
                )
            ],
        ),
        (
            LADDER,
            [
                (
                    "rules/z.yaml:1:3: 'heat' is a built-in rule (at rules/b.yaml:1:3). Write "
                    "'replaces: heat' to take its place, or give yours another name."
                )
            ],
        ),
        (
            OFF.format("take-smal"),
            [
                (
                    "rules/z.yaml:1:12: there is no built-in rule 'take-smal' to disable. "
                    "Did you mean 'take-small'?"
                )
            ],
        ),
        (
            replacing(advice("mine"), "take-smal"),
            [
                (
                    "rules/z.yaml:2:13: there is no built-in rule 'take-smal' to replace. "
                    "Did you mean 'take-small'?"
                )
            ],
        ),
        (
            "- disable: take-small\n",
            [
                (
                    "rules/z.yaml:1:3: the key 'reason' is missing. "
                    "Say in one sentence why the rule is switched off."
                )
            ],
        ),
        (
            "- disable: take-small\n  reason: x\n  why: y\n",
            ["rules/z.yaml:3:3: unknown key 'why'. Known keys: disable, reason."],
        ),
        (
            OFF.format("take-small") + OFF.format("take-small"),
            [
                (
                    "rules/z.yaml:3:12: the built-in 'take-small' is switched off twice "
                    f"(at rules/z.yaml:1:3). {KEEP}"
                )
            ],
        ),
        (
            OFF.format("take-small") + replacing(advice("mine"), "take-small"),
            [
                (
                    "rules/z.yaml:4:13: the built-in 'take-small' is switched off as well "
                    f"(at rules/z.yaml:1:3). {KEEP}"
                )
            ],
        ),
        (
            replacing(advice("one"), "take-small") + replacing(advice("two"), "take-small"),
            [
                (
                    "rules/z.yaml:15:13: the built-in 'take-small' is replaced twice "
                    f"(at rules/z.yaml:1:3). {KEEP}"
                )
            ],
        ),
        (
            replacing(advice("one"), "take-small") + OFF.format("take-small"),
            [
                (
                    "rules/z.yaml:14:12: the built-in 'take-small' is replaced as well "
                    f"(at rules/z.yaml:1:3). {KEEP}"
                )
            ],
        ),
        (
            advice("mine", 50, "take-small") + OFF.format("take-small"),
            [
                (
                    "rules/z.yaml:9:17: 'take-small' is switched off (at rules/z.yaml:13:3). "
                    "Take it out of 'supersedes', or do not switch it off."
                )
            ],
        ),
        (
            OFF.format("heat"),
            [
                (
                    "rules/z.yaml:1:12: without 'heat' no rule concludes cooling.class, which "
                    "'hot-card' reads. Add a rule of your own that concludes it, or keep this one."
                )
            ],
        ),
    ],
)
def test_a_mistake_is_said_with_its_place(
    text: str, problems: list[str], own: Path, built_in: Path, vocabulary: Vocabulary
) -> None:
    assert refused(own, built_in, vocabulary, z=text) == problems


def test_without_anything_below_nothing_is_replaced_or_switched_off(
    built_in: Path, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(built_in.parent)
    text = replacing(advice("mine"), "x") + OFF.format("y")
    (built_in / "z.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(Problems) as caught:
        load_rules(built_in, vocabulary=vocabulary)
    assert [str(e) for e in caught.value.errors] == [
        (
            "rules/z.yaml:2:13: 'replaces' is for rules of your own, laid over the built-in ones. "
            "Delete it, or use --rules."
        ),
        (
            "rules/z.yaml:14:12: 'disable' is for rules of your own, laid over the built-in ones. "
            "Delete it, or use --rules."
        ),
    ]


def test_all_mistakes_of_all_files_come_at_once(
    own: Path, built_in: Path, vocabulary: Vocabulary
) -> None:
    found = refused(
        own, built_in, vocabulary,
        y=OFF.format("nobody") + note("{gpu.tpd: above 1 W}", "mine"), z=advice("take-small"),
    )  # fmt: skip
    assert [line.split(": ")[0] for line in found] == [
        "rules/y.yaml:1:12", "rules/y.yaml:6:10", "rules/z.yaml:1:3",
    ]  # fmt: skip
