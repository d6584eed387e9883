"""Coverage counts what the rules really do over the sample."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

from advisor.rules import Test, When
from advisor.rules.language.model import Rule, RuleSet
from advisor.workbench.bulk import Evaluation, evaluate_all
from advisor.workbench.cover import Coverage, cover
from advisor.workbench.cover_views import cover_html, cover_json, cover_text, share
from advisor.workbench.fact_store import FactStore


@pytest.fixture(scope="module")
def coverage(evaluation: Evaluation) -> Coverage:
    return cover(evaluation)


def with_rules(evaluation: Evaluation, *rules: Rule) -> Coverage:
    both = RuleSet((*evaluation.ruleset.rules, *rules), "")
    return cover(evaluate_all(evaluation.store, both))


def note(name: str, *tests: Test) -> Rule:
    return Rule(name, "why", When(tests), note="so")


def test_verdicts_share_out_the_sample(coverage: Coverage) -> None:
    fires = {c.rule.id: c.fires for c in coverage.rules}
    verdicts = ("verdict-fits", "verdict-tight", "verdict-needs-offload", "verdict-too-big")
    assert sum(fires[name] for name in verdicts) == coverage.scenarios
    assert sum(s.of for s in coverage.silences) == coverage.scenarios


def test_never_always_and_together_are_found(evaluation: Evaluation) -> None:
    found = with_rules(
        evaluation,
        note("never", Test("request.gpus", "above", 1000.0)),
        note("always", Test("request.gpus", "at least", 1.0)),
        note("twin", Test("fit.state", "is", "tight")),
    )
    assert "never" in found.never
    assert found.always == ["always"]
    (together,) = [ids for ids in found.together if "twin" in ids]
    assert "verdict-tight" in together


def test_a_threshold_beyond_all_scenarios_is_never_crossed(evaluation: Evaluation) -> None:
    found = with_rules(
        evaluation, note("far", Test("request.gpus", "above", 1000.0, text="above 1000"))
    )
    (far,) = [t for t in found.thresholds if t.rule.id == "far"]
    assert not far.crossed
    assert far.passes == 0
    assert far.fails == found.scenarios
    assert "far: request.gpus above 1000: never passes" in cover_text(found)


def test_a_threshold_that_another_condition_hides_decides_nothing(
    evaluation: Evaluation, store: FactStore
) -> None:
    tests = (
        Test("request.context", "at least", 8192.0, text="at least 8192 tokens"),
        Test("request.context", "at least", 2048.0, text="at least 2048 tokens"),
    )
    found = with_rules(evaluation, note("twice", *tests))
    outer, inner = [t for t in found.thresholds if t.rule.id == "twice"]
    assert inner.decides == 0
    between = [
        n for n in range(len(store)) if 2048 <= float(store.value("request.context", n) or 0) < 8192
    ]
    assert outer.decides == len(between) > 0


def test_shares_never_round_to_none_or_all() -> None:
    assert share(0, 10) == "0.0 %"
    assert share(1, 20_000) == "<0.1 %"
    assert share(19_999, 20_000) == ">99.9 %"
    assert share(20_000, 20_000) == "100.0 %"
    assert share(0, 0) == "-"


def test_json_names_every_rule_and_threshold(coverage: Coverage) -> None:
    data = json.loads(cover_json(coverage))
    assert len(data["rules"]) == len(coverage.rules)
    assert {r["rule"]: r["fires"] for r in data["rules"]}["verdict-fits"] > 0
    assert all(
        t["passes"] + t["fails"] + t["unknown"] in {coverage.scenarios, coverage.options}
        for t in data["thresholds"]
    )


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.cells = self.outside = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.cells += tag == "td"
        self.outside += any(name in {"src", "href"} for name, _ in attrs)


def test_the_page_needs_nothing_else_and_has_a_cell_for_every_pair(coverage: Coverage) -> None:
    page = Page()
    page.feed(cover_html(coverage))
    assert page.outside == 0
    assert page.cells == len(coverage.rules) * (1 + len(coverage.groups))


def test_the_same_sample_gives_the_same_bytes(evaluation: Evaluation, coverage: Coverage) -> None:
    again = cover(evaluate_all(evaluation.store, evaluation.ruleset))
    assert cover_html(again) == cover_html(coverage)
    assert cover_json(again) == cover_json(coverage)
