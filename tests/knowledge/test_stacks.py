"""Several folders of knowledge: each laid over all that come before it."""

from __future__ import annotations

from pathlib import Path

from advisor.estimator.calibration import file_of
from advisor.knowledge import check_knowledge, find, load_knowledge, provenance_line
from advisor.knowledge.layers import switched_off_records, user_record
from advisor.knowledge.log_patterns import load_log_patterns
from advisor.knowledge.vocabulary import load_vocabulary
from tests.knowledge.test_layers import HOUSE, written

CARD = "GeForce RTX 4090"
PRICE = "- {{gpu: {name}, based_on: {base}, {what}, source: house}}\n"


def price(name: str, what: str, base: str = CARD) -> str:
    return PRICE.format(name=name, base=base, what=what)


def stacked(folder: Path, *layers: dict[str, str]) -> list[Path]:
    names = ("company", "team", "desk")
    found = zip(names, layers, strict=False)
    return [
        written(folder / name / "knowledge", {"sources-mine.yaml": HOUSE, **f}) for name, f in found
    ]


def test_figures_are_changed_one_by_one_in_each_folder(tmp_path: Path) -> None:
    power = {"gpus/mine.yaml": price(CARD, "tdp: 400 W, launch_price: 1500 USD")}
    cheap = {"gpus/mine.yaml": price(CARD, "launch_price: 1400 USD")}
    known = load_knowledge(stacked(tmp_path, power, cheap))
    card, base = known.gpus[CARD], load_knowledge().gpus[CARD]
    assert (card.tdp_w, card.launch_price_usd) == (400, 1400)
    assert card.vram_bytes == base.vram_bytes
    record = user_record(known, "gpu", CARD)
    assert record is not None
    assert (record.at, record.replaces_at) == (
        "team/knowledge/gpus/mine.yaml:1",
        "company/knowledge/gpus/mine.yaml:1",
    )
    assert str(record) == (
        "yours: team/knowledge/gpus/mine.yaml:1, replaces GeForce RTX 4090 "
        "(company/knowledge/gpus/mine.yaml:1), own: launch_price; the rest from GeForce RTX 4090"
    )
    assert provenance_line(known) == "yours: 1 in the place of built-in ones"


def test_what_a_lower_folder_added_is_there_for_the_next(tmp_path: Path) -> None:
    added = {"gpus/mine.yaml": price("Lab card", "vram: 48 GiB")}
    based = {"gpus/mine.yaml": price("Desk card", "vram: 40 GiB", "Lab card")}
    off = {"gpus/mine.yaml": "- {disable: Lab card, reason: Sold.}\n"}
    known = load_knowledge(stacked(tmp_path, added, based, off))
    assert "Lab card" not in known.gpus
    assert known.gpus["Desk card"].vram_bytes == 40 * 2**30
    assert [(kind, str(item)) for kind, item in switched_off_records(known)] == [
        ("gpu", "switched off by yours: desk/knowledge/gpus/mine.yaml:1: Sold.")
    ]
    assert user_record(known, "gpu", "Lab card") is None
    assert any(str(tmp_path) not in row[2] and "Sold." in row[2] for row in find(known, "lab card"))


def test_a_folder_need_not_know_how_another_renamed_or_removed_a_card(tmp_path: Path) -> None:
    renamed = {"gpus/mine.yaml": price("Ours", f"replaces: {CARD}, vram: 48 GiB")}
    again = {"gpus/mine.yaml": price("Theirs", f"replaces: {CARD}, launch_price: 1000 USD")}
    known = load_knowledge(stacked(tmp_path, renamed, again))
    assert "Ours" not in known.gpus
    assert known.gpus["Theirs"].vram_bytes == 48 * 2**30
    off = {"gpus/mine.yaml": f"- {{disable: {CARD}, reason: Sold.}}\n"}
    back = load_knowledge(
        stacked(tmp_path / "b", off, {"gpus/mine.yaml": price(CARD, "tdp: 400 W")})
    )
    assert back.gpus[CARD].tdp_w == 400
    assert not list(switched_off_records(back))


def test_every_mistake_names_the_folder_it_stands_in(tmp_path: Path) -> None:
    first = {"gpus/mine.yaml": price("Lab", "vram: 48 GiB"), "formatz.yaml": "[]"}
    second = {"gpus/mine.yaml": price("Lab", "vram: 40 GiB") + price("Desk", "wram: 1 GiB")}
    said = [str(one) for one in check_knowledge(stacked(tmp_path, first, second))]
    assert len(said) == 3
    assert said[0].startswith(f"{tmp_path}/company/knowledge/formatz.yaml: nothing is read")
    where = "'Lab' stands in another folder of yours (at company/knowledge/gpus/mine.yaml:1)"
    assert where in said[1]
    assert said[1].startswith(f"{tmp_path}/team/knowledge/gpus/mine.yaml:1:3: the gpu ")
    assert said[2].startswith(f"{tmp_path}/team/knowledge/gpus/mine.yaml:2:")


def test_files_of_one_name_are_laid_too(tmp_path: Path) -> None:
    fact = "- {{fact: house.{name}, values: [{values}], from: rules, help: {text}.}}\n"
    line = '- {{line: {name}, says: "{text}", source: house}}\n'
    first = {
        "facts.yaml": fact.format(name="mood", values="good, bad", text="Mood")
        + fact.format(name="rush", values="high, low", text="Rush"),
        "logs.yaml": line.format(name="ours", text="our engine starts"),
        "measurements.csv": "",
    }
    second = {"facts.yaml": fact.format(name="tone", values="high, low", text="Tone")}
    folders = stacked(tmp_path, first, second)
    facts = load_vocabulary(folders).facts
    assert {"house.mood", "house.rush", "house.tone"} <= facts.keys()
    assert "ours" in {one.name for one in load_log_patterns(folders).lines}
    assert file_of(folders) == folders[0] / "measurements.csv"
    assert file_of(folders[::-1]) == folders[0] / "measurements.csv"
    assert file_of(folders[1:]) == folders[1] / "measurements.csv"
    assert load_knowledge(folders).sha256 != load_knowledge(folders[::-1]).sha256
