"""The model that is made of a repository of the public list and the shape that it has."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.models.resolution import model_from_record
from advisor.models.shape import Counts, Shape, in_layers
from advisor.models.stored_tensors import PACKED, Model
from advisor.reading.public_config import is_the_class
from advisor.reading.public_list import PublicModel
from advisor.reading.published import (
    GGUF_DEFAULT,
    has_gguf,
    is_draft,
    is_packed,
    published_format,
    says_sixteen_bits,
    unpacked_name,
)

SAME_WITHIN: Final = 0.01
_MOST_TOWERS: Final = 0.6
_MOST_BESIDE: Final = 0.1
"""Share of the parameters that may be towers, or a head that drafts, where nothing counts them."""
_LEAST_SHARE: Final = 0.8
"""Of the elements that the shape makes; with fewer, the files hold a part, or packed weights."""
_HINT: Final = "Give a folder with its config.json, or let 'advisor advise --hub' look it up."
NO_FORMULA: Final = "no formula counts the parameters of its architecture"
UNSTATED: Final = "layer types, windows, biases, tied matrices and vision towers"
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
    if known and known.shape.mtp_layers != fit.shape.mtp_layers:
        known = replace(known, shape=replace(known.shape, mtp_layers=fit.shape.mtp_layers))
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
        modality="embedding" if public.modality == "embedding" else model.modality,
        licence=public.license or None,
        released=public.release_date or None,
        native_formats=() if plain else model.native_formats,
        native_dtype=PACKED if is_packed(public) else (None if plain else model.native_dtype),
        held_format=held,
        sized_as=told,
        origin="list",
        notes=notes,
    )


def refused(public: PublicModel, why: str) -> RequestError:
    """Say why a repository cannot be sized, and what to give instead."""
    return RequestError(f"{public.hf_id} cannot be sized: {why}.", hint=_HINT)


# ---- what does not have as many parameters as its shape


def counted(public: PublicModel, best: Fit) -> Model:
    """Take the list's number of parameters, where it is not what the shape makes.

    Weights are as many as the files hold. Where the cache follows from what the list states, or
    is that of the known model of this shape, the rest is towers or a head that drafts; else the
    report says that the model is approximate.

    Raises:
        RequestError: The files hold too few: they are packed, or a part of a model.
    """
    stated, built, counts = public.parameters_raw or 0, best.total, best.shape.counts
    lent = counts.embedding + counts.output if counts and is_draft(public) else 0
    if stated < _LEAST_SHARE * (built - lent) and best.shape.role != "encoder":
        raise refused(
            public,
            f"the public list counts {stated:,} elements in its files, and its shape has "
            f"{built:,}: they are packed, in a form that nothing tells, or a part of a model",
        )
    active = round(stated * counts.active / built) if counts else public.active_parameters
    borrows = bool(lent) and stated < built
    held = in_layers(stated, best.shape.layers) if borrows else _with_towers(best.shape, stated)
    blocks = None if borrows else best.shape.blocks
    shape = replace(best.shape, counts=held, blocks=blocks)
    model = own(public, shape, best.record, stated, active or stated)
    return listed(public, model, (_told_of(public, best, borrows=borrows),))


def _with_towers(shape: Shape, stated: int) -> Counts | None:
    """Take what the files of a wrapper hold beside the text model for its towers."""
    counts, outer = shape.counts, shape.outer_type
    more = stated - counts.total if counts and outer else 0
    if counts is None or more <= 0:
        return counts
    return replace(counts, total=stated, active=counts.active + more, vision=counts.vision + more)


def _told_of(public: PublicModel, fit: Fit, *, borrows: bool) -> str:
    """Say what its files hold besides the shape, or that this is not known."""
    stated, built = public.parameters_raw or 0, fit.total
    holds = f"{stated / 1e9:.2f} billion parameters"
    if borrows:
        return (
            f"{public.hf_id} is a head that drafts: its files hold {holds}, and it takes embedding "
            "and output from its main model."
        )
    more = (stated - built) / stated
    most = _MOST_TOWERS if fit.shape.outer_type else _MOST_BESIDE
    if fit.shape.role == "encoder" or (built and 0 < more <= most and _cache_told(public, fit)):
        text = "" if fit.shape.role == "encoder" else f", {more:.0%} of them beside its layers"
        return f"{public.hf_id} is sized by what its files hold: {holds}{text}."
    makes = f"the shape in the public list makes {built / 1e9:.2f}" if built else NO_FORMULA
    note = f"{public.hf_id} is approximate: its files hold {holds}, and {makes}."
    return f"{note} Not in the list: {UNSTATED}."


def _cache_told(public: PublicModel, fit: Fit) -> bool:
    """Whether the cache follows from the list: all layers alike, or a known model's sizes."""
    plain = set(fit.shape.layer_kinds) == {"F"} and fit.shape.mla is None
    return fit.same or plain or is_the_class(public)
