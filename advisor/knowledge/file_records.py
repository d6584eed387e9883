"""What knowledge files declare beside the records of ``types``; read when files are compiled."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, cast

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.errors import did_you_mean
from advisor.knowledge.field_kinds import (
    Bounds,
    Count,
    Flag,
    Flaw,
    FlawedError,
    Kind,
    Number,
    Text,
    Texts,
    Words,
    as_it_is,
    bounds,
    choice,
    is_date,
    items_of,
    mapping,
    nodes,
    text,
    written,
)
from advisor.knowledge.programs import PLACEHOLDERS, SETTINGS, SWITCHES
from advisor.knowledge.types import Gpu, ModelRecord
from advisor.knowledge.validation import Entry
from advisor.yamlfile import Node

PLACEHOLDER = re.compile(r"\{([a-z_]+)(?::(raw|json))?\}")
"""A placeholder in a template: ``{name}``, ``{name:json}`` or ``{name:raw}``."""


class Piece(Struct, frozen=True):
    """A stretch of a command; it is left out where its switch is off."""

    when: str
    text: str
    node: Node

    @property
    def placeholders(self) -> Iterator[str]:
        """Name the placeholders of its text."""
        return (found[1] for found in PLACEHOLDER.finditer(self.text))

    @property
    def carries(self) -> Iterator[str]:
        """Name the settings that it says."""
        for name in self.placeholders:
            yield from PLACEHOLDERS.get(name, ())
        yield from SWITCHES.get(self.when, ())

    def flaws(self, names: Collection[str]) -> Iterator[Flaw]:
        """Say what is wrong with it; ``names`` are the placeholders there are."""
        at = self.node.source
        if self.when and self.when not in SWITCHES:
            hint = did_you_mean(self.when, SWITCHES) or f"Switches: {', '.join(SWITCHES)}."
            yield Flaw(f"there is no switch '{self.when}'.", at, hint)
        if not self.text:
            message = "a piece must be a text or {when: SWITCH, add: TEXT}"
            yield Flaw(message, at, "Put a text that holds braces in quotes.")
        for name in self.placeholders:
            if name not in names:
                hint = did_you_mean(name, names) or f"Placeholders: {', '.join(names)}."
                yield Flaw(f"there is no placeholder '{name}'.", at, hint)


def _piece(node: Node) -> Piece:
    if not isinstance(node.value, Mapping):
        return Piece("", node.text if not isinstance(node.value, list) else "", node)
    when, text = node.value.get("when"), node.value.get("add")
    if set(node.value) != {"when", "add"} or when is None or text is None:
        return Piece("", "", node)
    return Piece(when.text, text.text, node)


def _pieces(node: Node) -> tuple[Piece, ...]:
    return tuple(piece for line in _lines(node) for piece in line)


def _lines(node: Node) -> tuple[tuple[Piece, ...], ...]:
    return tuple(tuple(map(_piece, items_of(line))) for line in items_of(node))


def _words(node: Node) -> Mapping[str, Mapping[str, str]]:
    """Read placeholder -> format or family -> word."""
    flaws = [
        Flaw(f"'{name}' must be a mapping of formats to words", words.source)
        for name, words in nodes(node).items()
        if not isinstance(words.value, Mapping)
    ]
    if flaws:
        raise FlawedError(*flaws)
    return mapping(mapping(written))(node)


Nested = Annotated[Mapping[str, Mapping[str, str]], Kind(_words)]


class ProgramRecord(Struct, frozen=True):
    """A program of a framework and how it is started (commands.yaml)."""

    name: Text = field(name="command")
    framework: Text
    version: Text
    what: Text
    lines: Annotated[tuple[tuple[Piece, ...], ...], Kind(_lines)]
    python: Annotated[tuple[Piece, ...], Kind(_pieces)] = ()
    by_format: Nested = field(default_factory=dict)
    on_load: Nested = field(default_factory=dict)
    kv_types: Words = field(default_factory=dict)
    kv_equal: Flag = False
    own_code: Texts = ()
    images_on_request: Texts = ()
    cannot: Annotated[Mapping[str, str], Kind(mapping(written, SETTINGS, "setting"))] = field(
        default_factory=dict
    )
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def placeholders(self) -> list[str]:
        """Name what its pieces may hold."""
        return [*PLACEHOLDERS, *self.by_format, *self.on_load]


class Policy(Struct, frozen=True):
    """A named number that an expert may change."""

    name: Text = field(name="policy")
    value: Annotated[Node, Kind(as_it_is)]
    """A number within ``between``."""
    between: Annotated[Bounds, Kind(bounds)]
    kind: Annotated[str, Kind(choice(("sourced", "derived", "policy")))]
    why: Text
    at_most: Text | None = None
    """Another policy that it may not exceed."""
    as_sold: Flag = False
    """A size as on the box, where GB means GiB."""
    sources: Mapping[str, str] = field(default_factory=dict)


class SecondCard(Struct, frozen=True):
    """A card that is tried beside another one."""

    name: Text = field(name="second_card")
    why: Text
    sources: Mapping[str, str] = field(default_factory=dict)


class UsualCard(Struct, frozen=True):
    """The card that is taken where a name stands for several."""

    name: Text = field(name="usual_card")
    why: Text
    of_memory: Flag = False
    """Whether it is taken, too, where nothing but its memory is said."""
    sources: Mapping[str, str] = field(default_factory=dict)


class CardWords(Struct, frozen=True):
    """Words beside a card's name that say nothing about which card it is."""

    name: Text = field(name="card_words")
    words: Texts
    why: Text
    sources: Mapping[str, str] = field(default_factory=dict)


class Multiprocessor(Struct, frozen=True):
    """What one multiprocessor of a compute capability has."""

    capability: Number = field(name="compute_capability")
    cores: Count = field(name="cores_per_multiprocessor")
    sources: Mapping[str, str] = field(default_factory=dict)


def _seen(node: Node) -> str:
    found = text(node)
    if not is_date(found):
        flaw = Flaw(
            f"'{{key}}': '{found}' is not a date", node.source, "Write 2026-05-07 or 2026-05."
        )
        raise FlawedError(flaw)
    return found


class Declared(Struct, frozen=True):
    """Where figures come from (sources.yaml)."""

    name: Text = field(name="id")
    what: Text
    kind: Annotated[
        str, Kind(choice(("datasheet", "measured", "derived", "background", "community")))
    ]
    as_of: Annotated[str, Kind(_seen)]
    """The day or month of its figures; without one, when it was read."""
    url: Text | None = None
    licence: Text | None = None


_GBIT_PER_PIN: Mapping[str, tuple[float, float]] = {
    "GDDR5": (3, 9.1),
    "GDDR5X": (7, 15),
    "GDDR6": (8, 20.5),
    "GDDR6X": (18, 24),
    "GDDR7": (17.5, 36),
    "HBM2": (1.2, 2.5),
    "HBM2e": (1.2, 3.7),
    "HBM3": (3.5, 6.5),
    "HBM3e": (4.5, 10),
}
"""Memory type -> the slowest and fastest data rate per pin on any board, Gbit/s."""

_GA100 = 8.0
_TENSOR_CORES = 7
"""The first compute capability with tensor cores."""
_DENSE_LIMIT = 6
_DENSE_LIMIT_GA100 = 16.5
"""A dense FP16 matrix peak is about 4 times the shader peak; a sparse one 8 times. Tables give
the GA100 chip's shader peak with or without packed FP16, so 4 or 16 times there."""
_LETTERS = "FSCLc-EX"
_RUN = re.compile(r"\(([^()]+)\)(\d+)")
_MOST_LETTERS, _DIGITS = 10_000, 9
_EXPERT_KEYS = (
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "moe_num_experts",
    "moe_num_primary_experts",
)
_USED_KEYS = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k")
_CONTEXT_KEYS = (
    "max_position_embeddings",
    "max_seq_len",
    "n_positions",
    "max_target_positions",
)
_PLAIN_NUMBERS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


def finished_card(card: Gpu, entry: Entry, per_multiprocessor: Mapping[float, int]) -> Gpu:
    """Check a card, and work out its multiprocessors.

    Args:
        card: As its entry states it.
        entry: Takes what is wrong.
        per_multiprocessor: Compute capability -> FP32 cores of one multiprocessor.
    """
    _check_bandwidth(card, entry)
    _check_compute(card, entry)
    each = per_multiprocessor.get(card.compute_capability or 0.0)
    if not card.cores or not each or card.cores % each:
        return card
    return replace(card, multiprocessors=card.cores // each)


def _check_bandwidth(card: Gpu, entry: Entry) -> None:
    limits = _GBIT_PER_PIN.get(card.vram_type or "")
    if card.bandwidth_bytes_s is None or card.bus_width_bits is None or limits is None:
        return
    rate = card.bandwidth_bytes_s * 8 / card.bus_width_bits / 1e9
    if not limits[0] <= rate <= limits[1]:
        entry.problem(
            f"bandwidth over {card.bus_width_bits} bits is {rate:.1f} Gbit/s per pin, "
            f"{card.vram_type} does {limits[0]:g} to {limits[1]:g}",
            at=entry.at("bandwidth"),
            hint="Check bandwidth, bus_width and vram_type.",
        )


def _check_compute(card: Gpu, entry: Entry) -> None:
    capability, peak = card.compute_capability, card.fp16_tensor_tflops
    if re.match(r"GeForce RTX 50\d\d", entry.name) and capability not in (None, 12.0):
        entry.problem(
            f"compute capability {capability} is not that of the RTX 50 series",
            at=entry.at("compute_capability"),
            hint="It is 12.0; 10.0 is B200, 12.1 is GB10.",
        )
    if peak is None:
        return
    shader, accumulate = card.fp16_shader_tflops, card.fp16_tensor_tflops_fp32acc
    limit = _DENSE_LIMIT_GA100 if capability == _GA100 else _DENSE_LIMIT
    if shader and (capability or 0) >= _TENSOR_CORES and peak > limit * shader:
        entry.problem(
            f"fp16_tensor is {peak / shader:.1f} times fp16_shader: a sparse figure",
            at=entry.at("fp16_tensor"),
            hint="Write the dense one, half of it.",
        )
    if accumulate is not None and accumulate > peak:
        message = "fp16_tensor_fp32acc is above fp16_tensor"
        entry.problem(message, at=entry.at("fp16_tensor_fp32acc"))


def finished_model(model: ModelRecord, entry: Entry) -> ModelRecord:
    """Check a model, write its layer pattern out, and take its context from its config."""
    if model.config is None:
        return replace(model, config={})
    if not isinstance(model.config.get("model_type"), str):
        entry.problem("'config' has no 'model_type'", at=entry.at("config"))
    part = _text_part(model.config)
    if isinstance(pattern := part.get("layer_pattern"), str):
        try:
            part["layer_pattern"] = unfold(pattern)
        except ValueError as bad:
            entry.problem(f"'layer_pattern' {bad}", at=entry.at_config("layer_pattern"))
    _check_parts(model, entry)
    _check_config(part, entry)
    context = model.trained_context_tokens or _first(part, _CONTEXT_KEYS) or None
    return replace(model, trained_context_tokens=context)


def check_formats(model: ModelRecord, entry: Entry, formats: Collection[str]) -> None:
    """Report published formats that ``formats.yaml`` does not have."""
    for name in model.native_formats:
        if name not in formats:
            message = f"'native_formats' names '{name}', which is no weight format here"
            entry.problem(message, hint=did_you_mean(name, formats) or "See formats.yaml.")


def unfold(pattern: str) -> str:
    """Write a layer pattern out: ``(SSF)2 S`` -> ``SSFSSFS``."""
    flat = pattern.replace(" ", "")
    while True:
        runs = _RUN.findall(flat)
        if len(flat) + sum(_most(letters, count) for letters, count in runs) > _MOST_LETTERS:
            raise ValueError(f"stands for more than {_MOST_LETTERS:,} layers.")
        if not runs:
            return flat
        flat = _RUN.sub(lambda run: run[1] * int(run[2]), flat)


def _most(letters: str, count: str) -> int:
    """How long a run becomes, as far as it matters."""
    return len(letters) * int(count) if len(count) < _DIGITS else _MOST_LETTERS + 1


def _text_part(config: Mapping[str, object]) -> dict[str, object]:
    inner = config.get("text_config", config)
    return inner if isinstance(inner, dict) else cast("dict[str, object]", config)


def _check_parts(model: ModelRecord, entry: Entry) -> None:
    for key in ("active_parameters", "vision_parameters"):
        part = getattr(model, key)
        if part is not None and model.parameters is not None and part > model.parameters:
            entry.problem(f"{key} are more than parameters", at=entry.at(key))


def _check_config(part: Mapping[str, object], entry: Entry) -> None:
    for key in _PLAIN_NUMBERS:
        if key in part and not (isinstance(part[key], int) and _number(part, key)):
            entry.problem(
                f"config: '{key}' must be a positive whole number", at=entry.at_config(key)
            )
    heads, kv_heads = _number(part, "num_attention_heads"), _number(part, "num_key_value_heads")
    if heads and kv_heads and heads % kv_heads:
        entry.problem(
            f"config: {kv_heads} key/value heads do not divide {heads} heads",
            at=entry.at_config("num_key_value_heads"),
        )
    experts, used = (_first(part, keys) for keys in (_EXPERT_KEYS, _USED_KEYS))
    if experts and used and used > experts:
        at = entry.at_config(next(key for key in _USED_KEYS if key in part))
        entry.problem(f"config: a token uses {used} of {experts} experts", at=at)
    _check_layers(part, entry)


def _check_layers(part: Mapping[str, object], entry: Entry) -> None:
    layers = _number(part, "num_hidden_layers")
    for key in ("layer_pattern", "layer_types"):
        kinds = part.get(key)
        if isinstance(kinds, str | list) and layers and len(kinds) != layers:
            message = f"config: '{key}' has {len(kinds)} layers, num_hidden_layers {layers}"
            entry.problem(message, at=entry.at_config(key))
    pattern = part.get("layer_pattern")
    if isinstance(pattern, str) and (bad := sorted(set(pattern) - set(_LETTERS))):
        message = f"config: 'layer_pattern' has the unknown letter '{bad[0]}'"
        entry.problem(
            message, at=entry.at_config("layer_pattern"), hint=f"Known: {' '.join(_LETTERS)}."
        )


def _first(part: Mapping[str, object], keys: tuple[str, ...]) -> int:
    return next((found for key in keys if (found := _number(part, key))), 0)


def _number(part: Mapping[str, object], key: str) -> int:
    found = part.get(key)
    return found if isinstance(found, int) and found > 0 else 0
