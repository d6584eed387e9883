"""What follows from the declaration of a setting, and where else one may be written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import advisor
from advisor.errors import UserError
from advisor.scenario import Scenario
from advisor.scenario.setting_kinds import Setting
from advisor.scenario.settings import (
    FIXED,
    FLAGS,
    KEYS,
    SETTINGS,
    STATED,
    Request,
    number_problems,
    request_from,
)

PACKAGE = Path(advisor.__file__).parent
DOCS = PACKAGE.parent / "docs"
BOUNDED = [one for one in SETTINGS.values() if one.most is not None]


def test_every_field_of_a_request_is_declared() -> None:
    assert set(SETTINGS) == set(Request.__struct_fields__)
    assert set(Request().stated()) == set()


def test_every_setting_but_the_path_of_a_config_has_a_flag() -> None:
    assert set(SETTINGS) - {one.name for one in FLAGS} == {"config"}
    assert len({one.typed_name for one in FLAGS}) == len(FLAGS)


def test_a_scenario_has_what_is_taken_as_stated() -> None:
    assert {one.name for one in STATED} <= set(Scenario.__struct_fields__)


@pytest.mark.parametrize("setting", BOUNDED, ids=lambda one: one.name)
def test_bounds_are_kept(setting: Setting) -> None:
    assert setting.most is not None
    for value, fine in (
        (setting.least, True),
        (setting.most, True),
        (setting.least - 1, False),
        (setting.most + 1, False),
    ):
        assert bool(number_problems(request_from({setting.name: value}))) is not fine


@pytest.mark.parametrize("setting", [one for one in SETTINGS.values() if one.words])
def test_any_other_word_is_refused(setting: Setting) -> None:
    for word in setting.words:
        assert getattr(request_from({setting.name: word}), setting.name) == word
    with pytest.raises(UserError, match="is not one of"):
        request_from({setting.name: "toys"})


def test_the_values_of_a_sampled_computer_are_in_step() -> None:
    assert len({len(one.drawn) for one in SETTINGS.values() if one.drawn}) == 1


def test_the_page_on_estimates_names_every_key() -> None:
    page = (DOCS / "estimate.md").read_text(encoding="utf-8")
    assert not [key for key in KEYS if f"`{key}`" not in page]


def test_the_page_on_batches_names_the_keys_of_with() -> None:
    page = (DOCS / "batch.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `with`"))
    assert re.findall(r"`(\w+)`", row)[1:] == [one.typed_name for one in FIXED]


def test_a_setting_that_only_rules_read_is_written_in_few_places() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    found = [path for path, text in texts.items() if re.search(r"\bcpu_cores\b", text)]
    assert len(found) <= 4, found
