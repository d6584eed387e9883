"""Whole files taken in: every row read and checked, and everything wrong named at once."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from advisor.calibration.user.benchmark import Run, Skipped, one_line
from advisor.calibration.user.benchmark_file import read_measurements
from advisor.calibration.user.plausibility import Checked, Given, check
from advisor.errors import Problems, UserError
from advisor.estimate.measurement import Measurement
from advisor.knowledge.types import Knowledge


class File(Struct, frozen=True):
    """A benchmark's file."""

    shown: str
    """As the user named it."""
    data: bytes

    @property
    def name(self) -> str:
        """Its name without folders, as it is stored."""
        return one_line(self.shown.replace("\\", "/").rpartition("/")[2])


class Taken(Struct):
    """What came of the files."""

    good: list[tuple[File, Checked]] = field(default_factory=list)
    skipped: list[tuple[File, Skipped]] = field(default_factory=list)
    problems: list[UserError] = field(default_factory=list)
    wrong: int = 0
    """Rows that are wrong, and files that cannot be read at all."""

    def refuse(self, error: UserError) -> None:
        """Note all that is wrong with one row or file."""
        self.wrong += 1
        self.problems += error.errors if isinstance(error, Problems) else [error]

    @property
    def measurements(self) -> list[Measurement]:
        """The figures that may be stored."""
        return [checked.measurement for _, checked in self.good]


def take(files: Sequence[File], given: Given, knowledge: Knowledge) -> Taken:
    """Read and check every row of every file."""
    taken = Taken()
    for file in files:
        try:
            rows = read_measurements(file.data, file.shown)
        except UserError as error:
            taken.refuse(error)
            continue
        for row in rows:
            _take(row, file, given, knowledge, taken)
    taken.problems = list({str(error): error for error in taken.problems}.values())
    return taken


def _take(
    row: Run | Skipped | UserError, file: File, given: Given, knowledge: Knowledge, taken: Taken
) -> None:
    if isinstance(row, UserError):
        taken.refuse(row)
        return
    if isinstance(row, Skipped):
        taken.skipped.append((file, row))
        return
    try:
        found = check(row, given, knowledge, file=file.shown, name=file.name)
    except UserError as error:
        taken.refuse(error)
        return
    if isinstance(found, Skipped):
        taken.skipped.append((file, found))
    else:
        taken.good.append((file, found))
