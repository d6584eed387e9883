"""What is asked and what it means: a request resolved to records, settings and defaults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.catalogue import ALONE, BACKENDS, MAKERS, are_machines
from advisor.knowledge.types import Format, Framework, Gpu, KvType
from advisor.scenario.capability import asked, cut_width, refusal
from advisor.scenario.settings import Prefer, Stated, Use

if TYPE_CHECKING:
    from advisor.knowledge.programs import About
    from advisor.knowledge.types import Split
    from advisor.models.shape import Shape
    from advisor.models.stored_tensors import Model


class Scenario(Stated, frozen=True):
    """One fully specified situation; everything the estimator needs and nothing else.

    ``context_tokens`` is per sequence: memory holds ``batch`` sequences of it.
    """

    gpu: Gpu | None
    gpus: int
    model: Model
    precision: Format
    context_tokens: int
    batch: int
    kv_cache_k: KvType
    kv_cache_v: KvType
    framework: Framework
    backend: str | None
    """CUDA, ROCm, Vulkan, Metal, SYCL; None without a card."""
    flash_attention: bool
    ubatch: int
    kv_unified: bool
    swa_full: bool
    gpu_layers: int | None
    """Layers on the GPU, the output matrix counted as one; None: all."""
    cpu_experts: int
    """Layers whose experts stay in system RAM."""
    logits_rows: int
    depth_tokens: int
    ram_bytes: int | None
    ram_bandwidth_bytes_s: float | None
    prefer: Prefer
    draft_model: Model | None = None
    """A small model that proposes tokens (speculative decoding)."""
    mtp: int = 0
    """Tokens that the model's own head proposes at once (multi-token prediction); 0: none."""
    use: Use = "interactive"
    cards: tuple[Gpu, ...] = ()
    """Every card in order where they are unequal; then ``gpu`` is the least of them in every
    figure. Empty: ``gpus`` equal cards."""
    own_dtype: bool = False
    """The 16 bits are the checkpoint's own type, so no command names it."""
    mixed: str = ""
    """The listed format that a maker's own mix of types is sized as; empty where none was asked."""
    read_as: tuple[str, ...] = ()
    """How what was typed was understood, a sentence each; empty where it stands there plainly."""
    ram_bandwidth_ends: tuple[float, float] | None = None
    """The least and the most it may be, bytes/s; None where it is known, or not at all."""
    ram_assumed: bool = False
    """Nothing was said of the RAM but its size, so it is as such machines have it."""
    slots: int = 0
    """Sequences that a server is told to take in at most; 0: as many as it does by default."""
    stands_in: bool = False
    """The framework is only the nearest to the program that was named."""
    idle_cards: tuple[str, ...] = ()
    """Cards that are left out, which a program that takes all must be told."""


_NAMES = Scenario.__struct_fields__
_RECORDS = ("gpu", "model", "precision", "kv_cache_k", "kv_cache_v", "framework", "draft_model")
_SPEED_ALONE = (
    "depth_tokens", "ram_bytes", "ram_bandwidth_bytes_s", "ram_bandwidth_ends", "ram_assumed",
    "prefer", "use",
)  # fmt: skip
_records = attrgetter(*_RECORDS)
_BESIDE = ("cards", "read_as")
"""What is in no key as it is: the cards count as records, the wording of a request not at all."""
_figures = attrgetter(*[name for name in _NAMES if name not in {*_RECORDS, *_BESIDE}])
_sizes = attrgetter(*[n for n in _NAMES if n not in {*_RECORDS, *_BESIDE, *_SPEED_ALONE}])

Key = tuple[object, ...]


def claimed_share(scenario: Scenario) -> float | None:
    """Say which share of a card its framework claims, as told or by default; None: as needed."""
    usual, told = scenario.framework.memory_fraction, scenario.gpu_memory_utilization
    return usual if usual is None or told is None else told


def raised(scenario: Scenario) -> float | None:
    """Say which share of its one memory a machine lets the GPU use, as told; None: as usual."""
    gpu = scenario.gpu
    return scenario.gpu_memory_utilization if gpu and MAKERS[gpu.vendor].one_memory else None


def with_batch(scenario: Scenario, batch: int) -> Scenario:
    """Give it another batch, and as many rows of logits where those follow the batch."""
    if batch == scenario.batch:
        return scenario
    rows = batch if scenario.logits_rows == scenario.batch else scenario.logits_rows
    return replace(scenario, batch=batch, logits_rows=rows, slots=batch if scenario.slots else 0)


def holding(scenario: Scenario, sequences: int) -> Scenario:
    """Give it as a server that holds so many of its sequences at once and lets the others wait."""
    return replace(with_batch(scenario, sequences), slots=scenario.slots)


def offloads(scenario: Scenario) -> bool:
    """Whether part of the model, layers or experts, is to stay in system RAM."""
    return scenario.gpu_layers is not None or scenario.cpu_experts > 0


def is_split(scenario: Scenario) -> bool:
    """Say whether the request itself leaves layers or experts in system RAM."""
    layers, most = scenario.gpu_layers, scenario.model.shape.layers
    return scenario.cpu_experts > 0 or (layers is not None and layers <= most)


def is_mixed(scenario: Scenario) -> bool:
    """Whether the file has a maker's own mix of types: as was asked, or as Ollama makes its own."""
    own, model = scenario.framework.own_mix, scenario.model
    made = scenario.precision.name == "Q4_K_M" and model.shape.model_type in own
    return (made and model.stored is None) or scenario.mixed == scenario.precision.name


def whole_key(scenario: Scenario) -> tuple[Key, Key]:
    """Give a key that only equal scenarios share, and the records that must be kept with it.

    Records count by identity, which holds only while they live.
    """
    records: Key = (*_records(scenario), *scenario.cards)
    return (*map(id, records), *_figures(scenario)), records


def size_key(scenario: Scenario, gpu: Gpu | None) -> tuple[Key, Key]:
    """Give the like for what a scenario asks for, in which speed and most of the card are left out.

    Whether cards and processor share one memory is kept: tables are looked up where they then lie.

    The card counts where what the scenario asks for follows from it as well.
    """
    records: Key = (gpu, *_records(scenario)[1:], *scenario.cards)
    one_memory = scenario.gpu is not None and scenario.gpu.unified_memory
    return (*map(id, records), one_memory, *_sizes(scenario)), records


_ROW_BACKENDS = [backend.name for backend in BACKENDS.values() if backend.holds_rows]


def split_of(scenario: Scenario) -> Split | None:
    """Say how the cards share the model; None with one card, and where the framework has no way.

    The stated way where it can be, else the first of the framework's ways that can: servers that
    split every tensor fall back to whole layers where the cards do not divide the heads, or
    blocks of weights.
    """
    if scenario.gpus == 1:
        return None
    ways = split_ways(scenario)
    if scenario.split in ways:
        return scenario.split
    shared = sharing(ways)
    usual = scenario.framework.multi_gpu
    return shared[0] if shared else usual[0] if usual else None


def sharing(ways: Sequence[Split]) -> Sequence[Split]:
    """Leave out copies, which share no model: they are made only where they are asked for."""
    return [way for way in ways if way != "data"]


def split_ways(scenario: Scenario) -> Sequence[Split]:
    """List the ways in which the cards of a scenario can share its model, preferred first."""
    framework, model, cards = scenario.framework, scenario.model, scenario.gpus
    precision, backend, each = scenario.precision, scenario.backend, _cards_of_a_stage(scenario)
    return [
        way
        for way in ways_for(framework, precision)
        if divides(way, framework, precision, model, each if way == "tensor" else cards)
        and not (way in {"data", "dp-attention"} and scenario.cards)
        and not refusal(framework, "split", way, scenario.gpu, model.shape)
        and (way != "row" or backend is None or backend in _ROW_BACKENDS)
    ]


def _cards_of_a_stage(scenario: Scenario) -> int:
    """Count the cards that would share a tensor: all, or those of one stage; 0 where none can."""
    stages, shape = scenario.stages or 1, scenario.model.shape
    if stages == 1:
        return scenario.gpus
    even = scenario.gpus % stages == 0 and stages <= shape.layers and not scenario.cards
    passes = scenario.framework.pipeline and "layer" in scenario.framework.multi_gpu
    if refusal(scenario.framework, "split", "layer", scenario.gpu, shape):
        return 0
    return scenario.gpus // stages if even and passes else 0


def ways_for(framework: Framework, precision: Format) -> Sequence[Split]:
    """List the ways in which a framework shares a model in this format, preferred first."""
    limit = framework.format_limits.get(precision.family)
    return () if limit and limit.one_card else framework.multi_gpu


def can_split(scenario: Scenario) -> bool:
    """Whether the cards of a scenario can share its model in some way, where that is known."""
    several = scenario.gpus > 1 and bool(scenario.framework.multi_gpu)
    ways = split_ways(scenario)
    return not several or bool(ways if scenario.split == "data" else sharing(ways))


def impossible_split(scenario: Scenario) -> Iterator[RequestError]:
    """Say why the cards cannot share the model as stated, or in no way at all, and what can be."""
    framework, stated = scenario.framework, scenario.split
    if (scenario.stages or 1) > 1 and split_of(scenario) != "tensor":
        told = f"{scenario.stages} stages of cards that share the tensors of {scenario.model.name}"
        hint = "A server's stage takes as many cards as divide the heads. Leave --stages out."
        yield RequestError(
            f"{framework.name} cannot form {told} of {scenario.gpus} cards", hint=hint
        )
        return
    if scenario.gpus == 1 or not (stated or framework.multi_gpu):
        return
    ways = split_ways(scenario)
    if stated in ways if stated else sharing(ways):
        return
    hints = [f"It can by {' or '.join(ways)}: --split {ways[0]}."] if ways else []
    if ways == ["data"]:
        hints = ["Where one card holds it, each can have a copy: --split data."]
    way = stated or framework.multi_gpu[0]
    never = way == "row" or refusal(framework, "split", way, scenario.gpu, scenario.model.shape)
    if not never and way in ways_for(framework, scenario.precision):
        hints += _counts_for(way, scenario)
    elif framework.multi_gpu and not ways_for(framework, scenario.precision):
        hints.append("Ask for one card, or for another format or framework.")
    yield RequestError(f"{framework.name} {_why_not_split(scenario)}", hint=" ".join(hints))


def _why_not_split(scenario: Scenario) -> str:
    framework, cards = scenario.framework, scenario.gpus
    stated = scenario.split or framework.multi_gpu[0]
    if framework.multi_gpu and not ways_for(framework, scenario.precision):
        return f"runs {scenario.precision.name} on one card alone"
    if reason := framework.not_sized.get(stated):
        return f"cannot be sized with a split by {stated}: {reason}"
    if stated not in framework.multi_gpu:
        return f"does not split a model by {stated}"
    if stated == "row":
        return f"splits rows with {', '.join(sorted(_ROW_BACKENDS))}, not with {scenario.backend}"
    shape = scenario.model.shape
    if reason := refusal(framework, "split", stated, scenario.gpu, shape):
        return f"does not split {scenario.model.name} by {stated}: {reason}"
    if stated == "dp-attention" and shape.moe and framework.even_ranks and not scenario.cards:
        return f"divides its prompt chunk there in whole pages, which {cards} cards do not allow"
    if stated == "data":
        return f"copies dense models whole, on cards of one kind; {scenario.model.name} has experts"
    if stated == "dp-attention":
        return f"divides experts there, which {scenario.model.name} lacks, over cards of one kind"
    if stated == "tensor":
        return f"cannot divide {_undivided(scenario)} by {cards} cards"
    return f"cannot give {cards} cards a layer each of {scenario.model.name}: it has {shape.layers}"


def _undivided(scenario: Scenario) -> str:
    """Name what the cards do not divide of a model whose every tensor they would split."""
    model, precision, cards = scenario.model, scenario.precision, scenario.gpus
    shape, cut = model.shape, cut_width(scenario.framework, precision, model, cards)
    if cut:
        blocks = f"blocks of {cut[1]} {precision.name} weights"
        return f"the width {cut[0]:,} of {model.name} in whole {blocks}"
    kind = f"{shape.kv_heads} KV" if shape.heads % cards == 0 else f"{shape.heads} attention"
    return f"the {kind} heads of {model.name}"


def _counts_for(way: Split, scenario: Scenario) -> list[str]:
    """Offer the nearest numbers of cards that can share the model in this way."""
    framework, precision, model = scenario.framework, scenario.precision, scenario.model
    cards, can = scenario.gpus, partial(divides, way, framework, precision, model)
    fewer = [n for n in range(cards - 1, 1, -1) if can(n)][:1]
    more = [n for n in range(cards + 1, 2 * cards + 1) if can(n)][:1]
    numbers = " or ".join(str(n) for n in fewer + more)
    return [f"{numbers} cards can."] if numbers else []


def divides_requests(scenario: Scenario) -> bool:
    """Whether each card has requests of its own, and all weights but a share of the experts."""
    return split_of(scenario) in {"data", "dp-attention"}


def sequences_of_a_rank(scenario: Scenario) -> int:
    """Give the most sequences of one card: its share where each attends to its own, else all."""
    if scenario.gpus == 1 or not divides_requests(scenario):
        return scenario.batch
    return -(-scenario.batch // scenario.gpus)


def is_pipeline(scenario: Scenario) -> bool:
    """Whether the cards are the ranks of a server's pipeline, each with whole layers."""
    return scenario.gpus > 1 and scenario.framework.pipeline and split_of(scenario) == "layer"


def pipeline_ranks(scenario: Scenario) -> int:
    """Count the ranks of a server's pipeline, one behind the other; 1 where there is none."""
    if is_pipeline(scenario):
        return scenario.gpus
    return (scenario.stages or 1) if scenario.gpus > 1 and split_of(scenario) == "tensor" else 1


def tensor_ranks(scenario: Scenario) -> int:
    """Count the cards that share each tensor: all, or those of one stage."""
    return scenario.gpus // pipeline_ranks(scenario)


def is_usual_split(scenario: Scenario) -> bool:
    """Whether the cards share the model as the framework prefers, which measurements mean."""
    usual = split_of(scenario) in {None, *scenario.framework.multi_gpu[:1]}
    return scenario.gpus == 1 or (usual and (scenario.stages or 1) == 1)


def divides(way: Split, framework: Framework, precision: Format, model: Model, cards: int) -> bool:
    """Whether a framework can divide a model of this format among this many cards in this way.

    A split of every tensor needs a number that divides the attention heads and the KV heads; where
    there are more cards than KV heads, a multiple of those, each of which is then copied, and it
    cuts no block of weights that must stay whole (``cut_width``). A
    pipeline needs a layer for each of its ranks, attention data parallel an expert. Most servers
    divide experts over data parallel ranks, so plain copies are for dense models there.
    """
    shape = model.shape
    if not cards:
        return False
    if way == "data":
        return shape.moe is None or framework.copies_experts
    if way == "dp-attention":
        even = not framework.even_ranks or cards.bit_count() == 1
        return shape.moe is not None and cards <= shape.moe.experts and even
    if way == "tensor" and cut_width(framework, precision, model, cards):
        return False
    if way == "tensor" and framework.tensor_heads != "uneven":
        copies = framework.tensor_heads == "copied"
        return shape.heads % cards == 0 and _divides_kv_heads(shape, cards, copies=copies)
    return way != "layer" or not framework.pipeline or cards <= shape.layers


def _divides_kv_heads(shape: Shape, cards: int, *, copies: bool) -> bool:
    """Whether every card gets as many KV heads; a single one, like a latent, lies on all cards."""
    if shape.mla:
        return True
    counts = set(shape.head_groups or shape.kv_heads_by_layer or (shape.kv_heads,)) - {0, 1}
    return all(n % cards == 0 or (copies and cards % n == 0) for n in counts)


def is_alone(scenario: Scenario) -> bool:
    """Whether a processor computes alone, in system RAM."""
    return scenario.gpu is not None and scenario.gpu.vendor == ALONE


def on_machines(scenario: Scenario) -> bool:
    """Whether several machines share the model over a network."""
    return scenario.gpus > 1 and scenario.gpu is not None and are_machines(scenario.gpu)


def reading_at(scenario: Scenario, bandwidth: float) -> Scenario:
    """Give a scenario whose system RAM is read at another pace, by a processor alone too."""
    gpu = scenario.gpu
    if gpu and is_alone(scenario):
        gpu = replace(gpu, bandwidth_bytes_s=bandwidth)
    return replace(scenario, gpu=gpu, ram_bandwidth_bytes_s=round(bandwidth))


def stretches(scenario: Scenario) -> bool:
    """Whether the context is stretched past the trained length, as the publisher states.

    By its commands, or by what the model's config.json is to say.
    """
    lines = (line for program in scenario.framework.commands for line in program.lines)
    words = (word for line in lines for piece in line for word in piece.words)
    told = any(
        part.name == "yarn_factor" for word in words if not isinstance(word, str) for part in word
    )
    known = told or takes(scenario, "yarn")
    return known and scenario.model.yarn_factor(scenario.context_tokens) is not None


def takes(scenario: Scenario, about: About) -> bool:
    """Whether a row says that the runtime takes it of this model."""
    row = asked(scenario.framework, about, "", scenario.gpu, scenario.model.shape)
    return row is not None and row.answer == "runs"
