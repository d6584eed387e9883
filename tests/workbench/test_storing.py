"""Facts are worked out once, whatever the number of processes, and never read back wrong."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.files import data_dir
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Knowledge
from advisor.rules.engine.base import OptionFacts
from advisor.workbench import fact_store, fact_store_files
from advisor.workbench.fact_store import FactStore, Given, Part, drawn, eased
from advisor.workbench.fact_store_files import Origin, facts_of, near_facts, sampled_facts

FEW = 12


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADVISOR_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def same(one: FactStore, two: FactStore) -> bool:
    return (
        list(one.requests) == list(two.requests)
        and list(one.starts) == list(two.starts)
        and one.columns.keys() == two.columns.keys()
        and all(
            list(column.values) == list(two.columns[name].values)
            and column.planes == two.columns[name].planes
            for name, column in one.columns.items()
        )
    )


def test_the_sample_is_the_same_every_time_and_grows_at_the_end() -> None:
    known = load_knowledge()
    few, many = list(islice(drawn(known), 20)), list(islice(drawn(known), 60))
    assert many[:20] == few
    assert list(islice(drawn(known, seed=2), 20)) != few


def test_the_sample_reaches_all_parts_of_the_catalogue() -> None:
    """Accelerators sized by memory alone too: rules speak of them as of any other card."""
    known = load_knowledge()
    points = list(islice(drawn(known), 2000))
    assert len({p["gpu"] for p in points}) > 0.9 * len(known.gpus)
    assert len({p["model"] for p in points}) > 0.9 * len(known.models)
    vendors = {gpu.vendor for gpu in known.gpus.values()}
    assert {"NVIDIA", "AMD", "Intel", "Apple", "Huawei", "Google"} <= vendors
    assert {known.gpus[str(p["gpu"])].vendor for p in points} == vendors
    assert {p.get("prefer") for p in points} == {None, "quality", "speed", "cost"}


def test_what_cannot_run_is_asked_with_less() -> None:
    given = {"gpu": "a", "model": "b", "precision": "c", "kv_cache": "d", "gpu_layers": 3}
    assert list(eased(given)) == [
        given,
        {"gpu": "a", "model": "b", "precision": "c", "kv_cache": "d"},
        {"gpu": "a", "model": "b", "precision": "c"},
        {"gpu": "a", "model": "b"},
    ]


def test_a_store_is_read_back_as_it_was(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    made = sampled_facts(FEW, Origin(workers=1), progress=lambda *n: told.append(n))
    assert len(made) == FEW

    def never(*_: object) -> None:
        raise AssertionError("worked out twice")

    monkeypatch.setattr(fact_store, "prepare", never)
    assert same(sampled_facts(FEW, Origin(workers=1)), made)


def test_a_damaged_file_is_worked_out_again(own_cache: Path) -> None:
    made = sampled_facts(FEW, Origin(workers=1))
    (file,) = own_cache.glob("facts-*.bin")
    whole = file.read_bytes()
    for damaged in (b"", whole[:40], whole[: len(whole) // 2], b"x" * 500):
        file.write_bytes(damaged)
        assert same(sampled_facts(FEW, Origin(workers=1)), made)
    assert file.read_bytes() == whole


def test_rules_do_not_matter_and_knowledge_does(own_cache: Path, tmp_path: Path) -> None:
    sampled_facts(FEW, Origin(workers=1))
    folder = tmp_path / "knowledge"
    shutil.copytree(data_dir("knowledge"), folder)
    policy = folder / "policy.yaml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text.replace("value: 10 %", "value: 11 %", 1), encoding="utf-8")
    other = sampled_facts(FEW, Origin(folder, alone=True, workers=1))
    assert len(list(own_cache.glob("facts-*.bin"))) == 2
    assert other.value("policy.tight_below", 0) == 11.0


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Given]:
    """Facts that cost nothing: a card, its power, and a what-if about another card or two."""
    found: list[Given] = []

    def part_of(requests: Iterable[Given], known: Knowledge, *, easing: bool, most: int) -> Part:
        part = Part()
        for given in islice(requests, most):
            found.append(given)
            card = known.gpus[str(given["gpu"])]
            first = sum(map(ord, str(given))) % len(_OFFERED)
            options = [
                OptionFacts(f"upgrade-gpu gpu={name}", {"option.tdp": known.gpus[name].tdp_w or 0})
                for name in _OFFERED[first : first + 2]
            ]
            part.take(given, {"gpu.name": card.name, "gpu.tdp": card.tdp_w or 0.0}, options)
        return part

    monkeypatch.setattr(fact_store_files, "part_of", part_of)
    monkeypatch.setattr(fact_store_files, "_ALONE", 10_000)
    return found


_OFFERED = ("GeForce RTX 4090", "L40S", "GeForce RTX 5090", "H20", "GeForce RTX 3060 12 GB")
KNOWN = load_knowledge()


def _knowing(monkeypatch: pytest.MonkeyPatch, known: Knowledge) -> Origin:
    monkeypatch.setattr(fact_store_files, "load_knowledge", lambda *_, **__: known)
    return Origin(workers=1)


def _with_card(name: str, like: str) -> Knowledge:
    """The built-in knowledge with a card of less power, new or in place of another."""
    card = replace(KNOWN.gpus[like], name=name, tdp_w=123.0)
    return replace(KNOWN, gpus={**KNOWN.gpus, name: card}, sha256=f"with {name}")


def _all(store: FactStore) -> dict[str, tuple[object, list[object]]]:
    return {
        str(given): (
            store.facts(n),
            [(store.key(k), store.option(k)) for k in range(store.starts[n], store.starts[n + 1])],
        )
        for n, given in enumerate(store.requests)
    }


def test_a_changed_card_costs_the_requests_that_name_it(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, asked: list[Given]
) -> None:
    built_in = near_facts(600, _knowing(monkeypatch, KNOWN))
    origin = _knowing(monkeypatch, _with_card("L40S", "L40S"))
    asked.clear()
    found = near_facts(600, origin)
    naming = [str(g) for n, g in enumerate(built_in.requests) if "L40S" in _named(built_in, n)]
    assert sorted(map(str, asked)) == sorted(naming)
    assert 100 < len(naming) < 400
    asked.clear()
    assert _all(near_facts(600, origin)) == _all(found)
    assert not asked
    assert _all(found) == _all(facts_of(built_in.requests, origin))


def _named(store: FactStore, number: int) -> str:
    keys = [store.key(row) for row in range(store.starts[number], store.starts[number + 1])]
    return f"{store.requests[number]['gpu']} {keys}"


def test_what_an_edit_touches_is_asked_again_a_few_at_a_time(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, asked: list[Given]
) -> None:
    count = 2 * len(KNOWN.gpus)  # asks about every card
    monkeypatch.setattr(fact_store_files, "_AT_ONCE", 100)
    monkeypatch.setattr(fact_store_files, "_MOST_OWED", 1.0)
    built_in = near_facts(count, _knowing(monkeypatch, KNOWN))
    naming = [str(g) for n, g in enumerate(built_in.requests) if "L40S" in _named(built_in, n)]
    origin = _knowing(monkeypatch, _with_card("L40S", "L40S"))
    lengths: list[int] = []
    paid: list[list[str]] = []
    while not lengths or lengths[-1] < len(built_in):
        asked.clear()
        found = near_facts(count, origin)
        lengths.append(len(found))
        paid.append([str(given) for given in asked])
        assert 0 < len(asked) <= 100
    assert lengths[0] == count - len(naming) + 100
    own = {given for given in naming if "'gpu': 'L40S'" in given}
    assert own
    assert own <= set(paid[0])
    assert sorted(given for part in paid for given in part) == sorted(naming)
    assert _all(found) == _all(facts_of(built_in.requests, origin))
    asked.clear()
    assert _all(near_facts(count, origin)) == _all(found)
    assert not asked


def test_a_search_that_is_kept_leaves_nothing_for_later(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, asked: list[Given]
) -> None:
    monkeypatch.setattr(fact_store_files, "_AT_ONCE", 40)
    monkeypatch.setattr(fact_store_files, "_MOST_OWED", 1.0)
    near_facts(600, _knowing(monkeypatch, KNOWN))
    origin = _knowing(monkeypatch, _with_card("L40S", "L40S"))
    assert len(near_facts(600, origin)) < 600
    assert len(near_facts(600, origin, whole=True)) == 600


def test_an_added_card_is_asked_about_and_one_that_went_is_not(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, asked: list[Given]
) -> None:
    before = near_facts(900, _knowing(monkeypatch, KNOWN))
    asked.clear()
    found = near_facts(900, _knowing(monkeypatch, _with_card("Our Card", "GeForce RTX 4090")))
    assert {given["gpu"] for given in asked} == {"Our Card"}
    assert len(found) == len(before) + len(asked)
    back = near_facts(900, _knowing(monkeypatch, _with_card("L40S", "L40S")))
    assert not any("Our Card" in str(given) for given in back.requests)
    assert _all(back).keys() == _all(before).keys()


def test_other_knowledge_changes_all_facts(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, asked: list[Given]
) -> None:
    near_facts(50, _knowing(monkeypatch, KNOWN))
    asked.clear()
    stricter = {**KNOWN.policy, "tight_below": 11.0}
    near_facts(50, _knowing(monkeypatch, replace(KNOWN, policy=stricter, sha256="stricter")))
    assert len(asked) >= 50


def test_two_processes_give_what_one_gives(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one = sampled_facts(FEW, Origin(workers=1))
    shutil.rmtree(own_cache)
    monkeypatch.setattr(fact_store_files, "_ALONE", 1)
    monkeypatch.setattr(fact_store_files, "_CHUNK", 6)
    two = sampled_facts(FEW, Origin(workers=2))
    by_request = {str(given): n for n, given in enumerate(two.requests)}
    shared = [given for given in one.requests if str(given) in by_request]
    assert len(shared) >= FEW - 2
    for given in shared:
        number = by_request[str(given)]
        assert two.facts(number) == one.facts(list(one.requests).index(given))


def test_facts_of_stated_requests_leave_out_what_is_refused(own_cache: Path) -> None:
    asked = [
        {"gpu": "RTX 4090", "model": "phi-3-mini"},
        {"gpu": "no such card", "model": "phi-3-mini"},
    ]
    store = facts_of(asked, Origin(workers=1))
    assert list(store.requests) == asked[:1]
    assert store.refused == 1


def test_old_stores_are_deleted(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_store_files, "_KEPT", 4)
    for count in range(1, 8):
        sampled_facts(count, Origin(workers=1))
    assert len(list(own_cache.glob("facts-*.bin"))) == 4
