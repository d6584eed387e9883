"""The door through which every command takes in the user's measurements.

Without a file it costs one look at the file system; what reads and weighs figures is loaded then.
"""

from __future__ import annotations

from pathlib import Path

from advisor.knowledge.types import Knowledge


def with_measurements(knowledge: Knowledge, path: Path | None) -> Knowledge:
    """Lay the measurements of a file over the knowledge; unchanged without any.

    Args:
        knowledge: What is built in, or with the user's own folder over it.
        path: The file; None, or one that is not there, changes nothing.

    Raises:
        UserError: The file is damaged.
    """
    if path is None or not path.exists():
        return knowledge
    from advisor.calibration.user import effect, store  # noqa: PLC0415 - csv, statistics, tempfile

    data, stored = store.load(path)
    return effect.laid_over(knowledge, stored, data, str(path)) if stored else knowledge
