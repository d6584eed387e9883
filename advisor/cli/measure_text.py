"""What ``advisor measure`` does and says, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import asdict

from advisor.errors import RequestError, UserError
from advisor.estimator.calibration import file_of, user, with_measurements
from advisor.estimator.calibration.user import Stored
from advisor.estimator.calibration.user.benchmark_file import File, Taken, take
from advisor.estimator.calibration.user.comparison import (
    CardChange,
    Comparison,
    OtherChange,
    SetupChange,
    compare,
)
from advisor.estimator.calibration.user.effect import laid_over
from advisor.estimator.calibration.user.physics import pace
from advisor.estimator.calibration.user.plausibility import Given
from advisor.estimator.measured_speed import Measurement
from advisor.knowledge import load_knowledge
from advisor.knowledge.layers import Stack, stack
from advisor.report.figures import aligned
from advisor.scenario.figures import Figure

_METRICS = {
    "decode_tok_s": "decode", "prefill_tok_s": "prefill", "total_throughput_tok_s": "throughput",
}  # fmt: skip
_FAR_APART = 1.3
"""From here on tokens/s are shown without decimals."""


def added(
    files: Sequence[File],
    given: Given,
    folder: Stack,
    *,
    dry_run: bool,
    keep_good: bool,
    as_json: bool,
) -> tuple[str, list[UserError]]:
    """Take in files; gives what to say, and what is wrong.

    Nothing is stored where something is wrong, unless ``keep_good``.

    Raises:
        UserError: The knowledge or the store is damaged.
    """
    knowledge = load_knowledge(folder)
    path = file_of(folder)
    before = with_measurements(knowledge, path)
    taken = take(files, given, knowledge)
    if taken.problems and not keep_good:
        return "", taken.problems
    if dry_run:
        stored = user.load(path)[1]
        after = stored + _fresh(taken.measurements, stored)
    else:
        stored, after = user.add(path, taken.measurements)
    known = {item.id for item in stored}
    fresh = [item for item in after if item.id not in known]
    known_now = laid_over(knowledge, after, _bytes(after), str(path)) if fresh else before
    change = compare(before, known_now, fresh)
    if as_json:
        return _json_of(taken, change, known, dry_run=dry_run), taken.problems
    text = "\n".join(_text_of(taken, change, known, dry_run=dry_run))
    return f"{text}\n", taken.problems


def _fresh(measurements: Iterable[Measurement], stored: Sequence[Stored]) -> list[Stored]:
    known = {item.id for item in stored}
    found = {user.id_of(m): m for m in measurements}
    return [Stored(0, m) for key, m in found.items() if key not in known]


def _bytes(stored: Iterable[Stored]) -> bytes:
    """Make bytes that differ where the figures do, to tell states of the store apart."""
    return "\n".join(f"{item.line} {item.id}" for item in stored).encode()


def _text_of(taken: Taken, change: Comparison, known: set[str], *, dry_run: bool) -> Iterator[str]:
    yield _counts(taken, change, dry_run=dry_run)
    yield from _section("Your figures", list(_setup_rows(change.setups)))
    yield from _section("Your cards", list(_card_rows(change.cards)))
    yield from _section("Other models on them, decode tok/s", list(_other_rows(change.others)))
    odd = [f"{file.shown}:{c.line}: {text}" for file, c in taken.good for text in c.warnings]
    odd += [f"{c.item.id}: {text}" for c in change.setups for text in _contradicts(c)]
    skipped = [f"{file.shown}:{s.line}: {s.reason}" for file, s in taken.skipped]
    yield from _listed("Worth a look", odd)
    yield from _listed("Skipped", skipped)
    yield from _listed("Stored before", [key for key in _doubles(taken) if key in known])


def _contradicts(change: SetupChange) -> Iterator[str]:
    """Say where a figure is far from what was measured of its setup before."""
    before, now = change.before, change.item.measurement.tok_s
    if before is None or before.evidence != "measured":
        return
    if max(now / before.estimate, before.estimate / now) > _FAR_APART:
        yield (
            f"{pace(now)} tok/s now, {pace(before.estimate)} before ({before.source}); "
            "remove the wrong one with 'advisor measure remove ID'"
        )


def _doubles(taken: Taken) -> list[str]:
    return [user.id_of(m) for m in taken.measurements]


def _counts(taken: Taken, change: Comparison, *, dry_run: bool) -> str:
    count = len(change.setups)
    double = len(taken.good) - count
    parts = [f"{count} figure{'s' * (count != 1)} {'would be ' if dry_run else ''}added"]
    parts += [f"{double} known already"] if double else []
    parts += [f"{len(taken.skipped)} skipped"] if taken.skipped else []
    parts += [f"{taken.wrong} wrong"] if taken.wrong else []
    return ", ".join(parts)


def _section(title: str, rows: list[tuple[str, ...]]) -> Iterator[str]:
    if len(rows) > 1:
        yield from ("", title, "", *aligned(rows))


def _listed(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield from ("", title, "", *lines)


def _setup_rows(changes: Iterable[SetupChange]) -> Iterator[tuple[str, ...]]:
    yield "id", "setup", "figure", "measured", "estimate before", "shown now", "model alone"
    for change in changes:
        m = change.item.measurement
        after = change.after
        yield (
            change.item.id,
            setup_text(m),
            what_text(m),
            pace(m.tok_s),
            _range(change.before),
            _range(after) if after else "no figure",
            pace(after.modelled) if after and after.modelled is not None else "-",
        )


def setup_text(m: Measurement) -> str:
    """Write a setup on one line."""
    cards = m.gpu if m.gpus == 1 else f"{m.gpus} x {m.gpu}"
    return f"{cards}, {m.model} {m.precision}, {m.framework} {m.backend}"


def what_text(m: Measurement) -> str:
    """Write what was measured on one line."""
    parts = [_METRICS[m.metric]]
    parts += [f"of {m.prompt_tokens:,}"] if m.metric == "prefill_tok_s" else []
    parts += [f"at {m.depth_tokens:,}"] if m.depth_tokens else []
    parts += [f"x {m.batch}"] if m.batch > 1 else []
    return " ".join(parts)


def _card_rows(changes: Iterable[CardChange]) -> Iterator[tuple[str, ...]]:
    yield "card", "engine", "speed over model", "80 % range factor", "evidence", "prefill TFLOPS"
    for change in changes:
        old, new = change.prefill_tflops
        yield (
            change.card.gpu,
            f"{change.card.engine} {change.card.backend}{', experts' * change.experts}",
            _turned(*(f"{f:.3f}" for f in change.factor)),
            _turned(*(f"{s:.2f}x" for s in change.spread)),
            _turned(*change.evidence),
            _turned(*("-" if t is None else f"{t:.1f}" for t in (old, new))),
        )


def _turned(old: str, new: str) -> str:
    return new if old == new else f"{old} -> {new}"


def _other_rows(changes: Iterable[OtherChange]) -> Iterator[tuple[str, ...]]:
    yield "model", "before", "now"
    for change in changes:
        scenario = change.scenario
        name = f"{scenario.model.name} {scenario.precision.name}"
        yield name, _range(change.before), _range(change.after)


def _range(figure: Figure | None) -> str:
    if figure is None:
        return "no figure"
    low, high = pace(figure.low), pace(figure.high)
    return f"{pace(figure.estimate)} ({low} to {high}), {figure.evidence}"


def _json_of(taken: Taken, change: Comparison, known: set[str], *, dry_run: bool) -> str:
    doc = {
        "dry_run": dry_run,
        "added": [
            {
                "id": c.item.id,
                "measurement": asdict(c.item.measurement),
                "before": _figure_doc(c.before),
                "after": _figure_doc(c.after),
            }
            for c in change.setups
        ],
        "cards": [_card_doc(c) for c in change.cards],
        "others": [
            {
                "gpu": c.scenario.gpu.name if c.scenario.gpu else None,
                "model": c.scenario.model.name,
                "precision": c.scenario.precision.name,
                "before": _figure_doc(c.before),
                "after": _figure_doc(c.after),
            }
            for c in change.others
        ],
        "known": [key for key in _doubles(taken) if key in known],
        "skipped": [
            {"file": file.shown, "line": s.line, "reason": s.reason} for file, s in taken.skipped
        ],
        "warnings": [
            {"file": file.shown, "line": c.line, "message": text}
            for file, c in taken.good
            for text in c.warnings
        ],
        "wrong": [str(error) for error in taken.problems],
    }
    return f"{json.dumps(doc, indent=2, ensure_ascii=False)}\n"


def _figure_doc(figure: Figure | None) -> dict[str, object] | None:
    return None if figure is None else asdict(figure)


def _card_doc(change: CardChange) -> dict[str, object]:
    pairs = {
        "factor": change.factor,
        "evidence": change.evidence,
        "range_factor": change.spread,
        "prefill_tflops": change.prefill_tflops,
    }
    return {
        **asdict(change.card),
        "experts": change.experts,
        **{key: {"before": old, "after": new} for key, (old, new) in pairs.items()},
    }


def listed(folder: Stack, *, as_json: bool) -> str:
    """List what is stored.

    Raises:
        UserError: The store is damaged.
    """
    stored = user.load(_file(folder))[1]
    if as_json:
        rows = [{"id": item.id, **asdict(item.measurement)} for item in stored]
        return f"{json.dumps(rows, indent=2, ensure_ascii=False)}\n"
    if not stored:
        return "no measurements; add some with 'advisor measure add FILE'\n"
    table: list[tuple[str, ...]] = [("id", "setup", "figure", "tok/s", "date", "from")]
    table += [_list_row(item) for item in stored]
    return "".join(f"{line}\n" for line in aligned(table))


def _file(folder: Stack) -> Path:
    for missing in (path for path in stack(folder) if not path.exists()):
        raise RequestError(f"there is no folder '{missing}'", hint="Name your folder of knowledge.")
    return file_of(folder)


def _list_row(item: Stored) -> tuple[str, ...]:
    m = item.measurement
    return item.id, setup_text(m), what_text(m), pace(m.tok_s), m.date or "-", m.source or "-"


def removed(ids: Sequence[str], folder: Stack) -> str:
    """Remove figures by id; gives what to say.

    Raises:
        UserError: The store is damaged or an id is wrong.
    """
    before, after = user.remove(_file(folder), ids)
    left = {item.id for item in after}
    gone = [item for item in before if item.id not in left]
    rows = [_list_row(item) for item in gone]
    return "".join(f"removed  {line}\n" for line in aligned(rows))
