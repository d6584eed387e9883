import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import KnowledgeError, RuleFileError, Source, UserError
from advisor.yamlfile import MAX_BYTES, MAX_DEPTH, parse_yaml, read_yaml


def plain(text: str) -> object:
    return parse_yaml(text.encode(), "f.yaml", RuleFileError).plain()


def message(content: bytes) -> str:
    with pytest.raises(UserError) as caught:
        parse_yaml(content, "f.yaml", RuleFileError)
    return str(caught.value)


def test_values_have_their_types() -> None:
    assert plain("[a, 1, 1.5, yes, no, ~, 0x10, 1_000, 2024-05-07, '5', [], {}]") == [
        "a", 1, 1.5, True, False, None, 16, 1000, "2024-05-07", "5", [], {},
    ]  # fmt: skip


def test_keys_are_texts_as_written() -> None:
    assert plain("{on: 1, 2: x, null: y}") == {"on": 1, "2": "x", "null": "y"}


def test_nodes_know_their_place_and_wording() -> None:
    root = parse_yaml(b"a: yes\nb:\n  - 3\n", "f.yaml", RuleFileError)
    assert isinstance(root.value, Mapping)
    assert root.key_sources is not None
    assert root.key_sources["b"] == Source("f.yaml", 2, 1)
    flag, items = root.value["a"], root.value["b"]
    assert (flag.value, flag.text, flag.source) == (True, "yes", Source("f.yaml", 1, 4))
    assert isinstance(items.value, list)
    assert items.value[0].source == Source("f.yaml", 3, 5)


def test_a_byte_order_mark_is_ignored() -> None:
    assert plain("\ufeffa: 1") == {"a": 1}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "f.yaml:1:1: the file is empty."),
        (b"# nothing\n", "f.yaml:1:1: the file is empty."),
        (b"a: 1\na: 2\n", "f.yaml:2:1: key 'a' stands twice (first in line 1). Keep one of them."),
        (b"a:\n\tb: 1\n", "f.yaml:2:1: a tab is used for indentation. Use spaces."),
        (
            b"a: > 0 GB\n",
            ("f.yaml:1:6: '>' cannot start a value. Write it in words: 'above', 'at least' ..."),
        ),
        (
            b"a: &x 1\n",
            (
                "f.yaml:1:4: anchors ('&') and aliases ('*') are not allowed. Write the "
                "value out, or put it in quotes."
            ),
        ),
        (
            b"a: *x\n",
            (
                "f.yaml:1:4: anchors ('&') and aliases ('*') are not allowed. Write the value "
                "out, or put it in quotes."
            ),
        ),
        (b"a: !!python/none x\n", "f.yaml:1:4: a tag ('!') is not allowed. Use quotes."),
        (b"a: 1\n---\nb: 2\n", "f.yaml:2:1: '---' starts a second document. Delete it."),
        (b"? [a]\n: 1\n", "f.yaml:1:3: a key must be plain text."),
        (b"a: 1\nb: caf\xe9\n", "f.yaml:2:7: the file is not UTF-8. Save it as UTF-8."),
        (b"a: \x00\n", "f.yaml:1:4: the character U+0000 is not allowed in YAML. Delete it."),
        (
            b"a: b: c\n",
            (
                "f.yaml:1:5: not YAML: a ': ' stands where no value can begin. "
                "Indent the line as those above, and put a text that holds ': ' in quotes."
            ),
        ),
    ],
)
def test_mistakes_are_named_with_their_place(content: bytes, expected: str) -> None:
    assert message(content) == expected


def test_every_doubled_key_is_reported() -> None:
    found = message(b"a: 1\na: {x: 1, x: 2}\nb: [1]\nb: [2]\n").splitlines()
    assert [line.split(": ")[0] for line in found] == ["f.yaml:2:1", "f.yaml:2:11", "f.yaml:4:1"]


@pytest.mark.parametrize("text", ["[" * 100_000, "[ " * 100_000, "{a: " * 100_000, "- " * 1000])
def test_deep_nesting_is_refused_before_it_hurts(text: str) -> None:
    assert f"nested deeper than {MAX_DEPTH} levels" in message(text.encode())


def test_a_large_file_is_refused() -> None:
    assert message(b"#" * (MAX_BYTES + 1)) == "f.yaml: the file is larger than 8 MB."


def test_errors_are_of_the_type_asked_for() -> None:
    with pytest.raises(KnowledgeError):
        parse_yaml(b"", "f.yaml", KnowledgeError)


@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda t: t.encode("utf-8"))))
def test_any_content_is_data_or_a_user_error(content: bytes) -> None:
    try:
        root = parse_yaml(content, "f.yaml", RuleFileError)
    except UserError:
        return
    assert root.source.line >= 1


@given(st.recursive(
    st.one_of(st.integers(), st.booleans(), st.text("abc xyz", min_size=1, max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("abc", min_size=1), inner, max_size=3)
    ),
    max_leaves=6,
))  # fmt: skip
def test_json_is_read_as_it_stands(data: object) -> None:
    content = json.dumps(data).encode()
    assert parse_yaml(content, "f.json", RuleFileError).plain() == data


@pytest.mark.parametrize(
    ("text", "said", "read"),
    [
        ("- a: 1\n  b: {c: d\n- a: 2\n", "2:6: not YAML: what begins with '{' does not end", [2]),
        ("- a: 1\n- a: [x\n- a: 3\n", "2:6: not YAML: a list that begins with '['", [1, 3]),
        ("- a: 1\n- b: 2\n  c d\n  e: f\n- a: 3\n", "3:3: not YAML: this line has no ':'", [1, 3]),
        ("- a: @x\n- a: 2\n", "1:6: not YAML: a text cannot begin with this", [2]),
        ("- a: 1\n b: 2\n- a: 3\n", "2:2: not YAML: this line belongs to no entry", [3]),
        ("- a: &x 1\n- a: 2\n", "1:6: anchors ('&') and aliases", [2]),
        ("- a: 1\n  a: 2\n- a: 3\n", "2:3: key 'a' stands twice (first in line 1)", [2, 3]),
    ],
)
def test_reading_goes_on_after_a_mistake(text: str, said: str, read: list[int]) -> None:
    problems: list[UserError] = []
    root = read_yaml(text.encode(), "f.yaml", RuleFileError, problems)
    (problem,) = problems
    assert str(problem).startswith(f"f.yaml:{said}")
    assert root is not None
    assert root.plain() == [{"a": number} for number in read]


def test_a_mistake_in_every_entry_is_told_for_every_entry() -> None:
    problems: list[UserError] = []
    assert read_yaml(b"- a: [x\n- a: {y\n- a: 'z\n", "f.yaml", RuleFileError, problems) is None
    assert [problem.source and problem.source.line for problem in problems] == [1, 2, 3]
