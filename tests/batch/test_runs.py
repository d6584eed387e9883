"""``advisor batch`` as a user runs it: outputs, resuming, and everything in the way."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.bulk import batch as running
from advisor.bulk.batch import store, worker
from advisor.bulk.batch.formats import table_of, told_by
from advisor.bulk.batch.manifest import document_of, table_rows
from advisor.bulk.batch.plan import Shard
from advisor.bulk.batch.store import File
from advisor.bulk.batch.worker import Here, Local
from tests.batch.plans import TINY, contents, index, write
from tests.cli.running import Outcome, advise, run

Capture = pytest.CaptureFixture[str]
ALL = "markdown,html,jsonl,parquet"
ROOT = Path(__file__).resolve().parents[2]


def batch(capsys: Capture, plan: Path, out: Path, *more: str, workers: int = 1) -> Outcome:
    given = ("--formats", ALL) if "--formats" not in more else ()
    return run(
        capsys, "batch", str(plan), "--out", str(out), "--workers", str(workers), *given, *more
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished batch of the tiny plan, made by a process of its own."""
    folder = tmp_path_factory.mktemp("whole")
    command = [sys.executable, "-m", "advisor", "batch", str(write(folder, TINY)), "--out"]
    command += [str(folder / "out"), "--workers", "1", "--formats", ALL]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return folder / "out"


def test_the_summary_counts_what_was_made(capsys: Capture, tmp_path: Path) -> None:
    outcome = batch(capsys, write(tmp_path, TINY), tmp_path / "out", "--formats", "jsonl")
    summary = json.loads(outcome.out)
    assert (outcome.code, outcome.err) == (0, "")
    assert summary["complete"]
    assert (summary["scenarios"], summary["reports"], summary["failed"]) == (8, 8, 0)
    assert summary["shards"] == {"total": 3, "kept": 0, "made": 3}


def test_two_workers_and_this_process_give_the_same_bytes(
    capsys: Capture, tmp_path: Path, whole: Path
) -> None:
    for workers in (1, 2):
        out = tmp_path / f"out-{workers}"
        assert batch(capsys, write(tmp_path, TINY), out, workers=workers).code == 0
        assert contents(out) == contents(whole)


def test_the_folder_holds_no_path_of_this_machine_and_no_leftover(whole: Path) -> None:
    found = contents(whole)
    assert {name.split("/")[0] for name in found} == {
        "manifest.json", "index.jsonl", "shards", "markdown", "html", "jsonl", "parquet",
    }  # fmt: skip
    for name, content in found.items():
        assert str(whole.parent).encode() not in content, name
        assert os.uname().nodename.encode() not in content or len(os.uname().nodename) < 5, name


def test_the_reports_are_those_of_advise(capsys: Capture, whole: Path) -> None:
    entry = index(whole)[0]
    request = {key: str(value) for key, value in dict(entry["request"]).items()}  # type: ignore[call-overload]  # JSON
    files = json.loads(json.dumps(entry["files"]))
    for form, kind in (("markdown", "markdown"), ("html", "html")):
        text = advise(capsys, "--format", form, **request).out
        assert (whole / files[kind]["path"]).read_text() == text
    place = files["jsonl"]
    line = (whole / place["path"]).read_bytes()[place["offset"] :][: place["bytes"]]
    assert json.loads(line) == json.loads(advise(capsys, "--format", "json", **request).out)


def test_the_index_leads_to_every_file_and_its_hash(whole: Path) -> None:
    entries = index(whole)
    assert len(entries) == 8
    reports = set()
    for entry in entries:
        for kind in ("markdown", "html"):
            file = json.loads(json.dumps(entry["files"]))[kind]
            content = (whole / file["path"]).read_bytes()
            assert file["bytes"] == len(content)
            assert file["sha256"] == hashlib.sha256(content).hexdigest()
            reports.add(file["path"])
    assert reports == {name for name in contents(whole) if name.startswith(("markdown", "html"))}


def test_parquet_holds_figures_and_text_in_plan_order(whole: Path) -> None:
    table = pytest.importorskip("pyarrow.parquet")
    rows = [
        row
        for part in sorted(whole.glob("parquet/*/*"))
        for row in table.ParquetFile(part).read().to_pylist()
    ]
    entries = index(whole)
    assert [row["id"] for row in rows] == [entry["id"] for entry in entries]
    for row, entry in zip(rows, entries, strict=True):
        assert row["required_bytes"] == entry["required_bytes"]
        file = json.loads(json.dumps(entry["files"]))["markdown"]["path"]
        assert row["report_markdown"] == (whole / file).read_text()


@pytest.mark.parametrize("workers", [1, 2])
def test_packed_documents_are_those_of_plain_ones_each_read_alone(
    capsys: Capture, tmp_path: Path, whole: Path, workers: int
) -> None:
    out = tmp_path / "out"
    asked = ("--formats", "jsonl.gz")
    assert batch(capsys, write(tmp_path, TINY), out, *asked, workers=workers).code == 0
    for file in (whole / "jsonl").rglob("*.jsonl"):
        beside = out / file.relative_to(whole).with_suffix(".jsonl.gz")
        assert gzip.decompress(beside.read_bytes()) == file.read_bytes()
    for one, other in zip(index(out), index(whole), strict=True):
        assert document_of(out, one) == document_of(whole, other)
    packed = contents(out)["jsonl/000/000000.jsonl.gz"]
    assert packed[4:10] == b"\0\0\0\0\0\xff", "neither a time nor a system"


def test_a_divided_table_is_read_as_one_with_its_columns(
    capsys: Capture, tmp_path: Path, whole: Path
) -> None:
    dataset = pytest.importorskip("pyarrow.dataset")
    out = tmp_path / "out"
    asked = ("--formats", "parquet/vendor/model")
    assert batch(capsys, write(tmp_path, TINY), out, *asked).code == 0
    assert (out / "parquet/vendor=NVIDIA/model=Meta-Llama-3-8B/000000.parquet").is_file()
    table = dataset.dataset(out / "parquet", partitioning="hive").to_table()
    plain = dataset.dataset(whole / "parquet").to_table().select(table.column_names)
    assert table.sort_by("id").to_pylist() == plain.sort_by("id").to_pylist()
    for entry in index(out):
        place = entry["files"]["parquet"]  # type: ignore[index]
        rows = table_rows(out, place["path"])
        assert rows
        assert rows[place["row"]]["id"] == entry["id"]


@pytest.mark.parametrize("value", ["a/b", "..", "nul:", "100 %", "", None, "\u00e4", "x=y"])
def test_any_value_can_divide_a_table(value: str | None) -> None:
    path = table_of("parquet/model", 7, {"model": value})
    assert (path.count("/"), path.endswith("/000007.parquet")) == (2, True)
    assert told_by(path) == {"model": value}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("jsonl,jsonl.gz", "'jsonl' and 'jsonl.gz' are one format"),
        ("parquet/vender", "Did you mean 'parquet/vendor'"),
        ("parquet/vendor/vendor", "unknown format"),
        ("jsonl/vendor", "unknown format"),
        ("markdown.gz", "unknown format"),
    ],
)
def test_formats_that_are_none_are_refused(
    capsys: Capture, tmp_path: Path, asked: str, words: str
) -> None:
    outcome = batch(capsys, write(tmp_path, TINY), tmp_path / "out", "--formats", asked)
    assert outcome.code == 1
    assert words in outcome.err


def test_an_explicit_request_keeps_its_id_and_line(capsys: Capture, tmp_path: Path) -> None:
    rows = (
        "id,gpu,model,precision\nmine,rtx 4090,phi 3 medium,q4_k_m\n"
        "again,RTX4090,phi-3-medium,Q4_K_M"
    )
    outcome = batch(capsys, write(tmp_path, rows, "rows.csv"), tmp_path / "out")
    assert outcome.code == 0
    entries = index(tmp_path / "out")
    assert [entry["row"] for entry in entries] == [
        {"line": 2, "id": "mine"}, {"line": 3, "id": "again"},
    ]  # fmt: skip
    assert entries[0]["request"] == entries[1]["request"]
    assert len(list((tmp_path / "out" / "markdown").rglob("*.md"))) == 1


def test_one_bad_scenario_fails_alone_and_is_listed(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path
) -> None:
    config = json.dumps({
        "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 4, "vocab_size": 32000,
        "num_attention_heads": 16, "intermediate_size": 8192,
    })  # fmt: skip
    monkeypatch.chdir(tmp_path)
    write(tmp_path, config, "mine.json")
    rows = write(tmp_path, "gpu,model,config\nRTX 4090,llama-3-8b,\nRTX 4090,,mine.json", "r.csv")
    checked = running.run

    def spoilt(*given: object, **named: object) -> object:
        write(tmp_path, "{", "mine.json")
        return checked(*given, **named)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr("advisor.cli.batch.run", spoilt)
    outcome = batch(capsys, rows, tmp_path / "out")
    assert outcome.code == 1
    assert "1 of 2 scenarios have no report" in outcome.err
    assert "errors.jsonl" in outcome.err
    failure = json.loads((tmp_path / "out" / "errors.jsonl").read_text())
    assert failure["row"]["line"] == 3
    assert "mine.json" in failure["error"]
    assert len(index(tmp_path / "out")) == 1
    audited = run(capsys, "audit", str(tmp_path / "out"), "--workers", "1")
    assert "1 scenario has no report: see errors.jsonl" in audited.out
    assert audited.code == 0


def test_a_bug_in_one_scenario_costs_that_one_and_is_called_a_bug(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from advisor.report import FORMATS, Format, Page  # noqa: PLC0415

    markdown = FORMATS["markdown"]

    def fails(page: Page) -> str:
        if page.doc.scenario.precision == "AWQ 4-bit":
            raise ZeroDivisionError("boom")
        return markdown.write(page)

    monkeypatch.setitem(FORMATS, "markdown", Format("markdown", fails, suffix="md"))
    outcome = batch(capsys, write(tmp_path, TINY), tmp_path / "out", "--formats", "markdown")
    assert outcome.code == 70
    assert json.loads(outcome.out)["failed"] == 4
    assert len(index(tmp_path / "out")) == 4


def test_resume_makes_only_what_is_missing_or_stale(
    capsys: Capture, tmp_path: Path, whole: Path
) -> None:
    plan, out = write(tmp_path, TINY), tmp_path / "out"
    assert batch(capsys, plan, out).code == 0
    (out / "shards/000/000001.jsonl").unlink()
    next((out / "html").rglob("*.html")).write_text("cut")
    (out / ".work").mkdir()
    (out / ".work" / "half").write_text("written")
    outcome = batch(capsys, plan, out, "--resume")
    assert outcome.code == 0
    assert json.loads(outcome.out)["shards"]["kept"] == 1
    assert contents(out) == contents(whole)


def test_resume_of_a_finished_batch_changes_nothing(capsys: Capture, tmp_path: Path) -> None:
    plan, out = write(tmp_path, TINY), tmp_path / "out"
    batch(capsys, plan, out)
    before = contents(out)
    outcome = batch(capsys, plan, out, "--resume")
    assert json.loads(outcome.out)["shards"] == {"total": 3, "kept": 3, "made": 0}
    assert contents(out) == before


def test_a_record_that_is_damaged_is_made_again(
    capsys: Capture, tmp_path: Path, whole: Path
) -> None:
    plan, out = write(tmp_path, TINY), tmp_path / "out"
    batch(capsys, plan, out)
    for number, damage in enumerate((b"", b"{}\n", b"null\n")):
        (out / f"shards/000/{number:06d}.jsonl").write_bytes(damage)
    assert batch(capsys, plan, out, "--resume").code == 0
    assert contents(out) == contents(whole)


@pytest.mark.parametrize("where", ["markdown", "html", "jsonl", "parquet", "shards"])
def test_what_was_changed_to_the_same_size_is_named_and_made_again(
    capsys: Capture, tmp_path: Path, whole: Path, where: str
) -> None:
    plan, out = tmp_path / "plan.yaml", tmp_path / "out"
    write(tmp_path, TINY)
    shutil.copytree(whole, out)
    file = next(path for path in sorted((out / where).rglob("*")) if path.is_file())
    content = bytearray(file.read_bytes())
    content[-20] ^= 1
    file.write_bytes(content)
    audited = run(capsys, "audit", str(out), "--workers", "1")
    assert str(file.relative_to(out)) in audited.out
    unread = json.loads(batch(capsys, plan, out, "--resume").out)["shards"]["kept"]
    assert unread == (2 if where == "shards" else 3)
    outcome = batch(capsys, plan, out, "--resume", "--verify")
    assert json.loads(outcome.out)["shards"]["kept"] == (3 if where == "shards" else 2)
    assert contents(out) == contents(whole)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("--length", "short"), "made differently: the length (standard then, short now)"),
        (
            ("--formats", "jsonl"),
            "the formats (markdown and html and jsonl and parquet then, jsonl now)",
        ),
    ],
)
def test_resume_refuses_another_batch_and_says_what_differs(
    capsys: Capture, tmp_path: Path, change: tuple[str, ...], words: str
) -> None:
    plan, out = write(tmp_path, TINY), tmp_path / "out"
    batch(capsys, plan, out)
    before = contents(out)
    outcome = batch(capsys, plan, out, "--resume", *change)
    assert outcome.code == 1
    assert words in outcome.err
    assert contents(out) == before


def test_resume_refuses_other_rules_templates_and_plans(capsys: Capture, tmp_path: Path) -> None:
    plan, out = write(tmp_path, TINY), tmp_path / "out"
    batch(capsys, plan, out)
    note = ROOT / "templates/report/verdict.md.j2"
    write(tmp_path / "own/report", f"{note.read_text()} ", "verdict.md.j2")
    outcome = batch(capsys, plan, out, "--resume", "--templates", str(tmp_path / "own"))
    assert "the templates (" in outcome.err
    other = write(tmp_path, TINY.replace("4096", "8192"), "other.yaml")
    outcome = batch(capsys, other, out, "--resume")
    assert outcome.code == 1
    assert "the plan (" in outcome.err


def test_a_comment_in_the_plan_makes_no_other_plan(capsys: Capture, tmp_path: Path) -> None:
    out = tmp_path / "out"
    batch(capsys, write(tmp_path, TINY), out)
    commented = TINY.replace("RTX 4090", "rtx 4090") + "# said again\n"
    assert batch(capsys, write(tmp_path, commented, "b.yaml"), out, "--resume").code == 0


@pytest.mark.parametrize("found", ["file", "other files", "batch", "strange"])
def test_folders_that_cannot_be_used_are_refused(
    capsys: Capture, tmp_path: Path, found: str
) -> None:
    plan, out, more = write(tmp_path, TINY), tmp_path / "out", tuple[str, ...]()
    if found == "file":
        out.write_text("mine")
    elif found == "other files":
        write(out, "mine", "thesis.doc")
    else:
        write(out, "{}", "manifest.json")
        more = ("--resume",) if found == "strange" else ()
        if found == "strange":
            write(out, "mine", "thesis.doc")
    before = contents(tmp_path)
    outcome = batch(capsys, plan, out, *more)
    assert outcome.code == 1
    assert len(outcome.err.splitlines()) == 1
    assert str(out) in outcome.err
    assert contents(tmp_path) == before


def test_only_one_run_writes_into_a_folder(capsys: Capture, tmp_path: Path) -> None:
    plan, out = write(tmp_path, TINY), tmp_path / "out"
    out.mkdir()
    with store.locked(out):
        outcome = batch(capsys, plan, out)
    assert outcome.code == 1
    assert "another run is writing" in outcome.err


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes one shard, then no more."""
    write_files, calls = store.write_files, iter(range(10))

    def limited(root: Path, number: int, files: Iterator[File]) -> int:
        if next(calls):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(root))
        return write_files(root, number, files)

    monkeypatch.setattr(worker, "write_files", limited)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_one_clear_error_and_can_be_resumed(
    capsys: Capture, tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, out = write(tmp_path, TINY), tmp_path / "out"
    outcome = batch(capsys, plan, out)
    assert outcome.code == 1
    assert len(outcome.err.splitlines()) == 1
    assert "No space left on device" in outcome.err
    assert "--resume" in outcome.err
    assert not (out / "index.jsonl").exists()
    monkeypatch.undo()
    outcome = batch(capsys, plan, out, "--resume")
    assert json.loads(outcome.out)["shards"]["kept"] == 1
    assert contents(out) == contents(whole)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_limit_on_file_size_leaves_nothing_half_written(tmp_path: Path, whole: Path) -> None:
    plan, out = write(tmp_path, TINY), tmp_path / "out"
    command = [sys.executable, "-m", "advisor", "batch", str(plan), "--out", str(out)]
    command += ["--workers", "1", "--formats", ALL]
    most = 20_000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=limited
    )
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    expected = contents(whole)
    found = {name: data for name, data in contents(out).items() if not name.startswith(".work")}
    assert found.items() <= expected.items()
    assert subprocess.run([*command, "--resume"], cwd=ROOT, check=False,
                          stdout=subprocess.DEVNULL).returncode == 0  # fmt: skip
    assert contents(out) == expected


def test_a_vanished_folder_is_one_clear_error(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, out = write(tmp_path, TINY), tmp_path / "out"
    write_files = store.write_files

    def gone(root: Path, number: int, files: Iterator[File]) -> int:
        shutil.rmtree(root)
        return write_files(root, number, files)

    monkeypatch.setattr(worker, "write_files", gone)
    outcome = batch(capsys, plan, out)
    assert outcome.code == 1
    assert "has vanished" in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert not out.exists()


def test_a_folder_that_may_not_be_written_is_one_clear_error(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EROFS, os.strerror(errno.EROFS), str(out))

    monkeypatch.setattr(store, "prepare", refused)
    outcome = batch(capsys, write(tmp_path, TINY), out)
    assert outcome.code == 1
    assert "Read-only file system" in outcome.err
    assert len(outcome.err.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_after_the_shard_in_flight_and_says_how_to_go_on(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path,
    number: signal.Signals,
) -> None:  # fmt: skip
    plan, out = write(tmp_path, TINY), tmp_path / "out"
    write_files = store.write_files

    def signalled(root: Path, shard: int, files: Iterator[File]) -> int:
        signal.raise_signal(number)
        return write_files(root, shard, files)

    monkeypatch.setattr(worker, "write_files", signalled)
    outcome = batch(capsys, plan, out)
    monkeypatch.undo()
    assert outcome.code == 128 + number
    assert "1 of 3 shards are complete" in outcome.err
    assert "--resume" in outcome.err
    assert not json.loads(outcome.out)["complete"]
    assert batch(capsys, plan, out, "--resume").code == 0
    assert contents(out) == contents(whole)


def test_a_second_signal_ends_at_once(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path
) -> None:
    plan, out = write(tmp_path, TINY), tmp_path / "out"

    def signalled(*_: object) -> int:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        return 0

    monkeypatch.setattr(worker, "write_files", signalled)
    outcome = batch(capsys, plan, out)
    monkeypatch.undo()
    assert outcome.code == 130
    assert "stopped at once" in outcome.err
    assert batch(capsys, plan, out, "--resume").code == 0
    assert contents(out) == contents(whole)


def test_a_stopped_run_begins_no_further_shard(tmp_path: Path) -> None:
    store.prepare(tmp_path, "token")
    store.ask_to_stop(tmp_path)
    job = worker.Job(str(tmp_path), "token", ("jsonl",), "short", ())
    assert worker.run_shard(job, Shard(0, ())) is None


def test_workers_that_keep_dying_end_the_run_with_one_error(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415

    class Dying(Here):
        def submit(self, *_: object, **__: object) -> object:  # type: ignore[override]  # always fails
            raise BrokenProcessPool("gone")

    monkeypatch.setattr(Local, "open", lambda _: Dying())
    outcome = batch(capsys, write(tmp_path, TINY), tmp_path / "out")
    assert outcome.code == 1
    assert "worker processes died" in outcome.err
    assert "--resume" in outcome.err


def test_a_worker_with_other_rules_is_refused(capsys: Capture, tmp_path: Path) -> None:
    with pytest.raises(
        Exception, match=r"a worker is not the same as here: .*the rules \(other here, "
    ):
        worker._making(
            worker.Job(
                out="", token="", formats=("jsonl",), length="short",
                made_by=(("rules_sha256", "other"),),
            )
        )  # fmt: skip


def test_a_worker_that_does_not_see_the_folder_hands_the_files_back(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path
) -> None:
    monkeypatch.setattr(worker, "sees", lambda *_: False)
    out = tmp_path / "out"
    assert batch(capsys, write(tmp_path, TINY), out).code == 0
    assert contents(out) == contents(whole)


def test_dry_run_says_how_much_and_writes_nothing(capsys: Capture, tmp_path: Path) -> None:
    plan = write(tmp_path, TINY + "gpu_counts: [1, 2]\n")
    before = contents(tmp_path)
    outcome = run(capsys, "batch", str(plan), "--dry-run", "--workers", "2")
    assert outcome.code == 0
    assert outcome.out.startswith("16 scenarios in 6 shards\n")
    for word in ("expected time", "with 2 workers", "expected size"):
        assert word in outcome.out
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        ((), 2, "--out"),
        (("--dry-run", "--workers", "0"), 2, "--workers"),
        (("--dry-run", "--formats", "htlm"), 1, "'html'"),
        (("--dry-run", "--formats", ","), 1, "empty"),
        (("--out", "x", "--verify"), 2, "--resume"),
        (("--out", "x", "--workers", "2", "--scheduler", "tcp://x:1"), 2, "--workers"),
    ],
)
def test_wrong_flags(
    capsys: Capture, tmp_path: Path, flags: tuple[str, ...], code: int, words: str
) -> None:
    outcome = run(capsys, "batch", str(write(tmp_path, TINY)), *flags)
    assert outcome.code == code
    assert words in outcome.err


def test_parquet_without_pyarrow_names_the_extra(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    outcome = batch(capsys, write(tmp_path, TINY), tmp_path / "out", "--formats", "parquet")
    assert outcome.code == 1
    assert "llm-gpu-advisor[parquet]" in outcome.err
    assert not (tmp_path / "out").exists()


def test_a_cluster_without_dask_names_the_extra(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    plan = str(write(tmp_path, TINY))
    outcome = run(capsys, "batch", plan, "--out", str(tmp_path / "o"), "--scheduler", "tcp://h:1")
    assert outcome.code == 1
    assert "llm-gpu-advisor[dask]" in outcome.err


def test_no_thread_is_left_behind(capsys: Capture, tmp_path: Path) -> None:
    before = threading.active_count()
    batch(capsys, write(tmp_path, TINY), tmp_path / "out", "--formats", "jsonl")
    assert threading.active_count() == before
