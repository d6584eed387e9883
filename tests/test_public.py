"""What ``import advisor`` promises (docs/python.md)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import advisor
from tests.cli.running import run
from tests.models.gguf_files import tiny

NAMES = [
    "Advice", "Advisor", "AdvisorError", "CommandCheck", "LogAnswer", "Problems", "Report",
    "Request", "Session", "Table", "UserError", "__version__", "advise", "check_command",
    "diagnose", "estimate", "gpus_for", "load_knowledge", "load_rules", "models_for",
]  # fmt: skip
ASKED = {"gpu": "RTX 4090", "model": "phi-3-medium", "precision": "fp16"}
AS_FLAGS = [word for key, value in ASKED.items() for word in (f"--{key}", value)]
Capture = pytest.CaptureFixture[str]


def test_the_public_names_are_these() -> None:
    assert advisor.__all__ == NAMES
    assert all(hasattr(advisor, name) for name in NAMES)


def test_any_other_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'advize'"):
        advisor.advize  # noqa: B018


def test_the_import_alone_loads_nothing() -> None:
    code = "import sys, advisor; print([n for n in sys.modules if n.startswith('advisor.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_report_is_that_of_the_command(capsys: Capture) -> None:
    report = advisor.advise(**ASKED)
    assert report.to_dict() == json.loads(run(capsys, "advise", *AS_FLAGS, "--format", "json").out)
    assert report.markdown == run(capsys, "advise", *AS_FLAGS, "--format", "markdown").out
    assert report.html == run(capsys, "advise", *AS_FLAGS, "--format", "html").out
    assert report._repr_html_() == report.html
    assert not report.fits


def test_a_report_is_short_to_print_and_a_table_of_remedies() -> None:
    report = advisor.advise(advisor.Request(**ASKED))  # type: ignore[arg-type]  # texts alone
    assert len(repr(report)) < 400
    assert "does not fit" in repr(report)
    rows = report.rows()
    assert rows[0]["action"] == "quantize"
    assert rows[0]["fits"]
    assert all(row.keys() == rows[0].keys() for row in rows)
    assert all(not isinstance(value, list) for row in rows for value in row.values())


def test_settings_take_units_as_everywhere() -> None:
    report = advisor.advise(gpu="RTX 4090", model="llama-3.1-70b", context="32k", ram="64GB")
    assert report.document.scenario.context_tokens == 32_768
    assert report.to_dict()["request"]["ram_gib"] == 64


def test_an_estimate_is_figures_alone() -> None:
    line = advisor.estimate(**ASKED)
    report = advisor.advise(**ASKED)
    assert line.memory
    assert line.memory.required_bytes == report.document.memory.required_bytes


def test_models_and_cards_come_as_rows(capsys: Capture) -> None:
    models = advisor.models_for("RTX 4070", purpose="code", limit=3, context=16384)
    out = run(
        capsys, "models-for", "--gpu", "RTX 4070", "--for", "code", "--limit", "3",
        "--context", "16384", "--format", "json",
    ).out  # fmt: skip
    assert models.to_dict() == json.loads(out)
    assert [row["rank"] for row in models.rows()] == [1, 2, 3]
    small = advisor.models_for("RTX 4070", limit=2, min_params="7B", max_params=8e9)
    assert all(7e9 <= float(str(row["parameters"])) <= 8e9 for row in small.rows())
    assert (
        small.rows()
        == advisor.models_for("RTX 4070", limit=2, min_params="7", max_params="8").rows()
    )
    cards = advisor.gpus_for("qwen3-32b", limit=2, gpus=2, vendor="NVIDIA")
    assert len(cards.rows()) == 2
    assert len(repr(cards)) < 200


def test_a_command_is_checked_and_mended() -> None:
    found = advisor.check_command(
        "vllm serve Qwen/Qwen3-32B-AWQ --max-model-len 32768", gpu="RTX 3090"
    )
    assert found.starts == "no"
    assert found.corrected
    assert advisor.check_command(found.corrected, gpu="RTX 3090").starts == "yes"
    assert found.details["framework"] == "vLLM"
    assert not found.report.fits


LOG = "CUDA out of memory. Tried to allocate 2.00 GiB\n"


def test_a_log_is_read_and_what_it_lacks_is_asked() -> None:
    short = advisor.diagnose(LOG)
    assert short.report is None
    assert "add --gpu NAME" in short.missing[0]
    whole = advisor.diagnose(LOG, gpu="RTX 3090", model="llama-3.1-70b", precision="fp16")
    assert whole.report
    assert whole.cause
    assert not whole.missing


def test_a_log_that_names_its_card_by_half_gets_the_usual_one() -> None:
    card = "  Device 0: NVIDIA GeForce RTX 3060, compute capability 8.6, VMM: yes\n"
    log = f"ggml_cuda_init: found 1 CUDA devices:\n{card}{LOG}"
    found = advisor.diagnose(log, model="llama-3.1-8b", precision="Q4_K_M")
    assert not found.missing
    assert "is read as GeForce RTX 3060 12 GB, the usual one" in " ".join(found.written().split())


def test_a_session_has_the_users_measurements_where_it_is_given_them(tmp_path: Path) -> None:
    absent = advisor.Session(measurements=tmp_path / "none.csv")
    assert absent.knowledge.user_speeds is None
    assert absent.estimate(**ASKED) == advisor.estimate(**ASKED)
    broken = tmp_path / "measurements.csv"
    broken.write_text("gpu\n", encoding="utf-8")
    with pytest.raises(advisor.UserError, match=r"measurements\.csv"):
        advisor.Session(measurements=broken).estimate(**ASKED)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"gpu": "RTX 4091", "model": "phi-3-medium"}, "RTX 4090"),
        ({"gpuu": "RTX 4090"}, "Did you mean 'gpu'"),
        ({"gpu": "RTX 4090", "model": "phi-3-medium", "context": -1}, "at least 1"),
    ],
)
def test_what_is_wrong_is_an_exception_with_a_hint(settings: dict[str, object], said: str) -> None:
    with pytest.raises(advisor.UserError) as wrong:
        advisor.advise(**settings)
    assert said in str(wrong.value)


def test_a_request_and_settings_at_once_are_refused() -> None:
    with pytest.raises(advisor.UserError, match="Give one of them"):
        advisor.advise(advisor.Request(gpu="RTX 4090"), model="phi-3-medium")
    with pytest.raises(advisor.UserError, match="reverse question"):
        advisor.models_for("RTX 4090", model="phi-3-medium")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"limit": "x"}, "not a number"),
        ({"limit": 2.5}, "not a whole number"),
        ({"licences": "mit"}, "not a list"),
        ({"min_speed": -1}, "at least 0"),
        ({"unmeasured": "x"}, "neither true nor false"),
        ({"purpos": "code"}, "unknown key 'purpos'"),
        ({"family": 3}, "not a name"),
        ({"min_params": "7W"}, "unknown unit|is '7W'"),
        ({"released_after": "20x5"}, "Write 2025"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_told(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(advisor.UserError, match=said):
        advisor.models_for("RTX 4070", **settings)


def test_answers_are_written_as_the_commands_write_them(capsys: Capture) -> None:
    table = advisor.gpus_for("qwen3-8b", limit=2, gpus=4)
    asked = ("gpus-for", "--model", "qwen3-8b", "--limit", "2")
    assert table.written() == run(capsys, *asked).out
    assert table.written("csv") == run(capsys, *asked, "--format", "csv").out
    assert table.written("markdown").count("\n| ") == 3
    command = "vllm serve Qwen/Qwen3-32B-AWQ --max-model-len 32768"
    found = advisor.check_command(command, gpu="RTX 3090")
    shown = run(capsys, "check-command", "--gpu", "RTX 3090", "--", command)
    assert found.written() == shown.out
    assert str(found.corrected) in found.written("markdown")
    with pytest.raises(advisor.UserError, match="no format of this answer"):
        found.written("csv")


def test_a_session_may_be_kept_from_files(tmp_path: Path) -> None:
    model = str(tiny(tmp_path))
    assert advisor.Session().estimate(model=model).memory
    with pytest.raises(advisor.UserError, match="files of this machine"):
        advisor.Session(files=False).estimate(model=model)


def test_a_session_has_folders_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "- rule: ours\n  why: So.\n  source: us\n  when: {gpu.vram: at least 20 GiB}\n"
        "  note: |\n    A note of ours.\n  cases:\n"
        "    - {name: a, given: {gpu: RTX 4090, model: phi-3-mini}, expect: fires}\n"
        "    - {name: b, given: {gpu: RTX 3060, model: phi-3-mini}, expect: silent}\n",
        encoding="utf-8",
    )
    session = advisor.Session(rules=tmp_path)
    assert "rule ours" in session.advise(gpu="RTX 4090", model="phi-3-mini").markdown
    assert "rule ours" not in advisor.advise(gpu="RTX 4090", model="phi-3-mini").markdown


def test_the_page_names_every_public_name_and_its_code_runs() -> None:
    page = (Path(advisor.__file__).parents[1] / "docs/python.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"`{name}" not in page] == []
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(code, "docs/python.md", "exec"), {})  # noqa: S102  our own page
