"""Settings: which of flag, environment, files and default counts, and who says so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from advisor.cli.app import application
from advisor.cli.init import remember
from advisor.cli.user_settings import (
    ASKED,
    KEYS,
    LAID,
    OTHER_VARIABLES,
    TAKEN,
    VARIABLES,
    digest_of,
    name_of,
    user_settings,
)
from advisor.errors import UserError
from tests.cli.running import Outcome, run

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).resolve().parents[2]


class Home:
    """A user with a folder of their own and one that they stand in."""

    def __init__(self, folder: Path) -> None:
        self.own, self.here = folder / "own" / "advisor.toml", folder / "here" / "advisor.toml"
        for file in (self.own, self.here):
            file.parent.mkdir()

    def write(self, file: Path, text: str) -> None:
        file.write_text(text, encoding="utf-8")
        if file == self.here:
            remember({name_of(file.parent): digest_of(file.read_bytes())})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = Home(tmp_path)
    monkeypatch.chdir(made.here.parent)
    monkeypatch.setenv("ADVISOR_CONFIG_DIR", str(made.own.parent))
    monkeypatch.setenv("ADVISOR_DATA_DIR", str(tmp_path / "data"))
    return made


def shown(capsys: Capture) -> dict[str, tuple[object, str]]:
    found = json.loads(done(run(capsys, "settings", "--format", "json")).out)
    return {key: (one["value"], one["from"]) for key, one in found.items()}


def done(outcome: Outcome) -> Outcome:
    assert outcome.code == 0, outcome.err
    return outcome


@pytest.mark.parametrize("key", ASKED)
def test_the_environment_goes_before_the_folder_and_that_before_ones_own(
    capsys: Capture, home: Home, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three = {
        "prefer": ("cost", "speed", "quality"), "use": ("batch", "none", "interactive"),
        "for": ("code", "chat", "agents"), "cpu_cores": ("4", "8", "16"),
        "ram": ("32GB", "64GB DDR5-6000 x2", "16"), "ram_bandwidth": ("80GB/s", "90", "100"),
    }.get(key, ("a", "b c", "d"))  # fmt: skip
    assert shown(capsys)[key] == (None, "built-in")
    home.write(home.own, f'\n{key} = "{one}"\n')
    assert shown(capsys)[key] == (one, f"{home.own}:2")
    home.write(home.here, f'{key} = "{two}"')
    assert shown(capsys)[key] == (two, "advisor.toml:1")
    monkeypatch.setenv(VARIABLES[key], three)
    assert shown(capsys)[key] == (three, VARIABLES[key])
    monkeypatch.setenv(VARIABLES[key], "")
    assert shown(capsys)[key] == (None, "built-in")


def test_folders_are_settings_too(
    capsys: Capture, home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("own/rules", "here/rules", "here/more"):
        (tmp_path / name).mkdir()
    home.write(home.own, 'rules = "rules"')
    assert shown(capsys)["rules"] == ([str(tmp_path / "own" / "rules")], f"{home.own}:1")
    home.write(home.here, 'rules = ["rules", "more"]')
    assert shown(capsys)["rules"] == (["rules", "more"], "advisor.toml:1")
    monkeypatch.setenv("ADVISOR_RULES", "more")
    assert shown(capsys)["rules"] == (["more"], "ADVISOR_RULES")


PRICES = "gpu,usd,seen,source\nGeForce RTX 3090,700,2026-11,our dealer\n"


def test_a_table_of_prices_lies_over_the_knowledge(
    capsys: Capture, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = home.own.with_name("prices.csv")
    table.write_text(PRICES, encoding="utf-8")
    home.write(home.own, 'prices = "prices.csv"')
    assert shown(capsys)["prices"] == ([str(table)], f"{home.own}:1")
    found = done(run(capsys, "gpus-for", "--model", "qwen3-32b", "--precision", "Q4_K_M")).out
    assert re.search(r"RTX 3090 \(yours\) +24 GiB +\$700 ", found)
    assert "prices.csv:2, replaces the built-in one, own: launch_price" in " ".join(found.split())
    asked = ("advise", "--gpu", "RTX 4070", "--model", "qwen3-32b", "--length", "full")
    told = " ".join(done(run(capsys, *asked)).out.split())
    assert "It costs $700 by your prices." in told
    assert "$700 at launch" not in told
    assert "no measurements" in done(run(capsys, "measure", "list")).out
    monkeypatch.setenv("ADVISOR_PRICES", "")
    assert "by your prices" not in done(run(capsys, *asked)).out


def test_the_price_of_a_card_that_is_there_is_not_what_another_costs(
    capsys: Capture, tmp_path: Path
) -> None:
    table = tmp_path / "prices.csv"
    table.write_text(PRICES.replace("RTX 3090", "RTX 4070"), encoding="utf-8")
    asked = ("advise", "--gpu", "RTX 4070", "--model", "qwen3-32b", "--length", "full")
    told = " ".join(done(run(capsys, *asked, "--knowledge", str(table))).out.split())
    assert "The second card sold for" in told
    assert "The second card costs" not in told


def test_every_wrong_line_of_a_table_of_prices_is_told(capsys: Capture, tmp_path: Path) -> None:
    table = tmp_path / "prices.csv"
    table.write_text(f"{PRICES}RTX 4090,cheap,2026-13,\nA,x,soon,me\n", encoding="utf-8")
    outcome = run(capsys, "knowledge", "check", str(table))
    assert outcome.code == 1
    assert [line.partition(".csv:")[2][:40] for line in outcome.err.splitlines()] == [
        "3: a line needs gpu, usd, seen and sourc",
        "4: seen is 'soon', no date such as 2026-",
        "4: usd is 'x', no price in US dollars. W",
    ]
    table.write_text(f"{PRICES}RTX 4090,900,2026-11-20,me\n", encoding="utf-8")
    told = run(capsys, "knowledge", "check", str(table)).err
    assert "prices.csv:3:" in told
    assert "Did you mean 'GeForce RTX 4090'?" in told
    table.write_text("card,price\n", encoding="utf-8")
    assert (
        "The first line is 'gpu,usd,seen,source'."
        in run(
            capsys, "advise", "--knowledge", str(table), "--gpu", "L4", "--model", "llama-3-8b"
        ).err
    )


def test_a_language_is_a_folder_of_texts(
    capsys: Capture, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = home.here.parent / "languages" / "de"
    (texts / "report").mkdir(parents=True)
    (texts / "words.txt").write_text("language.code = de\n", encoding="utf-8")
    title = "{{ model.name }} auf {{ gpu.cards }}\n"
    (texts / "report" / "title.md.j2").write_text(title, encoding="utf-8")
    home.write(home.here, 'language = "de"')
    asked = ("advise", "--gpu", "L4", "--model", "llama-3-8b", "--format", "html")
    page = done(run(capsys, *asked)).out
    assert '<html lang="de">' in page
    assert "auf the L4" in page
    monkeypatch.setenv("ADVISOR_LANGUAGE", "en")
    assert '<html lang="en">' in done(run(capsys, *asked)).out
    assert shown(capsys)["language"] == ("en", "ADVISOR_LANGUAGE")


def test_a_folder_that_is_not_trusted_says_nothing(capsys: Capture, home: Home) -> None:
    home.write(home.own, 'gpu = "RTX 3060"')
    home.here.write_text('gpu = "RTX 4090"\nmodel = 3', encoding="utf-8")
    outcome = run(capsys, "settings", "--format", "json")
    assert json.loads(outcome.out)["gpu"]["value"] == "RTX 3060"
    assert "advisor trust" in outcome.err


def test_an_empty_variable_leaves_every_file_out_and_a_named_file_takes_the_folders_place(
    capsys: Capture, home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home.write(home.own, 'gpu = "RTX 3060"\nram = "16GB"')
    home.write(home.here, 'gpu = "RTX 4090"')
    (tmp_path / "named.toml").write_text('gpu = "T4"', encoding="utf-8")
    monkeypatch.setenv("ADVISOR_CONFIG", str(tmp_path / "named.toml"))
    found = shown(capsys)
    assert found["gpu"] == ("T4", "named.toml:1")
    assert found["ram"] == ("16GB", f"{home.own}:2")
    monkeypatch.setenv("ADVISOR_CONFIG", "")
    assert {one for one, _ in shown(capsys).values()} == {None}
    assert "no file counts: ADVISOR_CONFIG is empty" in run(capsys, "settings").out


def test_a_report_names_the_settings_that_shaped_it(capsys: Capture, home: Home) -> None:
    home.write(home.own, 'gpu = "RTX 4090"\nram = "64GB"\nprefer = "cost"\nfor = "code"')
    typed = ("advise", "--model", "llama-3-8b", "--format", "json", "--prefer", "speed", "--strict")
    doc = json.loads(done(run(capsys, *typed)).out)
    assert doc["request"] == {
        "gpu": "RTX 4090", "model": "llama-3-8b", "ram_gib": 64.0, "prefer": "speed",
    }  # fmt: skip
    said = "From your settings: --gpu, --ram (your own advisor.toml)."
    assert doc["scenario"]["read_as"][-1] == said
    typed_all = ("--gpu", "RTX 4090", "--ram", "64GB", "--prefer", "speed")
    other = json.loads(done(run(capsys, *typed[:5], *typed_all)).out)
    assert other["scenario"]["read_as"] == doc["scenario"]["read_as"][:-1]
    text = run(capsys, "advise", "--model", "llama-3-8b", "--length", "short", *typed_all[:2]).out
    assert "Note: From your settings: --ram, --prefer (your own advisor.toml).\n" in text
    told = json.loads(done(run(capsys, "models-for", "--limit", "1", "--format", "json")).out)
    assert told["warnings"][-1].endswith("--gpu, --ram, --for (your own advisor.toml).")
    assert (told["asked"]["use"], told["asked"]["prefer"]) == ("code", "quality")


def test_settings_stand_for_flags_alone(capsys: Capture, home: Home, tmp_path: Path) -> None:
    """A line of a file means the same everywhere."""
    home.write(home.own, 'gpu = "RTX 4090"\nram = "64GB"\nframework = "vLLM"')
    line = tmp_path / "line.jsonl"
    line.write_text('{"model": "llama-3-8b", "precision": "Q8_0"}\n', encoding="utf-8")
    assert (
        json.loads(done(run(capsys, "estimate", str(line))).out)["memory"]["usable_bytes"] is None
    )
    assert done(run(capsys, "runtimes")).out.startswith("runtime ")


def test_a_sentence_without_a_card_means_ones_own(capsys: Capture, home: Home) -> None:
    home.write(home.own, 'gpu = "RTX 3060 12GB"\nram = "64GB"\nfor = "code"')

    def asked(sentence: str) -> Any:
        return json.loads(done(run(capsys, "ask", sentence, "--format", "json")).out)

    doc = asked("llama 3 8b with 4k context")
    assert (doc["request"]["gpu"], doc["request"]["ram_gib"]) == ("RTX 3060 12GB", 64.0)
    said = "From your settings: --gpu, --ram (your own advisor.toml)."
    assert doc["scenario"]["read_as"][-1] == said
    other = asked("llama 3 8b on a 4090")
    assert other["scenario"]["gpu"]["name"] == "GeForce RTX 4090"
    assert other["scenario"]["read_as"][-1] == said.replace("--gpu, ", "")
    told = asked("what models can I run?")
    assert told["question"] == "models-for"
    assert told["warnings"][-1].endswith("--gpu, --ram, --for (your own advisor.toml).")
    assert asked("which gpu for llama 3 8b")["question"] == "gpus-for"
    assert run(capsys, "ask", "llama 3 8b on a Voodoo").err.startswith("error: no card is named")


def test_a_log_without_a_card_is_of_ones_own(capsys: Capture, home: Home, tmp_path: Path) -> None:
    home.write(home.own, 'gpu = "RTX 3060 12GB"\nram = "64GB"')
    log = tmp_path / "a.log"
    log.write_text("CUDA out of memory. Tried to allocate 2.00 GiB\n", encoding="utf-8")
    asked = (
        "diagnose",
        str(log),
        "--model",
        "llama-3-8b",
        "--precision",
        "fp16",
        "--format",
        "json",
    )
    made = json.loads(done(run(capsys, *asked)).out)
    assert made["settings"]["gpu"] == "RTX 3060 12GB"
    read = made["advice"]["scenario"]["read_as"]
    assert read[-1] == "From your settings: --gpu (your own advisor.toml)."
    flagged = json.loads(done(run(capsys, *asked, "--gpu", "RTX 4090")).out)
    assert flagged["settings"]["gpu"] == "RTX 4090"
    tensors = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of"
    log.write_text(f"{tensors} 79.10 GiB of which 1.00 GiB is free.\n", encoding="utf-8")
    told = json.loads(done(run(capsys, *asked)).out)
    assert told["settings"]["gpu"] == "A100 SXM4 80 GB"


def test_everything_wrong_is_said_at_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write(home.own, 'gpus = "RTX 4090"\nlanguage = "de"\ncpu_cores = "many"')
    home.write(home.here, 'rules = "nowhere"\n[gpu]\nname = "RTX 4090"\n[prices]\n')
    monkeypatch.setenv("ADVISOR_FOR", "coding")
    monkeypatch.setenv("ADVISOR_PREFER", "cheap")
    with pytest.raises(UserError) as raised:
        user_settings()
    for text in (
        f"{home.own}:1: unknown key 'gpus'. Did you mean 'gpu'",
        f"{home.own}:2: there are no texts in 'de'. There is en; yours lie in 'languages/NAME'",
        f"{home.own}:3: cpu_cores: 'many' is not a number",
        "advisor.toml:1: 'rules' names no folder: 'nowhere'.",
        "advisor.toml: gpu: '{'name': 'RTX 4090'}' is not a name",
        "'prices' names no table: {}. Write 'prices = \"prices.csv\"', a table beside this file",
        "ADVISOR_FOR: for: 'coding' is no use. Did you mean 'code'?",
        "ADVISOR_PREFER: prefer: 'cheap' is not one of balanced, quality, speed, cost",
    ):
        assert text in str(raised.value)


def test_a_mistake_says_which_settings_were_taken(
    capsys: Capture, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write(home.own, 'ram = "64GB"')
    monkeypatch.setenv("ADVISOR_GPU", "RTX 4091")
    outcome = run(capsys, "advise", "--model", "llama-3-8b")
    assert outcome.code == 1
    first, second = outcome.err.splitlines()
    assert first == f"note: from your settings: ram 64GB ({home.own}:1), gpu RTX 4091 (ADVISOR_GPU)"
    assert second.startswith("error: unknown GPU 'RTX 4091'. Did you mean")


def test_a_variable_that_is_nearly_one_is_told(
    capsys: Capture, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADVISOR_FRAMWORK", "vLLM")
    monkeypatch.setenv("ADVISOR_ZZZZZZ", "1")
    outcome = done(run(capsys, "runtimes"))
    line = "note: ADVISOR_FRAMWORK is no variable of advisor. Did you mean 'ADVISOR_FRAMEWORK'?"
    assert outcome.err.splitlines() == [line]


def test_trust_shows_what_it_lets_count(capsys: Capture, home: Home) -> None:
    home.here.write_text('gpu = "RTX 4090"\nfor = "code"', encoding="utf-8")
    assert run(capsys, "trust").out.splitlines()[1:] == ["  gpu: RTX 4090", "  for: code"]
    assert shown(capsys)["gpu"] == ("RTX 4090", "advisor.toml:1")


def test_every_setting_is_a_flag_of_a_command_that_takes_it() -> None:
    flags: set[str] = set()
    for name in TAKEN:
        command: Any = get_command(application([name]))
        flags |= {one.name.strip("_") for one in command.commands[name].params}
    assert {LAID.get(key, key) for key in KEYS} <= flags


def test_the_page_names_every_setting_and_every_variable_of_the_program() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    for key, name in VARIABLES.items():
        assert f"| `{key}` | `{name}` |" in page
    for name in OTHER_VARIABLES:
        assert f"| `{name}` |" in page
    code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "advisor").rglob("*.py"))
    read = {*re.findall(r'environ(?:\.get\(|\[)"(\w+)"', code), *re.findall(r'"(XDG_\w+)"', code)}
    set_by_shells = {"COMP_WORDS", "_TYPER_COMPLETE_ARGS"}
    assert {name for name in read if f"`{name}`" not in page} == set_by_shells
    assert {one for one in re.findall(r"\bADVISOR_[A-Z]\w*", code) if one not in page} == set()


def test_commands_with_one_kind_of_folder_take_the_setting(
    capsys: Capture, home: Home, tmp_path: Path
) -> None:
    """``runtimes`` took one folder where settings give a list, and fell over it."""
    (tmp_path / "here" / "knowledge").mkdir()
    home.write(home.here, 'knowledge = "knowledge"')
    assert done(run(capsys, "runtimes")).out.startswith("runtime ")


def test_the_line_keeps_a_short_report_short(capsys: Capture, home: Home) -> None:
    values = (
        ("gpu", "2x RTX 3090"), ("ram", "64GB DDR5-6000 x2"), ("cpu", "Ryzen 7950X"),
        ("cpu_cores", "16"), ("framework", "llama.cpp"), ("prefer", "quality"), ("use", "batch"),
    )  # fmt: skip
    home.write(home.own, "\n".join(f'{key} = "{value}"' for key, value in values))
    typed = ("advise", "--model", "llama-3.1-405b", "--length", "short", "--strict")
    text = " ".join(done(run(capsys, *typed)).out.split())
    assert "--gpu, --ram, --cpu, --cpu-cores, --framework, --prefer, --use (your own" in text
