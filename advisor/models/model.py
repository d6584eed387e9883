"""A resolved model, from knowledge/ or from a file on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from advisor.models.shape import Shape
    from advisor.models.stored_tensors import StoredModel


class Model(Struct, frozen=True):
    """A resolved model, from knowledge/ or from a file on disk."""

    name: str
    family: str
    modality: str
    shape: Shape
    parameters: int
    active_parameters: int
    vision_parameters: int
    label_parameters_b: float | None
    trained_context_tokens: int | None
    hf_id: str | None = None
    image_tokens: str | None = None
    licence: str | None = None
    released: str | None = None
    native_dtype: str | None = None
    """What its repository holds, where that is stated; else a 16-bit checkpoint."""
    native_formats: tuple[str, ...] = ()
    """Weight formats that hold exactly what was released, where that is less than 16 bits."""
    origin: Literal["knowledge", "config"] = "knowledge"
    stored: StoredModel | None = None
    """The weight files it was read from: exact sizes in the format they hold."""
    notes: tuple[str, ...] = ()
    """What the files say about themselves, one sentence each."""
