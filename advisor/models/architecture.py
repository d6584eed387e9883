"""The vocabulary of architecture tables: sizes of one model, and what a family adds up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct, field

from advisor.files import table_rows
from advisor.models.config_keys import Keys
from advisor.models.shape import Blocks, Mla, Moe, Recurrent


class Arch(Struct, frozen=True):
    """One text model, read and checked; all sizes are element counts."""

    keys: Keys
    family: str
    hidden: int
    layers: int
    vocab: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    tied: bool
    mla: Mla | None = None
    moe: Moe | None = None
    recurrent: Recurrent | None = None
    kinds: str = ""
    ffn_kinds: str = ""
    window: int | None = None

    @property
    def query(self) -> int:
        """Width of all query heads."""
        return self.heads * self.head_dim

    @property
    def kv(self) -> int:
        """Width of all key heads, and of all value heads."""
        return self.kv_heads * self.head_dim


NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    what: tuple(names.split()) for what, names in table_rows("config_names.tsv")
}
"""A size -> the keys that config files have for it."""
INTERMEDIATE = NAMES["width"]
"""Names of the intermediate width in config files."""

Term = Callable[[Arch], int]
"""A summand of a parameter count."""
Terms = tuple[Term, ...]


def vectors(count: int) -> Term:
    """So many vectors of the hidden width: an RMSNorm is one, a LayerNorm with bias two."""
    return lambda a: count * a.hidden


one_hidden, two_hidden, four_hidden = map(vectors, (1, 2, 4))


def vocabulary(a: Arch) -> int:
    """The embedding matrix."""
    return a.vocab * a.hidden


def projections(a: Arch) -> int:
    """Query, key, value and output matrices."""
    return 2 * a.hidden * a.query + 2 * a.hidden * a.kv


def gated(a: Arch) -> int:
    """Gate, up and down matrices of a dense feed-forward block."""
    return 3 * a.hidden * a.intermediate


def all_full(a: Arch) -> str:
    """Full attention everywhere."""
    return "F" * a.layers


def all_dense(a: Arch) -> str:
    """A dense feed-forward block everywhere."""
    return "D" * a.layers


def nothing(_: Arch) -> None:
    """No window, no experts, no latents, no fixed state."""


def no_expert(_: Arch) -> int:
    """Size of one routed expert where there is none."""
    return 0


def kv_heads_or_all(keys: Keys, heads: int) -> int:
    """Key-value heads; all query heads when absent."""
    return keys.maybe("num_key_value_heads", "num_kv_heads", "n_head_kv", least=1) or heads


def stated_width(keys: Keys, _: int) -> int:
    """The intermediate width under any of its names, 0 when absent."""
    return keys.uniform(*INTERMEDIATE) or 0


def half_width(keys: Keys, hidden: int) -> int:
    """Half of what is stated, which is the width of gate and up together."""
    return stated_width(keys, hidden) // 2


def four_hidden_width(keys: Keys, hidden: int) -> int:
    """The intermediate width as stated, four times the hidden one when absent."""
    return stated_width(keys, hidden) or 4 * hidden


class Gguf(Struct, frozen=True):
    """One ``general.architecture`` of GGUF files, as llama.cpp reads it.

    The period of a sliding window mostly stands in llama.cpp's code, not in the file.
    Source: ``src/models/*.cpp`` of llama.cpp (``set_swa_pattern``), names from gguf 0.19.0.
    Periods of families that no measured model in ``tests/data`` stands for are unconfirmed.
    """

    architecture: str
    model_type: str = ""
    """The ``model_type`` of the same architecture in a config.json."""
    moe_type: str = ""
    """The same where the file holds experts."""
    period: int | None = None
    """One layer in so many has full attention where a window is stated; 0: none has,
    None: windows are not used."""
    full_first: bool = False
    """The full layer opens its period instead of closing it."""
    window: int | None = None
    """Tokens where the file states none."""
    chunked: bool = False
    fixed_window: bool = False
    """What the file states of the window is not read, but that there is one."""
    slides_with: int | None = None
    """The number of layers with which windows are used alone; None: any."""
    caching: int | None = None
    """Layers that keep a cache where the file states no shared ones; None: all."""
    recurrent: Literal["mamba", "mamba2", "deltanet", "conv", "wkv", "kda", "lightning"] | None = (
        None
    )
    indexed: tuple[int, int] = (0, 0)
    """Keys of an index that its layers keep of a token, and vectors as wide as a head's beside."""
    both: bool = False
    """Attention and recurrence stand side by side in a layer."""
    role: Literal["decoder", "encoder", "encoder-decoder"] = "decoder"
    described: bool = True
    """False where nothing here says how it attends: the cache is estimated from the file."""
    reads: bool = True
    """False where a file of this name is read as another family that is stored alike."""
    blocks: Blocks | None = None
    windows: bool = True
    """Whether llama.cpp keeps to the window that is configured."""


_NOT_STORED = Gguf("")


class Family(Struct, frozen=True):
    """How the parameters and layers of one ``model_type`` follow from its config.

    A decoder layer counts ``mixers[kind]`` (or ``attention``) + the feed-forward terms of
    its kind + ``norms``.
    """

    attention: Terms = (projections,)
    mixers: Mapping[str, Terms] = field(default_factory=dict)
    """Terms by layer kind where they are not ``attention``."""
    dense: Terms = (gated,)
    experts: Terms = ()
    """Beside the routed experts of a layer: router, shared experts."""
    expert: Term = no_expert
    """One routed expert."""
    norms: Terms = (two_hidden,)
    irregular: Callable[[Arch], tuple[int, ...]] | None = None
    """What each layer counts besides, where layers of one kind differ."""
    first: Terms = ()
    """Only in the first layer."""
    final: Terms = (one_hidden,)
    extras: Terms = ()
    """Outside the layers, beside embedding, output and final norm."""
    lookups: Terms = ()
    """Tables beside the embedding that are looked up by token: held, never multiplied."""
    by_layer: Callable[[Arch], Sequence[int]] | None = None
    """What a layer holds that its kinds do not say."""
    embedding: Term = vocabulary
    output: Term = vocabulary
    """The output matrix when it is not tied."""
    kinds: Callable[[Arch], str] = all_full
    ffn_kinds: Callable[[Arch], str] = all_dense
    window: Callable[[Arch], int | None] = nothing
    moe: Callable[[Arch], Moe | None] = nothing
    mla: Callable[[Arch], Mla | None] = nothing
    recurrent: Callable[[Arch], Recurrent | None] = nothing
    kv_heads_by_layer: Callable[[Arch], tuple[int, ...] | None] | None = None
    head_groups: Callable[[Arch], tuple[int, ...]] | None = None
    """Heads by layer that cards divide (``Shape.head_groups``)."""
    cells: Callable[[Arch], tuple[tuple[int, int], ...]] | None = None
    """Cached elements by layer where they are not keys and values of heads (``Shape.cells``)."""
    tied: bool = False
    """What an absent ``tie_word_embeddings`` means."""
    ties_always: bool | None = False
    """The reference class shares the matrix whatever the file says; None: it never does."""
    attends: bool = True
    """Whether it has attention heads at all."""
    read_kv_heads: Callable[[Keys, int], int] = kv_heads_or_all
    """From the keys and the number of query heads."""
    read_width: Callable[[Keys, int], int] = stated_width
    """Intermediate width from the keys and the hidden width; 0 when absent."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """What absent structural switches mean in the reference class."""
    sizes: Mapping[str, object] = field(default_factory=dict)
    """Class sizes, used only inside a wrapper, whose nested config states differences."""
    role: Literal["decoder", "encoder", "encoder-decoder"] = "decoder"
    """An encoder keeps no cache."""
    encoder_positions: Callable[[Arch], int] | None = None
    """Encoder outputs that decoder layers cache: a fixed number, 0 for the length of the input."""
    unsupported: tuple[str, ...] = ()
    """Switches that leave the model without an exact count when they are on."""
    uncounted: Callable[[Arch], str] | None = None
    """Gives the reason when this very config has no exact count, else an empty text."""
    gated: bool = True
    """Whether the feed-forward blocks have a gate."""
    also: tuple[str, ...] = ()
    """Other names: of its text part inside a wrapper, and of copies."""
    gguf: tuple[Gguf, ...] = ()
    """The GGUF architectures that are this family; it is stored as the first."""

    def stored(self) -> Gguf:
        """How llama.cpp stores and runs it."""
        return self.gguf[0] if self.gguf else _NOT_STORED
