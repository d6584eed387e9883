"""What is unusual of a machine, in sentences: what costs speed or memory, or hides a card."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from advisor.reading.machine.mapped import Known
from advisor.reading.machine.nvidia import VENDOR as NVIDIA
from advisor.reading.machine.records import Card, Machine
from advisor.units import GIB, counted

_LEAST_CUT = 0.995
"""Limits are printed in hundredths of a watt."""


def unusual(machine: Machine, known: Sequence[Known], policy: Mapping[str, float]) -> Iterator[str]:
    """Say what is unusual, each in a sentence or two."""
    yield from _of_system(machine)
    yield from dict.fromkeys(line for one in known for line in _of_driver(one.card, policy))
    any_known = any(one.gpu for one in known)
    for number, one in enumerate(known):
        name = f"Card {number} ({one.card.name})"
        yield from (f"{name}: {line}" for line in _of_card(one.card, policy))
        yield from one.lines
        if one.gpu is None and not (one.card.integrated and any_known):
            yield (
                f"{name} is not in the catalogue: name one like it (--gpu NAME:SIZE), or add a "
                "record to gpus/ of your knowledge folder."
            )
    if len({one.card.vendor for one in known if one.gpu and not one.card.integrated}) > 1:
        yield "Cards of several makers: a report for 'local' takes those of one."


def _of_system(machine: Machine) -> Iterator[str]:
    if machine.kind.startswith("WSL"):
        yield (
            f"{machine.kind}: Linux has half of the computer's RAM unless .wslconfig says "
            "otherwise, and neither type nor speed of it can be read."
        )
    if machine.kind == "WSL 1":
        yield "WSL 1 has no access to cards; 'wsl --set-version' changes to WSL 2."
    if machine.kind == "container":
        yield "A container: cards and RAM are those that it was given."
    for name, value in machine.seen_alone.items():
        yield f"{name}={value or 'empty'} hides cards from programs; all are shown here."


def _of_card(card: Card, policy: Mapping[str, float]) -> Iterator[str]:
    limit, default = card.power_limit_w, card.power_default_w
    if limit and default and limit < default * _LEAST_CUT:
        yield (
            f"the power limit is {limit:.0f} W, its default {default:.0f} W. Prompts are read "
            "more slowly then; estimates assume the default."
        )
    if card.ecc:
        yield "ECC is on. Cards with GDDR memory lose about a sixteenth of it that way."
    held = (card.memory_bytes or 0) - (card.free_bytes or 0)
    by = f" by {', '.join(dict.fromkeys(card.used_by))}" if card.used_by else ""
    busy = card.free_bytes is not None and held > policy["reserve_consumer_bytes"]
    if (busy and not card.shares_memory) or by:
        amount = f"{held / GIB:.1f} GiB of it are" if busy and not card.shares_memory else "it is"
        yield f"{amount} in use{by}."
    if card.slices:
        yield f"it is cut into {counted(len(card.slices), 'MIG slice')}: {', '.join(card.slices)}."


def _of_driver(card: Card, policy: Mapping[str, float]) -> Iterator[str]:
    branch = re.match(r"(\d{3,4})\.\d", card.driver)
    if card.vendor != NVIDIA or card.integrated or not branch:
        return
    if int(branch[1]) < policy["nvidia_driver_least"]:
        yield (
            f"Driver {card.driver} is older than {policy['nvidia_driver_least']:.0f}: programs "
            "built with CUDA 12 do not start."
        )
    elif int(branch[1]) < policy["nvidia_driver_current"]:
        yield (
            f"Driver {card.driver} is older than {policy['nvidia_driver_current']:.0f}: programs "
            "built with CUDA 13 do not start."
        )
