"""A preview as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import wrap

from advisor.units import counted
from advisor.workbench.cover_views import request_line
from advisor.workbench.preview import Preview, Variant

_WIDTH = 88
_EMPTY = "(empty)"
_INDENT = "    "


def preview_text(shown: Preview) -> str:
    """Write a preview for a terminal."""
    return "\n".join(_lines(shown)) + "\n"


def _lines(shown: Preview) -> Iterator[str]:
    yield f"for {request_line(shown.asked)}"
    groups = [
        list(own)
        for _, own in groupby(shown.variants, key=lambda v: (v.template, v.rule, v.subject))
    ]
    if len(groups) > 1:
        yield f"{counted(len(groups), 'what-if')}, {counted(len(shown.variants), 'text')}"
    for group in groups:
        yield ""
        yield from _group(group)
    if shown.unreached:
        yield ""
    for template, lines in shown.unreached.items():
        yield f"not reached in {template}: {_spans(lines)}"


def _group(variants: Sequence[Variant]) -> Iterator[str]:
    """Write the wordings of one text, then the placeholders of all of them."""
    first = variants[0]
    yield f"{first.template}, by rule {first.rule}"
    if first.subject:
        yield f"what-if {first.subject}"
    yield first.fate
    for number, variant in enumerate(variants):
        yield ""
        if number:
            yield "  or, in other words:"
        for text in filter(None, (variant.title, variant.text)):
            yield from wrap(text, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)
        if not variant.text:
            yield f"{_INDENT}(no text: the remark is left out)"
    yield ""
    yield from _placeholders(variants)


def _placeholders(variants: Sequence[Variant]) -> Iterator[str]:
    printed = {name: value for v in variants for name, value in v.use.printed.items()}
    asked = {name: value for v in variants for name, value in v.use.asked.items()}
    only_asked = {name: value for name, value in asked.items() if name not in printed}
    wide = max(map(len, (*printed, *only_asked)), default=0)
    yield from (f"  {name.ljust(wide)}  {value or _EMPTY}" for name, value in printed.items())
    if only_asked:
        yield "  asked about, not written:"
    yield from (f"  {name.ljust(wide)}  {value or _EMPTY}" for name, value in only_asked.items())


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
