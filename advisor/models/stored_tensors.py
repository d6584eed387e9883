"""A model as it is resolved, and as its weight files hold it: every tensor with its exact size.

Readers look at headers only. Whatever a file states about sizes and places is checked before
it is used; the bounds here hold for all files of one model together.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import BinaryIO, Final, Literal, NoReturn

from msgspec import Struct

from advisor.errors import Source, SourceFileError
from advisor.models.shape import UNKNOWN, Counts, Moe, Shape

MAX_TENSORS: Final = 300_000
MAX_FILES: Final = 1_000
_MAX_FOLDER: Final = 20_000
_SHOWN_LENGTH: Final = 60

Part = Literal[
    "embedding", "lookup", "output", "norm", "layer", "vision", "encoder", "spare", "other"
]


class StoredTensor(Struct, frozen=True):
    """One tensor of a file."""

    name: str
    elements: int
    """As stored: a packed type counts its words, not the weights inside."""
    dims: tuple[int, ...]
    """In the file's own order: contiguous first in GGUF, last in safetensors."""
    type_name: str
    """ggml type (``Q4_K``) or safetensors dtype (``BF16``)."""
    n_bytes: int


class StoredModel(Struct, frozen=True):
    """A model read from its weight files."""

    name: str
    """From the file or folder name."""
    shape: Shape
    format_name: str | None
    """The format in knowledge/ that it is stored in; None where none has that name."""
    kind: Literal["gguf", "safetensors"]
    tensors: tuple[StoredTensor, ...]
    """Without ``vision_tensors``."""
    vision_tensors: tuple[StoredTensor, ...]
    """Image or audio tower and projector."""
    files: tuple[Path, ...]
    notes: tuple[str, ...]
    """What a reader of a report should know, one sentence each."""


class Place(Struct, frozen=True):
    """Where a tensor belongs."""

    part: Part
    layer: int = 0
    expert: bool = False
    """A routed expert of its layer."""


_LAYER: Final = re.compile(
    r"(?:^|\.)(?:blk|layers|layer|h|blocks|block|decoder_layers)\.(\d{1,9})\."
)
_EMBEDDINGS: Final = frozenset(
    {"token_embd", "embed_tokens", "wte", "embed_in", "tok_embeddings", "word_embeddings"}
    | {"embedding", "embeddings", "shared", "word_embedding"}
)
_LOOKUPS: Final = frozenset({"per_layer_token_embd", "embed_tokens_per_layer"})
_OUTPUTS: Final = frozenset({"output", "lm_head", "embed_out", "output_layer"})
_NORMS: Final = frozenset(
    {"output_norm", "norm", "final_layernorm", "ln_f", "norm_f", "final_layer_norm", "final_norm"}
)
_VISION: Final = frozenset(
    {"vision_tower", "visual", "vision_model", "vision_encoder", "multi_modal_projector"}
    | {"mm_projector", "image_newline", "audio_tower", "embed_vision", "embed_audio", "aligner"}
    | {"connector", "patch_merger", "vision_language_adapter", "mlp1", "vision_embed_tokens"}
    | {"embed_tokens_extend", "vision", "vit", "audio_model", "audio_encoder", "embed_std_vision"}
)
_EXPERT: Final = re.compile(
    r"_exps\.|\.experts\.|\.block_sparse_moe\.(?:in|out)put_linear\.|^blk\.\d+\.ffn_\w+\.\d+\."
)
"""The last form: Mixtral files of 2023 hold every expert on its own (blk.0.ffn_up.7.weight)."""
_SPARE: Final = frozenset({"mtp", "inv_freq", "masked_bias", "position_ids", "attn_mask"})
_VISION_DEPTH: Final = 3
ROPE_FREQUENCIES: Final = "rope_freqs.weight"
_ROPE: Final = ("rope_freqs.", "rope_factors_")


def place_of(name: str, layers: int) -> Place:
    """Say where a tensor belongs by its name, in GGUF or Hugging Face spelling.

    What lies behind the layers that are loaded (multi-token prediction) is spare.
    """
    parts = name.split(".")
    if not _VISION.isdisjoint(parts[:_VISION_DEPTH]):
        return Place("vision")
    if not _SPARE.isdisjoint(parts):
        return Place("spare")
    if _is_encoder(parts):
        return Place("encoder")
    found = _LAYER.search(name)
    if found:
        layer = int(found[1])
        expert = _EXPERT.search(name) is not None
        return Place("layer", layer, expert) if layer < layers else Place("spare")
    return Place(_outside(parts))


def _is_encoder(parts: list[str]) -> bool:
    """The encoder of an encoder-decoder pair; a plain encoder's layers stand on their own."""
    return parts[0] == "enc" or parts[:2] in (["model", "encoder"], ["encoder", "block"])


def _outside(parts: list[str]) -> Part:
    owners = parts[-2:] if len(parts) > 1 else parts
    if not _EMBEDDINGS.isdisjoint(owners):
        return "embedding"
    if not _LOOKUPS.isdisjoint(owners):
        return "lookup"
    if not _OUTPUTS.isdisjoint(owners):
        return "output"
    return "other" if _NORMS.isdisjoint(owners) else "norm"


def counts_of(tensors: Iterable[StoredTensor], layers: int, moe: Moe | None) -> Counts:
    """Count the parameters of the tensors that are loaded, rope factors left out.

    Only where no tensor is packed: elements are counted as stored.
    """
    outside: Counter[Part] = Counter()
    by_layer, experts = [0] * layers, [0] * layers
    for tensor in tensors:
        place = place_of(tensor.name, layers)
        if place.part == "layer":
            by_layer[place.layer] += tensor.elements
            experts[place.layer] += tensor.elements * place.expert
        elif place.part != "spare" and not tensor.name.startswith(_ROPE):
            outside[place.part] += tensor.elements
    total = sum(outside.values()) + sum(by_layer)
    routed = sum(experts)
    return Counts(
        total=total,
        active=total - routed + (routed * moe.used // moe.experts if moe else routed),
        vision=outside["vision"],
        embedding=outside["embedding"],
        output=outside["output"],
        layers=tuple(by_layer),
        experts=tuple(experts),
    )


@contextmanager
def open_plain_file(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Open a plain file and give it with its size in bytes.

    Raises:
        SourceFileError: It is missing, unreadable or not a plain file.
    """
    shown = str(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            fail(shown, "this is not a plain file.")
        with path.open("rb", buffering=0) as file:
            yield file, os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        fail(shown, "there is no such file.")
    except OSError as bad:
        fail(shown, f"the file cannot be read ({bad.strerror or bad}).")
    except ValueError:
        fail(shown, "this is not the name of a file.")


def is_folder(path: Path) -> bool:
    """Whether a path can be seen to be a folder."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def exists(path: Path) -> bool:
    """Whether something stands at a path, readable or not."""
    try:
        path.lstat()
    except (OSError, ValueError):
        return False
    return True


def names_in(folder: Path) -> list[str]:
    """List the file names of a folder in order.

    Raises:
        SourceFileError: It cannot be listed, or holds more than 20,000 entries.
    """
    names = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) > _MAX_FOLDER:
                    fail(str(folder), f"the folder holds more than {_MAX_FOLDER} files.")
    except OSError as bad:
        fail(str(folder), f"the folder cannot be listed ({bad.strerror or bad}).")
    return sorted(names)


def shown_name(text: str) -> str:
    """Quote a text from a file for a message: one line, printable, short."""
    quoted = ascii(text)
    return quoted if len(quoted) <= _SHOWN_LENGTH else f"{quoted[:_SHOWN_LENGTH]}...'"


def fail(shown: str, reason: str, hint: str = "") -> NoReturn:
    """Refuse a file.

    Raises:
        SourceFileError: Always.
    """
    raise SourceFileError(reason, source=Source(shown), hint=hint)


_LAYER_NUMBER: Final = re.compile(r"\.(\d+)\.")
_HEAD_WIDTH: Final = 64
"""Width of a head; with as many key-value heads the cache is the same whatever it is."""
_BY_TENSORS: Final = (
    "Approximate: no config.json describes it: weights are those of the files, the cache is at "
    "most that of full attention in every layer."
)


def plain_blocks(matrices: Mapping[str, tuple[int, ...]]) -> Shape:
    """Take tensors that nothing describes for plain blocks: at most so much cache do they keep.

    The width that most matrices share is that of a token, the longest matrix of it the embedding.
    """
    total = sum(prod(dims) for dims in matrices.values())
    layers = len({found[1] for name in matrices if (found := _LAYER_NUMBER.search(name))}) or 1
    sides = Counter(side for dims in matrices.values() if len(dims) > 1 for side in dims[-2:])
    hidden = max(sides or (1,), key=lambda side: (sides[side], side))
    vocab = max((max(dims) for dims in matrices.values() if hidden in dims[-2:]), default=0)
    each = max(total - vocab * hidden, 0) // layers
    counts = Counts(total, total, 0, vocab * hidden, 0, (each,) * layers, (0,) * layers)
    return Shape(
        model_type=UNKNOWN,
        layers=layers,
        hidden=hidden,
        vocab=vocab,
        heads=max(1, hidden // _HEAD_WIDTH),
        kv_heads=max(1, hidden // _HEAD_WIDTH),
        head_dim=min(_HEAD_WIDTH, hidden),
        intermediate=0,
        tied=False,
        layer_kinds="F" * layers,
        ffn_kinds="D" * layers,
        counts=counts,
        described=False,
        doubts=(_BY_TENSORS,),
        cache_loose=1.0,
        reads_unknown=any("expert" in name for name in matrices),
    )


_HELD: Final = ("mxfp4", "nvfp4", "int4-experts", "packed", "fp8")
"""Families as ``native_dtype`` names them; what lies beside packed experts is named last."""
PACKED: Final = "packed"
"""``native_dtype`` of a checkpoint that is packed in a way that has no name here."""


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
    companions: Mapping[str, str] = {}
    """Repositories that belong to it and whisper.cpp's name for it, as in its record."""
    yarn: Mapping[str, int] = {}
    """How its publisher stretches it past the trained length, as in its record."""
    native_formats: tuple[str, ...] = ()
    """Weight formats that hold exactly what was released, where that is less than 16 bits."""
    native_inherited: bool = False
    """Whether those are of the model that has its shape, and no source tells its own."""
    named_format: str | None = None
    """The format that a bare name says, of which no repository is meant."""
    held_format: str | None = None
    """The weight format that its repository holds, where it is a packed copy of a model."""
    held_bits: float | None = None
    """Bits per weight of that format as the config states it, where they are not the usual."""
    held_wide: tuple[int, ...] = ()
    """Weights of every layer that the config leaves in 16 bits; empty where it names none."""
    held_head: bool = False
    """Whether it packs the output matrix too."""
    sized_as: str = ""
    """How a repository of the public list was sized, one sentence."""
    origin: Literal["knowledge", "list", "config"] = "knowledge"
    stored: StoredModel | None = None
    """The weight files it was read from: exact sizes in the format they hold."""
    notes: tuple[str, ...] = ()
    """What the files say about themselves, one sentence each."""

    @property
    def holds_family(self) -> str:
        """The family of the format in its repository, as far as it is stated."""
        told = (self.native_dtype or "").casefold()
        return next((family for family in _HELD if family in told), "unquantized")

    @property
    def told_format(self) -> str | None:
        """The weight format that its repository or its name tells."""
        return self.held_format or self.named_format

    @property
    def read_parameters(self) -> int:
        """Those that a token reads: of a mixture neither idle experts nor what is only looked up.

        An input embedding that is also the output is read; the part that reads pictures is not.
        """
        shape = self.shape
        if not shape.moe or shape.reads_unknown:
            return self.active_parameters
        embedding = 0 if shape.tied else shape.vocab * shape.hidden
        return max(self.active_parameters - self.vision_parameters - embedding, 0)

    def yarn_factor(self, context: int) -> int | None:
        """The least whole factor of YaRN that reaches a context past the trained length.

        Returns:
            At most the one that its publisher states; None where the context needs none, or more.
        """
        if not self.yarn or context <= (self.trained_context_tokens or context):
            return None
        factor = -(-context // self.yarn["original"])
        return factor if factor <= self.yarn["factor"] else None

    def yarn_config(self, context: int) -> str:
        """What config.json must say for YaRN to reach a context; empty where it cannot be told."""
        factor = self.yarn_factor(context)
        if factor is None:
            return ""
        original = self.yarn["original"]
        scaling = {
            "rope_type": "yarn",
            "factor": float(factor),
            "original_max_position_embeddings": original,
        }
        said = {"max_position_embeddings": original * factor, "rope_scaling": scaling}
        return json.dumps(said)[1:-1]

    @property
    def guesses_experts(self) -> bool:
        """Whether it is estimated which part of the weights a token reads."""
        return self.shape.moe is not None and not self.shape.described and self.stored is None
