"""The values that command templates ask for, worked out from a scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec import Struct

from advisor.knowledge.catalogue import ALONE, default_backend
from advisor.knowledge.programs import Program
from advisor.knowledge.types import Format, Split
from advisor.models.stored_tensors import Model
from advisor.runtimes.base import up
from advisor.runtimes.llamacpp import LOGICAL_BATCH
from advisor.scenario import (
    Scenario,
    capability,
    claimed_share,
    pipeline_ranks,
    sequences_of_a_rank,
    split_of,
    takes,
    tensor_ranks,
)
from advisor.scenario.images import image_limit, read_size
from advisor.scenario.settings import DEFAULT_UBATCH

PLAIN_CACHE, _CACHE_PAGE = frozenset({"f16", "auto"}), 256
_UNSTATED_CONTEXT = 2_048
"""What vLLM and SGLang assume of a model whose config.json names no length."""


class Shares(NamedTuple):
    """How much of a memory that the processor shares a server may claim, in whole percent."""

    whole: int
    static: int  # less what is computed with: weights and cache alone


class Started(Struct, frozen=True):
    """A scenario and the record of the program that is to run it."""

    scenario: Scenario
    program: Program
    shares: Shares | None = None  # None where the card's memory is its own
    layers: tuple[int, ...] = ()  # of every card, where the program must be told
    most_at_start: int | None = None  # sequences, where it must be told them to start
    state_slots: int | None = None

    def word(self, name: str) -> str | None:
        """The program's word for the weight format; none for a checkpoint's own 16 bits."""
        precision = self.scenario.precision
        if self.scenario.own_dtype and precision.family == "unquantized":
            return None
        made = _of_format(self.program.on_load.get(name), precision) if self.makes_format else None
        if made is not None:
            return made
        return self._taken(name, _of_format(self.program.by_format.get(name), precision))

    def _taken(self, name: str, word: str | None) -> str | None:
        """The word, or the 16-bit type that the runtime or its kernels for the format take."""
        on = (self.scenario.framework, self.scenario.gpu, self.scenario.model.shape)
        taken = capability.dtypes(*on, self.scenario.precision)
        alone = name == "dtype" and word is None and taken != capability.dtypes(*on)
        refused = word in capability.DTYPES and word not in taken
        return next(iter(taken), word) if alone or refused else word

    @property
    def as_held(self) -> bool:
        """Whether the model's own files are in this very format."""
        return capability.as_held(self.scenario.model, self.scenario.precision)

    @property
    def repository(self) -> str | None:
        """The repository that holds the weights in this very format, where one is known."""
        of = self.scenario
        return capability.repository_of(of.model, of.precision, of.framework)

    @property
    def gguf_seen(self) -> str | None:
        """The GGUF file that can be downloaded, with the layer that drafts where that is to."""
        scenario = self.scenario
        return capability.seen_gguf(scenario.model, scenario.precision, head=scenario.mtp > 0)

    @property
    def makes_format(self) -> bool:
        """Whether the program makes the format from the model's 16-bit checkpoint."""
        of = self.scenario
        return capability.makes(of.framework, of.precision, of.model) and not self.repository

    @property
    def kv_set(self) -> bool:
        """Whether the cache has another type than the one used when nothing is said."""
        return not {self.scenario.kv_cache_k.name, self.scenario.kv_cache_v.name} <= PLAIN_CACHE


def _of_format(words: object, precision: Format) -> str | None:
    known = words if isinstance(words, Mapping) else {}
    return _stated(known.get(precision.name, known.get(precision.family)))


def _logical_batch(scenario: Scenario) -> str | None:
    """The tokens handed over at once; an encoder computes them at once, too."""
    whole = scenario.model.shape.role == "encoder" and scenario.ubatch != DEFAULT_UBATCH
    return str(scenario.ubatch) if whole or scenario.ubatch > LOGICAL_BATCH else None


def may_flash(scenario: Scenario) -> bool:
    """Whether the framework may attend with flash kernels."""
    return scenario.framework.flash_attention is not False


def devices(scenario: Scenario) -> str | None:
    """Name the devices of a back end that is not the vendor's own (Vulkan0, Vulkan1 ...)."""
    gpu, backend = scenario.gpu, scenario.backend
    if gpu is None or backend is None or backend == default_backend(gpu):
        return None
    return ",".join(f"{backend}{number}" for number in range(scenario.gpus))


def _card_shares(started: Started) -> str | None:
    """Share equal cards out evenly; unequal ones are split by free memory if nothing is said."""
    scenario = started.scenario
    even = (1,) * scenario.gpus if scenario.gpus > 1 and not scenario.cards else ()
    return ",".join(map(str, started.layers or even)) or None


# ---- names of models and files


def _model(started: Started) -> str:
    """A repository that holds this very format, or can be loaded in it; else a folder."""
    model, precision = started.scenario.model, started.scenario.precision
    if at := started.repository or (started.gguf_seen if precision.kind == "gguf" else None):
        return at
    if model.hf_id and started.makes_format:
        return model.hf_id
    if started.as_held and model.origin == "config":
        return f"./{capability.file_word(model.name)}"
    return f"./{capability.folder_name(model, precision)}"


def _draft(started: Started) -> str | None:
    if (draft := started.scenario.draft_model) is None:
        return None
    held = _of_draft(started, capability.repository_of)
    return held or draft.hf_id or f"./{capability.file_word(draft.name)}"


def _gguf_of(started: Started) -> str | None:
    """The repository that a GGUF file was made from: config and tokenizer lie there."""
    packed = started.scenario.precision.kind == "gguf" and not started.as_held
    return started.scenario.model.hf_id if packed else None


def _own_gguf(model: Model, precision: Format) -> str | None:
    return None if capability.seen_gguf(model, precision) else capability.gguf(model, precision)


def _projector(model: Model) -> str | None:
    return f"mmproj-{capability.file_word(model.name)}.gguf" if model.vision_parameters else None


def _at(seen: str | None) -> str | None:
    return seen and seen.replace(":", "@")


def _ggml(model: Model) -> str:
    return model.companions.get("ggml") or capability.file_word(model.name)


def _of_draft(started: Started, named: Callable[[Model, Format], str | None]) -> str | None:
    draft = started.scenario.draft_model
    return named(draft, started.scenario.precision) if draft else None


# ---- numbers and words; None: nothing to say


def _count(number: int, *, unless: int) -> str | None:
    return None if number == unless else str(number)


def _stated(value: object) -> str | None:
    return None if value is None else str(value)


def _kv(started: Started, name: str) -> str | None:
    if name in PLAIN_CACHE:
        return None
    words = started.program.kv_types
    return _stated(words.get(name) if words else name)


def _kv_both(started: Started) -> str | None:
    key, value = started.scenario.kv_cache_k.name, started.scenario.kv_cache_v.name
    return _kv(started, key) if key == value else None


def _kv_side(started: Started, name: str) -> str | None:
    """One half of a cache that is set; the plain half is named too."""
    return (_kv(started, name) or name) if started.kv_set else None


def _layers(one: Scenario) -> str:
    """Give the layers on the cards: none where a processor computes alone."""
    none = one.gpu and one.gpu.vendor == ALONE
    return "0" if none else "all" if one.gpu_layers is None else str(one.gpu_layers)


def _layers_share(started: Started) -> str:
    """The share of the layers on the card, rounded down; the output matrix counts as one."""
    placed, layers = started.scenario.gpu_layers, started.scenario.model.shape.layers
    return "max" if placed is None else f"{int(1000 * placed / (layers + 1)) / 1000:g}"


def _visible(started: Started, backend: str) -> str | None:
    one, count = started.scenario, started.scenario.gpus
    alone = (count == 1 and not one.idle_cards) or one.backend != backend
    return None if alone else ",".join(map(str, range(count)))


def _shared(started: Started) -> Split | None:
    return split_of(started.scenario)


def _rank_slots(started: Started) -> int:
    return sequences_of_a_rank(started.scenario)


def _fraction(started: Started) -> str | None:
    """The share of the card that the server claims by default, or less where it is shared."""
    claimed, shares = claimed_share(started.scenario), started.shares
    least = claimed and (min(claimed, shares.whole / 100) if shares else claimed)
    return None if least is None else f"{least:g}"


def _lowered(started: Started) -> str | None:
    shares, claimed = started.shares, claimed_share(started.scenario) or 1.0
    told = started.scenario.gpu_memory_utilization is not None
    return _fraction(started) if told or (shares and shares.whole / 100 < claimed) else None


def _static(started: Started) -> str | None:
    told, shares = started.scenario.gpu_memory_utilization, started.shares
    share = shares.static / 100 if shares and told is None else told
    return None if share is None else f"{share:g}"


VALUES: Mapping[str, Callable[[Started], str | None]] = {
    "model": _model,
    "folder": lambda s: capability.folder_name(s.scenario.model, s.scenario.precision),
    "gguf": lambda s: capability.gguf(s.scenario.model, s.scenario.precision),
    "gguf_seen": lambda s: s.gguf_seen,
    "gguf_own": lambda s: None if s.gguf_seen or VALUES["mlx_at"](s) else VALUES["gguf"](s),
    "gguf_at": lambda s: _at(s.gguf_seen),
    "gguf_of": _gguf_of,
    "mlx_at": lambda s: s.repository if s.scenario.precision.family == "mlx" else None,
    "model_key": lambda s: capability.file_word(s.scenario.model.name).casefold(),
    "draft_key": lambda s: _of_draft(s, lambda m, _: capability.file_word(m.name).casefold()),
    "ggml": lambda s: s.scenario.model.companions.get("ggml"),
    "ggml_file": lambda s: "-".join(filter(None, (_ggml(s.scenario.model), s.word("ggml_type")))),
    "ollama_from": lambda s: capability.ollama_from(s.scenario.model, s.scenario.precision),
    "slug": lambda s: capability.folder_name(s.scenario.model, s.scenario.precision).casefold(),
    "projector": lambda s: None if s.gguf_seen else _projector(s.scenario.model),
    "context": lambda s: str(s.scenario.context_tokens),
    "context_all": lambda s: str(s.scenario.context_tokens * s.scenario.batch),
    "context_less_one": lambda s: str(s.scenario.context_tokens - 1),
    "cache_tokens": lambda s: str(up(s.scenario.context_tokens * s.scenario.batch, _CACHE_PAGE)),
    "slots": lambda s: str(s.scenario.batch),
    "batch": lambda s: _count(s.scenario.batch, unless=1),
    "ubatch": lambda s: _count(s.scenario.ubatch, unless=DEFAULT_UBATCH),
    "logical_batch": lambda s: _logical_batch(s.scenario),
    "gpu_layers": lambda s: _layers(s.scenario),
    "layers_placed": lambda s: _stated(s.scenario.gpu_layers),
    "layers_share": _layers_share,
    "cpu_experts": lambda s: _count(s.scenario.cpu_experts, unless=0),
    "kv": _kv_both,
    "kv_k": lambda s: _kv_side(s, s.scenario.kv_cache_k.name),
    "kv_v": lambda s: _kv_side(s, s.scenario.kv_cache_v.name),
    "gpus": lambda s: _count(s.scenario.gpus, unless=1),
    "tensor_ranks": lambda s: str(tensor_ranks(s.scenario)) if _shared(s) == "tensor" else None,
    "data_ranks": lambda s: str(s.scenario.gpus) if _shared(s) == "dp-attention" else None,
    "replicas": lambda s: str(s.scenario.gpus) if _shared(s) == "data" else None,
    "slots_of_a_copy": lambda s: str(s.scenario.batch if _shared(s) != "data" else _rank_slots(s)),
    "expert_ranks": lambda s: _expert_ranks(s.scenario) if _shared(s) == "tensor" else None,
    "slots_of_a_rank": lambda s: str(_rank_slots(s)),
    "stated_slots_of_a_rank": lambda s: _stated(
        min(filter(None, (s.scenario.slots and _rank_slots(s), s.most_at_start)), default=None)
    ),
    "pipeline_ranks": lambda s: _count(pipeline_ranks(s.scenario), unless=1),
    "split_mode": _shared,
    "card_shares": _card_shares,
    "cuda_devices": lambda s: _visible(s, "CUDA"),
    "hip_devices": lambda s: _visible(s, "ROCm"),
    "cuda_kept": lambda s: VALUES["cuda_devices"](s) if s.scenario.idle_cards else None,
    "hip_kept": lambda s: VALUES["hip_devices"](s) if s.scenario.idle_cards else None,
    "devices_named": lambda s: devices(s.scenario),
    "draft_model": _draft,
    "draft_gguf_seen": lambda s: _of_draft(s, capability.seen_gguf),
    "draft_gguf_at": lambda s: _at(_of_draft(s, capability.seen_gguf)),
    "draft_gguf": lambda s: _of_draft(s, _own_gguf),
    "draft_folder": lambda s: _of_draft(s, capability.folder_name),
    "mtp": lambda s: _count(s.scenario.mtp, unless=0),
    "mtp_checked": lambda s: str(s.scenario.mtp + 1),
    "state_slots": lambda s: _stated(s.state_slots),
    "memory_fraction": _fraction,
    "memory_fraction_lowered": _lowered,
    "static_fraction": _static,
    "image_limit": lambda s: image_limit(s.scenario, sized=True),
    "image_count": lambda s: image_limit(s.scenario, sized=False),
    "image_tokens": lambda s: _stated(
        read_size(s.scenario.image_size).tokens if s.scenario.model.vision_parameters else None
    ),
    "batched_tokens": lambda s: _stated(s.scenario.max_num_batched_tokens),
    "yarn_factor": lambda s: _stated(s.scenario.model.yarn_factor(s.scenario.context_tokens)),
    "yarn_original": lambda s: _stated(s.scenario.model.yarn.get("original")),
    "yarn_theta": lambda s: _stated(s.scenario.model.yarn.get("theta")),
}  # None leaves the piece out


def _by_file(s: Started) -> bool:
    return (VALUES["ollama_from"](s) or "").startswith("./") or s.scenario.gpu_layers is not None


def _is_listed(started: Started, name: str) -> bool:
    shape = started.scenario.model.shape
    return (shape.outer_type or shape.model_type) in getattr(started.program, name)


def sees_anyway(of: Scenario) -> str:
    """Say why the part that reads images cannot be left out; empty where nothing says so."""
    return capability.refusal(of.framework, "text_only", "", of.gpu, of.model.shape)


def _leaves_images(started: Started) -> bool:
    return bool(started.scenario.text_only) and not sees_anyway(started.scenario)


def _expert_ranks(scenario: Scenario) -> str | None:
    """Say over how many cards whole experts go, where shards of them could cut a block."""
    moe, cards, of = scenario.model.shape.moe, tensor_ranks(scenario), scenario.precision
    held = capability.config_of(scenario.model, of, scenario.framework)
    block = 0 if held.get("block") == 0 else of.block
    whole = moe and block and moe.experts % cards == 0 and moe.width % (cards * block)
    return str(cards) if whole else None


def _uneven(started: Started) -> bool:
    """Whether SGLang takes one of the cards for occupied (its distributed/bootstrap.py:444)."""
    memory = [card.vram_bytes or 0 for card in started.scenario.cards]
    return _shared(started) == "tensor" and bool(memory) and min(memory) < 0.9 * max(memory)


_SWITCHES: Mapping[str, Callable[[Started], bool]] = {
    "shared_cache": lambda s: s.scenario.batch > 1 and s.scenario.kv_unified,
    "separate_caches": lambda s: s.scenario.batch > 1 and not s.scenario.kv_unified,
    "flash_on": lambda s: s.scenario.kv_cache_v.needs_flash_attention,
    "flash_off": lambda s: not s.scenario.flash_attention,
    "full_window_cache": lambda s: s.scenario.swa_full,
    "several_cards": lambda s: s.scenario.gpus > 1,
    "uneven_memory": _uneven,
    "one_of_several": lambda s: s.scenario.gpus == 1 and bool(s.scenario.idle_cards),
    "not_the_makers": lambda s: devices(s.scenario) is not None,
    "shares_layers": lambda s: _shared(s) == "layer",
    "shares_tensors": lambda s: _shared(s) == "tensor",
    "shares_requests": lambda s: _shared(s) == "dp-attention",
    "in_file": lambda s: s.kv_set or _shared(s) == "dp-attention",
    "beyond_trained": lambda s: (
        s.scenario.context_tokens > (s.scenario.model.trained_context_tokens or _UNSTATED_CONTEXT)
    ),
    "eager": lambda s: bool(s.scenario.eager),
    "text_only": lambda s: _leaves_images(s) and not _is_listed(s, "images_on_request"),
    "blind": lambda s: _leaves_images(s) and _is_listed(s, "images_on_request"),
    "brings_images": lambda s: capability.brings_images(s.scenario.model, s.scenario.precision),
    "load_whole": lambda s: takes(s.scenario, "load_whole"),
    "kv_set": lambda s: s.kv_set,
    "cache_limited": lambda s: not s.kv_set and takes(s.scenario, "cache_limit"),
    "makes_format": lambda s: s.makes_format,
    "own_code": lambda s: _is_listed(s, "own_code"),
    "images_on_request": lambda s: not s.scenario.text_only and _is_listed(s, "images_on_request"),
    "whole_experts": lambda s: VALUES["expert_ranks"](s) is not None,
    "reads_text": lambda s: not any(holds(w, s) for w in ("embedding", "sees_images", "answers")),
    "answers": lambda s: (
        s.scenario.model.shape.encoder_positions == 0 and not holds("sees_images", s)
    ),
    "sees_images": lambda s: bool(s.scenario.model.vision_parameters),
    "embedding": lambda s: s.scenario.model.modality == "embedding",
    "writes": lambda s: s.scenario.model.modality != "embedding",
    "own_file": _by_file,
    "of_library": lambda s: not _by_file(s),
}


def holds(switch: str, started: Started) -> bool:
    """Whether a switch is on for this scenario."""
    return _SWITCHES[switch](started)
