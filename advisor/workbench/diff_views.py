"""A difference as text, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from advisor.report.figures import aligned
from advisor.units import counted
from advisor.workbench.causes import Prose
from advisor.workbench.comparison import Beside
from advisor.workbench.cover import Standing
from advisor.workbench.cover_views import share
from advisor.workbench.diff import CHANGES, Change, Difference, Edit, Group
from advisor.workbench.fact_store import Given
from advisor.workbench.scenario_file import request_line

_SAYS: Mapping[str, str] = {
    "verdict": "another verdict",
    "first": "another first recommendation",
    "set": "other recommendations",
    "order": "another order of them",
    "notes": "other notes",
    "barred": "other what-ifs barred",
}
_NONE = "none"
_ORDERED = frozenset({"verdict", "said"})
_MOST_ENTRIES = 8
"""Entries of knowledge that are listed."""


class View(Struct, frozen=True):
    """A difference, and how it is told."""

    difference: Difference
    prose: Prose | None
    beside: Beside | None = None
    base: str = ""
    examples: int = 0

    def text(self) -> str:
        """Write it for a terminal."""
        return "\n".join(_text(self)) + "\n"

    def markdown(self) -> str:
        """Write it for a pull request."""
        return "\n".join(_markdown(self)) + "\n"

    def json(self) -> str:
        """Write it for programs."""
        return json.dumps(_object(self), indent=2) + "\n"


def _text(view: View) -> Iterator[str]:
    d, beside, examples = view.difference, view.beside, view.examples
    yield f"Compared with {view.base}: {counted(d.compared, 'scenario')} of the catalogue"
    if d.refused:
        yield f"  {counted(d.refused, 'scenario')} more cannot be asked there, and are left out"
    yield from (f"  {line}" for line in _edits(d, beside))
    yield ""
    yield _summary(d, beside)
    yield from (f"  {line}" for line in _counts(d.counts, d.compared))
    if d.rescored:
        yield f"  ({counted(d.rescored, 'report')} more with other scores and nothing else)"
    yield from (f"  {line}" for line in _tried(d))
    for group in sorted(d.groups, key=lambda g: (-len(g.changes), g.cause)):
        yield ""
        yield f"{group.cause}: {counted(len(group.changes), 'report')}"
        yield from (f"  {line}" for line in _counts(group.counts, d.compared))
        for change in _plainest(group, examples):
            yield ""
            yield f"  advisor advise {request_line(change.request)}"
            yield from (f"    {line}" for line in _side_by_side(change))
    yield from _of_cases(view)
    yield from _prose(view)


def _tried(d: Difference) -> Iterator[str]:
    """Say how causes were found where they are not sure of themselves."""
    if d.tried is None:
        return
    some = f"{d.tried:,} of them" if d.tried < len(d.changes) else "each of them"
    yield f"(causes: {some} decided again with one change left out, or alone)"


def _of_cases(view: View) -> Iterator[str]:
    """Show what the cases of edited rules ask and the sample need not hold."""
    beside = view.beside
    if beside is None or not beside.cases:
        return
    yield ""
    asked = counted(beside.asked, "request")
    yield f"Of {asked} in cases of these rules, {len(beside.cases)} would be answered otherwise"
    for item in beside.cases[: max(view.examples, 1)]:
        yield ""
        yield f"  {item.rule}: advisor advise {request_line(item.change.request)}"
        if item.answered_before:
            yield from (f"    {line}" for line in _side_by_side(item.change))
        else:
            yield f"    {view.base} cannot answer it; what is said now:"
            yield from (f"    {line}" for line in _said_now(item.change.after))


def _said_now(standing: Standing) -> Iterator[str]:
    for name in ("verdict", "said", "notes"):
        first, *rest = _READ[name](standing) or [_NONE]
        yield f"{name:<7}  {first}"
        yield from (f"{'':<7}  {line}" for line in rest)


def _summary(d: Difference, beside: Beside | None) -> str:
    if not d.changes and beside and beside.cases:
        return "No report of the sample changes."
    if not d.changes:
        return "No report changes: this edit changes nothing that the sample can show."
    return f"{counted(len(d.changes), 'report')} would change ({share(len(d.changes), d.compared)})"


def _edits(d: Difference, beside: Beside | None) -> Iterator[str]:
    entries = beside.entries if beside else ()
    if d.knowledge_changed and not entries:
        yield "knowledge changed"
    if not d.edits and not d.knowledge_changed:
        yield "no rule differs"
    for entry in entries[:_MOST_ENTRIES]:
        yield _edit(entry)
    if len(entries) > _MOST_ENTRIES:
        yield f"and {len(entries) - _MOST_ENTRIES:,} more entries of knowledge"
    for edit in d.edits:
        fires = beside.fires.get(edit.rule) if beside else None
        often = "" if fires is None else f"; fires in {fires or 'none'} of the scenarios"
        yield f"{_edit(edit)}{often}"


def _edit(edit: Edit) -> str:
    parts = f" ({', '.join(edit.parts)})" if edit.parts else ""
    return f"{edit.rule}: {edit.what}{parts}"


def _counts(counts: Mapping[str, int], whole: int) -> Iterator[str]:
    wide = max((len(f"{n:,}") for n in counts.values()), default=0)
    for kind, number in counts.items():
        yield f"{number:>{wide},}  {_SAYS[kind]} ({share(number, whole)})"


def _plainest(group: Group, most: int) -> Sequence[Change]:
    """The gravest changes of the plainest requests."""
    return sorted(
        group.changes,
        key=lambda c: (CHANGES.index(c.kinds[0]), len(c.request), request_line(c.request)),
    )[:most]


def _side_by_side(change: Change) -> Iterator[str]:
    rows = [("", "before", "after")]
    for name, read in _READ.items():
        before, after = read(change.before), read(change.after)
        if before != after:
            news = _news if name in _ORDERED else _only_here
            none = _NONE if name in _ORDERED else ""
            rows += _row(name, news(before, after) or [none], news(after, before) or [none])
    yield from aligned(rows)


def _news(own: Sequence[str], other: Sequence[str]) -> Sequence[str]:
    """Of long lists only what the other does not have at this place."""
    if len(own) <= 1 and len(other) <= 1:
        return own
    return [text for place, text in enumerate(own) if list(other[place : place + 1]) != [text]]


def _only_here(own: Sequence[str], other: Sequence[str]) -> Sequence[str]:
    """Of lists without an order what the other does not have."""
    return [text for text in own if text not in other]


def _row(name: str, before: Sequence[str], after: Sequence[str]) -> list[tuple[str, str, str]]:
    height = max(len(before), len(after), 1)
    left = [*before, *[""] * height][:height]
    right = [*after, *[""] * height][:height]
    names = [name, *[""] * height]
    return list(zip(names, left, right, strict=False))


_READ: Mapping[str, Callable[[Standing], Sequence[str]]] = {
    "verdict": lambda s: [s.verdict],
    "said": lambda s: [f"{n}. {i.option} ({i.score:g})" for n, i in enumerate(s.recommended, 1)],
    "notes": lambda s: sorted(s.notes),
    "barred": lambda s: sorted({option for _, option in s.barred}),
}


def _prose(view: View) -> Iterator[str]:
    prose = view.prose
    if prose is None or not (prose.templates or prose.reworded):
        return
    yield ""
    if prose.templates:
        yield f"Templates that differ: {', '.join(prose.templates)}"
    which = "may read otherwise although they are decided as before"
    yield (
        f"{counted(prose.concerned, 'report')} {which}; of {prose.read:,} written out on both sides"
        f" {len(prose.reworded):,} read otherwise"
    )
    some = f" (of the {prose.tried:,} looked at)" if prose.tried < len(prose.reworded) else ""
    yield from (f"  {name}: {counted(n, 'report')}{some}" for name, n in prose.causes.items())
    for item in prose.reworded[: view.examples]:
        yield ""
        yield f"  advisor advise {request_line(item.request)}"
        yield from (f"    {line}" for line in item.lines)


def _markdown(view: View) -> Iterator[str]:
    d, beside, examples = view.difference, view.beside, view.examples
    yield f"## Compared with `{view.base}`"
    yield ""
    summary = _summary(d, beside).rstrip(".")
    yield f"{summary}, of {counted(d.compared, 'scenario')} of the catalogue."
    yield ""
    yield from (f"- {line}" for line in _edits(d, beside))
    if d.refused:
        yield f"- {counted(d.refused, 'scenario')} cannot be asked there and are left out"
    if d.changes:
        yield ""
        yield "| cause | reports | " + " | ".join(_SAYS.values()) + " |"
        yield "|---|" + "---:|" * (len(_SAYS) + 1)
        for name, changes, counts in [
            *((f"`{g.cause}`", len(g.changes), g.counts) for g in d.groups),
            ("**all**", len(d.changes), d.counts),
        ]:
            cells = " | ".join(f"{counts.get(kind, 0):,}" for kind in _SAYS)
            yield f"| {name} | {changes:,} | {cells} |"
    for group in d.groups:
        for change in _plainest(group, examples):
            yield ""
            yield f"`{group.cause}`: `advisor advise {request_line(change.request)}`"
            yield ""
            yield "```text"
            yield from _side_by_side(change)
            yield "```"
    yield from _of_cases(view)
    yield from _prose(view)


def _object(view: View) -> Mapping[str, object]:
    d, prose, beside, examples = view.difference, view.prose, view.beside, view.examples
    return {
        "schema_version": 1,
        "base": view.base,
        "compared": d.compared,
        "left_out": d.refused,
        "changed": len(d.changes),
        "counts": {kind: d.counts.get(kind, 0) for kind in CHANGES},
        "rescored_only": d.rescored,
        "knowledge_changed": d.knowledge_changed,
        "edits": [{"rule": e.rule, "what": e.what, "parts": list(e.parts)} for e in d.edits],
        "tried": d.tried,
        "causes": [{"cause": g.cause, **_group_object(g, examples)} for g in d.groups],
        "rules": [
            {"rule": g.cause.removeprefix(_RULE), **_group_object(g, examples)}
            for g in d.groups
            if g.cause.startswith(_RULE)
        ],
        "knowledge": [
            {"entry": e.rule, "what": e.what, "fields": list(e.parts)}
            for e in (beside.entries if beside else ())
        ],
        "fires": dict(beside.fires) if beside else {},
        "cases": [
            {
                "rule": item.rule,
                "answered_before": item.answered_before,
                **_change_object(item.change),
            }
            for item in (beside.cases if beside else ())
        ],
        "prose": prose and _prose_object(prose, examples),
    }


_RULE = "rule "


def _group_object(group: Group, examples: int) -> dict[str, object]:
    return {
        "changed": len(group.changes),
        "counts": dict(group.counts),
        "examples": [_change_object(c) for c in _plainest(group, examples)],
    }


def _change_object(change: Change) -> dict[str, object]:
    return {
        "request": dict(change.request),
        "changed": list(change.kinds),
        "before": _standing_object(change.before),
        "after": _standing_object(change.after),
    }


def _standing_object(standing: Standing) -> dict[str, object]:
    return {
        "verdict": standing.verdict,
        "recommendations": [
            {"rule": s.rule, "action": s.action, "option": s.option, "score": s.score}
            for s in standing.recommended
        ],
        "notes": list(standing.notes),
        "barred": sorted({option for _, option in standing.barred}),
    }


def _prose_object(prose: Prose, examples: int) -> dict[str, object]:
    shown: Sequence[tuple[Given, Sequence[str]]] = [
        (item.request, item.lines) for item in prose.reworded[:examples]
    ]
    return {
        "templates": list(prose.templates),
        "reports_using_them": prose.concerned,
        "read": prose.read,
        "reworded": len(prose.reworded),
        "causes": [{"cause": name, "reports": n} for name, n in prose.causes.items()],
        "examples": [{"request": dict(g), "lines": list(lines)} for g, lines in shown],
    }
