"""Machines of tests/data/machines.yaml, as probes that need no subprocess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from advisor.reading.machine import read_machine
from advisor.reading.machine.probe import NOT_THERE, Answer, Machine, Probe

FILE = Path(__file__).parent.parent / "data" / "machines.yaml"
MACHINES: Sequence[Mapping[str, Any]] = yaml.safe_load(FILE.read_text("utf-8"))


def probe_of(machine: Mapping[str, Any], root: Path, **environ: str) -> Probe:
    for path, text in machine.get("files", {}).items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    tools: Mapping[str, str] = machine.get("tools", {})

    def run(command: Sequence[str]) -> Answer:
        line = " ".join(command)
        known = [start for start in tools if line.startswith(start)]
        if not known:
            return NOT_THERE
        text = tools[max(known, key=len)]
        return Answer(problem=text[2:]) if text.startswith("! ") else Answer(text)

    return Probe(root, run, machine["system"], environ)


def machine_named(words: str, root: Path, **environ: str) -> Machine:
    found = next(one for one in MACHINES if words in one["machine"])
    return read_machine(probe_of(found, root, **environ), "a system")
