"""The model that is made of a repository of the public list and the shape that it has."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.models.resolution import model_from_record
from advisor.models.shape import Shape
from advisor.models.stored_tensors import PACKED, Model
from advisor.reading.public_list import PublicModel
from advisor.reading.published import (
    GGUF_DEFAULT,
    has_gguf,
    is_packed,
    published_format,
    says_sixteen_bits,
    unpacked_name,
)

SAME_WITHIN: Final = 0.01
_GGUF: Final = f"Of GGUF files llama.cpp takes {GGUF_DEFAULT} where none is named."


class Fit(Struct, frozen=True):
    """A shape that a repository may have."""

    shape: Shape
    record: ModelRecord | None
    """The known model whose figures it has beside its own."""
    same: bool
    """Whether none of its own differ from that model's."""
    off: float
    """By how much its parameters differ from the list's, relative to those."""
    total: int
    """Its parameters; 0 where no formula counts them."""


def made(public: PublicModel, fit: Fit, knowledge: Knowledge) -> Model:
    """Make the model of a shape that was proved."""
    counts, record = fit.shape.counts, fit.record
    known = model_from_record(record, knowledge) if record is not None and fit.same else None
    if record is not None and known and not (counts and _is_a_part(public, known)):
        told = f"{public.hf_id} is sized as {record.name}: the public list gives it that shape."
        return listed(public, known, known.notes, told)
    assert counts
    return listed(public, own(public, fit.shape, record, counts.total, counts.active), ())


def _is_a_part(public: PublicModel, known: Model) -> bool:
    """Whether a repository holds the text part alone of a model with towers."""
    stated = public.parameters_raw or known.parameters
    return not is_packed(public) and known.parameters - stated > SAME_WITHIN * stated


def own(
    public: PublicModel, shape: Shape, record: ModelRecord | None, total: int, active: int
) -> Model:
    """Make a model of a shape and the list's own figures."""
    vision = shape.counts.vision if shape.counts else 0
    modality = record.modality if record and record.modality != "vision" else "text"
    return Model(
        name=public.name,
        family=record.family if record else shape.model_type,
        modality="vision" if vision else modality,
        shape=shape,
        parameters=total,
        active_parameters=active,
        vision_parameters=vision,
        label_parameters_b=None,
        trained_context_tokens=_context(public),
        native_formats=record.native_formats if record else (),
        native_dtype=record.native_dtype if record else None,
    )


_USUAL_FALLBACK: Final = 4096


def _context(public: PublicModel) -> int | None:
    """The trained context; 4096 is what the list's maker wrote where nothing was stated."""
    context = public.context_length
    return context if context and context != _USUAL_FALLBACK else None


def listed(public: PublicModel, model: Model, notes: tuple[str, ...], told: str = "") -> Model:
    """Give the sized model the repository's own name, licence, date and format."""
    told = told or f"{public.hf_id} is sized by its own figures in the public list."
    held = published_format(public)
    if is_packed(public) and held is None:
        notes += (f"{public.hf_id} holds packed weights in a form that has no name here.",)
    if has_gguf(public):
        told += f" {_GGUF}"
    plain = is_packed(public) or says_sixteen_bits(public)
    return replace(
        model,
        name=unpacked_name(public.name) if has_gguf(public) else public.name,
        hf_id=public.hf_id,
        licence=public.license or None,
        released=public.release_date or None,
        native_formats=() if plain else model.native_formats,
        native_dtype=PACKED if is_packed(public) else (None if plain else model.native_dtype),
        held_format=held,
        sized_as=told,
        origin="list",
        notes=notes,
    )
