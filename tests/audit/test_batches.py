"""``advisor audit`` finds every damage done to a real batch, and says where."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advisor.bulk.batch.worker import Local
from tests.batch.plans import TINY, index, write
from tests.cli.running import Outcome, run

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).resolve().parents[2]
NAME = "meta-llama-3-8b/geforce-rtx-4090_q4-k-m_4096"
MARKDOWN, HTML = f"markdown/{NAME}.md", f"html/{NAME}.html"


def audit(capsys: Capture, out: Path, *more: str) -> Outcome:
    return run(capsys, "audit", str(out), "--workers", "1", *more)


def findings(capsys: Capture, out: Path, *more: str) -> set[tuple[str, str, str]]:
    outcome = audit(capsys, out, "--format", "json", *more)
    said = json.loads(outcome.out)
    assert outcome.code == (0 if said["clean"] else 1)
    assert sum(said["counts"].values()) == len(said["findings"])
    return {(one["kind"], one["where"], one["message"]) for one in said["findings"]}


def told(found: set[tuple[str, str, str]], kind: str, where: str, words: str) -> bool:
    return any(k == kind and w == where and words in m for k, w, m in found)


def edit(path: Path, change: Callable[[str], str]) -> None:
    before = path.read_text(encoding="utf-8")
    after = change(before)
    assert after != before
    path.write_text(after, encoding="utf-8")


def edit_document(out: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the document of NAME where it stands; its place and length stay the same."""
    place = next(one for one in index(out) if one["id"] == NAME)["files"]["jsonl"]  # type: ignore[index]  # JSON
    path = out / place["path"]
    content = path.read_bytes()
    start, end = place["offset"], place["offset"] + place["bytes"]
    doc = json.loads(content[start:end])
    change(doc)
    line = json.dumps(doc, ensure_ascii=False, separators=(",", ":")).encode()
    assert len(line) < place["bytes"]
    padded = line + b" " * (place["bytes"] - 1 - len(line)) + b"\n"
    path.write_bytes(content[:start] + padded + content[end:])


def test_an_undamaged_batch_is_clean(capsys: Capture, whole: Path) -> None:
    outcome = audit(capsys, whole)
    assert outcome.code == 0
    assert outcome.out.startswith("8 reports checked\n")
    assert outcome.out.endswith("nothing is wrong\n")


def test_two_processes_say_the_same(capsys: Capture, out: Path) -> None:
    edit(out / MARKDOWN, lambda text: text.replace("GiB", "GB"))
    alone = audit(capsys, out, "--format", "json")
    both = run(capsys, "audit", str(out), "--workers", "2", "--format", "json")
    assert both.out == alone.out
    assert both.code == 1


def test_a_figure_changed_in_the_markdown_is_found_three_ways(capsys: Capture, out: Path) -> None:
    edit(out / MARKDOWN, lambda text: text.replace("| Needs | 5", "| Needs | 97", 1))
    found = findings(capsys, out)
    assert told(found, "damaged", MARKDOWN, "not what was written")
    assert told(found, "wrong", NAME, '"| Needs | 97.')
    assert told(found, "contradiction", NAME, "table and Markdown file hold different texts")
    assert any(k == "contradiction" and "is no figure of this report" in m for k, _, m in found)


def test_a_verdict_changed_in_one_format_contradicts_the_others(capsys: Capture, out: Path) -> None:
    edit(out / HTML, lambda text: text.replace(" fits on ", " does not fit on "))
    found = findings(capsys, out)
    assert told(found, "contradiction", NAME, "HTML: gives another verdict than the document")
    assert told(found, "contradiction", NAME, "HTML: says 'does not fit'")


def test_a_verdict_coloured_wrongly_is_found(capsys: Capture, out: Path) -> None:
    edit(out / HTML, lambda text: text.replace('"verdict fits"', '"verdict tight"'))
    assert told(findings(capsys, out), "contradiction", NAME, "HTML: coloured as another verdict")


def test_a_document_that_disagrees_with_everything_else_is_found(
    capsys: Capture, out: Path
) -> None:
    def change(doc: dict[str, Any]) -> None:
        doc["verdict"]["state"] = "tight"
        doc["memory"]["weights_bytes"] += 5 * 2**30
        doc["recommendations"].pop()

    edit_document(out, change)
    found = findings(capsys, out)
    assert told(found, "contradiction", NAME, 'index and document differ: state is "fits" and')
    assert told(found, "contradiction", NAME, 'table and document differ: state is "fits" and')
    assert told(found, "contradiction", NAME, "memory: the parts add up to")
    assert told(found, "wrong", NAME, 'verdict.state: "tight" then, "fits" now')
    assert told(found, "damaged", "jsonl/000/000000.jsonl", "not what was written")


def test_a_document_that_cannot_be_read_is_found(capsys: Capture, out: Path) -> None:
    edit_document(out, lambda doc: doc.pop("scenario") and None)
    assert any(kind == "damaged" and where == NAME for kind, where, _ in findings(capsys, out))
    place = out / "jsonl/000/000000.jsonl"
    place.write_bytes(b"x" * place.stat().st_size)
    found = findings(capsys, out)
    assert told(found, "damaged", "jsonl/000/000000.jsonl", f"no document of '{NAME}'")


def test_a_row_of_the_table_that_disagrees_is_found(capsys: Capture, out: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = out / "parquet/000/000000.parquet"
    table = pq.ParquetFile(path).read()
    rows = table.to_pylist()
    rows[0]["required_bytes"] += 1
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    name = rows[0]["id"]
    found = findings(capsys, out)
    assert told(found, "contradiction", name, "table and document differ: required_bytes is")
    assert any(kind == "damaged" and where.startswith("parquet/") for kind, where, _ in found)


def test_a_table_cut_short_is_found(capsys: Capture, out: Path) -> None:
    path = out / "parquet/000/000001.parquet"
    path.write_bytes(path.read_bytes()[:-40])
    assert told(findings(capsys, out), "damaged", "parquet/000/000001.parquet", "cannot be read")


def test_packed_documents_and_divided_tables_are_checked_too(
    capsys: Capture, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    asked = ("--workers", "1", "--formats", "jsonl.gz,parquet/vendor/model")
    assert run(capsys, "batch", str(write(tmp_path, TINY)), "--out", str(out), *asked).code == 0
    assert run(capsys, "site", str(out), "--workers", "1").code == 0
    assert "nothing is wrong" in run(capsys, "audit", str(out), "--workers", "1").out
    packed = out / "jsonl/000/000001.jsonl.gz"
    content = bytearray(packed.read_bytes())
    content[40] ^= 255
    packed.write_bytes(content)
    table = next(out.rglob("*.parquet"))
    table.write_bytes(table.read_bytes()[:-9])
    found = run(capsys, "audit", str(out), "--workers", "1", "--format", "json")
    where = {one["where"] for one in json.loads(found.out)["findings"] if one["kind"] == "damaged"}
    assert where >= {"jsonl/000/000001.jsonl.gz", table.relative_to(out).as_posix()}


def test_files_that_are_missing_foreign_or_half_written_are_found(
    capsys: Capture, out: Path
) -> None:
    (out / MARKDOWN).unlink()
    (out / HTML).write_text("<!doctype html>")
    (out / "markdown" / "stray.md").write_text("mine")
    (out / "notes.txt").write_text("mine")
    (out / ".work").mkdir()
    found = findings(capsys, out)
    assert told(found, "missing", MARKDOWN, "record")
    assert told(found, "damaged", HTML, "15 bytes long, not")
    assert told(found, "foreign", "markdown/stray.md", "no record names it")
    assert told(found, "foreign", "notes.txt", "not part of this batch")
    assert told(found, "unfinished", ".work/", "--resume")


def test_a_link_in_place_of_a_folder_is_foreign(capsys: Capture, out: Path, tmp_path: Path) -> None:
    (out / "html").rename(tmp_path / "elsewhere")
    (out / "html").symlink_to(tmp_path / "elsewhere")
    assert told(findings(capsys, out), "foreign", "html", "a link")


def test_shards_without_a_record_are_not_finished(capsys: Capture, out: Path) -> None:
    (out / "shards/000/000000.jsonl").unlink()
    (out / "shards/000/000001.jsonl").write_text('{"scenarios": 3}\n')
    found = findings(capsys, out)
    assert told(found, "unfinished", "shards/000/000000.jsonl", "shards 0 to 1 not complete")


def test_an_index_that_its_shards_do_not_bear_out_is_found(capsys: Capture, out: Path) -> None:
    edit(out / "index.jsonl", lambda text: text.replace('"state":"fits"', '"state":"tight"', 1))
    assert told(findings(capsys, out), "damaged", "index.jsonl", "line 1 is not what its shard")
    (out / "index.jsonl").unlink()
    assert told(findings(capsys, out), "missing", "index.jsonl", "--resume")


def test_a_record_that_disagrees_with_its_documents_is_found(capsys: Capture, out: Path) -> None:
    for path in (out / "shards/000/000000.jsonl", out / "index.jsonl"):
        edit(path, lambda text: re.sub(r'("required_bytes":)\d+', r"\g<1>1", text, count=1))
    found = findings(capsys, out)
    assert any(
        kind == "contradiction" and "required_bytes is 1 and" in message
        for kind, _, message in found
    )


def test_a_record_that_leads_out_of_the_folder_is_found(capsys: Capture, out: Path) -> None:
    for path in (out / "shards/000/000000.jsonl", out / "index.jsonl"):
        edit(path, lambda text: text.replace('"markdown/', '"../markdown/'))
    found = findings(capsys, out)
    assert any(k == "damaged" and "outside the folder" in m for k, _, m in found)


def test_broken_links_are_found_in_both_kinds_of_files(capsys: Capture, out: Path) -> None:
    edit(out / MARKDOWN, lambda text: f"{text}\n[see](../none.md) and `[code](../no.md)`\n")
    edit(out / HTML, lambda text: text.replace("</main>", '<a href="#nowhere">x</a></main>'))
    found = findings(capsys, out)
    assert told(found, "link", MARKDOWN, "'../none.md' leads to 'markdown/none.md'")
    assert told(found, "link", HTML, "has no place named 'nowhere'")
    assert not any("no.md" in message for kind, _, message in found if kind == "link")


def test_different_scenarios_with_the_same_text_are_found(capsys: Capture, out: Path) -> None:
    other = NAME.replace("4090", "3060-12-gb")
    shutil.copy(out / MARKDOWN, out / f"markdown/{other}.md")
    found = findings(capsys, out)
    assert told(found, "duplicate", other, f"the same text as '{NAME}'") or told(
        found, "duplicate", NAME, f"the same text as '{other}'"
    )


def test_a_changed_template_is_named_with_what_would_read_differently(
    capsys: Capture, out: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own/report"
    own.mkdir(parents=True)
    text = (ROOT / "templates/report/verdict.md.j2").read_text()
    (own / "verdict.md.j2").write_text(f"In short: {text}")
    found = findings(capsys, out, "--templates", str(tmp_path / "own"))
    assert told(found, "stale", "manifest.json", "the templates (")
    assert told(found, "stale", "manifest.json", "own/templates/report/verdict.md.j2 added")
    assert told(found, "outdated", NAME, "verdict.sentence:")
    assert not any(kind in {"wrong", "contradiction"} for kind, _, _ in found)


def test_a_file_that_changed_since_is_named(capsys: Capture, out: Path) -> None:
    def change(text: str) -> str:
        said = json.loads(text)
        said["rules_sha256"] = "0" * 64
        said["inputs"]["rules/fit.yaml"] = "0" * 16
        del said["inputs"]["rules/notes.yaml"]
        return json.dumps(said)

    edit(out / "manifest.json", change)
    found = findings(capsys, out)
    stale = {message for kind, _, message in found if kind == "stale"}
    assert {"rules/fit.yaml changed", "rules/notes.yaml added"} < stale
    assert not any(kind in {"outdated", "wrong"} for kind, _, _ in found)


def test_a_batch_of_before_without_a_list_of_files_can_be_checked(
    capsys: Capture, out: Path
) -> None:
    def change(text: str) -> str:
        said = json.loads(text)
        del said["inputs"]
        return json.dumps(said)

    edit(out / "manifest.json", change)
    assert findings(capsys, out) == set()


def test_a_sample_is_the_same_every_time_and_spread_over_the_plan(
    capsys: Capture, out: Path
) -> None:
    for name in (line["id"] for line in index(out)):
        edit(out / f"markdown/{name}.md", lambda text: text.replace("GiB", "GB"))
    first = findings(capsys, out, "--sample", "3")
    assert findings(capsys, out, "--sample", "3") == first
    damaged = {where for kind, where, m in first if kind == "damaged" and "content" in m}
    ids = [f"markdown/{line['id']}.md" for line in index(out)]
    assert {ids.index(where) for where in damaged} == {1, 4, 6}
    assert audit(capsys, out, "--sample", "3").out.startswith("3 of 8 reports checked\n")


def test_texts_that_are_alike_are_grouped_and_the_common_share_is_told(
    capsys: Capture, out: Path
) -> None:
    one, other, *_ = sorted(out.rglob("*.md"))
    other.write_bytes(one.read_bytes())
    outcome = audit(capsys, out, "--similar", "0.3", "--format", "json")
    alike = json.loads(outcome.out)["alike"]
    assert alike["compared"] == 8
    assert 0.05 < alike["common_share"] < 0.9
    best = alike["pairs"][0]
    assert sorted([best["one"], best["other"]]) in [sorted(group) for group in alike["groups"]]
    assert best["overlap"] == 1
    shown = audit(capsys, out, "--similar", "0.3").out
    assert f"closest: {best['one']} and {best['other']}, 100.0%" in shown


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "there is no folder"),
        (lambda path: path.mkdir(), "holds no batch: it has no manifest.json"),
        (lambda path: path.mkdir() or (path / "manifest.json").write_text("x"), "not a manifest"),
        (lambda path: path.mkdir() or (path / "manifest.json").write_text("{}"), "lacks shards"),
    ],
)
def test_a_folder_without_a_batch_is_one_clear_error(
    capsys: Capture, tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    make(tmp_path / "none")
    outcome = audit(capsys, tmp_path / "none")
    assert outcome.code == 1
    assert words in outcome.err
    assert outcome.out == ""


def test_a_batch_without_some_formats_is_checked_with_what_there_is(
    capsys: Capture, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("gpus: [RTX 4090]\nmodels: [llama-3-8b]\nformats: [Q4_K_M]\ncontexts: [4096]\n")
    for formats in ("html", "parquet", "jsonl"):
        out = tmp_path / formats
        made = run(capsys, "batch", str(plan), "--out", str(out), "--formats", formats)
        assert made.code == 0
        assert findings(capsys, out) == set()
    page = next((tmp_path / "html").rglob("*.html"))
    edit(page, lambda text: text.replace(" fits on ", " does not fit on "))
    found = findings(capsys, tmp_path / "html")
    assert {"damaged", "contradiction", "wrong"} <= {kind for kind, _, _ in found}


@pytest.mark.parametrize(
    ("left", "where", "words"),
    [
        ("site/.work", "site/.work/", "a run that was stopped"),
        ("site", "site/site.jsonl", "the site is not complete"),
    ],
)
def test_a_site_that_is_not_finished_is_told_beside_everything_else(
    capsys: Capture, out: Path, left: str, where: str, words: str
) -> None:
    (out / left).mkdir(parents=True)
    (out / MARKDOWN).unlink()
    found = findings(capsys, out, "--sample", "1")
    assert told(found, "unfinished", where, words)
    assert told(found, "missing", MARKDOWN, "the record of its shard names it")


def test_a_list_of_a_site_that_cannot_be_read_is_damaged(capsys: Capture, out: Path) -> None:
    (out / "site").mkdir()
    (out / "site" / "site.jsonl").write_text("{}\nno list\n")
    found = findings(capsys, out, "--sample", "1")
    assert told(found, "damaged", "site/site.jsonl", "not the list of a site")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("scenarios", -5, "has a wrong scenarios"),
        ("scenarios", "x", "has a wrong scenarios"),
        ("scenarios", True, "has a wrong scenarios"),
        ("scenarios", 10**10, "has a wrong shards"),
        ("shard_size", 0, "has a wrong shard_size"),
        ("shard_size", 4097, "has a wrong shard_size"),
        ("shards", 9, "has a wrong shards"),
        ("length", "zzz", "has a wrong length"),
        ("formats", ["markdown", "word"], "has a wrong formats"),
        ("length", None, "lacks length"),
    ],
)
def test_a_manifest_that_no_batch_has_is_one_clear_error(
    capsys: Capture, out: Path, key: str, value: object, words: str
) -> None:
    made = json.loads((out / "manifest.json").read_text()) | {key: value}
    if value is None:
        del made[key]
    (out / "manifest.json").write_text(json.dumps(made))
    for command in (("audit", str(out), "--sample", "20"), ("site", str(out))):
        outcome = run(capsys, *command)
        assert outcome.code == 1
        assert outcome.err.count("\n") == 1
        assert f"manifest.json' {words}. Make" in outcome.err
    assert not (out / "site").exists()


@pytest.mark.parametrize("command", ["audit", "site"])
def test_ctrl_c_is_answered_with_one_line(
    capsys: Capture, out: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Local, "open", stopped)
    outcome = run(capsys, command, str(out), "--workers", "1")
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err.startswith("stopped")
    assert outcome.err.count("\n") == 1


def test_scenarios_without_a_report_are_not_among_the_reports(capsys: Capture, out: Path) -> None:
    (out / "errors.jsonl").write_text("{}\n" * 3)
    assert audit(capsys, out, "--sample", "5").out.startswith("5 reports checked\n3 scenarios have")
    assert audit(capsys, out, "--sample", "4").out.startswith("4 of 5 reports checked\n")


def test_an_overlap_that_is_no_number_is_wrong_usage(capsys: Capture, out: Path) -> None:
    outcome = audit(capsys, out, "--similar", "nan")
    assert outcome.code == 2
    assert "not a number" in outcome.err
