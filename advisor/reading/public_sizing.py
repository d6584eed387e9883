"""Models of the public list, sized: by their own record, a known shape, or their own shape.

The list states widths and counts alone. What it leaves out (layer types, windows, biases, tied
matrices, towers) comes from known models of the architecture, and the number of parameters says
whether that was right: within 1 % it counts as the model, else as an approximation that says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from advisor.errors import UserError
from advisor.knowledge.index import model_key, models_called, models_published
from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.memo import Kept
from advisor.models import known_shape, model_from_record, stored_shapes
from advisor.models.any_config import read_any
from advisor.models.architectures import family_of, is_known, keeps_nothing
from advisor.models.architectures.tables import FAMILIES
from advisor.models.config import read_config
from advisor.models.hub_names import label_in
from advisor.models.shape import UNKNOWN, Counts, Shape
from advisor.models.stored_tensors import Model
from advisor.reading.public_config import (
    Known,
    Widths,
    alike_known,
    configs_of,
    is_mixture,
    own_sizes,
    plain_config,
    shared_words,
    widths_of,
    with_experts,
)
from advisor.reading.public_list import PublicModel, counting, every_named
from advisor.reading.public_made import (
    MOST_KNOWN,
    NO_FORMULA,
    SAME_WITHIN,
    UNSTATED,
    Fit,
    attending,
    counted,
    listed,
    made,
    most_caching,
    of_own_record,
    own,
    recorded,
    refused,
    solved,
    stored_masks,
    unlisted_record,
)
from advisor.reading.published import (
    ROUNDED,
    Recorded,
    counts_parameters,
    is_draft,
    is_packed,
    own_record,
    recorded_as,
    sizes_said,
    unpacked_name,
)

_SHAPE: Final = (
    "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim",
    "vocab_size", "num_experts", "active_experts", "moe_intermediate_size",
    "shared_expert_intermediate_size", "context_length",
)  # fmt: skip
_EXACT: Final = 1e-4
_MOST_TRIED: Final = 6
_MOST_DRAFTING: Final = 3
_DRAFT_WITHIN: Final = 1e-3
_MOST_KEPT: Final = 512
_LEAST_OF_NAMED: Final = 0.5
_SCALED: Final = 17 / 16
"""Elements of packed files to a weight, at most: a scale for 32 of them, and a drafting head."""


_kept: Kept[tuple[int, PublicModel], tuple[Knowledge, Model]] = Kept(_MOST_KEPT)
"""What hangs on a model is worked out once for it, so it must be the same one when asked again."""


def model_of(public: PublicModel, knowledge: Knowledge) -> Model:
    """Size a repository of the public list, once.

    Raises:
        RequestError: It cannot be sized; the message says what is missing.
    """
    key = (id(knowledge), public)
    found = _kept.get(key)
    if found is None:
        found = (knowledge, _labelled(_sized(public, knowledge)))
        _kept.put(key, found)
    return found[1]


def model_unlisted(text: str) -> Model | None:
    """Size a repository that the list lacks by its own record; None where it has none."""
    record = own_record(text)
    return _labelled(unlisted_record(record)) if record else None


def _labelled(model: Model) -> Model:
    label = model.label_parameters_b or label_in(model.name, model.parameters)
    return replace(model, label_parameters_b=label)


def _sized(public: PublicModel, knowledge: Knowledge) -> Model:
    shapes = widths_of(stored_shapes(knowledge))
    record = models_published(knowledge).get(public.hf_id.casefold())
    if record is not None and record in shapes:
        return model_from_record(knowledge.models[record], knowledge)
    if (held := recorded_as(public.hf_id)) and (of := _named_in(held, knowledge, shapes)):
        shape = known_shape(of, knowledge)
        fit = Fit(shape, {}, of, same=True, off=1.0, total=of.parameters or 0)
        return recorded(public, _near(public, fit), held, knowledge)
    if (own_one := own_record(public.hf_id)) is not None:
        return of_own_record(public, own_one)
    return _by_list(public, knowledge, shapes)


def _named_in(
    held: Recorded, knowledge: Knowledge, sized: Mapping[str, Widths]
) -> ModelRecord | None:
    """Give the record that a line names, where it can be sized."""
    if "/" in held.record:
        return own_record(held.record)
    return knowledge.models[held.record] if held.record in sized else None


def _by_list(public: PublicModel, knowledge: Knowledge, shapes: Mapping[str, Widths]) -> Model:
    alike = alike_known(public, knowledge.models, shapes)
    if not public.num_hidden_layers or not public.hidden_size:
        return _without_shape(public, alike, knowledge)
    fits = list(_fits(public, alike, knowledge))
    best = best_of(fits)
    if best is None:
        return _undescribed(public, _why_none(public, alike), knowledge)
    told, stated = counts_parameters(public), public.parameters_raw or 0
    alike_in_all = best.off <= SAME_WITHIN
    scales = is_packed(public) and best.same and best.total < stated <= _SCALED * best.total
    if told and (alike_in_all or scales):
        model = made(public, best, knowledge)
        if alike_in_all or model.parameters <= stated:
            return model
    if not told:
        return _unproved(public, fits, knowledge)
    return counted(public, best)


def best_of(fits: Sequence[Fit]) -> Fit | None:
    """Give the shape that has most nearly as many parameters as the list says."""
    return min(fits, key=lambda fit: (round(fit.off, 3), not fit.same), default=None)


def fits_of(public: PublicModel, knowledge: Knowledge) -> Sequence[Fit]:
    """Give what a repository may be by the list alone, whatever is recorded of it."""
    shapes = widths_of(stored_shapes(knowledge))
    if not public.num_hidden_layers or not public.hidden_size:
        if (shaped := _twin(public) or solved(public)) is None:
            return ()
        public = shaped
    return list(_fits(public, alike_known(public, knowledge.models, shapes), knowledge))


def _fits(public: PublicModel, alike: Sequence[Known], knowledge: Knowledge) -> Iterator[Fit]:
    """Build what it may be, until one has as many parameters as the list says."""
    family = FAMILIES.get(family_of(public.architecture))
    twofold = family is not None and family.role == "encoder-decoder"
    for known in alike[:_MOST_TRIED]:
        if twofold and known.distance:
            continue
        own = own_sizes(public, latent=known.latent)
        record = knowledge.models[known.name]
        for config, same in configs_of(record.config, own, public.context_length):
            fit = _fit(public, config, record, same=same)
            if fit is not None:
                yield fit
                if fit.off <= _EXACT:
                    return
    for tied in (None, True, False) if is_known(public.architecture) else ():
        fit = _fit(public, plain_config(public, tied=tied), None, same=False)
        if fit is not None:
            yield fit


def _fit(
    public: PublicModel, config: Mapping[str, object], record: ModelRecord | None, *, same: bool
) -> Fit | None:
    try:
        shape = read_config(config, public.hf_id, whole=False)
    except UserError:
        return None
    if shape.moe is None and is_mixture(public):
        return None
    if shape.counts is None and shape.outer_type:
        shape = replace(shape, counts=_text_counts(public, shape))
    total = shape.counts.total if shape.counts else 0
    if not total and record is not None and same:
        total = record.parameters or 0
    return _near(public, Fit(shape, config, record, same, 1.0, total))


def _text_counts(public: PublicModel, shape: Shape) -> Counts | None:
    """Count the text model of a wrapper whose towers no formula counts."""
    text = replace(public, architecture=shape.model_type)
    try:
        return read_config(plain_config(text, tied=None), public.hf_id, whole=False).counts
    except UserError:
        return None


def _near(public: PublicModel, fit: Fit) -> Fit:
    """Compare parameters; heads that draft, and stored masks, may be in the files or not.

    Where the list's sizes leave out how many layers draft, only their exact number tells.
    """
    shape, stated = fit.shape, max(public.parameters_raw or 0, 1)
    beside = {(more, shape.mtp_layers) for more in (0, *stored_masks(shape))}
    if shape.counts:
        head = shape.counts.layers[-1] + 2 * shape.hidden**2
        heads = range(1, _MOST_DRAFTING + 1)
        near = (n for n in heads if abs(stated - fit.total - n * head) <= _DRAFT_WITHIN * stated)
        beside |= {(n * head, n) for n in {shape.mtp_layers, *near}}
    off, drafting = min((abs(stated - fit.total - more) / stated, n) for more, n in beside)
    return replace(fit, off=off, shape=replace(shape, mtp_layers=drafting))


def _why_none(public: PublicModel, alike: Sequence[Known]) -> str:
    try:
        read_config(plain_config(public, tied=None), public.hf_id, whole=False)
    except UserError as error:
        why = error.message.rstrip(".").removesuffix(", so the model cannot be sized")
    else:
        why = "no parameter formula covers its architecture"
    return why if not alike else f"the public list says too little of it ({why})"


def _undescribed(public: PublicModel, why: str, knowledge: Knowledge) -> Model:
    """Size what no table describes: by the list's parameters, else by its widths.

    Raises:
        RequestError: Its files hold packed weights of a model that nothing tells the size of.
    """
    if is_packed(public) and (base := next(_bases(public), None)) is not None:
        return _as_base(public, base, model_of(base, knowledge))
    stated = public.parameters_raw
    if not stated or not counts_parameters(public):
        return _estimated(public, why)
    if keeps_nothing(public.architecture):
        shape = replace(attending(public), role="encoder")
        note = f"{public.hf_id} is sized by what its files hold; its class keeps no cache."
        return listed(public, own(public, shape, None, stated, stated), (note,))
    note = f"{public.hf_id} is approximate: {why}. Its parameters are those of the public list; "
    if public.num_attention_heads:
        shape, most = attending(public), "that of full attention in every layer."
    else:
        shape, most = most_caching(public), f"what {MOST_KNOWN} keep."
    shape, reads = with_experts(public, shape, stated)
    model = own(public, shape, None, stated, shape.counts.active if shape.counts else stated)
    return listed(public, _as_named(public, model), (f"{note}its cache is at most {most}{reads}",))


def _estimated(public: PublicModel, why: str) -> Model:
    """Take parameters and cache from the widths, as of a config that no table describes."""
    try:
        shape = read_any(plain_config(public, tied=None), public.hf_id)
    except UserError:
        raise refused(public, why) from None
    counts = shape.counts
    if counts is None or not public.num_attention_heads:
        raise refused(public, why)
    note = (
        f"{public.hf_id} is approximate: {why}, and the public list does not count its "
        "parameters. They are estimated from its widths."
    )
    model = own(public, shape, None, counts.total, counts.active)
    return listed(public, _as_named(public, model), (note,))


def _as_named(public: PublicModel, model: Model) -> Model:
    """Give a model that nothing proves back, where its name says no other size.

    A name counts all parameters, or those of the layers alone. What unpacked files hold is more
    where a tower or a codec is beside; far less is a part of it.

    Raises:
        RequestError: It does: what the list states is not this model.
    """
    said, shape = sizes_said(public.name), model.shape
    counted = 0 if is_packed(public) else public.parameters_raw or 0
    if not said or is_draft(public) or counted >= _LEAST_OF_NAMED * min(said):
        return model
    beside = model.vision_parameters + 2 * shape.vocab * shape.hidden
    of = (model.parameters, model.active_parameters or model.parameters)
    agrees = (
        (1 - ROUNDED) * (one - beside) <= size <= (1 + ROUNDED) * one for size in said for one in of
    )
    if not any(agrees):
        raise refused(
            public,
            f"by the public list it has {model.parameters / 1e9:.3g} billion parameters, and its "
            f"name says {said[0] / 1e9:.3g}",
        )
    return model


def _without_shape(public: PublicModel, alike: Sequence[Known], knowledge: Knowledge) -> Model:
    """Take the model with the same name, or with exactly as many parameters."""
    named = _record_named(public, knowledge)
    stated, packed = public.parameters_raw or 0, is_packed(public)
    found = [one for one in alike if abs(one.total - stated) <= _EXACT * stated]
    if packed and not found:
        found = [one for one in alike if one.name == named]
    if found:
        best = max(found, key=lambda one: (one.name == named, shared_words(one.name, public.name)))
        record = knowledge.models[best.name]
        shape = known_shape(record, knowledge)
        fit = Fit(shape, record.config, record, same=True, off=0.0, total=best.total)
        return made(public, fit, knowledge)
    if (shaped := _twin(public) or solved(public)) is not None:
        return _sized(shaped, knowledge)
    missing = "layers and widths are" if not public.num_hidden_layers else "widths are"
    why = f"its {missing} not in the public list, and {_none_counts(public)}"
    return _undescribed(public, why, knowledge)


def _none_counts(public: PublicModel) -> str:
    if public.architecture == UNKNOWN:
        return "its architecture is not either: whether a framework runs it is not known"
    return (
        f"no known model of architecture '{public.architecture}' has "
        f"{public.parameters_raw or 0:,} parameters"
    )


def _twin(public: PublicModel) -> PublicModel | None:
    """Give it the shape of the most downloaded repository with exactly as many parameters."""
    if public.architecture == UNKNOWN:
        return None
    alike = (one for one in counting(public.parameters_raw or 0) if _may_be(public, one))
    twin = next(alike, None)
    return twin and replace(public, **{size: getattr(twin, size) for size in _SHAPE})


def _may_be(public: PublicModel, other: PublicModel) -> bool:
    shaped = bool(other.hidden_size and other.num_hidden_layers)
    same = other.architecture == public.architecture
    stated = ((getattr(public, size), getattr(other, size)) for size in _SHAPE[:-1])
    return same and shaped and all(mine in {None, its} for mine, its in stated)


def _record_named(public: PublicModel, knowledge: Knowledge) -> str | None:
    names = models_called(knowledge).get(model_key(unpacked_name(public.name)), ())
    return names[0] if len(names) == 1 else None


# ---- what does not have as many parameters as its shape


def _unproved(public: PublicModel, fits: Sequence[Fit], knowledge: Knowledge) -> Model:
    """Size a repository whose parameters nobody counted: as a known model, else by its shape."""
    same = next((fit for fit in fits if fit.same), None)
    if same is not None:
        return _as_named(public, made(public, same, knowledge))
    base = next(_bases(public), None)
    if base is not None:
        return _as_base(public, base, model_of(base, knowledge))
    if not fits[0].total:
        return _estimated(public, NO_FORMULA)
    packed = "its files hold packed weights, so their number does not prove its shape"
    why = packed if is_packed(public) else "the public list does not count its parameters"
    note = f"{public.hf_id} is approximate: {why}. Not in the list: {UNSTATED}."
    if fits[0].shape.role == "encoder" and not is_packed(public):
        note = f"{public.hf_id} is counted by its shape, since {why}."
    return listed(public, _as_named(public, made(public, fits[0], knowledge)), (note,))


def _as_base(public: PublicModel, base: PublicModel, model: Model) -> Model:
    """Give a packed repository the size of the one that it was made from."""
    notes = (note.replace(base.hf_id, public.hf_id) for note in model.notes)
    told = f"{public.hf_id} is sized as {base.hf_id}, from which it was packed."
    return listed(public, model, tuple(notes), told)


def _bases(public: PublicModel) -> Iterator[PublicModel]:
    """Find the unpacked repository of this name and shape."""
    name = unpacked_name(public.name)
    if name == public.name:
        return
    for other in every_named(name):
        if not is_packed(other) and own_sizes(other) == own_sizes(public):
            yield other
