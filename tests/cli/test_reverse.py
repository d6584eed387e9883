"""``advisor models-for`` and ``advisor gpus-for`` as a user meets them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.running import run

Capture = pytest.CaptureFixture[str]


def test_models_for_lists_models_and_says_how_they_are_ranked(capsys: Capture) -> None:
    done = run(capsys, "models-for", "--gpu", "RTX 4090", "--limit", "5")
    assert done.code == 0
    assert done.out.startswith("GeForce RTX 4090, 24 GiB: ")
    assert "Ranked by merit for chat" in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())
    assert "5 shown (--limit all)" in done.out
    assert "Left out, " in done.out
    assert "\x1b" not in done.out


def test_gpus_for_lists_cards_and_labels_unknown_prices(capsys: Capture) -> None:
    done = run(capsys, "gpus-for", "--model", "llama-3-70b", "--sort", "speed", "--limit", "5")
    assert done.code == 0
    assert done.out.startswith("Meta-Llama-3-70B, 70.55 billion parameters: ")
    assert "unknown" in done.out
    for words in ("Cheapest of known launch price: ", "Smallest: ", "Fastest: ", "Least power: "):
        assert words in done.out


def test_a_first_card_with_another_framework_than_the_rows_shown_names_it(capsys: Capture) -> None:
    done = run(capsys, "gpus-for", "--model", "qwen3-235b-a22b", "--limit", "3")
    assert "one sequence, KV cache f16, llama.cpp;" in done.out
    (fastest,) = [line for line in done.out.splitlines() if line.startswith("Fastest: ")]
    assert fastest.endswith("in vLLM")
    (smallest,) = [line for line in done.out.splitlines() if line.startswith("Smallest: ")]
    assert " in " not in smallest


def test_the_same_question_gives_the_same_bytes(capsys: Capture) -> None:
    asked = ("models-for", "--gpu", "RTX 4070", "--prefer", "balanced", "--format", "json")
    assert run(capsys, *asked).out == run(capsys, *asked).out


def test_json_and_csv_come_without_words(capsys: Capture) -> None:
    asked = ("gpus-for", "--model", "qwen3-8b", "--limit", "3")
    doc = json.loads(run(capsys, *asked, "--format", "json").out)
    rows = list(csv.DictReader(io.StringIO(run(capsys, *asked, "--format", "csv").out)))
    assert [row["gpu"] for row in rows] == [row["request"]["gpu"] for row in doc["rows"]]


def test_a_file_is_written_whole(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "cards.csv"
    done = run(
        capsys, "gpus-for", "--model", "qwen3-8b", "--format", "csv", "--limit", "all", "-o",
        str(file),
    )  # fmt: skip
    assert (done.code, done.out) == (0, "")
    assert len(file.read_text().splitlines()) > 300


def test_quantities_take_units(capsys: Capture) -> None:
    done = run(
        capsys, "gpus-for", "--model", "qwen3-8b", "--max-price", "$500", "--max-power", "0.2kW",
        "--min-speed", "20 tok/s", "--max-loss", "5 %", "--format", "csv",
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert rows
    for row in rows:
        assert float(row["price_usd"]) <= 500
        assert float(row["power_w"]) <= 200
        assert float(row["decode_tok_s"]) >= 20
        assert float(row["quality_loss_percent"]) <= 5


def test_bare_parameters_are_billions(capsys: Capture) -> None:
    asked = ("models-for", "--gpu", "RTX 4090", "--format", "csv", "--limit", "all")
    plain = run(capsys, *asked, "--min-params", "20").out
    assert plain == run(capsys, *asked, "--min-params", "20B").out
    assert all(int(r["parameters"]) >= 2e10 for r in csv.DictReader(io.StringIO(plain)))


def test_all_wrong_flags_are_named_at_once(capsys: Capture) -> None:
    done = run(
        capsys, "models-for", "--gpu", "RTX 409", "--limit", "0", "--family", "qwn3", "--framework",
        "vlm", "--min-params", "7W", "--max-loss", "much", "--released-after", "20x5", "--ram", "x",
    )  # fmt: skip
    assert done.code == 1
    assert done.out == ""
    lines = done.err.splitlines()
    assert len(lines) == 8
    assert all(line.startswith("error: ") for line in lines)
    for words in (
        "--limit is 0", "'Qwen3'", "'vLLM'", "--min-params is '7W'", "--max-loss:",
        "--released-after is '20x5'", "--ram:", "unknown GPU 'RTX 409'",
    ):  # fmt: skip
        assert words in done.err, words


def test_wrong_values_are_written_out(capsys: Capture) -> None:
    asked = ("--gpu", "RTX 4090", "--max-params", "-1", "--released-after", "2025-02-31")
    done = run(capsys, "models-for", *asked)
    assert done.code == 1
    assert "--max-params is -1,000,000,000. Give at least 0." in done.err
    assert "--released-after is '2025-02-31'. Write 2025, 2025-06 or 2025-06-30." in done.err


def test_nothing_that_fits_is_an_answer_and_no_error(capsys: Capture) -> None:
    done = run(capsys, "models-for", "--gpu", "GTX 1050 Ti", "--min-params", "200B")
    assert done.code == 0
    assert ": 0 of " in done.out
    assert "no format fits" in done.out
    assert "System RAM is not counted" in done.out
    asked = ("models-for", "--gpu", "GTX 1050 Ti", "--min-params", "200B", "--ram", "16GB")
    assert "System RAM is not counted" not in run(capsys, *asked).out


def test_the_format_of_a_file_is_the_one_asked_for(capsys: Capture, tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4, "vocab_size": 32_000,
        "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 2816,
        "max_position_embeddings": 4096,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = run(capsys, "gpus-for", "--model", str(tmp_path), "--limit", "2", "--format", "json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["rows"][0]["request"]["model"] == str(tmp_path)


def test_a_terminal_gets_a_table_with_bars(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    done = run(capsys, "models-for", "--gpu", "RTX 4090", "--limit", "3")
    assert done.code == 0
    assert "█" in done.out
    assert "used" in done.out


@pytest.mark.parametrize(
    ("question", "use"),
    [
        ("which coding model runs best on my RTX 4070", "code"),
        ("best model for agents on an RTX 4070", "agents"),
        ("what can I run on an RTX 4070", None),
    ],
)
def test_the_words_of_a_question_say_what_the_model_is_for(
    capsys: Capture, question: str, use: str | None
) -> None:
    said = run(capsys, "ask", question).out.splitlines()
    assert said[0].endswith(f"--for {use}" if use else "'RTX 4070'")
    assert any(line.startswith(f"Ranked by merit for {use or 'chat'}") for line in said)


def test_several_cards_of_a_kind_are_tried_where_no_number_is_stated(capsys: Capture) -> None:
    asked = ("gpus-for", "--model", "llama-3-70b", "--format", "json", "--limit", "all")
    doc = json.loads(run(capsys, *asked).out)
    counts = {row["scenario"]["gpus"] for row in doc["rows"]}
    assert counts == {1, 2, 3, 4}


def test_why_is_answered_by_the_longer_report(capsys: Capture) -> None:
    asked = run(capsys, "ask", "why is gemma 3 27b so slow on my 4080 with 32 GB of ram").out
    assert "left out" not in asked
    assert "What you have, and what happens" in asked
    assert "What you have, and what happens" not in run(capsys, "ask", "phi 4 on a 4080").out
