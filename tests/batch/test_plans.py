"""Plans: what they take, what they leave out, and everything that can be wrong with them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from advisor.advice import Advisor
from advisor.bulk.batch.plan import Item, Plan, shard_count
from advisor.bulk.batch.plan_file import KINDS, read_presets
from advisor.bulk.batch.product import NO_DEPTH, REPEATED, TOO_LONG, load_plan
from advisor.errors import Problems, UserError
from advisor.knowledge import load_knowledge
from advisor.scenario.settings import request_from
from tests.batch.plans import TINY, write

KNOWN = load_knowledge()


def loaded(folder: Path, text: str, name: str = "plan.yaml") -> Plan:
    return load_plan(write(folder, text, name), KNOWN)


def items(plan: Plan) -> list[Item]:
    return [item for shard in plan.shards(range(shard_count(plan))) for item in shard.items]


def values(plan: Plan, key: str) -> list[object]:
    return list(dict.fromkeys(item.request.get(key) for item in items(plan)))


def problems(folder: Path, text: str, name: str = "plan.yaml") -> list[str]:
    with pytest.raises(UserError) as raised:
        loaded(folder, text, name)
    error = raised.value
    errors = error.errors if isinstance(error, Problems) else [error]
    return [str(one).replace(f"{folder}/", "") for one in errors]


def test_every_combination_is_there_once_in_canonical_names(tmp_path: Path) -> None:
    plan = loaded(tmp_path, TINY)
    assert plan.scenarios == len(items(plan)) == 8
    assert len({tuple(sorted(item.request.items())) for item in items(plan)}) == 8
    assert values(plan, "gpu") == ["GeForce RTX 4090", "GeForce RTX 3060 12 GB"]
    assert values(plan, "precision") == ["Q4_K_M", "AWQ 4-bit"]
    assert [len(shard.items) for shard in plan.shards(range(3))] == [3, 3, 2]


def test_neighbours_share_model_and_card(tmp_path: Path) -> None:
    heads = [(i.request["model"], i.request["gpu"]) for i in items(loaded(tmp_path, TINY))]
    changes = sum(one != other for one, other in pairwise(heads))
    assert changes == len(set(heads)) - 1


def test_shards_can_be_taken_one_by_one(tmp_path: Path) -> None:
    plan = loaded(tmp_path, TINY)
    assert list(plan.shards([2, 0])) == [next(plan.shards([0])), next(plan.shards([2]))]


def test_what_cannot_run_is_counted_with_its_reason(tmp_path: Path) -> None:
    plan = loaded(
        tmp_path,
        "gpus: [RTX 4090, Apple M2 Ultra]\nmodels: [llama-3-8b]\nformats: [AWQ, Q4_K_M]\n"
        "contexts: [4096, 32768]",
    )
    assert plan.scenarios == 3
    assert plan.skipped == {TOO_LONG: 3, "no framework runs AWQ 4-bit on Apple GPU": 2}


def test_a_model_that_cannot_be_sized_is_skipped_with_its_reason(tmp_path: Path) -> None:
    plan = loaded(tmp_path, "gpus: RTX 4090\nmodels: [llama-3-8b, grok-1]")
    assert plan.scenarios == 1
    assert sorted(plan.skipped.values()) == [1]
    assert any("grok-1" in why for why in plan.skipped)


def test_every_scenario_of_a_wide_plan_resolves(tmp_path: Path) -> None:
    """What is left after skipping must be answerable: no failure may be foreseen so late."""
    plan = loaded(
        tmp_path,
        "gpus: {include: [all]}\nmodels: [phi-4, mixtral-8x7b, llava-1.6-13b]\n"
        "formats: [FP16, INT8, AWQ, Q4_K_M, FP8, NVFP4]\nkv_cache: [f16, fp8, q8_0]",
    )
    advisor = Advisor.load()
    for item in items(plan)[::97]:
        advisor.estimate(request_from(item.request))


def test_long_contexts_are_kept_where_the_plan_says_so(tmp_path: Path) -> None:
    text = "gpus: RTX 4090\nmodels: llama-3-8b\ncontexts: [4096, 32768]\n"
    assert loaded(tmp_path, text).scenarios == 1
    assert loaded(tmp_path, f"{text}beyond_trained: yes").scenarios == 2


@pytest.mark.parametrize(
    ("stated", "contexts"),
    [
        ("popular", [4096, 8192]),
        ("[popular, 16k]", [4096, 8192, 16384]),
        ("{include: [popular, 2048], exclude: [8192]}", [4096, 2048]),
    ],
)
def test_contexts_take_presets_as_cards_do(
    tmp_path: Path, stated: str, contexts: list[int]
) -> None:
    text = f"gpus: RTX 4090\nmodels: phi-4\nformats: Q4_K_M\ncontexts: {stated}"
    assert values(loaded(tmp_path, text), "context") == contexts


def test_blocks_that_overlap_give_each_scenario_once(tmp_path: Path) -> None:
    one = "{gpus: [RTX 4090, RTX 4080], models: [llama-3-8b], formats: [Q4_K_M]}"
    other = "{gpus: [RTX 4090, RTX 3090], models: [llama-3-8b, phi-4], formats: [Q4_K_M]}"
    plan = loaded(tmp_path, f"blocks: [{one}, {other}]")
    asked = [tuple(sorted(item.request.items())) for item in items(plan)]
    assert len(asked) == len(set(asked)) == 5
    assert plan.skipped == {REPEATED: 1}


def test_fixed_settings_reach_every_request(tmp_path: Path) -> None:
    plan = loaded(
        tmp_path,
        "gpus: RTX 4090\nmodels: llama-3-8b\ncontexts: [512, 4096]\n"
        "with: {ram: 64 GB, depth: 1024}",
    )
    assert [dict(item.request)["ram"] for item in items(plan)] == ["64 GB"]
    assert plan.skipped == {NO_DEPTH: 1}


@pytest.mark.parametrize(
    ("filters", "takes"),
    [
        ("{vendor: amd, vram: {min: 24 GB}, segment: consumer}", ["Radeon RX 7900 XTX"]),
        ("{vendor: Intel, vram: 12 GB, released: {from: 2024-06}}", ["Arc B580"]),
    ],
)
def test_filters_take_cards(tmp_path: Path, filters: str, takes: list[str]) -> None:
    plan = loaded(tmp_path, f"gpus: [{filters}]\nmodels: llama-3-8b\nformats: Q4_K_M")
    assert values(plan, "gpu") == takes


def test_filters_take_and_leave_models(tmp_path: Path) -> None:
    plan = loaded(
        tmp_path,
        "gpus: RTX 4090\nformats: Q4_K_M\n"
        "models: {include: [{family: Phi-3}], exclude: [{parameters: {min: 10B}}]}",
    )
    found = [KNOWN.models[str(name)] for name in values(plan, "model")]
    assert {record.family for record in found} == {"Phi-3"}
    assert all((record.parameters or 0) < 10e9 for record in found)


def test_a_limit_never_takes_a_card_whose_figure_is_unknown(tmp_path: Path) -> None:
    plan = loaded(tmp_path, "gpus: [{released: {to: 2100}}]\nmodels: llama-3-8b\nformats: Q4_K_M")
    assert all(KNOWN.gpus[str(name)].released for name in values(plan, "gpu"))


@pytest.mark.parametrize("name", ["popular", "all"])
def test_presets_take_something_and_popular_takes_less(tmp_path: Path, name: str) -> None:
    text = f"gpus: {name}\nmodels: [llama-3-8b]\nformats: Q4_K_M"
    count = len(values(loaded(tmp_path, text), "gpu"))
    assert 20 < count <= len(KNOWN.gpus)


def test_every_preset_can_be_read_and_says_why(tmp_path: Path) -> None:
    presets = read_presets()
    assert set(presets) == set(KINDS)
    for kind, named in presets.items():
        lists = {"gpus": "RTX 4090", "models": "llama-3-8b", "formats": "Q4_K_M"}
        for name, node in named.items():
            assert isinstance(node.value, dict)
            assert node.value["why"].text
            plan = "\n".join(f"{key}: {value}" for key, value in {**lists, kind: name}.items())
            assert loaded(tmp_path, plan).scenarios


def test_all_problems_are_told_at_once_with_place_and_nearest_name(tmp_path: Path) -> None:
    text = """\
gpus: [RTX 4091, {vendor: Nvidea}, populr]
models:
  include: [lma-3-8b]
  exclude: [{parameters: {min: 8 GB}}]
formats: [Q4_K_N]
contexts: [0, many]
frameworks: lama.cpp
prefer: cheap
with: {ram: lots, gpu_layers: 3}
shard_size: 0
colour: red
"""
    found = problems(tmp_path, text)
    places = [line.split(": ")[0] for line in found]
    assert places == [
        "plan.yaml:1:8", "plan.yaml:1:27", "plan.yaml:1:36", "plan.yaml:3:13", "plan.yaml:4:32",
        "plan.yaml:5:11", "plan.yaml:6:12", "plan.yaml:6:15", "plan.yaml:7:13", "plan.yaml:8:1",
        "plan.yaml:9:13", "plan.yaml:9:19", "plan.yaml:10:1", "plan.yaml:11:1",
    ]  # fmt: skip
    for line, near in ((0, "RTX 4090"), (1, "NVIDIA"), (2, "popular"), (3, "llama-3-8b"),
                       (5, "Q4_K_M"), (8, "llama.cpp"), (9, "cost"),
                       (13, "Known keys")):  # fmt: skip
        assert near in found[line], found[line]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("- a", "mapping"),
        ("gpus: RTX 4090", "'models' is missing"),
        ("gpus: []\nmodels: llama-3-8b", "takes nothing"),
        ("gpus: [{vram: {min: 9 TB}}]\nmodels: llama-3-8b", "takes nothing"),
        ("gpus: [{vram: {min: 9 GB, max: 8 GB}}]\nmodels: llama-3-8b", "min is above max"),
        ("gpus: [{released: {from: May}}]\nmodels: llama-3-8b", "is not a date"),
        ("gpus: [{released: 2025-02-31}]\nmodels: llama-3-8b", "'2025-02-31' is not a date"),
        ("gpus: [{vram: {}}]\nmodels: llama-3-8b", "range is empty"),
        ("gpus: local\nmodels: llama-3-8b", "names its cards"),
        ("gpus: RTX 4090\nmodels: /srv/model", "absolute path"),
        ("gpus: RTX 4090\nmodels: ./nothing", "no such folder"),
        ("gpus: RTX 4090\nmodels: grok-1", "nothing in"),
        ("blocks: []", "list of mappings"),
        ("blocks: [{gpus: RTX 4090, models: phi-4}]\ncontexts: 4096", "beside 'blocks'"),
        ("gpus: RTX 4090\nmodels: phi-4\nformats: [{family: x}]", "names, not filters"),
        ("gpus: RTX 4090\nmodels: phi-4\ncontexts: popula", "Did you mean 'popular'"),
        ("gpus: Arc Graphics 112EU Mobile\nmodels: phi-4", "several memory sizes"),
        ("gpus: 2x RTX 3090\nmodels: phi-4\ngpu_counts: [1, 2]", "and so does gpu_counts"),
    ],
)
def test_wrong_plans_are_refused(tmp_path: Path, text: str, words: str) -> None:
    assert any(words in line for line in problems(tmp_path, text)), problems(tmp_path, text)


def test_wrong_rows_are_told_all_at_once_with_their_lines(tmp_path: Path) -> None:
    rows = (
        "gpu,model,precision\nRTX 4091,phi-4,Q8_0\nRTX 4090,phi-4,Q8_0\n,phi-4,\nRTX 4090,phi-4,X"
    )
    found = problems(tmp_path, rows, "rows.csv")
    assert [line.split(": ")[0] for line in found] == ["rows.csv:2", "rows.csv:4", "rows.csv:5"]
    assert "RTX 4090" in found[0]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ('{"gpu": "Apple M2 Ultra", "model": "phi-4", "precision": "AWQ"}', "cannot run"),
        ('{"gpu": "RTX 4090", "model": "/abs/config.json"}', "absolute path"),
        ('{"gpu": "RTX 4090", "config": "/abs/config.json"}', "absolute path"),
        ('{"gpu": "RTX 4090", "model": "phi-4", "id": []}', "id must be"),
        ("{", "not JSON"),
    ],
)
def test_a_row_that_cannot_run_is_an_error(tmp_path: Path, row: str, words: str) -> None:
    assert words in problems(tmp_path, row, "rows.jsonl")[0]


def test_rows_are_sorted_by_model_and_keep_their_lines(tmp_path: Path) -> None:
    rows = "id,gpu,model\na,RTX 4090,phi-4\nb,RTX 4090,gemma-2-27b\nc,RTX 4080,phi-4"
    found = items(loaded(tmp_path, rows, "rows.csv"))
    assert [(item.id, item.line) for item in found] == [("b", 3), ("c", 4), ("a", 2)]


def test_a_plan_needs_a_known_ending(tmp_path: Path) -> None:
    assert "neither a plan nor requests" in problems(tmp_path, TINY, "plan.txt")[0]


def test_a_missing_plan_is_one_error(tmp_path: Path) -> None:
    for name in ("no.yaml", "no.csv"):
        with pytest.raises(UserError, match="cannot read"):
            load_plan(tmp_path / name, KNOWN)
