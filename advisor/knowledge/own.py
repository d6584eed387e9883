"""What the user measured, as the estimator needs it: figures of one setup, and card factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Setup:
    """One configuration by canonical names; its figures are told apart by depth."""

    gpu: str
    gpus: int
    model: str
    precision: str
    framework: str
    backend: str
    batch: int


@dataclass(frozen=True, slots=True, order=True)
class CardEngine:
    """A card under one backend and engine; ``engine`` is llama.cpp for its whole family."""

    gpu: str
    backend: str
    engine: str


@dataclass(frozen=True, slots=True)
class OwnFigure:
    """What was measured on one setup, tokens/s of one stream."""

    depth_tokens: int
    tok_s: float
    source: str


@dataclass(frozen=True, slots=True)
class CardFactors:
    """The user's card against the speed model; None: nothing measured that says so."""

    dense: float | None = None
    """Decoding over the model without any card factor; takes the place of a published one."""
    experts: float | None = None
    """The same for mixtures of experts."""
    prefill: float | None = None
    """Arithmetic over what is published or modelled."""


@dataclass(frozen=True, slots=True)
class OwnSpeeds:
    """The user's measurements, laid over the calibration."""

    sha256: str
    models: frozenset[tuple[str, str]]
    """Every card and model that was measured together."""
    decode: Mapping[Setup, tuple[OwnFigure, ...]]
    prefill: Mapping[Setup, tuple[OwnFigure, ...]]
    """Of prompts as long as the calibration's."""
    factors: Mapping[CardEngine, CardFactors]
