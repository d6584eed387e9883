"""Whatever an expert saves, the answer is rules or messages: never another exception."""

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import Problems, UserError
from advisor.knowledge.vocabulary import Vocabulary
from tests.parsed_rules import parse_rules
from tests.rules.texts import FULL, LADDER, TABLE

WHOLE = FULL + LADDER + TABLE
LINES = WHOLE.splitlines(keepends=True)
JUNK = ["", ":", "- ", "[]", "{}", "null", "3", "yes", "\t", "'", "!x", "above", "one of", "%", "~"]


def answered(text: str, vocabulary: Vocabulary) -> None:
    try:
        parse_rules({"r.yaml": text.encode("utf-8", "surrogatepass")}, vocabulary, ["a.md.j2"])
    except UserError as error:
        errors = error.errors if isinstance(error, Problems) else [error]
        for one in errors:
            assert one.source is not None
            assert one.message.endswith(".")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_lines_may_be_lost_doubled_or_swapped(vocabulary: Vocabulary, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(LINES) - 1))
    other = data.draw(st.integers(0, len(LINES) - 1))
    change = data.draw(st.sampled_from(["lose", "double", "swap"]))
    lines = list(LINES)
    if change == "lose":
        del lines[at]
    elif change == "double":
        lines.insert(at, lines[other])
    else:
        lines[at], lines[other] = lines[other], lines[at]
    answered("".join(lines), vocabulary)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_values_may_be_junk(vocabulary: Vocabulary, data: st.DataObject) -> None:
    at = data.draw(st.sampled_from([i for i, line in enumerate(LINES) if ":" in line]))
    key = LINES[at].partition(":")[0]
    junk = data.draw(st.one_of(st.sampled_from(JUNK), st.text(max_size=12)))
    answered("".join([*LINES[:at], f"{key}: {junk}\n", *LINES[at + 1 :]]), vocabulary)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_words_in_braces_may_be_junk(vocabulary: Vocabulary, data: st.DataObject) -> None:
    words = data.draw(st.sampled_from([word for word in WHOLE.split() if len(word) > 2]))
    junk = data.draw(st.sampled_from(JUNK))
    answered(WHOLE.replace(words, junk, 1), vocabulary)
