"""Advice in an order that nobody would take: what stands before what is plainly better.

    python benchmarks/order.py FOLDER --seeds 74 79       write documents, then count
    python benchmarks/order.py FOLDER --pairs             of what lies there, each pair

The commands are those of benchmarks/review.py. Pairs are found in the documents alone, so that
no rule or ranking is taken at its word.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from review import commands

from advisor import Session, UserError
from advisor.knowledge.types import Knowledge

EFFORTS = ("setting", "download", "rebuild", "purchase")
MARGINS = ("thin", "narrow", "ample")
GIB = 1 << 30
CLEAR, SAME, NOTHING = 1.2, 0.97, 1.05
"""A speed that is clearly more, one that is none the less, and a gain of nothing."""
READING, COMFORTABLE, SLOW_SERVER = 5.0, 15.0, 10.0
_OTHER_AIMS = frozenset({"fewer-gpus", "grow-batch", "grow-context"})
"""What frees cards or takes more in is not held against what is faster."""
ROOMY_RAM, LITTLE_LOSS, HARSH_LOSS, FOUR = 8 * GIB, 3.5, 12.0, 4
NO_END, SERVING, PURCHASE = float(1 << 60), 4, EFFORTS.index("purchase")


class Row(NamedTuple):
    """What a reader compares of the request, or of one piece of advice."""

    action: str
    model: str
    framework: str
    precision: str
    bits: float
    cache_bits: float
    effort: int
    speed: float
    held: int
    context: int
    loss: float | None
    margin: int
    ram: float
    cost: float
    gpus: int
    uncertain: bool = False
    stated: float = 0.0
    """The system RAM that the request states."""
    batch: int = 1


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="*", default=())
    parser.add_argument("--pairs", action="store_true")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    session = Session()
    bits = bits_of(session.advisor.knowledge)
    for seed in asked.seeds:
        for number, options in enumerate(commands(seed), start=1):
            _write(session, options, asked.folder / f"{seed}-{number:03}.json")
    counts: Counter[str] = Counter()
    compared = 0
    for path in sorted(asked.folder.glob("*.json")):
        doc = json.loads(path.read_text(encoding="utf-8"))
        compared += 1
        for kind, before, after in inversions(doc, bits):
            counts[kind] += 1
            if asked.pairs:
                print(f"{path.stem} {kind}: {before} before {after}")
    print(compared, "reports", dict(sorted(counts.items())))
    return 0


def bits_of(known: Knowledge) -> Mapping[str, float]:
    """The bits of every format of weights and of the cache."""
    weights = {n: float(f.class_bits or f.bits_per_weight or 16) for n, f in known.formats.items()}
    return {**weights, **{name: kind.bits for name, kind in known.kv_types.items()}}


def _write(session: Session, options: list[str], path: Path) -> None:
    given = {k.removeprefix("--"): v for k, v in zip(options[::2], options[1::2], strict=True)}
    number: Mapping[str, Callable[[str], object]] = {"context": int, "batch": int}
    with suppress(UserError):  # what runs nowhere is no advice
        report = session.advise(**{k: number.get(k, str)(v) for k, v in given.items()})
        path.write_text(json.dumps(report.to_dict()), encoding="utf-8")


def inversions(doc: dict[str, Any], bits: Mapping[str, float]) -> Iterator[tuple[str, str, str]]:
    """Give each pair of advice that stands the wrong way round: its kind, and both titles."""
    now, said = _request(doc, bits), [_advice(one, bits) for one in doc["recommendations"]]
    titles = [f"{n}. {one['title']}" for n, one in enumerate(doc["recommendations"], start=1)]
    for j, later in enumerate(said):
        if _is_the_run_line(now, later):
            yield "run line", "0. Run it", titles[j]
        for i, earlier in enumerate(said[:j]):
            for kind, holds in KINDS.items():
                if holds(now, earlier, later):
                    yield kind, titles[i], titles[j]


def _request(doc: dict[str, Any], bits: Mapping[str, float]) -> Row:
    of, memory = doc["scenario"], doc["memory"]
    runs = doc["verdict"]["state"] in {"fits", "tight"}
    speed = doc["speed"]["decode_tok_s"]["estimate"] if runs and doc["speed"] else 0.0
    held = memory["held_sequences"] or of["batch"] if runs else 0
    return Row(
        "", of["model"]["name"], of["framework"], of["precision"], bits[of["precision"]],
        bits[of["kv_cache_k"]], 0, speed, held, of["context_tokens"],
        of["precision_quality_loss_percent"], 2, 0.0, 0.0, of["gpus"],
        stated=of["ram_bytes"] or 0.0, batch=of["batch"],
    )  # fmt: skip


def _advice(one: dict[str, Any], bits: Mapping[str, float]) -> Row:
    to, after, price = one["setup"], one["after"], one["tradeoff"]
    speed = after["decode_tok_s"]["estimate"] if after["decode_tok_s"] else 0.0
    return Row(
        one["action"], to["model"], to["framework"], to["precision"], bits[to["precision"]],
        bits[to["kv_cache"].partition("/")[0]], EFFORTS.index(price["effort"]), speed,
        after["held_sequences"] or to["batch"],
        to["context_tokens"], price["quality"], MARGINS.index(after["margin"] or "ample"),
        after["host_bytes"], price["cost_usd"] or 0.0, to["gpus"],
        uncertain=bool(one["speculative_tok_s"]) or "text_only" in one["change"],
    )  # fmt: skip


def _keeps(now: Row, one: Row) -> bool:
    """Whether it is the very model on the machine at hand, and the context that was asked for."""
    lost = (one.loss or 0.0) - (now.loss or 0.0)
    own = one.model == now.model and one.effort < PURCHASE
    gentle = one.bits >= FOUR if one.loss is None else lost <= HARSH_LOSS
    return own and one.context >= now.context and gentle and not one.uncertain


def _another_first(now: Row, earlier: Row, later: Row) -> bool:
    """Another model, or a purchase, before the model asked for that gives clearly more here."""
    if not _keeps(now, later) or later.margin == 0 or later.held < earlier.held:
        return False
    if earlier.effort == PURCHASE:
        return later.speed >= READING and later.speed >= now.speed * CLEAR
    if earlier.model == now.model:
        return False
    if now.speed:
        gains = later.speed >= now.speed * CLEAR or later.held >= now.held * CLEAR
        return gains and later.speed >= COMFORTABLE
    more = later.held >= earlier.held * CLEAR and later.speed >= COMFORTABLE
    return more or later.speed >= earlier.speed * CLEAR


def _beaten_first(now: Row, earlier: Row, later: Row) -> bool:
    """One that is in nothing better, and in something worse."""
    if earlier.model != later.model or earlier.uncertain or later.uncertain:
        return False
    if later.effort == EFFORTS.index("purchase") or earlier.action in _OTHER_AIMS:
        return False
    ram = now.stated or NO_END
    roomy = ram - later.ram >= ROOMY_RAM or later.ram <= earlier.ram * (2 - SAME)
    known = earlier.loss is not None and later.loss is not None
    gentler = later.loss <= earlier.loss if known else later.bits >= earlier.bits  # type: ignore[operator]
    no_worse = (
        gentler and roomy and later.cache_bits >= earlier.cache_bits
        and later.speed >= earlier.speed * SAME
        and later.effort <= earlier.effort and later.cost <= earlier.cost
        and later.held >= earlier.held and later.context >= earlier.context
        and later.margin >= earlier.margin and bool(later.speed) == bool(earlier.speed)
    )  # fmt: skip
    return no_worse and (
        later.speed > earlier.speed / SAME or later.effort < earlier.effort
        or later.held > earlier.held or later.margin > earlier.margin
    )  # fmt: skip


def _is_switch(now: Row, one: Row) -> bool:
    """Whether it is a setting, or the same file in another build, and clearly faster."""
    same = (one.model, one.precision, one.framework) == (now.model, now.precision, now.framework)
    full = one.context >= now.context and one.held >= now.held and one.margin > 0
    asks = one.effort == 0 or one.action == "change-backend"
    return bool(same and full and asks and now.speed and one.speed >= now.speed * CLEAR)


def _switch_late(now: Row, earlier: Row, later: Row) -> bool:
    return (
        _is_switch(now, later)
        and not _is_switch(now, earlier)
        and earlier.speed < later.speed * CLEAR
        and not (earlier.speed >= now.speed and _is_finer(now, earlier))
    )


def _is_finer(now: Row, one: Row) -> bool:
    known = one.loss is not None and now.loss is not None
    return one.loss < now.loss if known else one.bits > now.bits  # type: ignore[operator]


def _is_the_run_line(now: Row, one: Row) -> bool:
    """Whether the request itself should be read so: the same file and program, clearly faster."""
    return one.effort == 0 and _is_switch(now, one) and not one.uncertain


def _gains(now: Row, one: Row, least: float) -> bool:
    return (
        one.speed >= now.speed * least or one.held > now.held or one.context > now.context * CLEAR
    )


def _for_nothing(now: Row, earlier: Row, later: Row) -> bool:
    """A download that loses quality for next to no speed."""
    if not now.speed or earlier.model != now.model or earlier.effort == 0 or later.uncertain:
        return False
    known = earlier.loss is not None and now.loss is not None
    loses = earlier.loss > now.loss if known else earlier.bits < now.bits  # type: ignore[operator]
    return loses and not _gains(now, earlier, NOTHING) and earlier.effort < PURCHASE


def _context_late(now: Row, earlier: Row, later: Row) -> bool:
    """A longer context costs nothing and stands behind a download that gains little."""
    small = now.speed and not _gains(now, earlier, NOTHING) and earlier.effort > 0
    better = earlier.bits > now.bits or (
        earlier.loss is not None and earlier.loss < (now.loss or 0)
    )
    grows = later.action == "grow-context" and later.speed >= now.speed * SAME and later.margin > 0
    return bool(small and not better and grows and not earlier.uncertain)


def _scarce_first(now: Row, earlier: Row, later: Row) -> bool:
    """What fills the RAM before what leaves the system its part and is as fast and as good."""
    ram = now.stated
    if not ram or not (_keeps(now, earlier) and _keeps(now, later)):
        return False
    left, then = ram - earlier.ram, ram - later.ram
    close = (later.loss or 0.0) <= (earlier.loss or 0.0) + LITTLE_LOSS
    return left < ROOMY_RAM and then >= left + GIB and close and later.speed >= earlier.speed * SAME


def _slow_server_first(now: Row, earlier: Row, later: Row) -> bool:
    """The model asked for, slowly for a few of many, before another that serves more, and fast."""
    many = now.batch >= SERVING and earlier.model == now.model != later.model
    slow = earlier.speed < SLOW_SERVER and not (now.speed and earlier.speed >= now.speed)
    much = later.held >= earlier.held * CLEAR and later.speed >= 2 * COMFORTABLE
    return many and slow and much and max(earlier.effort, later.effort) < PURCHASE


KINDS: Mapping[str, Callable[[Row, Row, Row], bool]] = {
    "another first": _another_first,
    "beaten first": _beaten_first,
    "switch late": _switch_late,
    "for nothing": _for_nothing,
    "context late": _context_late,
    "scarce first": _scarce_first,
    "slow server first": _slow_server_first,
}


if __name__ == "__main__":
    raise SystemExit(main())
