"""Speed parameters fitted to measurements, their accuracy; the door to the user's measurements.

Without a file of theirs a command looks once at the file system and loads nothing more of this.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.files import user_data_dir
from advisor.knowledge.layers import Stack, holding, stack

if TYPE_CHECKING:
    from advisor.knowledge.types import Knowledge

_FILE = "measurements.csv"


def file_of(knowledge: Stack) -> Path:
    """Give the file: in the user's knowledge folder where one is named, else in the data folder.

    Of several folders it is that of the last which has one, or of the last.
    """
    users = [path for path in stack(knowledge) if not path.is_file()] or [user_data_dir()]
    return next(holding(users, _FILE), users[-1]) / _FILE


def with_measurements(knowledge: Knowledge, path: Path | None) -> Knowledge:
    """Lay the measurements of a file over the knowledge; unchanged without any.

    A ``path`` of None, or one that is not there, changes nothing.

    Raises:
        UserError: The file is damaged.
    """
    if path is None or not path.exists():
        return knowledge
    from advisor.estimator.calibration.user import effect  # noqa: PLC0415 - csv, statistics, tempfile

    return effect.file_laid_over(knowledge, path)
