"""How the workbench writes numbers, requests and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from advisor.report.figures import aligned
from advisor.scenario.settings import SETTINGS


def share(part: int, whole: int) -> str:
    """Write a share: ``12.3 %``, and never 0 or 100 unless it is none or all."""
    if not whole:
        return "-"
    value = 100 * part / whole
    if part and value < 0.1:  # noqa: PLR2004
        return "<0.1 %"
    if part < whole and value > 99.9:  # noqa: PLR2004
        return ">99.9 %"
    return f"{value:.1f} %"


def request_line(given: Mapping[str, object]) -> str:
    """Write a request as flags of ``advisor advise``, ready to paste."""
    return " ".join(_flag(key, value) for key, value in given.items())


def _flag(key: str, value: object) -> str:
    setting = SETTINGS[key]
    name, unit = f"--{setting.typed_name.replace('_', '-')}", setting.unit.replace("GiB", "GB")
    if isinstance(value, bool):
        return f"{name} {'on' if value else 'off'}"
    text = f"{value:g}{unit}" if isinstance(value, float) else f"{value}{unit}"
    return f'{name} "{text}"' if not _plain(text) else f"{name} {text}"


def _plain(text: str) -> bool:
    return all(c.isalnum() or c in "-_.:/" for c in text)


def inline_map(given: Mapping[str, object]) -> str:
    """Write a mapping as YAML on one line: ``{gpu: RTX 4090, context: 4096}``."""
    return "{" + ", ".join(f"{key}: {inline(value)}" for key, value in given.items()) + "}"


def inline(value: object) -> str:
    """Write one value as YAML, in quotes where it needs them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value)
    if not isinstance(value, str) or (_bare(text) and not _looks_typed(text)):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _bare(text: str) -> bool:
    inside = all(c.isalnum() or c in " -_./+" for c in text)
    return inside and text[:1].isalnum() and text == text.strip()


def _looks_typed(text: str) -> bool:
    if text.casefold() in {"yes", "no", "true", "false", "on", "off", "null", "none"}:
        return True
    try:
        float(text.replace("_", ""))
    except ValueError:
        return False
    return True


def table(rows: Sequence[Sequence[str]], indent: str = "") -> Iterator[str]:
    """Lay rows out in columns; those of numbers are set to the right."""
    if not rows:
        return
    right = {i for i in range(len(rows[0])) if _numeric([row[i] for row in rows[1:]])}
    yield from aligned(rows, indent, right=right)


def _numeric(cells: Sequence[str]) -> bool:
    return bool(cells) and all(c[:1].isdigit() or c[:1] in "-<>" for c in cells if c)
