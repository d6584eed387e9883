"""Reading a JSON object from a file that may be anything."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

from advisor.errors import Source, SourceFileError

MAX_BYTES: Final = 10_000_000
MAX_DEPTH: Final = 40


def read_json_object(path: Path) -> Mapping[str, object]:
    """Read a JSON object.

    Raises:
        SourceFileError: The file is missing, unreadable, not a plain file, empty, larger
            than 10 MB, not JSON, nested too deeply, or not an object.
    """
    text = _text(path)
    try:
        found: object = json.loads(text, parse_constant=_constant)
    except json.JSONDecodeError as bad:
        message = f"this is not valid JSON ({bad.msg}); the file may be cut off"
        raise SourceFileError(message, source=Source(str(path), bad.lineno, bad.colno)) from None
    except RecursionError:
        _fail(path, f"this is nested deeper than {MAX_DEPTH} levels")
    except ValueError as bad:
        _fail(path, str(bad))
    if not isinstance(found, dict):
        _fail(path, "this is JSON, but not an object with keys")
    if _deeper(found, MAX_DEPTH):
        _fail(path, f"this is nested deeper than {MAX_DEPTH} levels")
    return found


def _text(path: Path) -> str:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            _fail(path, "this is not a plain file")
        if status.st_size > MAX_BYTES:
            _fail(path, f"this is larger than {MAX_BYTES // 10**6} MB, so no config.json")
        content = path.read_bytes()
    except FileNotFoundError:
        _fail(path, "there is no such file")
    except OSError as bad:
        _fail(path, f"the file cannot be read ({bad.strerror or bad})")
    except ValueError:
        _fail(path, "this is not the name of a file")
    return _decoded(path, content)


def _decoded(path: Path, content: bytes) -> str:
    if not content.strip():
        _fail(path, "the file is empty")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        _fail(path, "the file is not UTF-8 text")


def _deeper(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    if levels == 0:
        return True
    inner = value.values() if isinstance(value, dict) else value
    return any(_deeper(item, levels - 1) for item in inner)


def _constant(name: str) -> float:
    # Configs of Mamba-2 models state open limits as Infinity.
    if name != "NaN":
        return float(name.replace("Infinity", "inf"))
    text = "it holds NaN, which is not a number"
    raise ValueError(text)


def _fail(path: Path, reason: str) -> NoReturn:
    raise SourceFileError(f"{reason}.", source=Source(str(path)))
