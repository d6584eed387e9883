"""Each example of the reference page, pasted into a file of one's own, passes ``rules check``."""

import re
from pathlib import Path

import pytest

from tests.cli.running import run

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXAMPLES = [
    text
    for text in BLOCK.findall((DOCS / "rule-language.md").read_text(encoding="utf-8"))
    if not text.startswith("# yaml-language-server")
]
FRAGMENT = re.compile(r"^```yaml fragment\n", re.MULTILINE)


def named(text: str) -> str:
    return text.split()[2]


@pytest.mark.parametrize("text", EXAMPLES, ids=named)
def test_an_example_can_be_pasted(
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    (Path("mine") / "example.yaml").write_text(text, encoding="utf-8")
    outcome = run(capsys, "rules", "check", "mine", "--sample", "0")
    errors = [line for line in outcome.out.splitlines() if "mine/example.yaml" in line]
    assert [line for line in errors if " warning: " not in line] == []
    assert outcome.code == 0, outcome.out


def test_every_part_of_the_language_has_an_example() -> None:
    whole = "".join(EXAMPLES)
    for key in ("conclude:", "recommend:", "veto:", "note:", "any:", "not:", "ladder:", "over: ["):
        assert key in whole
