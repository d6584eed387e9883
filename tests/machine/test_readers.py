"""What tools print and files hold becomes cards of the catalogue, and what is missing is said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from advisor.cli.doctor import shown
from advisor.errors import RequestError, UserError
from advisor.knowledge import load_knowledge
from advisor.reading.machine import read_machine
from advisor.reading.machine.drm import boards_of
from advisor.reading.machine.mapped import known_cards, local_cards, ram_read
from advisor.reading.machine.probe import Card, Machine
from advisor.report.doctor import examined
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from advisor.units import GIB, MIB
from tests.cli.running import run
from tests.machine.fakes import MACHINES, machine_named, probe_of

named = pytest.mark.parametrize("machine", MACHINES, ids=lambda one: one["machine"])


def _local(monkeypatch: pytest.MonkeyPatch, machine: Machine, **more: Any) -> Any:
    monkeypatch.setattr("advisor.reading.machine.this_machine", lambda: machine)
    asked = Request(gpu="local", model="llama-3-8b", precision="Q8_0", **more)
    return resolve(asked, load_knowledge())


@named
def test_every_card_is_found_with_its_memory(machine: Mapping[str, Any], tmp_path: Path) -> None:
    found = known_cards(read_machine(probe_of(machine, tmp_path)), load_knowledge())
    rows = [
        [one.card.name, one.gpu and one.gpu.name, one.gpu and (one.gpu.vram_bytes or 0) // GIB]
        for one in found
    ]
    assert rows == [list(row) for row in machine["cards"]]


@named
def test_a_card_has_the_maker_that_the_catalogue_says(
    machine: Mapping[str, Any], tmp_path: Path
) -> None:
    found = known_cards(read_machine(probe_of(machine, tmp_path)), load_knowledge())
    assert [one.card.vendor for one in found if one.gpu] == [
        one.gpu.vendor for one in found if one.gpu
    ]


@named
def test_a_report_says_what_was_read(
    machine: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read_machine(probe_of(machine, tmp_path))
    if not any(name for _, name, _ in machine["cards"]):
        with pytest.raises(RequestError, match="not in the catalogue"):
            _local(monkeypatch, found)
        return
    said = " ".join(_local(monkeypatch, found).read_as)
    for words in machine.get("has", ()):
        assert words in said


@named
def test_the_doctor_says_what_is_unusual(machine: Mapping[str, Any], tmp_path: Path) -> None:
    found = read_machine(probe_of(machine, tmp_path), "a system")
    text = " ".join(" ".join(shown(examined(found, load_knowledge(), "reference", []))).split())
    text = text.replace("\N{NO-BREAK SPACE}", " ")
    for words in machine.get("doctor", ()):
        assert words in text.replace(" none, and", " none and")
    if machine.get("doctor") == []:
        assert "Unusual" not in text


@named
def test_ram_and_processor_are_taken_over(machine: Mapping[str, Any], tmp_path: Path) -> None:
    if "ram" in machine:
        assert ram_read(read_machine(probe_of(machine, tmp_path))) == machine["ram"]


def test_what_is_stated_goes_before_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = machine_named("two GeForce", tmp_path)
    read = _local(monkeypatch, machine)
    assert (read.gpus, round(read.ram_bytes / GIB, 1)) == (2, 62.7)
    assert read.ram_bandwidth_bytes_s == 3_000 * 8e6 * 2
    stated = _local(monkeypatch, machine, ram_gib=32.0, ram_bandwidth_gb_s=80.0, gpus=1)
    assert (stated.gpus, stated.ram_bytes, stated.ram_bandwidth_bytes_s) == (1, 32 * GIB, 80e9)
    assert not any("of this machine:" in line for line in stated.read_as)


@pytest.mark.parametrize("name", ["DGX Spark", "Strix Halo", "MacBook", "Jetson"])
def test_memory_that_is_shared_is_no_ram_beside_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _local(monkeypatch, machine_named(name, tmp_path)).ram_bytes is None


def test_a_pasted_command_is_checked_on_the_cards_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = machine_named("two GeForce", tmp_path)
    monkeypatch.setattr("advisor.reading.machine.this_machine", lambda: machine)

    def cards_of(line: str, *more: str) -> int:
        asked = ("check-command", "--gpu", "local", "--format", "json", *more, "--", *line.split())
        found: int = json.loads(run(capsys, *asked).out)["advice"]["scenario"]["gpus"]
        return found

    serve = "vllm serve Qwen/Qwen3-8B-AWQ"
    assert cards_of("llama-server -m Qwen2.5-32B-Instruct-Q4_K_M.gguf -c 8192 -ngl 99") == 2
    assert cards_of(f"{serve} -tp 2") == 2
    assert cards_of(f"{serve} -tp 1") == 1
    assert cards_of("llama-server -m Qwen2.5-7B-Instruct-Q4_K_M.gguf -ngl 99", "--gpus", "1") == 1
    refused = run(capsys, "check-command", "--gpu", "local", "--", *serve.split(), "-tp", "4")
    assert "takes 4 cards" in refused.err


def test_variables_that_hide_cards_are_told(tmp_path: Path) -> None:
    machine = machine_named("two GeForce", tmp_path, CUDA_VISIBLE_DEVICES="1")
    doc = examined(machine, load_knowledge(), "reference", [])
    assert any("CUDA_VISIBLE_DEVICES=1 hides cards" in line for line in doc.unusual)


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_no_card_is_one_clear_sentence(system: str, tmp_path: Path) -> None:
    empty = read_machine(probe_of({"system": system}, tmp_path))
    with pytest.raises(RequestError, match="no GPU was found on this machine") as refused:
        local_cards(empty, load_knowledge())
    assert "advisor doctor" in refused.value.hint


def _cards(*pairs: tuple[str, int]) -> Machine:
    cards = tuple(
        Card(vendor="NVIDIA", name=name, source="nvidia-smi", memory_bytes=mib * MIB)
        for name, mib in pairs
    )
    return Machine(system="a system", cards=cards)


@pytest.mark.parametrize(
    ("printed", "mib", "name", "gib"),
    [
        ("NVIDIA A10", 23_028, "A10 PCIe", 24),  # ECC takes a sixteenth
        ("NVIDIA L40S", 46_068, "L40S", 48),
        ("Tesla P40", 23_040, "Tesla P40", 24),
        ("NVIDIA H100 80GB HBM3", 81_559, "H100 SXM5 80 GB", 80),
        ("NVIDIA H200", 143_771, "H200 SXM 141 GB", 141),
        ("NVIDIA B200", 183_359, "B200 SXM", 180),
        ("NVIDIA GeForce RTX 3080", 12_288, "GeForce RTX 3080 12 GB", 12),
        ("NVIDIA GeForce RTX 5060 Ti", 8_151, "GeForce RTX 5060 Ti 8 GB", 8),
        (
            "NVIDIA RTX PRO 6000 Blackwell Server Edition",
            97_887,
            "RTX PRO 6000 Blackwell Server",
            96,
        ),
    ],
)
def test_memory_as_drivers_show_it_is_that_on_the_box(
    printed: str, mib: int, name: str, gib: int
) -> None:
    gpu = local_cards(_cards((printed, mib)), load_knowledge()).gpu
    assert (gpu.name, gpu.vram_bytes) == (name, gib * GIB)


def test_a_card_with_other_memory_than_any_sold_is_sized_with_it_and_that_is_said() -> None:
    cards = local_cards(_cards(("NVIDIA GeForce RTX 3070", 16_384)), load_knowledge())
    assert (cards.gpu.name, cards.gpu.vram_bytes) == ("GeForce RTX 3070", 16 * GIB)
    assert any("which the catalogue does not have" in line for line in cards.read_as)


def test_half_of_a_board_has_half_of_its_bandwidth() -> None:
    known = load_knowledge()
    whole = known.gpus["Radeon Instinct MI250X"]
    card = Card(vendor="AMD", name="AMD Instinct MI250X", source="sysfs", memory_bytes=65_520 * MIB)
    half = local_cards(Machine(system="", cards=(card, card)), known)
    assert (half.count, half.gpu.vram_bytes) == (2, 64 * GIB)
    assert half.gpu.bandwidth_bytes_s == (whole.bandwidth_bytes_s or 0) / 2


def test_of_cut_cards_a_program_has_one_slice_and_whole_ones_go_first() -> None:
    known = load_knowledge()
    whole = _cards(("NVIDIA A100-SXM4-40GB", 40_960)).cards[0]
    cut, more = (replace(whole, slices=found) for found in (("1g.5gb",), ("2g.10gb", "1g.5gb")))
    alone = local_cards(Machine(system="", cards=(cut, more)), known)
    assert (alone.gpu.name, alone.count) == ("A100 SXM4 40 GB MIG 2g.10gb", 1)
    assert alone.gpu.stands_alone
    mixed = local_cards(Machine(system="", cards=(cut, whole, whole)), known)
    assert (mixed.gpu.name, mixed.count) == ("A100 SXM4 40 GB", 2)
    assert any("which is cut into MIG slices" in line for line in mixed.read_as)


@pytest.mark.parametrize(
    ("name", "boards"),
    [
        ("Navi 31 [Radeon RX 7900 XT/7900 XTX]", ("Radeon RX 7900 XT", "Radeon RX 7900 XTX")),
        ("AMD Instinct MI250X / MI250", ("AMD Instinct MI250X", "AMD Instinct MI250")),
        (
            "Vega 10 [Radeon RX Vega 56/Radeon RX Vega 64]",
            ("Radeon RX Vega 56", "Radeon RX Vega 64"),
        ),
        ("Arcturus GL-XL [Instinct MI100]", ("Instinct MI100",)),
        ("Arc Graphics 130V/140V GPU", ("Arc Graphics 130V/140V GPU",)),
    ],
)
def test_a_chip_in_several_cards_is_taken_apart(name: str, boards: tuple[str, ...]) -> None:
    assert boards_of(name) == boards


def test_unequal_cards_are_all_there() -> None:
    pair = _cards(("NVIDIA GeForce RTX 3090", 24_576), ("NVIDIA GeForce RTX 3060", 12_288))
    cards = local_cards(pair, load_knowledge())
    assert [gpu.name for gpu in cards.each] == ["GeForce RTX 3090", "GeForce RTX 3060 12 GB"]


def test_cards_of_a_second_maker_are_left_out_and_that_is_said() -> None:
    one = _cards(("NVIDIA GeForce RTX 3060", 12_288))
    amd = Card(vendor="AMD", name="Radeon RX 7900 XTX", source="sysfs", memory_bytes=24_560 * MIB)
    cards = local_cards(replace(one, cards=(*one.cards, amd)), load_knowledge())
    assert cards.gpu.name == "Radeon RX 7900 XTX"
    assert "Left out: NVIDIA GeForce RTX 3060, of another maker." in cards.read_as


def test_an_unknown_card_is_told_with_what_was_read_and_how_to_add_it() -> None:
    with pytest.raises(RequestError, match=r"GeForce GT 710 with 2\.0 GiB") as refused:
        local_cards(_cards(("NVIDIA GeForce GT 710", 2_048)), load_knowledge())
    assert "knowledge folder" in refused.value.hint


def _damaged(text: str, random: Random) -> str:
    at, end = sorted(random.randrange(len(text) + 1) for _ in range(2))
    put = random.choice(
        ["", "[N/A]", "nan", "-1", "9" * 30, "1e999", "\0", "{}", "null", ",", "\n"]
    )
    return random.choice([text[:at], text[:at] + put + text[end:], put, text.upper()])


@named
def test_damaged_output_is_never_a_traceback(machine: Mapping[str, Any], tmp_path: Path) -> None:
    random, known = Random(machine["machine"]), load_knowledge()
    for number in range(12):
        parts = {
            kind: {name: _damaged(text, random) for name, text in machine.get(kind, {}).items()}
            for kind in ("files", "tools")
        }
        read = read_machine(probe_of({**machine, **parts}, tmp_path / str(number)), "a system")
        list(shown(examined(read, known, "reference", [])))
        ram_read(read)
        with suppress(UserError):
            local_cards(read, known)


@pytest.mark.parametrize("memory", ["9" * 30, "nan", "inf", "-5", "1e300"])
def test_memory_that_no_card_has_is_not_believed(memory: str, tmp_path: Path) -> None:
    printed = f"GPU-1, {memory}, {memory}, 580.1, {memory}, {memory}, Enabled, NVIDIA L4\n"
    tools = {"nvidia-smi --query-gpu=uuid,memory.total,memory.free": printed}
    machine = read_machine(probe_of({"system": "linux", "tools": tools}, tmp_path))
    assert (machine.cards[0].memory_bytes, machine.cards[0].free_bytes) == (None, None)
    assert local_cards(machine, load_knowledge()).gpu.name == "L4"


def test_fewer_of_unequal_cards_have_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = _cards(("NVIDIA GeForce RTX 3090", 24_576), ("NVIDIA GeForce RTX 3060", 12_288))
    with pytest.raises(RequestError, match="'local' names 2 cards") as refused:
        _local(monkeypatch, pair, gpus=1)
    assert "name the cards" in refused.value.hint
