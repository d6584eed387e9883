"""What ``advisor calibrate`` writes, as texts by file name."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log
from pathlib import Path
from statistics import median

from advisor.calibration.accuracy import PAGE, page, plots
from advisor.calibration.fits import Fitted, Material, fit_all, material_of
from advisor.calibration.held_out import Held, spreads_by_situation, validate
from advisor.calibration.observations import Observation
from advisor.calibration.parameter_file import FITTED_FILE, fitted_text
from advisor.calibration.runs import Run, depth_step
from advisor.calibration.strata import results_of
from advisor.knowledge.types import Knowledge

MEASURED_FILE = "measured.csv"
_HEADER = (
    "gpu", "model", "precision", "framework", "backend", "gpus", "batch", "cache", "depth_tokens",
    "tok_s", "runs", "source", "date",
)  # fmt: skip
_OFF = log(1.6)
"""A self-reported speed this far from the model is more likely a spill or a wrong label."""


def measured_text(
    observations: Iterable[Observation],
    runs: Iterable[Run],
    predicted: Callable[[Run], float | None],
) -> str:
    """Write one line per measured configuration: median of the newest year, all sources.

    Args:
        observations: The carried rows; they say what was really asked for.
        runs: The runs made of them.
        predicted: The model's tokens/s of a run, over all streams; None where it has none.
    """
    exact = {one.row for one in observations if one.exact}
    groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        if exact & set(run.rows) and _is_plain(run) and _is_plausible(run, predicted(run)):
            groups[_key(run)].append(run)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADER)
    writer.writerows(sorted(_line(key, found) for key, found in groups.items()))
    return text.getvalue()


def _is_plain(run: Run) -> bool:
    scenario = run.scenario
    return run.metric == "decode" and not run.split and scenario.kv_cache_k.name == "f16"


def _is_plausible(run: Run, predicted: float | None) -> bool:
    return run.raw or predicted is None or abs(log(run.tok_s / predicted)) < _OFF


def _key(run: Run) -> tuple[str, ...]:
    scenario = run.scenario
    gpu, backend = run.card
    return (
        gpu, scenario.model.name, scenario.precision.name, scenario.framework.name, backend,
        str(scenario.gpus), str(scenario.batch), scenario.kv_cache_k.name,
        str(depth_step(scenario.depth_tokens)),
    )  # fmt: skip


def _line(key: tuple[str, ...], runs: list[Run]) -> tuple[str, ...]:
    newest = max(run.date for run in runs)
    recent = [run for run in runs if _year(run.date) >= _year(newest) - 1]
    depth = median(run.scenario.depth_tokens for run in recent)
    tok_s = median(run.tok_s for run in recent)
    sources = " and ".join(sorted({run.source.partition(": ")[0] for run in recent}))
    count = sum(len(run.rows) for run in recent)
    return (*key[:-1], str(round(depth)), f"{tok_s:.4g}", str(count), sources, newest[:7])


def _year(date: str) -> float:
    """Read a date as years; a month weighs a twelfth, none stated the middle."""
    month = int(date[5:7]) if len(date) >= len("2026-01") else 6
    return int(date[:4] or 0) + month / 12


def knowledge_files(knowledge: Knowledge) -> Mapping[str, str]:
    """Fit everything and write the two files of the knowledge base.

    Args:
        knowledge: Cards, models, formats and the choices of calibration.yaml.

    Returns:
        Texts by name: ``calibration-fitted.yaml`` and ``measured.csv``.
    """
    material = material_of(knowledge)
    fitted = fit_all(material)
    return texts_of(material, fitted, validate(material, fitted))


def texts_of(material: Material, fitted: Fitted, held: Sequence[Held]) -> Mapping[str, str]:
    """Write the two files of a finished fit."""
    spreads = spreads_by_situation(held, material)
    return {
        FITTED_FILE: fitted_text(material, fitted, spreads),
        MEASURED_FILE: measured_text(material.observed, material.known(), fitted.tok_s),
    }


def stale_files(folder: Path, texts: Mapping[str, str]) -> Sequence[str]:
    """Name the files of a folder that differ from their texts."""
    return [
        name
        for name, text in texts.items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]


def write_files(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the texts into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def accuracy_files(knowledge: Knowledge) -> Mapping[str, str]:
    """Validate everything and write the accuracy page with its plots.

    Returns:
        Texts by name: ``speed-accuracy.md`` and one SVG per plot.
    """
    material = material_of(knowledge)
    fitted = fit_all(material)
    held = validate(material, fitted, sources=True)
    results = results_of(held, material.policy)
    spreads = spreads_by_situation(held, material)
    return {PAGE: page(material, held, results, spreads), **plots(results)}
