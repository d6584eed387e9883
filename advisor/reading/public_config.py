"""Configs that a repository of the public list may have: a known one with its own sizes put in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from advisor.models.architecture import INTERMEDIATE
from advisor.models.architectures import FAMILIES, family_of
from advisor.models.class_defaults import class_defaults, part_defaults
from advisor.reading.public_list import PublicModel

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
