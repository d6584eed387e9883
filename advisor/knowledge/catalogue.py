"""Cards: makers with their back ends, equal and mixed ones together, all by a few figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.types import Framework, Gpu, Knowledge, ModelRecord, Vendor
from advisor.memo import decoded
from advisor.units import GIB

Groups = dict[str, list[str]]
"""Key -> names."""


class CardRow(NamedTuple):
    """A card one can buy or rent, whose memory and release are known."""

    name: str
    vendor: str
    segment: str
    vram_bytes: int
    bandwidth_bytes_s: float | None
    released: str | None
    """Unknown only for machines that share their memory, which are all recent."""
    launch_price_usd: float | None
    unified_memory: bool | None


class ModelRow(NamedTuple):
    """A model whose size and release are known."""

    parameters: int
    name: str
    family: str
    modality: str
    released: str


_CARDS = list[CardRow]
_MODELS = list[ModelRow]


def model_row(model: ModelRecord) -> ModelRow | None:
    """Pick the row of a model; None where size or release is unknown."""
    if not (model.parameters and model.released):
        return None
    return ModelRow(*(getattr(model, name) for name in ModelRow._fields))


def card_row(card: Gpu) -> CardRow | None:
    """Pick the row of a card; None where memory or release is unknown."""
    dated = card.released or card.unified_memory
    if not card.vram_bytes or not dated or card.not_for_sale:
        return None
    return CardRow(*(getattr(card, name) for name in CardRow._fields))


def family_key(model: ModelRecord) -> str:
    """Name the group of models that are siblings: one family, one kind of input."""
    return f"{model.family}|{model.modality}"


def kin_key(model: ModelRecord) -> str:
    """Name the models of one publisher that share a vocabulary size; empty where unknown."""
    inner = model.config.get("text_config")
    text = inner if isinstance(inner, Mapping) else model.config
    vocab = text.get("vocab_size") or model.config.get("vocab_size")
    publisher = (model.hf_id or "").partition("/")[0]
    return f"{publisher}|{vocab}" if publisher and vocab else ""


def groups(cards: Iterable[Gpu], models: Iterable[ModelRecord]) -> dict[str, object]:
    """Give the rows of the cards, and the models by family and by kin, to be stored."""
    families: dict[str, list[str]] = {}
    relatives: dict[str, list[str]] = {}
    sizes: list[ModelRow] = []
    for model in models:
        families.setdefault(family_key(model), []).append(model.name)
        relatives.setdefault(kin_key(model), []).append(model.name)
        sizes += filter(None, [model_row(model)])
    rows = [*filter(None, map(card_row, cards))]
    return {"cards": rows, "families": families, "kin": relatives, "sized": sizes}


def kin(knowledge: Knowledge, name: str, hf_id: str | None, vocab: int) -> Sequence[str]:
    """List the models of the same publisher and vocabulary, the model itself among them."""
    publisher = (hf_id or "").partition("/")[0]
    known = knowledge.models.get(name)
    key = kin_key(known) if known else f"{publisher}|{vocab}" if publisher else ""
    if not key:
        return ()
    if (stored := decoded(knowledge.index.get("kin"), Groups)) is None:
        return [m.name for m in knowledge.models.values() if kin_key(m) == key]
    return stored.get(key, ())


def cards(knowledge: Knowledge) -> Sequence[CardRow]:
    """List the cards with known memory and release, in file order."""
    if (stored := decoded(knowledge.index.get("cards"), _CARDS)) is None:
        return [*filter(None, map(card_row, knowledge.gpus.values()))]
    return stored


def sized(knowledge: Knowledge) -> Sequence[ModelRow]:
    """List the models of known size and release, in file order."""
    if (stored := decoded(knowledge.index.get("sized"), _MODELS)) is None:
        return [*filter(None, map(model_row, knowledge.models.values()))]
    return stored


def siblings(knowledge: Knowledge, family: str, modality: str) -> Sequence[str]:
    """List the models of a family and kind, in file order."""
    key = f"{family}|{modality}"
    if (stored := decoded(knowledge.index.get("families"), Groups)) is None:
        return [m.name for m in knowledge.models.values() if family_key(m) == key]
    return stored.get(key, ())


def can_have(knowledge: Knowledge, gpu: Gpu, size: int) -> bool:
    """Whether a card that shares its memory is sold with this much, as far as that is known."""
    if gpu.vram_sizes:
        return size in gpu.vram_sizes
    if gpu.vram_bytes is not None and (not gpu.unified_memory or gpu.segment == "edge"):
        return False
    least, most = open_range(knowledge)
    if gpu.vram_bytes is not None:
        return min(least, gpu.vram_bytes) <= size <= gpu.vram_bytes
    return least <= size <= most


def open_range(knowledge: Knowledge) -> tuple[int, int]:
    """Give the smallest and the largest memory that a known machine shares, in bytes."""
    machines = [gpu for gpu in knowledge.gpus.values() if gpu.unified_memory]
    shared = [size for gpu in machines for size in sizes_of(gpu)]
    return min(shared, default=GIB), max(shared, default=1024 * GIB)


def sizes_of(gpu: Gpu) -> tuple[int, ...]:
    """Give the sizes a card is sold with, in bytes; none where not even the largest is known."""
    return gpu.vram_sizes or ((gpu.vram_bytes,) if gpu.vram_bytes else ())


class Backend(Struct, frozen=True):
    """What a runtime is built for."""

    name: str
    words: tuple[str, ...]
    """How benchmarks write it, in lower case; another ending may follow."""
    library: str = ""
    """Through which servers pass results between cards, where its buffers are published."""
    holds_rows: bool = False
    """It has a buffer for rows of a matrix (ggml's ``split_buffer_type``)."""
    sized: bool = False
    """What its driver holds follows from the card (policy ``cuda_...``)."""


class Maker(Struct, frozen=True):
    """A maker of cards."""

    backends: tuple[str, ...]
    """The usual one first."""
    words: frozenset[str]
    """Brands by which its cards go, in lower case."""
    pci: int = 0
    """Its number on the bus."""
    by_capability: bool = False
    """Which formats a card computes in follows from its compute capability."""
    computes_in_formats: bool = False
    """Its cards compute in every format that they run, where nothing else is known."""
    one_memory: bool = False
    """All its chips share their memory with the processor and count their cores."""
    mostly_rented: bool = False
    """Most clouds rent its cards."""
    called: str = ""
    """What a clause calls its cards, where it is no maker."""
    timed: bool = True
    """Runs on its cards, or on such as these, are among the measurements."""


BACKENDS: Mapping[str, Backend] = {
    backend.name: backend
    for backend in (
        Backend("CUDA", ("cuda",), "nccl", holds_rows=True, sized=True),
        Backend("ROCm", ("rocm", "hip", "rocwmma"), "rccl", holds_rows=True),
        Backend("Vulkan", ("vulkan",)),
        Backend("Metal", ("metal", "mtl")),
        Backend("SYCL", ("sycl",), holds_rows=True),
        Backend("CPU", ()),
        Backend("CANN", ("cann",)),
        Backend("MUSA", ("musa",)),
        Backend("TT-Metalium", ("metalium", "tt-metal")),
        Backend("Neuware", ("neuware", "bang")),
        Backend("MACA", ("maca", "mxmaca")),
        Backend("XLA", ("xla",)),
        Backend("Neuron", ("neuron",)),
    )
}
MAKERS: Mapping[str, Maker] = {
    "NVIDIA": Maker(("CUDA", "Vulkan"), frozenset({"nvidia", "geforce", "tesla"}), 0x10DE,
        by_capability=True, mostly_rented=True),
    "AMD": Maker(("ROCm", "Vulkan"), frozenset({"amd", "radeon", "instinct"}), 0x1002,
        computes_in_formats=True),
    "Intel": Maker(("SYCL", "Vulkan"), frozenset({"intel", "arc", "habana"}), 0x8086),
    "Apple": Maker(("Metal", "Vulkan"), frozenset({"apple"}), 0x106B, one_memory=True),
    "Processor": Maker(("CPU",), frozenset(), called="a processor alone"),
    "Several": Maker(("Vulkan",), frozenset(), called="cards of several makers"),
    "Huawei": Maker(("CANN",), frozenset({"huawei"}), timed=False),
    "Moore Threads": Maker(("MUSA",), frozenset({"moore", "threads", "mtt"}), timed=False),
    "Tenstorrent": Maker(("TT-Metalium",), frozenset({"tenstorrent"}), timed=False),
    "Cambricon": Maker(("Neuware",), frozenset({"cambricon"}), timed=False),
    "MetaX": Maker(("MACA",), frozenset({"metax"}), timed=False),
    "Google": Maker(("XLA",), frozenset(), timed=False),
    "AWS": Maker(("Neuron",), frozenset(), timed=False),
}  # fmt: skip
BY_PCI: Mapping[int, str] = {maker.pci: name for name, maker in MAKERS.items() if maker.pci}
"""Number on the bus -> maker."""
ALONE: Vendor = "Processor"
"""Of what computes where there is no card."""
SEVERAL: Vendor = "Several"
"""Of cards of several makers in one machine."""
MOSTLY_RENTED = next(name for name, maker in MAKERS.items() if maker.mostly_rented)
BACKEND_OF_WORD = {word: backend.name for backend in BACKENDS.values() for word in backend.words}


def default_backend(gpu: Gpu) -> str:
    """The backend of a vendor's cards."""
    return MAKERS[gpu.vendor].backends[0]


def backend_in(framework: Framework, gpu: Gpu, asked: str | None) -> str:
    """The back end that was asked for, or the vendor's own where the framework lacks it there."""
    return asked if asked and asked in backends_of(gpu, framework) else default_backend(gpu)


def backends_of(gpu: Gpu | None, framework: Framework) -> tuple[str, ...]:
    """What a framework computes with on a card: the vendor's own, then what it has beside it."""
    first, *rest = MAKERS[gpu.vendor].backends if gpu else BACKENDS
    beside = () if gpu and gpu.vendor in framework.one_backend_on else framework.backends_beside
    return (first, *(backend for backend in rest if backend in beside))


def cards_by(vendor: str) -> str:
    """Name the cards of a maker, as a clause does."""
    return MAKERS[vendor].called or f"{vendor} cards"


PROCESSOR = Gpu(
    name="processor",
    aliases=("cpu", "no gpu", "no card", "none", "without gpu"),
    vendor=ALONE,
    segment="consumer",
    architecture=ALONE,
    vram_type="system RAM",
    unified_memory=True,
    not_for_sale="what computes where there is no card",
)
"""A computer without a card: its memory and bandwidth are those of its system RAM."""


MOST_CARDS = 64
TOGETHER = " + "
"""Between unequal cards in one machine, as names are written."""
_LEAST = (
    "compute_capability", "vram_bytes", "bandwidth_bytes_s", "cores", "multiprocessors",
    "tensor_cores", "fp16_tensor_tflops", "fp16_tensor_tflops_fp32acc", "fp16_shader_tflops",
    "fp32_tflops", "int8_tops", "fp8_tflops", "fp4_tflops", "pcie_gen", "pcie_lanes",
    "nvlink_bytes_s", "released",
)  # fmt: skip
_T = TypeVar("_T", int, float, str)


class Cards(Struct, frozen=True):
    """The cards a request names."""

    gpu: Gpu
    """The card; of unequal ones a record of the least that all of them offer."""
    count: int
    each: tuple[Gpu, ...]
    """Every card in the order given where they are unequal; empty for equal ones."""
    counted: bool
    """Whether the text itself says how many there are."""
    others: tuple[Gpu, ...] = ()
    """What the name of the card could have meant too."""
    read_as: tuple[str, ...] = ()
    """Lines that say what a name was taken for, where it is none of the catalogue."""


def put_together(
    knowledge: Knowledge,
    found: Sequence[tuple[int, Gpu]],
    *,
    counted: bool,
    others: tuple[Gpu, ...] = (),
    read_as: tuple[str, ...] = (),
) -> Cards:
    """Put cards into one machine.

    Raises:
        UserError: These do not work together.
    """
    each = tuple(gpu for count, gpu in found for _ in range(count))
    first = each[0]
    check_beside(each)
    if all((gpu.name, gpu.vram_bytes) == (first.name, first.vram_bytes) for gpu in each):
        read_as += machines_said(first, len(each))
        return Cards(first, len(each), (), counted, others, read_as)
    if unknown := next((gpu.name for gpu in each if gpu.vram_bytes is None), ""):
        raise RequestError(f"how much memory {unknown} has is not known", hint="Write NAME:SIZE.")
    least = _least_of(knowledge, each)
    if least.vendor == SEVERAL:
        used = " or ".join(MAKERS[SEVERAL].backends)
        read_as += (f"Cards of several makers share a model with {used}, so that is sized.",)
    return Cards(least, len(each), each, counted, others, read_as)


def are_machines(gpu: Gpu) -> bool:
    """Whether several of these are as many machines, linked by a network."""
    return bool(gpu.unified_memory) and gpu.stands_alone and gpu.vendor != ALONE


def machines_said(gpu: Gpu, count: int) -> tuple[str, ...]:
    """Say that several of a kind are as many machines; nothing of cards."""
    if count == 1 or not are_machines(gpu):
        return ()
    told = f"{count}x {gpu.name} are {count} machines that share the model over their network: "
    told += "memory alone is sized. Start each by the runtime's guide."
    return (told,)


def check_beside(each: Sequence[Gpu]) -> None:
    """Refuse several cards of which one is a part of its machine.

    Raises:
        RequestError: One of them cannot have another beside it.
    """
    alone = next((gpu for gpu in each if gpu.stands_alone), None)
    if alone is None or len(each) == 1:
        return
    if are_machines(alone) and all(gpu == alone for gpu in each):
        return
    other = next((gpu for gpu in each if gpu != alone), None)
    hint = "Ask for one, or for one machine or card with more memory."
    if other is not None:
        hint = f"Ask for one of them: {alone.name}, or {other.name} with --ram for what it lacks."
    raise RequestError(
        f"{alone.name} is a part of its machine: another card beside it (an eGPU) is not sized",
        hint=hint,
    )


def _least_of(knowledge: Knowledge, each: Sequence[Gpu]) -> Gpu:
    """Make a record of what every card offers: of each figure the least, unknown if one is.

    The segment and the type of memory are those of the smallest card, the generation is that of
    the card with the lowest compute capability. The board power is the highest, since that card
    must be cooled.
    """
    smallest = min(each, key=lambda gpu: (gpu.vram_bytes or 0, gpu.bandwidth_bytes_s or 0.0))
    barred = [name for framework in knowledge.frameworks.values() for name in framework.not_on]
    by_age = sorted(each, key=lambda gpu: (gpu.compute_capability or 0.0, gpu.released or ""))
    kept = max(by_age, key=lambda gpu: barred.count(gpu.architecture))
    power = [gpu.tdp_w for gpu in each]
    least = {name: _least([getattr(gpu, name) for gpu in each]) for name in _LEAST}
    return replace(
        smallest,
        name=_spelled(each),
        aliases=(),
        vendor=smallest.vendor if len({gpu.vendor for gpu in each}) == 1 else SEVERAL,
        segment="mobile" if any(gpu.segment == "mobile" for gpu in each) else smallest.segment,
        architecture=kept.architecture,
        bus_width_bits=None,
        bf16=_all_of([gpu.bf16 for gpu in each]),
        tdp_w=None if None in power else max(p for p in power if p is not None),
        launch_price_usd=None,
        disputed={field: values for gpu in each for field, values in gpu.disputed.items()},
        sources={},
        **least,
    )


def _least(values: Sequence[_T | None]) -> _T | None:
    return None if None in values else min(value for value in values if value is not None)


def _all_of(values: Sequence[bool | None]) -> bool | None:
    if False in values:
        return False
    return None if None in values else True


def _spelled(each: Sequence[Gpu]) -> str:
    runs = ((name, len(list(run))) for name, run in groupby(gpu.name for gpu in each))
    return TOGETHER.join(f"{count}x {name}" if count > 1 else name for name, count in runs)
