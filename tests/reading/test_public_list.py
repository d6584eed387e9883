"""The public list: found by name without reading it all, and replaced whole or not at all."""

from __future__ import annotations

import csv
import random
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from advisor.errors import KnowledgeError, RequestError, UserError
from advisor.files import data_dir, table_rows
from advisor.knowledge import load_knowledge
from advisor.reading import public_list, read_model
from advisor.reading.public_import import import_list
from advisor.reading.public_list import COLUMNS, FILE, every, exact, find_public, sort_key
from advisor.reading.published import has_gguf, is_packed
from advisor.scenario.asked_model import find_model_named
from tests.cli.running import advise, run
from tests.reading.random_names import texts

BUILT_IN = data_dir("knowledge") / FILE
Capture = pytest.CaptureFixture[str]


def ids() -> list[str]:
    lines = BUILT_IN.read_text("ascii").splitlines()[2:]
    return [line.partition("\t")[0] for line in lines]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADVISOR_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data" / FILE


def written(path: Path, *rows: dict[str, str], columns: tuple[str, ...] = COLUMNS) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def row(hf_id: str, **cells: object) -> dict[str, str]:
    shape = {
        "architecture": "llama", "parameters_raw": 8030261248, "num_hidden_layers": 32,
        "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 128256, "moe_intermediate_size": 14336, "pipeline_tag": "text-generation",
    }  # fmt: skip
    return {"hf_id": hf_id, **{key: str(value) for key, value in (shape | cells).items()}}


def test_the_list_is_sorted_and_names_each_repository_once() -> None:
    keys = [sort_key(hf_id) for hf_id in ids()]
    assert keys == sorted(set(keys))
    assert len(keys) > 13_000


def test_every_repository_is_found_by_its_name_in_any_case() -> None:
    every = ids()
    for hf_id in (*every[::97], every[0], every[-1]):
        found = [exact(text) for text in (hf_id, hf_id.upper(), hf_id.lower())]
        assert [one and one.hf_id for one in found] == [hf_id] * 3


@pytest.mark.parametrize(
    "text",
    [
        "nobody/nothing",
        "Qwen/Qwen3-32B-AWQ-x",
        "Qwen/Qwen3-32B-AW",
        "a/b/c",
        "",
        "/",
        "x" * 5000,
        "å/é",
        "\0",
    ],
)
def test_what_is_not_in_the_list_is_not_found(text: str) -> None:
    assert find_public(text) is None


def test_a_bare_name_is_that_of_the_publisher_whom_nearly_all_mean() -> None:
    found = find_public("qwen3 32b_awq")
    assert found is not None
    assert found.hf_id == "Qwen/Qwen3-32B-AWQ"


def test_a_bare_name_of_different_models_is_refused_with_all(own: Path, tmp_path: Path) -> None:
    rows = [
        row("one/twin-9z", hf_downloads=90),
        row("two/twin-9z", hf_downloads=80, parameters_raw=9),
    ]
    import_list(written(tmp_path / "l.csv", *rows), own, "a test")
    with pytest.raises(RequestError, match="one/twin-9z, two/twin-9z"):
        find_public("Twin 9z")


def test_a_known_name_does_not_open_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object, **__: object) -> None:
        raise AssertionError("the list was opened")

    monkeypatch.setattr(public_list, "_opened", opened)
    for known in ("phi-3-medium", "llama-3.1-8b", "Qwen/Qwen3-32B"):
        assert find_model_named(known, load_knowledge()).origin == "knowledge"


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what is done with the built-in list."""
    done: Counter[str] = Counter()
    for what in ("_first", "model", "_set_apart", "__init__"):
        plain = getattr(public_list._List, what)

        def counted(*args: object, _what: str = what, _do: Any = plain, **named: object) -> object:
            done[_what] += _what != "_set_apart" or args[0]._names is None  # type: ignore[attr-defined]
            return _do(*args, **named)

        monkeypatch.setattr(public_list._List, what, counted)
    public_list._read.cache_clear()
    return done


def test_a_listed_name_is_looked_up_and_reads_few_rows(work: Counter[str]) -> None:
    knowledge, names = load_knowledge(), ids()[::97]
    for name in names:
        with suppress(UserError):
            find_model_named(name, knowledge)
    assert work["__init__"] == 1, "the file is read once"
    assert work["_first"] <= 3 * len(names), "it is halved so many times"
    assert work["model"] <= 3 * len(names), "of 13,000 rows so many are read"


def test_a_name_that_is_no_models_is_searched_for_without_reading_the_list(
    work: Counter[str],
) -> None:
    knowledge, count = load_knowledge(), 500
    for text in texts(count, random.Random(3)):
        with suppress(UserError):
            read_model(knowledge, text)
    assert (work["__init__"], work["_set_apart"]) == (1, 1), "read once, its names set apart once"
    assert work["_first"] <= 10 * count
    assert work["model"] <= count / 10, "its rows are read where their names may be meant"


def test_an_own_list_goes_before_the_built_in_one_and_is_told(
    own: Path, tmp_path: Path, capsys: Capture
) -> None:
    source = written(tmp_path / "new.csv", row("me/brand-new-8B", release_date="2027-01-02"))
    told = run(capsys, "knowledge", "update", str(source))
    assert told.code == 0, told.err
    assert "1 models, the newest of 2027-01-02" in told.out
    shown = advise(capsys, "--format", "json", model="me/brand-new-8B")
    assert shown.code == 0, shown.err
    assert f'"at":"{own}"' in shown.out.replace('": "', '":"')
    assert find_public("Qwen/Qwen3-32B-AWQ"), "the built-in list still counts"


def test_all_that_is_wrong_with_a_list_is_told_and_nothing_is_written(
    own: Path, tmp_path: Path, capsys: Capture
) -> None:
    good = written(tmp_path / "good.csv", row("me/good-8B"))
    assert run(capsys, "knowledge", "update", str(good)).code == 0
    before = own.read_bytes()
    bad = [
        row("no-publisher"),
        row("me/x", hidden_size="4k"),
        row("me/y", architecture=""),
        row("me/é"),
    ]
    told = run(capsys, "knowledge", "update", str(written(tmp_path / "bad.csv", *bad)))
    assert told.code == 1
    for line, what in (
        (2, "publisher/name"),
        (3, "hidden_size is '4k'"),
        (4, "architecture is missing"),
        (5, "me/é"),
    ):
        assert any(f"bad.csv:{line}:" in one and what in one for one in told.err.splitlines())
    assert own.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "columns are missing"),
        (b"hf_id,architecture\na/b,llama\n", "columns are missing: pipeline_tag"),
        (",".join(COLUMNS).encode(), "holds no model"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"\x00" * 50, "columns are missing"),
    ],
)
def test_what_is_no_list_is_refused(own: Path, tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "l.csv").write_bytes(content)
    with pytest.raises(UserError, match=said):
        import_list(tmp_path / "l.csv", own, "a test")
    assert not own.exists()


def test_a_missing_file_is_told(capsys: Capture) -> None:
    told = run(capsys, "knowledge", "update", "no-such.csv")
    assert told.code == 1
    assert "no-such.csv" in told.err


@pytest.mark.parametrize("content", [b"", b"# x\n", b"# x\nother\tcolumns\n", b"\xff" * 99])
def test_a_damaged_own_list_is_told(own: Path, content: bytes) -> None:
    own.parent.mkdir()
    own.write_bytes(content)
    with pytest.raises(KnowledgeError, match="public list"):
        find_public("Qwen/Qwen3-32B-AWQ")


def test_a_line_cut_short_is_told(own: Path, tmp_path: Path) -> None:
    import_list(written(tmp_path / "l.csv", row("me/good-8B")), own, "a test")
    own.write_bytes(own.read_bytes()[:-60])
    with pytest.raises(KnowledgeError, match="public list"):
        find_public("me/good-8B")


def test_the_import_gives_the_same_file_again(tmp_path: Path) -> None:
    head, names, *lines = BUILT_IN.read_text("ascii").splitlines()
    cells = [dict(zip(names.split("\t"), line.split("\t"), strict=True)) for line in lines[::50]]
    source = written(tmp_path / "l.csv", *reversed(cells))
    import_list(source, tmp_path / "made.tsv", head.removeprefix("# "))
    assert (tmp_path / "made.tsv").read_text("ascii").splitlines() == [head, names, *lines[::50]]


def test_find_names_repositories_of_the_list(capsys: Capture) -> None:
    told = run(capsys, "knowledge", "find", "hermes 3 llama 3.1").out
    assert "public list" in told
    assert "NousResearch/Hermes-3-Llama-3.1-8B" in told
    assert len(told.splitlines()) <= 10


SHAPE = {
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "vocab_size": 50272,
    "moe_intermediate_size": 3072,
}


@pytest.mark.parametrize(
    ("stated", "hidden", "kept"),
    [
        (123_543_552, 768, (None, 768)),
        (209_338_368, 768, (None, 768)),
        (125_239_296, 768, (125_239_296, 768)),
        (123_543_552, "", (None, 768)),
        (123_543_553, "", (123_543_553, None)),
    ],
)
def test_a_number_that_its_makers_formula_gives_is_not_taken_over(
    own: Path, tmp_path: Path, stated: int, hidden: object, kept: tuple[int | None, int | None]
) -> None:
    one = row("me/opt-8B", **SHAPE, hidden_size=hidden, parameters_raw=stated)
    import_list(written(tmp_path / "l.csv", one), own, "a test")
    found = exact("me/opt-8B")
    assert found is not None
    assert (found.parameters_raw, found.hidden_size) == kept


@pytest.mark.parametrize(
    ("stated", "kept"), [(3_334_220_729, None), (3_300_000_000, 3_300_000_000)]
)
def test_active_parameters_are_taken_over_where_no_formula_gives_them(
    own: Path, tmp_path: Path, stated: int, kept: int | None
) -> None:
    sizes = {"parameters_raw": 30_484_303_872, "num_experts": 128, "active_experts": 8}
    one = row("me/moe-30B", **sizes, active_parameters=stated)
    import_list(written(tmp_path / "l.csv", one), own, "a test")
    found = exact("me/moe-30B")
    assert found is not None
    assert found.active_parameters == kept


def test_publishers_whose_packed_weights_people_take_are_counted_in_the_list() -> None:
    taken: dict[str, list[int]] = defaultdict(list)
    for one in every():
        if is_packed(one) and not has_gguf(one):
            taken[one.hf_id.partition("/")[0]].append(one.hf_downloads or 0)
    most = [(name, len(each), sum(each)) for name, each in taken.items() if sum(each) >= 300_000]
    known = [(name, int(count), int(total)) for name, count, total in table_rows("packers.tsv")]
    assert known == sorted(most, key=lambda row: -row[2])
