"""Which layer does what: letters per layer, from the config or from the class rule.

Kinds: F full, S sliding, C chunked, R recurrent, X cross-attention, N no token mixer,
H attention and recurrence side by side. Feed-forward kinds: D dense, E experts, - none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from advisor.files import table_rows
from advisor.models.architecture import Arch

Kinds = Callable[[Arch], str]

_WORDS: Final = {row[0]: row[1] for row in table_rows("layer_words.tsv")}
_PATTERN_LETTERS: Final = {letter: letter for letter in "FSCX-E"} | {"L": "R", "c": "R", "?": "F"}
_MAMBA_LETTERS: Final = {"M": "R", "*": "F", "-": "-", "E": "E", "O": "-"}


def stated_layers(a: Arch) -> str | None:
    """The layer list of the file, one letter each; ``-`` and ``E`` are feed-forward only."""
    words = a.keys.items("layer_types", "layers_block_type", "layers_block_types", "mixer_types")
    if words is not None:
        return _fitted(a, "".join(_letter(a, word) for word in _run(a, words)), "layer_types")
    for name, letters in (
        ("hybrid_override_pattern", _MAMBA_LETTERS),
        ("layer_pattern", _PATTERN_LETTERS),
    ):
        text = a.keys.word(name)
        if text is not None:
            return _fitted(a, "".join(_known(a, name, letters, c) for c in text), name)
    return None


def _run(a: Arch, words: tuple[object, ...]) -> tuple[object, ...]:
    """The layers of a list that run: older files list those for multi-token prediction too."""
    spare = a.keys.number("num_nextn_predict_layers", 0)
    return words[: a.layers] if len(words) == a.layers + spare else words


def _letter(a: Arch, word: object) -> str:
    if not isinstance(word, str) or word not in _WORDS:
        raise a.keys.gap(f"layer_types names {word!r}, a layer that advisor cannot size yet.")
    return _WORDS[word]


def _known(a: Arch, name: str, letters: dict[str, str], letter: str) -> str:
    if letter not in letters:
        raise a.keys.error(f"{name} holds {letter!r}; it may hold {' '.join(letters)}.")
    return letters[letter]


def _fitted(a: Arch, letters: str, name: str) -> str:
    if len(letters) != a.layers:
        counts = f"{name} lists {len(letters)} layers"
        raise a.keys.error(f"{counts}, but num_hidden_layers is {a.layers}.")
    return letters


def stated_or(rule: Kinds) -> Kinds:
    """The file's own list, else ``rule``."""

    def kinds(a: Arch) -> str:
        stated = stated_layers(a)
        return rule(a) if stated is None else stated.replace("-", "N").replace("E", "N")

    return kinds


def always(letter: str) -> Kinds:
    """The same kind everywhere."""

    def kinds(a: Arch) -> str:
        return letter * a.layers

    return kinds


def full_every(key: str, otherwise: str = "S", least: int = 1) -> Kinds:
    """Full attention in every ``key``-th layer, ``otherwise`` in the rest."""

    def kinds(a: Arch) -> str:
        step = a.keys.whole(key, least=least, most=a.layers + 1000)
        return "".join(otherwise if (i + 1) % step else "F" for i in range(a.layers))

    return stated_or(kinds)


def full_first(a: Arch) -> str:
    """Laguna: full attention opens every period."""
    step = a.keys.whole("sliding_window_pattern")
    return "".join("S" if i % step else "F" for i in range(a.layers))


def sliding_everywhere(a: Arch) -> str:
    """Every layer slides where a window is stated."""
    return ("S" if stated_window(a) else "F") * a.layers


def sliding_above(a: Arch) -> str:
    """Layers from ``max_window_layers`` slide, if ``use_sliding_window`` is on (Qwen)."""
    if not a.keys.flag("use_sliding_window") or stated_window(a) is None:
        return "F" * a.layers
    first = min(a.keys.number("max_window_layers", 28), a.layers)
    return "F" * first + "S" * (a.layers - first)


def sliding_if_windowed(rule: Kinds) -> Kinds:
    """``rule`` where a window is stated, else full attention."""

    def kinds(a: Arch) -> str:
        return rule(a) if stated_window(a) else "F" * a.layers

    return kinds


def stated_window(a: Arch) -> int | None:
    """``sliding_window`` in tokens; 0 or absent means none."""
    return a.keys.maybe("sliding_window", "sliding_window_size", "attention_window_size") or None


def chunk(a: Arch) -> int | None:
    """Tokens of one attention chunk (Llama 4)."""
    return a.keys.maybe("attention_chunk_size", least=1)


def llama4_layers(a: Arch) -> str:
    """Chunked attention in the layers that rotate, full attention in the others."""
    stated, rotates = stated_layers(a), a.keys.wholes("no_rope_layers")
    if stated is not None:
        return stated
    if rotates:
        return _fitted(a, "".join("C" if r else "F" for r in rotates), "no_rope_layers")
    return full_every("no_rope_layer_interval", "C")(a)


def jamba_layers(a: Arch) -> str:
    """Attention at ``attn_layer_offset`` of each ``attn_layer_period``."""
    period = a.keys.whole("attn_layer_period")
    offset = a.keys.number("attn_layer_offset", 0)
    return "".join("F" if i % period == offset else "R" for i in range(a.layers))


def listed_attention(key: str, otherwise: str, *, required: bool = False) -> Kinds:
    """Full attention in the layers that ``key`` lists; none where it need not be there."""

    def kinds(a: Arch) -> str:
        listed = a.keys.wholes(key)
        if listed is None and required:
            return must_state(a)
        return "".join("F" if i in (listed or ()) else otherwise for i in range(a.layers))

    return stated_or(kinds)


def by_number(key: str, letters: str, otherwise: Kinds) -> Kinds:
    """A list of numbers for the layers: ``letters[0]`` where one is 0, else ``letters[1]``."""

    def kinds(a: Arch) -> str:
        listed = a.keys.wholes(key)
        if listed is None:
            return otherwise(a)
        return _fitted(a, "".join(letters[number > 0] for number in listed), key)

    return kinds


def kimi_layers(a: Arch) -> str:
    """``linear_attn_config`` lists the layers with full attention, counted from 1."""
    nested = a.keys.section("linear_attn_config")
    listed = nested.wholes("full_attn_layers") if nested else None
    if listed is None:
        return must_state(a)
    return "".join("F" if i + 1 in listed else "R" for i in range(a.layers))


def griffin_layers(a: Arch) -> str:
    """``block_types`` repeated over the layers; its attention slides."""
    block = a.keys.items("block_types") or ("recurrent", "recurrent", "attention")
    cycle = ["S" if word == "attention" else "R" for word in block]
    return "".join(cycle[i % len(cycle)] for i in range(a.layers))


def cross_layers(a: Arch) -> str:
    """Cross-attention in the listed layers, full attention elsewhere (Llama 3.2 Vision)."""
    stated = stated_layers(a)
    if stated is not None:
        return stated
    crossing = set(a.keys.wholes("cross_attention_layers") or range(3, a.layers, 5))
    return "".join("X" if i in crossing else "F" for i in range(a.layers))


def must_state(a: Arch) -> str:
    """Families whose class has no rule: the file must list its layers."""
    raise a.keys.gap("layer_types is missing, so the cache of this hybrid model is unknown.")


minimax_layers: Final = by_number("attn_type_list", "RF", must_state)
"""0 linear, 1 softmax."""


# Feed-forward kinds.


def all_experts(a: Arch) -> str:
    """Experts everywhere."""
    return "E" * a.layers


def no_ffn(a: Arch) -> str:
    """No feed-forward block at all."""
    return "-" * a.layers


def experts_if_any(a: Arch) -> str:
    """Experts everywhere if there are any, else dense."""
    return ("E" if a.moe else "D") * a.layers


def experts_after(key: str) -> Kinds:
    """Dense in the first ``key`` layers, experts after them."""

    def kinds(a: Arch) -> str:
        dense = min(a.keys.number(key, 0), a.layers)
        stated = _stated_blocks(a)
        if stated is not None:
            return stated
        step = a.keys.number("moe_layer_freq", 1, least=1)
        return "".join("E" if i >= dense and i % step == 0 else "D" for i in range(a.layers))

    return kinds


def _stated_blocks(a: Arch) -> str | None:
    words = a.keys.items("mlp_layer_types")
    if words is not None:
        letters = "".join("D" if word == "dense" else "E" for word in _run(a, words))
        return _fitted(a, letters, "mlp_layer_types")
    if isinstance(a.keys.stated("moe_layer_freq"), list | tuple):
        return by_number("moe_layer_freq", "DE", all_experts)(a)
    listed = a.keys.stated("moe_layers_enum")
    if not isinstance(listed, str):
        return None
    chosen = set(listed.split(","))
    return "".join("E" if f"{i}" in chosen else "D" for i in range(a.layers))


def sparse_steps(a: Arch) -> str:
    """Experts in every ``decoder_sparse_step``-th layer not in ``mlp_only_layers`` (Qwen)."""
    stated = _stated_blocks(a)
    if stated is not None:
        return stated
    dense = set(a.keys.wholes("mlp_only_layers") or ())
    step = a.keys.number("decoder_sparse_step", 1, least=1)
    sparse = (i not in dense and (i + 1) % step == 0 for i in range(a.layers))
    return "".join("E" if s else "D" for s in sparse)


def llama4_experts(a: Arch) -> str:
    """Experts in every ``interleave_moe_layer_step``-th layer, or where listed."""
    listed = a.keys.wholes("moe_layers")
    step = a.keys.number("interleave_moe_layer_step", 1, least=1)
    chosen = set(listed) if listed is not None else set(range(step - 1, a.layers, step))
    return "".join("E" if i in chosen else "D" for i in range(a.layers))


def ernie_experts(a: Arch) -> str:
    """Experts between a first and a last layer, at an interval."""
    first = a.keys.number("moe_layer_start_index", 1)
    last = a.keys.maybe("moe_layer_end_index", least=-1)
    end = a.layers - 1 if last is None or last < 0 else last
    step = a.keys.number("moe_layer_interval", 1, least=1)
    return "".join(
        "E" if first <= i <= end and (i + 1) % step == 0 else "D" for i in range(a.layers)
    )


def jamba_experts(a: Arch) -> str:
    """Experts at ``expert_layer_offset`` of each ``expert_layer_period``."""
    if a.moe is None or a.moe.experts == 1:
        return "D" * a.layers
    period = a.keys.number("expert_layer_period", 2, least=1)
    offset = a.keys.number("expert_layer_offset", 1)
    return "".join("E" if i % period == offset else "D" for i in range(a.layers))


def one_block_ffn(a: Arch) -> str:
    """Families whose layers are either a mixer or a feed-forward block (Nemotron-H)."""
    stated = stated_layers(a) or must_state(a)
    return "".join({"-": "D", "E": "E"}.get(letter, "-") for letter in stated)


def heads_that_slide(a: Arch) -> tuple[int, ...]:
    """Key-value heads by layer, their own number where it slides: cards divide each by its own."""
    sliding = a.keys.number("swa_num_key_value_heads", 2 * a.kv_heads)
    return tuple(sliding if kind == "S" else a.kv_heads for kind in a.kinds)
