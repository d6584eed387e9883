"""What ``advisor calibrate`` writes, as texts by file name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from advisor.calibration.accuracy import PAGE, page, plots
from advisor.calibration.fits import Fitted, Material, fit_all, material_of
from advisor.calibration.held_out import Held, validate
from advisor.calibration.parameter_file import FITTED_FILE, fitted_text
from advisor.calibration.ranges import spreads_by_situation
from advisor.calibration.speed_table import MEASURED_FILE, measured_text
from advisor.calibration.strata import results_of
from advisor.knowledge.types import Knowledge


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
    results = results_of(held, material.policy.falls)
    spreads = spreads_by_situation(held, material)
    return {PAGE: page(material, held, results, spreads), **plots(results)}
