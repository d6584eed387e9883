"""What the user measured, as the estimator needs it: figures of one setup, and card factors."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Setup(Struct, frozen=True, order=True):
    """One configuration by canonical names; its figures are told apart by depth."""

    gpu: str
    gpus: int
    model: str
    precision: str
    framework: str
    backend: str
    batch: int


class CardEngine(Struct, frozen=True, order=True):
    """A card under one backend and engine; ``engine`` is llama.cpp for its whole family."""

    gpu: str
    backend: str
    engine: str


class UserFigure(Struct, frozen=True):
    """What was measured on one setup, tokens/s of one stream."""

    depth_tokens: int
    tok_s: float
    source: str


class CardFactors(Struct, frozen=True):
    """The user's card against the speed model; None: nothing measured that says so."""

    dense: float | None = None
    """Decoding over the model without any card factor; takes the place of a published one."""
    experts: float | None = None
    """The same for mixtures of experts."""
    prefill: float | None = None
    """Arithmetic over what is published or modelled."""


class UserSpeeds(Struct, frozen=True):
    """The user's measurements, laid over the calibration."""

    sha256: str
    models: frozenset[tuple[str, str]]
    """Every card and model that was measured together."""
    decode: Mapping[Setup, tuple[UserFigure, ...]]
    prefill: Mapping[Setup, tuple[UserFigure, ...]]
    """Of prompts as long as the calibration's."""
    factors: Mapping[CardEngine, CardFactors]
