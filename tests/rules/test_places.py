"""Messages name paths that can be opened; compiled rules do not."""

from pathlib import Path

import pytest

from advisor.errors import Problems, RuleFileError, Source
from advisor.files import data_dir
from advisor.knowledge.vocabulary import Vocabulary
from advisor.rules.language import load_rules
from advisor.rules.language.model import Places, openable
from tests.rules.texts import note


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    own = tmp_path / "mine"
    own.mkdir()
    (own / "a.yaml").write_text(note("{gpu.tdp: above 300 W}"), encoding="utf-8")
    return own


def test_a_path_is_as_typed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert openable(Path("../mine/a.yaml")) == "../mine/a.yaml"
    assert openable(Path("a.yaml")) == "a.yaml"
    assert openable(Path() / "a.yaml") == "a.yaml"
    assert openable(folder / "a.yaml") == "a.yaml"
    assert openable(Path("/elsewhere/a.yaml")) == "/elsewhere/a.yaml"


def test_built_in_rules_keep_a_short_name_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert openable(data_dir("rules") / "fit.yaml") == "rules/fit.yaml"
    monkeypatch.chdir(data_dir("rules"))
    assert openable(data_dir("rules") / "fit.yaml") == "fit.yaml"


def test_places_in_messages_are_put_right_once(folder: Path) -> None:
    places = Places.of(folder, built_in=False)
    error = RuleFileError("twice (first at mine/a.yaml:1:3).", source=Source("mine/a.yaml", 2, 3))
    once = places.error(error)
    path = f"{folder.as_posix()}/a.yaml"
    assert str(once) == f"{path}:2:3: twice (first at {path}:1:3)."
    assert str(places.error(once)) == str(once)


def test_a_group_keeps_all_that_its_errors_know(folder: Path) -> None:
    error = RuleFileError("x.", source=Source("mine/a.yaml"), hint="y.", lint="tab")
    (found,) = Places.of(folder, built_in=False).error(Problems([error])).errors  # type: ignore[attr-defined]
    assert (found.hint, found.lint) == ("y.", "tab")


def test_loading_tells_paths_and_compiles_short_names(folder: Path, vocabulary: Vocabulary) -> None:
    (rule,) = load_rules(folder, vocabulary=vocabulary).rules
    assert rule.source == Source("mine/a.yaml", 1, 3)
    (folder / "a.yaml").write_text(note("{gpu.tpd: above 300 W}"), encoding="utf-8")
    with pytest.raises(RuleFileError) as caught:
        load_rules(folder, vocabulary=vocabulary)
    assert str(caught.value).startswith(f"{folder.as_posix()}/a.yaml:4:10: unknown fact")
