"""The model that is made of a repository of the public list, by its shape or its size alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError, UserError
from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.models import built, model_from_record, read_record
from advisor.models.any_config import read_any
from advisor.models.architecture import stated_width
from advisor.models.architectures import family_of
from advisor.models.architectures.tables import FAMILIES
from advisor.models.config import read_config
from advisor.models.shape import Counts, Shape, in_layers
from advisor.models.stored_tensors import PACKED, Model
from advisor.reading.public_config import is_the_class, plain_config
from advisor.reading.public_list import PublicModel, bare_key
from advisor.reading.published import (
    GGUF_DEFAULT,
    Recorded,
    has_gguf,
    is_draft,
    is_packed,
    published_format,
    says_sixteen_bits,
    sourced_format,
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
    config: Mapping[str, object]
    """What it was read from."""
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
        return listed(public, _of_release(public, known, record), known.notes, told)
    assert counts
    return listed(public, own(public, fit.shape, record, counts.total, counts.active), ())


def of_own_record(public: PublicModel, record: ModelRecord) -> Model:
    """Make the model of a record that only its own name finds."""
    model = _by_name(record)
    notes = (*model.notes, record.notes) if record.notes else model.notes
    told = f"{public.hf_id} is sized by its own record ({record.verified})."
    return listed(public, model, notes, told)


def unlisted_record(record: ModelRecord) -> Model:
    """Make the model of such a record where the list has no line for its repository."""
    try:
        model = _by_name(record)
    except UserError:  # an architecture that nothing describes, whose parameters were counted
        shape = replace(read_any(dict(record.config), record.name), counts=None)
        model = built(record, shape)
    told = f"{record.hf_id} is sized by its own record ({record.verified}); no list here has it."
    notes = (*model.notes, record.notes) if record.notes else model.notes
    return replace(model, sized_as=told, notes=notes)


def _by_name(record: ModelRecord) -> Model:
    model = built(record, read_record(record))
    active, counts = record.active_parameters or model.active_parameters, model.shape.counts
    if counts and not counts.vision:
        counts = counts.plus(model.vision_parameters)
    shape = replace(model.shape, counts=counts)
    return replace(model, active_parameters=active, shape=shape)


def recorded(public: PublicModel, fit: Fit, held: Recorded, knowledge: Knowledge) -> Model:
    """Make the model that a repository is known to hold, in the format that it is in."""
    assert fit.record
    alone = "/" in held.record
    known = _by_name(fit.record) if alone else model_from_record(fit.record, knowledge)
    known = replace(known, shape=replace(known.shape, mtp_layers=fit.shape.mtp_layers))
    told = f"{public.hf_id} is sized as {fit.record.name}{held.told}."
    known = _of_release(public, known, fit.record)
    return listed(public, known, known.notes, told, held=held.format)


def _of_release(public: PublicModel, known: Model, record: ModelRecord) -> Model:
    """Leave out what is known of that model alone: a repository of another name states its own."""
    if record.hf_id and bare_key(unpacked_name(public.name)) == bare_key(
        record.hf_id.rpartition("/")[2]
    ):
        return known
    trained = _context(public) or known.trained_context_tokens
    return replace(known, trained_context_tokens=trained, companions={})


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


_TOLD: Final = frozenset({"embedding", "audio"})
"""What the list's word for a purpose says better than a shape does."""


def listed(
    public: PublicModel, model: Model, notes: tuple[str, ...], told: str = "", *, held: str = ""
) -> Model:
    """Give the sized model the repository's own name, licence, date and format."""
    told = told or f"{public.hf_id} is sized by its own figures in the public list."
    packed = held or published_format(public)
    if is_packed(public) and packed is None:
        notes += (f"{public.hf_id} holds packed weights in a form that has no name here.",)
    if has_gguf(public):
        told += f" {_GGUF}"
    model = _published(public, model)
    return replace(
        model,
        name=unpacked_name(public.name) if has_gguf(public) else public.name,
        hf_id=public.hf_id,
        modality=public.modality if public.modality in _TOLD else model.modality,
        licence=public.license or None,
        released=public.release_date or None,
        held_format=packed,
        sized_as=told,
        origin="list",
        notes=notes,
    )


_SIXTEEN: Final = {"BF16": "bfloat16", "FP16": "float16"}


def _published(public: PublicModel, model: Model) -> Model:
    """Give the format that a source says, else that of the model of its shape, as such."""
    formats, dtype, found = model.native_formats, model.native_dtype, sourced_format(public.hf_id)
    named = says_sixteen_bits(public)
    if is_packed(public) or named:
        formats, dtype = (), PACKED if is_packed(public) else None
    elif found in _SIXTEEN:
        formats, dtype = (), _SIXTEEN[found]
    elif found and found not in formats:
        formats = (found,)
    inherited = bool(formats) and found is None
    model = replace(model, native_dtype=dtype, named_format=None if is_packed(public) else named)
    return replace(model, native_formats=formats, native_inherited=inherited)


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
    held = in_layers(stated, best.shape.layers) if borrows else _with_the_rest(best.shape, stated)
    blocks = None if borrows or _is_in_layers(best.shape, stated) else best.shape.blocks
    shape = replace(best.shape, counts=held, blocks=blocks)
    model = own(public, shape, best.record, stated, active or stated)
    return listed(public, model, (_told_of(public, best, borrows=borrows),))


def _with_the_rest(shape: Shape, stated: int) -> Counts | None:
    """Take what files hold beside the shape for a wrapper's towers, or for parts of the layers."""
    counts, in_each = shape.counts, _is_in_layers(shape, stated)
    more = stated - counts.total if counts and (in_each or shape.outer_type) else 0
    if counts is None or more <= 0:
        return counts
    counts = replace(counts, total=stated, active=counts.active + more)
    if in_each:
        return replace(counts, layers=tuple(one + more // shape.layers for one in counts.layers))
    return replace(counts, vision=counts.vision + more)


def _is_in_layers(shape: Shape, stated: int) -> bool:
    """Whether files of a plain text model hold much more than its shape tells."""
    made = shape.counts.total if shape.counts and not shape.outer_type else stated
    return shape.role != "encoder" and stated - made > _MOST_BESIDE * stated


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


_HEAD: Final = 64
"""Width of a head where their number is not stated; with as many key-value heads the cache is the
same whatever it is."""
_WIDEST: Final = 8192
_MOST_LAYERS: Final = 128
_WIDTHS_PER_LAYER: Final = 64
"""So many elements wide for each layer: what makes the most cache of all models known here."""
MOST_KNOWN: Final = "models of as many parameters"
_DIVISIBLE: Final = 64
"""Heads of such a model: as many as any number of cards divides."""
_BLOCK: Final = 12
"""Squares of the hidden width in a plain block: four in attention, eight behind it."""
_MASKED: Final = {"gpt2": (1,), "gpt_neo": (1, 2), "gpt_neox": (1,), "gptj": (1,)}
"""Classes whose old files hold causal masks: one for each layer, or for every other one."""


def solved(public: PublicModel) -> PublicModel | None:
    """Find the layers and the width that make exactly the stated parameters; None: not just one.

    Only for architectures whose feed-forward width follows from the hidden one (GPT-2, BLOOM).
    For every width the parameters grow by the same for each layer.
    """
    family = FAMILIES.get(family_of(public.architecture))
    if family is None or family.read_width is stated_width or not public.vocab_size:
        return None
    found = [
        _sized(public, layers, hidden)
        for hidden in range(_HEAD, _WIDEST + 1, _HEAD)
        for layers in _layers(public, hidden)
    ]
    return found[0] if len(found) == 1 else None


def stored_masks(shape: Shape) -> Sequence[int]:
    """Count the causal masks that checkpoints of some classes hold beside the parameters."""
    each = (shape.trained_context or 0) ** 2
    return [shape.layers * each // every for every in _MASKED.get(shape.model_type, ())]


def _layers(public: PublicModel, hidden: int) -> set[int]:
    """Give the numbers of layers that fit, with stored masks or without."""
    counted = [_counted(_sized(public, layers, hidden)) for layers in (1, 2)]
    if None in counted:
        return set()
    (one, masks), (two, _) = (pair for pair in counted if pair)
    beside = (public.parameters_raw or 0) - (2 * one - two)
    fitting = (divmod(beside, two - one + more) for more in {0, *masks})
    return {layers for layers, rest in fitting if rest == 0 and 1 <= layers <= _MOST_LAYERS}


def _counted(public: PublicModel) -> tuple[int, Sequence[int]] | None:
    try:
        shape = read_config(plain_config(public, tied=None), public.hf_id, whole=False)
    except UserError:
        return None
    return (shape.counts.total, stored_masks(shape)) if shape.counts else None


def _sized(public: PublicModel, layers: int, hidden: int) -> PublicModel:
    heads = public.num_attention_heads or hidden // _HEAD
    return replace(public, num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads)


def attending(public: PublicModel) -> Shape:
    """Give the sizes that the list states, with full attention in every layer; at most that."""
    layers, heads = public.num_hidden_layers or 1, public.num_attention_heads or 1
    hidden = public.hidden_size or 1
    return Shape(
        model_type=public.architecture,
        layers=layers,
        hidden=hidden,
        vocab=public.vocab_size or 0,
        heads=heads,
        kv_heads=public.num_key_value_heads or heads,
        head_dim=public.head_dim or hidden // heads,
        intermediate=public.moe_intermediate_size or 0,
        tied=False,
        layer_kinds="F" * layers,
        ffn_kinds="D" * layers,
        described=False,
        cache_loose=1.0,
    )


def most_caching(public: PublicModel) -> Shape:
    """Give plain blocks of as many parameters as the list counts, as deep as models are.

    None of the models known here caches more for its size; a test holds it.
    """
    layers, stated = public.num_hidden_layers, public.parameters_raw or 0
    hidden = public.hidden_size or round(
        (stated / _BLOCK / layers) ** (1 / 2)
        if layers
        else (_WIDTHS_PER_LAYER * stated / _BLOCK) ** (1 / 3)
    )
    width = -(-hidden // _DIVISIBLE)
    return attending(
        replace(
            public,
            num_hidden_layers=layers or max(1, round(hidden / _WIDTHS_PER_LAYER)),
            hidden_size=width * _DIVISIBLE,
            num_attention_heads=_DIVISIBLE,
            num_key_value_heads=_DIVISIBLE,
            head_dim=width,
        )
    )
