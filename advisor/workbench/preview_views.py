"""A preview as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from textwrap import wrap

from advisor.workbench.preview import Preview, Variant
from advisor.workbench.showing import count, request_line

_WIDTH = 88
_EMPTY = "(empty)"


def preview_text(shown: Preview) -> str:
    """Write a preview for a terminal."""
    return "\n".join(_lines(shown)) + "\n"


def _lines(shown: Preview) -> Iterator[str]:
    yield f"for {request_line(shown.asked)}"
    if len(shown.variants) > 1:
        yield count(len(shown.variants), "different text")
    for variant in shown.variants:
        yield ""
        yield from _variant(variant)
    if shown.unreached:
        yield ""
    for template, lines in shown.unreached.items():
        yield f"not reached in {template}: {_spans(lines)}"


def _variant(variant: Variant) -> Iterator[str]:
    yield f"{variant.template}, by rule {variant.rule}"
    if variant.subject:
        yield f"what-if {variant.subject}"
    yield variant.fate
    yield ""
    for text in filter(None, (variant.title, variant.text)):
        yield from wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")
    if not variant.text:
        yield "    (no text: the remark is left out)"
    yield ""
    wide = max(map(len, (*variant.use.printed, *variant.use.asked)), default=0)
    yield from (f"  {n.ljust(wide)}  {v or _EMPTY}" for n, v in variant.use.printed.items())
    if variant.use.asked:
        yield "  asked about, not written:"
    yield from (f"  {n.ljust(wide)}  {v or _EMPTY}" for n, v in variant.use.asked.items())


def _spans(numbers: Sequence[int]) -> str:
    """Write ``line 3`` or ``lines 3, 5 to 7``."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] == number - 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    written = [f"{s[0]} to {s[-1]}" if len(s) > 1 else f"{s[0]}" for s in spans]
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(written)}"


def preview_json(shown: Preview) -> str:
    """Write a preview for programs."""
    made = {
        "schema_version": 1,
        "request": dict(shown.asked),
        "texts": [
            {
                "template": variant.template,
                "rule": variant.rule,
                "what_if": variant.subject or None,
                "fate": variant.fate,
                "title": variant.title or None,
                "text": variant.text,
                "written": dict(variant.use.printed),
                "asked": dict(variant.use.asked),
            }
            for variant in shown.variants
        ],
        "not_reached": {name: list(lines) for name, lines in shown.unreached.items()},
    }
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"
