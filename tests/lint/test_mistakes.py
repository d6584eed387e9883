"""A table of mistakes in files of every kind: told in one run, with place, what and mend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from advisor.bulk import read_rows
from advisor.bulk.batch.plan_file import read_plan
from advisor.bulk.estimates import estimate_row
from advisor.cli.init import write_starter
from advisor.cli.measure_text import added
from advisor.cli.user_settings import house_folders
from advisor.errors import UserError
from advisor.estimator.calibration.user.benchmark_file import File
from advisor.estimator.calibration.user.plausibility import Given
from advisor.knowledge import load_knowledge
from advisor.workbench.house import House, check_house
from advisor.workbench.lint.problem import problems_of

TABLE = Path(__file__).parent.parent / "data" / "mistakes.yaml"
SHARE_TOLD = 0.97


class Mistake(NamedTuple):
    file: str
    line: int
    """Where it is told; 0: for the file as a whole."""
    text: str
    """Of the file, or of its part of a file that mistakes share."""
    says: str
    by: str
    header: str
    together: bool


class Told(NamedTuple):
    file: str
    line: int
    text: str


def _mistakes() -> Iterator[Mistake]:
    number = 100
    for group in yaml.safe_load(TABLE.read_text(encoding="utf-8")):
        for row in group["rows"]:
            number += 1
            yield _mistake(group, number, row)


def _mistake(group: Mapping[str, str], number: int, row: Sequence[str | int]) -> Mistake:
    old, new, says = map(str, row[:3])
    whole = group["text"]
    if "{policy}" in old:
        name, value = new.split(":")
        text = whole.replace("{policy}", name).replace("{value}", value)
    else:
        assert old in whole
        text = whole.replace(old, new, 1)
    line = int(row[3]) if len(row) > 3 else whole[: whole.index(old)].count("\n") + 1
    made = [part.replace("{id}", str(number)) for part in (group["file"], text)]
    by, header = group.get("by", "check"), group.get("header", "")
    return Mistake(made[0], line, made[1], says, by, header, bool(group.get("together")))


MISTAKES = [*_mistakes()]


def _written(folder: Path, mistakes: Sequence[Mistake]) -> list[Mistake]:
    """Write the files; gives the mistakes with the lines on which they stand there."""
    shared: dict[str, list[str]] = {}
    placed: list[Mistake] = []
    for one in mistakes:
        lines = shared.setdefault(one.file, [one.header] if one.header else [])
        placed.append(one._replace(line=one.line + len(lines) if one.line else 0))
        lines += one.text.splitlines()
    for path, lines in ((folder / name, lines) for name, lines in shared.items()):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return placed


def _house(folder: Path) -> tuple[list[Mistake], list[Told]]:
    """Check one house with all mistakes that a check of a house tells."""
    write_starter(folder)
    placed = _written(folder, [one for one in MISTAKES if one.by == "check"])
    looked = check_house(House(*(folder / k for k in ("rules", "templates", "knowledge"))))
    assert looked.reports == 0
    return placed, [
        Told(str(Path(p.source.file)).removeprefix(f"{folder}/"), p.source.line, p.text)
        for p in looked.problems
    ]


def _raised(file: str, error: UserError) -> list[Told]:
    return [Told(file, p.source.line, p.text) for p in problems_of(error)]


def _alone(folder: Path) -> tuple[list[Mistake], list[Told]]:
    """Read plans and advisor.toml, one by one as their commands do."""
    mistakes, told = [one for one in MISTAKES if one.by in {"plan", "house"}], list[Told]()
    placed: list[Mistake] = []
    for number, one in enumerate(mistakes):
        name = f"{number}/{one.file}"
        _written(folder, [one._replace(file=name)])
        placed.append(one._replace(file=name))
        (folder / str(number) / "rules").mkdir()
        try:
            if one.by == "plan":
                read_plan((folder / name).read_bytes(), name, load_knowledge())
            else:
                house_folders(folder / str(number))
        except UserError as error:
            told += _raised(name, error)
    return placed, told


def _measured(_: Path) -> tuple[list[Mistake], list[Told]]:
    """Take in a file of measurements."""
    mistakes = [one for one in MISTAKES if one.by == "measure"]
    content = "".join((f"{mistakes[0].header}\n", *(one.text for one in mistakes))).encode()
    file = File(mistakes[0].file, content)
    wrong = added([file], Given(), None, dry_run=True, keep_good=True, as_json=False)[1]
    told = [one for error in wrong for one in _raised(file.name, error)]
    return [one._replace(line=n) for n, one in enumerate(mistakes, 2)], told


def _lines(_: Path) -> tuple[list[Mistake], list[Told]]:
    """Estimate a file of lines; each bad one fails alone."""
    mistakes = [one for one in MISTAKES if one.by == "estimate"]
    content = "".join(one.text for one in mistakes).encode()
    told = [
        Told("lines.jsonl", number, failure.message)
        for number, row in enumerate(read_rows(BytesIO(content), "lines.jsonl"), 1)
        if (failure := estimate_row(row, load_knowledge())[1])
    ]
    return [one._replace(line=n) for n, one in enumerate(mistakes, 1)], told


def test_mistakes_are_told_with_place_what_and_mend(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    missed: list[Mistake] = []
    for number, read in enumerate((_house, _alone, _measured, _lines)):
        placed, told = read(tmp_path_factory.mktemp(f"mistakes{number}"))
        said = {(t.file, t.line): "" for t in told}
        for t in told:
            said[t.file, t.line] += t.text
        missed += [one for one in placed if one.says not in said.get((one.file, one.line), "")]
    assert len(MISTAKES) >= 150
    assert len(missed) <= (1 - SHARE_TOLD) * len(MISTAKES), missed
