"""Configs that a repository of the public list may have: a known one with its own sizes put in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from advisor.knowledge.types import ModelRecord
from advisor.models.architecture import INTERMEDIATE
from advisor.models.architectures import class_defaults, family_of, part_defaults
from advisor.models.architectures.tables import FAMILIES
from advisor.models.shape import UNKNOWN, Counts, Moe, Shape
from advisor.reading.public_list import PublicModel
from advisor.reading.published import active_said, is_draft

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "hidden_size": ("hidden_size", "d_model", "n_embd", "dim"),
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "num_key_value_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv"),
    "intermediate_size": INTERMEDIATE,
    "num_experts": ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"),
    "num_experts_per_tok": ("num_experts_per_tok", "num_experts_per_token", "top_k_experts"),
    "moe_intermediate_size": (
        "moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size",
    ),
}  # fmt: skip
"""Size -> the keys that config files have for it."""
_TEXT_PARTS: Final = ("text_config", "llm_config", "language_config", "text_model_config")
_CONTEXT: Final = "max_position_embeddings"
_USUAL_HEAD: Final = 64
"""Of classes in which every head has keys of its own, so that their number makes no size."""
_USUAL_WIDTH: Final = 4
"""Times the hidden width, where the list states no feed-forward width; the count proves it."""


def own_sizes(public: PublicModel, *, latent: bool = False) -> Mapping[str, int]:
    """Give the sizes that the list states, as keys of a config.

    Args:
        public: The repository.
        latent: Whether its attention is latent, for which the list's heads say nothing.
    """
    width, experts = public.moe_intermediate_size, public.num_experts
    stated = {
        "num_hidden_layers": public.num_hidden_layers,
        "hidden_size": public.hidden_size,
        "num_attention_heads": public.num_attention_heads,
        "num_key_value_heads": None if latent else public.num_key_value_heads,
        "head_dim": None if latent else public.head_dim,
        "vocab_size": public.vocab_size,
        "num_experts": experts,
        "num_experts_per_tok": public.active_experts if experts else None,
        "moe_intermediate_size": width if experts else None,
        "intermediate_size": None if experts else width,
    }
    return {name: value for name, value in stated.items() if value}


def is_the_class(public: PublicModel) -> bool:
    """Whether it has the sizes that its class in transformers has by default: its first model."""
    usual = class_defaults(public.architecture)
    part = next((name for name in _TEXT_PARTS if part_defaults(public.architecture, name)), None)
    text = (
        {
            **class_defaults(f"{part_defaults(public.architecture, part).get('model_type')}"),
            **part_defaults(public.architecture, part),
        }
        if part
        else usual
    )
    own = own_sizes(public)
    sizes = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")
    return all(own.get(size, 0) == text.get(size) for size in sizes)


def plain_config(public: PublicModel, *, tied: bool | None) -> Mapping[str, object]:
    """Give a config of the list's sizes alone, all else as the architecture has it by default."""
    own = own_sizes(public)
    config: dict[str, object] = {"model_type": public.architecture, **own}
    if public.context_length:
        config["max_position_embeddings"] = public.context_length
    family = FAMILIES.get(family_of(public.architecture))
    if family and family.role == "encoder-decoder" and "hidden_size" in own:
        config.setdefault("num_attention_heads", max(1, own["hidden_size"] // _USUAL_HEAD))
    if tied is not None:
        config["tie_word_embeddings"] = tied
    if "num_experts" not in own and "hidden_size" in own:
        usual = class_defaults(public.architecture)
        key = next((name for name in INTERMEDIATE if name in usual), INTERMEDIATE[0])
        config[key] = config.pop(INTERMEDIATE[0], _USUAL_WIDTH * own["hidden_size"])
    return config


def configs_of(
    config: Mapping[str, object], own: Mapping[str, int], context: int | None = None
) -> Iterator[tuple[Mapping[str, object], bool]]:
    """Give configs of these sizes made of a known one, each with whether nothing differs.

    The matrices of embedding and output may be shared or not, and a tower may be left out. Where
    sizes differ, so may the context, by which some architectures hold learned positions.
    """
    part = next((name for name in _TEXT_PARTS if name in config), None)
    text = config[part] if part else config
    assert isinstance(text, Mapping)
    sized = _with_sizes(text, own)
    if context and sized != text and _CONTEXT in sized:
        sized[_CONTEXT] = context
    whole: dict[str, object] = {**config, part: sized} if part else dict(sized)
    yield whole, sized == text
    ties = whole.get("tie_word_embeddings", sized.get("tie_word_embeddings")) is True
    yield {**whole, "tie_word_embeddings": not ties}, False
    if "vision_config" in whole:
        del whole["vision_config"]
        yield whole, False


def _with_sizes(text: Mapping[str, object], own: Mapping[str, int]) -> dict[str, object]:
    """Put sizes into the text part of a config; lists of other layers go."""
    found = dict(text)
    for size, value in own.items():
        names = _NAMES.get(size, (size,))
        key = next((name for name in names if name in text), None)
        if key is None and size == "head_dim" and _is_usual(own):
            continue
        found[key or names[0]] = value
    hidden = next((text[name] for name in _NAMES["hidden_size"] if name in text), None)
    if not {"intermediate_size", "moe_intermediate_size"} & own.keys():
        for width in text.keys() & {*INTERMEDIATE, "word_embed_proj_dim"}:
            found[width] = _scaled(text[width], own.get("hidden_size"), hidden)
    if any(name in text and text[name] == found[name] for name in _NAMES["num_hidden_layers"]):
        return found
    layers = next((text[name] for name in _NAMES["num_hidden_layers"] if name in text), None)
    return {
        name: value
        for name, value in found.items()
        if name != "layer_pattern" and not (isinstance(value, list) and len(value) == layers)
    }


def _scaled(width: object, to: int | None, hidden: object) -> object:
    """Give a width of a known model, which the list does not state, at another hidden width."""
    if isinstance(width, int) and isinstance(hidden, int) and to and hidden:
        return width * to // hidden
    return width


def _is_usual(own: Mapping[str, int]) -> bool:
    heads = own.get("num_attention_heads", 0)
    return own["head_dim"] * heads == own.get("hidden_size")


_MATRICES: Final = 3
"""Of an expert: gate, up and down."""
_MOST_BESIDE: Final = 0.15
"""Of what the widths make a token read: so much of the other parameters is taken to be read too
(dense layers, shared experts, gates). The rest is taken for towers, tables and heads that draft."""
_LEAST_TABLES: Final = 0.2
"""Of the parameters: so much that is neither read nor has room in experts is looked up."""
_DENSE_WITHIN: Final = 1.4
_NEVER_DENSE: Final = 3.0
"""Times what a dense model of its widths has: more is not feed-forward width or towers alone."""
_LEAST_NAMED: Final = 10e9
"""Smaller figures in a name are rounded too far: A1B has been said of 1.7 billion."""
_STATED: Final = " A token reads {:.3g} billion of them, as {}."
_BY_WIDTHS: Final = (
    " What a token reads of them is estimated from number and width of its experts, so the range "
    "of its speed is wider."
)
_UNKNOWN: Final = " Which share of its experts a token uses is not described: its speed is unknown."


def is_mixture(public: PublicModel) -> bool:
    """Whether the list states several experts, not all of which a token uses."""
    return (public.num_experts or 1) > max(public.active_experts or 1, 1) and not is_draft(public)


def with_experts(public: PublicModel, shape: Shape, stated: int) -> tuple[Shape, str]:
    """Give a shape that nothing describes its experts, and what to say of them.

    Args:
        public: The repository.
        shape: As the list states it, all layers dense.
        stated: Its parameters.
    """
    if not is_mixture(public):
        hidden = _hides_experts(public, stated)
        return replace(shape, reads_unknown=hidden), _UNKNOWN if hidden else ""
    experts, used = public.num_experts or 1, public.active_experts
    read, told = _read(public, stated)
    if not used or not read:
        return replace(shape, reads_unknown=True), _UNKNOWN
    matrix = min(shape.vocab * shape.hidden, stated // 4)
    idle = 1 - used / experts
    unread = max(stated - matrix - read, 0)
    held = _experts_held(public) or stated
    tables = round(max(unread - held * idle, 0))
    tables = tables if tables > _LEAST_TABLES * stated else 0
    layers = stated - 2 * matrix - tables
    routed = round(min((unread - tables) / idle, layers))
    counts = Counts(
        total=stated,
        active=stated - tables - round(routed * idle),
        vision=0,
        embedding=matrix,
        output=matrix,
        layers=(layers // shape.layers,) * shape.layers,
        experts=(routed // shape.layers,) * shape.layers,
    )
    width = public.moe_intermediate_size or shape.intermediate
    shared = public.shared_expert_intermediate_size or 0
    moe = Moe(experts, used, width, shared)
    kinds = "E" * shape.layers
    return replace(shape, moe=moe, ffn_kinds=kinds, counts=counts, lookup=tables), told


def _experts_held(public: PublicModel) -> int:
    """Count the experts of all layers; 0 where the widths are not stated."""
    width = _MATRICES * (public.hidden_size or 0) * (public.moe_intermediate_size or 0)
    return (public.num_experts or 0) * (public.num_hidden_layers or 0) * width


def _read(public: PublicModel, stated: int) -> tuple[float, str]:
    """Give the parameters that a token reads, and who says so; 0 where nobody does."""
    named = active_said(public.name) or 0
    for active, source in (
        (public.active_parameters or 0, "the public list states"),
        (named if named >= _LEAST_NAMED else 0, "its name says"),
    ):
        if 0 < active < stated:
            return active, _STATED.format(active / 1e9, source)
    return read_by_widths(public, stated), _BY_WIDTHS


def read_by_widths(public: PublicModel, stated: int) -> float:
    """Estimate the parameters that a token reads by the widths; 0 where they do not tell.

    As many layers have experts as the parameters have room for.
    """
    layers, hidden = public.num_hidden_layers or 0, public.hidden_size or 0
    experts = public.num_experts or 0
    each = _experts_held(public) // max(layers, 1)
    if not layers or not public.num_attention_heads or not 0 < each < stated:
        return 0.0
    matrix = (public.vocab_size or 0) * hidden
    shared = _MATRICES * hidden * (public.shared_expert_intermediate_size or 0)
    beside = matrix + layers * (_attention(public) + shared)
    sparse = min(layers, max(1, int((stated - min(beside + matrix, stated / 2)) // each)))
    least = beside + sparse * each * (public.active_experts or 0) / experts
    left = max(stated - matrix - beside - sparse * each, 0)
    return least + min(left, _MOST_BESIDE * least)


def _attention(public: PublicModel) -> int:
    """Count the four matrices of one layer."""
    hidden, heads = public.hidden_size or 0, public.num_attention_heads or 1
    head = public.head_dim or hidden // heads
    return 2 * hidden * head * (heads + (public.num_key_value_heads or heads))


def _hides_experts(public: PublicModel, stated: int) -> bool:
    """Whether it seems to be a mixture, although the list states no experts."""
    layers, hidden = public.num_hidden_layers or 0, public.hidden_size or 0
    width = public.moe_intermediate_size or 0
    named = "moe" in public.architecture or active_said(public.name) is not None
    if is_draft(public) or not (layers and hidden and width):
        return named and not is_draft(public)
    matrices = 2 * (public.vocab_size or 0) * hidden
    dense = matrices + layers * (_attention(public) + _MATRICES * hidden * width)
    return stated > (_DENSE_WITHIN if named else _NEVER_DENSE) * dense


class _Total(Struct, frozen=True):
    """What a known model counts."""

    total: int
    vision: int


class Widths(Struct, frozen=True):
    """What a repository is compared by with a known model: a part of its shape."""

    model_type: str
    layers: int
    hidden: int
    vocab: int
    outer_type: str = ""
    mla: Mapping[str, object] | None = None
    counts: _Total | None = None


class Known(Struct, frozen=True):
    """A known model of the same architecture."""

    distance: int
    """How far its widths are from the ones looked for; 0: the same."""
    name: str
    total: int
    """Its parameters; 0 where they are not known."""
    latent: bool


def alike_known(
    public: PublicModel, records: Mapping[str, ModelRecord], shapes: Mapping[str, Widths]
) -> Sequence[Known]:
    """Give the known models of its architecture, those of the nearest widths first."""
    wanted = {public.architecture, family_of(public.architecture)}
    found = [
        Known(
            _distance(public, shape),
            name,
            _total(shape, records[name]),
            shape.mla is not None,
        )
        for name, shape in shapes.items()
        if wanted & {shape.model_type, shape.outer_type} or _haswidths_of(public, shape)
    ]
    return sorted(
        found, key=lambda one: (one.distance, -shared_words(one.name, public.name), len(one.name))
    )


def widths_of(stored: Mapping[str, Raw]) -> Mapping[str, Widths]:
    """Give the widths of every known model that can be sized, by shapes as they are stored."""
    decoder = json.Decoder(Widths | str)
    read = ((name, decoder.decode(one)) for name, one in stored.items())
    return {name: shape for name, shape in read if isinstance(shape, Widths)}


def _haswidths_of(public: PublicModel, shape: Widths) -> bool:
    """Whether a repository whose architecture nobody states has all widths of a known model."""
    stated = (public.num_hidden_layers, public.hidden_size, public.vocab_size)
    same = stated == (shape.layers, shape.hidden, shape.vocab)
    return same and public.architecture == UNKNOWN


def _total(shape: Widths, record: ModelRecord) -> int:
    """Count it, with towers that its entry states in figures alone; 0 where no formula does."""
    counts = shape.counts
    if not counts:
        return 0
    return counts.total + (0 if counts.vision else record.vision_parameters or 0)


def _distance(public: PublicModel, shape: Widths) -> int:
    return int(
        100 * abs(shape.layers - (public.num_hidden_layers or shape.layers))
        + abs(shape.hidden - (public.hidden_size or shape.hidden))
        + (shape.vocab != public.vocab_size)
    )


def shared_words(one: str, other: str) -> int:
    """Count the words that two names share."""
    return len({*one.lower().split("-")} & {*other.lower().split("-")})
