"""Where the user's measurements lie."""

from __future__ import annotations

import os
import sys
from pathlib import Path

FILE = "measurements.csv"


def user_data_dir() -> Path:
    """The folder for what the user adds (``ADVISOR_DATA_DIR`` overrides)."""
    if stated := os.environ.get("ADVISOR_DATA_DIR"):
        return Path(stated)
    if sys.platform == "win32":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "advisor"


def file_of(knowledge: Path | None) -> Path:
    """Give the file: in the user's knowledge folder where one is named, else in the data folder."""
    return (knowledge or user_data_dir()) / FILE
