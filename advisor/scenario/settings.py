"""The settings of a request, each declared once.

Flags, keys of files, bounds, help, lists of plans, and the order in which changes are tried follow
from a declaration. Here annotations are values, so they are not put off.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError, Source, UserError, did_you_mean, raise_problems
from advisor.knowledge.types import Split
from advisor.scenario.setting_kinds import Kind, Setting, out_of_bounds, quantities, typed_value
from advisor.units import shortened

Prefer = Literal["balanced", "quality", "speed", "cost"]
Use = Literal["interactive", "batch", "none"]
"""How fast it has to be: read along, left to run, or of no matter."""

DEFAULT_UBATCH = 512
_RUN, _MEMORY, _HOST = "What to run", "How it runs", "The computer around the card"
_KINDS: Mapping[object, Kind] = {
    str | None: "text",
    bool | None: "switch",
    int | None: "whole",
    float | None: "number",
    int | str | None: "count or all",
}


# fmt: off
class Stated(Struct, frozen=True, kw_only=True):
    """Settings that a scenario has as they were stated."""

    cpu_cores: Annotated[int | None, Setting(
        "CPU cores.", _HOST, most=4096, effort=1, tried=(2, 4, 6, 8, 16, 32),
        drawn=(None, None, None, None, 4, 8, None, 7, 64), fact="host.cpu_cores",
        counts=("cores", "core"), listed_before="draft_model", called=("cores", "threads"),
    )] = None
    gpu_memory_utilization: Annotated[float | None, Setting(
        "Share of each card that a server claims, or of a Mac that its GPU may use: 0.9 or 90%.",
        _MEMORY, "as the framework or the system does",
        least=0.01, most=1, called=("mem-fraction-static", "cuda-memory-fraction"),
    )] = None
    max_num_batched_tokens: Annotated[int | None, Setting(
        "Tokens that a server computes in one step.", _MEMORY, "as the framework does", most=2**20,
    )] = None
    eager: Annotated[bool | None, Setting(
        "Without CUDA graphs (vLLM, SGLang): on or off.", _MEMORY, "off",
        called=("enforce-eager", "disable-cuda-graph"),
    )] = None
    text_only: Annotated[bool | None, Setting(
        "Leave the part that reads images out: on or off.", _MEMORY, "off",
        called=("no-mmproj", "language-model-only"),
    )] = None
    images: Annotated[int | None, Setting(
        "Images of a prompt.", _MEMORY, "none", most=4096, called=("limit-mm-per-prompt",),
    )] = None
    image_size: Annotated[str | None, Setting(
        "Their size: 1024x768, 1080p, or the tokens of one: 1024 tokens.", _MEMORY,
        "1024x1024, or as the model takes them", called=("resolution", "image-resolution"),
    )] = None
    reserve_gib: Annotated[float | None, Setting(
        "Memory of each card that other programs take, for example 2GB.", _MEMORY, "none", least=0,
        most=1_048_576, unit="GiB", with_unit="reserve",
    )] = None
    split: Annotated[Split | None, Setting(
        "How several cards share a model: layer, row (llama.cpp), tensor, data (copies, if dense) "
        "or dp-attention.", _RUN, "as the framework does", shown_before="prefer",
    )] = None
    """``splits.split_of`` says how the cards of a scenario then share the model."""
    stages: Annotated[int | None, Setting(
        "Groups of cards, one behind the other, that each share tensors.", _RUN,
        "1", most=64, shown_before="prefer", called=("pp", "pipeline-parallel-size", "pp-size"),
    )] = None


class Request(Stated, frozen=True):
    """What the user typed; None: not stated, the documented default applies."""

    gpu: Annotated[str | None, Setting(
        'The card: a name ("RTX 4090"), NAME:SIZE ("M4 Pro:48GB"), or local. Several: "2x RTX '
        '3090", "RTX 3090 + RTX 3060:12GB".', _RUN, fixed=False, effort=6, needed=True,
        called=("card", "cards", "gpu-name", "device"),
    )] = None
    model: Annotated[str | None, Setting(
        "A known name or Hugging Face id, a folder with a config.json, or a .gguf or .safetensors"
        " file.", _RUN, fixed=False, effort=4, needed=True,
        called=("llm", "model-name", "model-path"),
    )] = None
    precision: Annotated[str | None, Setting(
        "Weight format: FP16, Q4_K_M, AWQ ..., or INT8 or INT4 for the best that runs.", _RUN,
        "as the runtime takes it", fixed=False, effort=2,
        called=("quant", "quantization", "dtype", "weights", "bits"),
    )] = None
    context: Annotated[int | None, Setting(
        "Tokens per sequence.", _RUN, "4096 or the trained length", most=2**27, fixed=False,
        effort=1,
        called=("ctx", "ctx-size", "n-ctx", "num-ctx", "context-length", "context-size",
                "max-model-len"),
    )] = None
    batch: Annotated[int | None, Setting(
        "Sequences held at once.", _RUN, "1", most=65_536, fixed=False, effort=1,
        called=("users", "concurrency", "parallel", "max-num-seqs", "batch-size", "requests"),
    )] = None
    kv_cache: Annotated[str | None, Setting(
        "KV-cache type: f16, q8_0, fp8 ...", _MEMORY, "f16", fixed=False, effort=1,
        called=("kv", "kv-type", "kv-quant", "cache-type", "kv-cache-dtype", "kv-cache-type"),
    )] = None
    kv_cache_k: Annotated[str | None, Setting(
        "Type of the K half alone.", _MEMORY, fixed=False, called=("cache-type-k", "ctk"),
    )] = None
    kv_cache_v: Annotated[str | None, Setting(
        "Type of the V half alone.", _MEMORY, fixed=False, called=("cache-type-v", "ctv"),
    )] = None
    framework: Annotated[str | None, Setting(
        "llama.cpp, vLLM, transformers ...", _RUN, "the first that runs it", fixed=False, effort=3,
        called=("runtime", "engine", "server", "program"),
    )] = None
    backend: Annotated[str | None, Setting(
        "CUDA, ROCm, Vulkan, Metal, SYCL.", _MEMORY, "by vendor", fixed=False, shown_before="depth",
    )] = None
    gpus: Annotated[int | None, Setting(
        "Number of equal cards.", _RUN, "1", most=64, fixed=False, effort=5,
        called=("num-gpus", "gpu-count", "n-gpus", "count", "tp", "tensor-parallel-size"),
    )] = None
    flash_attention: Annotated[bool | None, Setting(
        "on or off.", _MEMORY, "on where supported", fixed=False, effort=1,
        called=("flash-attn", "fa"),
    )] = None
    ubatch: Annotated[int | None, Setting(
        "Tokens computed at once.", _MEMORY, "512", most=65_536, called=("ubatch-size", "ub"),
    )] = None
    kv_unified: Annotated[bool | None, Setting(
        "One cache for all sequences: on or off.", _MEMORY, "on",
    )] = None
    swa_full: Annotated[bool | None, Setting(
        "Full cache for sliding-window layers: on or off.", _MEMORY, "off",
    )] = None
    gpu_layers: Annotated[int | str | None, Setting(
        "Layers on the card, a number or all.", _MEMORY, "all", fixed=False, effort=1,
        shown_before="flash_attention", called=("ngl", "n-gpu-layers", "layers"),
    )] = None
    cpu_experts: Annotated[int | str | None, Setting(
        "Layers whose experts stay in RAM, a number or all.", _MEMORY, "0", fixed=False, effort=1,
        shown_before="flash_attention", called=("n-cpu-moe", "cpu-moe", "ncmoe"),
    )] = None
    logits_rows: Annotated[int | None, Setting(
        "Rows of logits kept.", _MEMORY, "the batch", most=2**20, fixed=False,
    )] = None
    depth: Annotated[int | None, Setting(
        "Tokens already cached when speed is stated.", _MEMORY, "0", least=0, most=2**27,
    )] = None
    ram_gib: Annotated[float | None, Setting(
        'System RAM: 64GB, or with its type and channels, "64GB DDR5-6000 x2".', _HOST,
        most=1_048_576, unit="GiB", with_unit="ram", also="ram_type",
        effort=1, drawn=(None, None, None, 16, 32, 64, 128, 256, 512),
        called=("system-ram", "sysram"),
    )] = None
    ram_type: Annotated[str | None, Setting(
        'Type, rate and channels of the RAM: "DDR5-6000 x2".', _HOST, "as such machines have",
    )] = None
    ram_bandwidth_gb_s: Annotated[float | None, Setting(
        "RAM bandwidth, for example 80GB/s.", _HOST, most=100_000, unit="GB/s",
        with_unit="ram_bandwidth", effort=1, drawn=(None, None, None, None, 50, 80, 80, 50, 300),
        called=("memory-bandwidth", "ram-speed"),
    )] = None
    cpu: Annotated[str | None, Setting(
        'The processor, which says how its RAM is read: "Ryzen 7950X", "EPYC 7742".', _HOST,
        called=("processor", "cpu-name"),
    )] = None
    draft_model: Annotated[str | None, Setting(
        "A small model that drafts tokens.", _MEMORY, fixed=False,
        called=("draft", "model-draft", "speculative-model"),
    )] = None
    mtp: Annotated[int | None, Setting(
        "Tokens that the model's own head drafts at once (multi-token prediction).", _MEMORY,
        least=0, most=16, fixed=False,
    )] = None
    config: Annotated[str | None, Setting("The path of a config.json.", fixed=False)] = None
    prefer: Annotated[Prefer | None, Setting(
        "What matters most: balanced, quality, speed or cost.", _RUN, "balanced", fixed=False,
        effort=0,
    )] = None
    use: Annotated[Use | None, Setting(
        "How fast it has to be: interactive (read along), batch (left to run) or none.", _RUN,
        "interactive", fixed=False,
    )] = None

    # fmt: on
    def stated(self) -> Mapping[str, object]:
        """The keys the user gave, in the order of ``SETTINGS``."""
        pairs = ((name, getattr(self, name)) for name in SETTINGS)
        return {name: value for name, value in pairs if value is not None}


def _declared(owner: type[Struct]) -> Iterable[Setting]:
    """Give the settings of a class's own fields, completed by the names and types of these."""
    for name, field in owner.__annotations__.items():
        kind, words = _KINDS.get(field.__origin__, "word"), ()
        if kind == "word":
            words = next(get_args(one) for one in get_args(field.__origin__) if get_origin(one))
        yield replace(field.__metadata__[0], name=name, kind=kind, words=words)


def _placed(settings: Iterable[Setting], where: str) -> Sequence[Setting]:
    """Put those that say so before the one they name."""
    every = list(settings)
    found = [one for one in every if not getattr(one, where)]
    for one in every:
        if before := getattr(one, where):
            found.insert([other.name for other in found].index(before), one)
    return found


STATED: Sequence[Setting] = tuple(_declared(Stated))
"""Settings that a scenario has as they were stated."""
_STATED = [one.name for one in STATED]
_stated = attrgetter(*_STATED)
SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {one.name: one for one in _placed((*_declared(Request), *STATED), "listed_before")}
)
"""Every setting by its name in a request, in the order of keys."""
_BOUNDED: Sequence[Setting] = [one for one in SETTINGS.values() if one.most is not None]
_bounded = attrgetter(*(one.name for one in _BOUNDED))
FLAGS: Sequence[Setting] = [
    one
    for panel in (_RUN, _MEMORY, _HOST)
    for one in _placed(SETTINGS.values(), "shown_before")
    if one.panel == panel
]
"""Those that have flags, in the order of the help."""
FIXED: Sequence[Setting] = sorted(
    filter(attrgetter("fixed"), SETTINGS.values()),
    key=lambda one: (one.panel != _HOST, one.kind in {"switch", "word"}, one.kind == "word"),
)
"""Those that the block ``with`` of a plan takes: the computer, numbers, switches, words."""
AROUND: Sequence[str] = [one.name for one in FLAGS if one.panel == _HOST]
"""Settings of the computer around the cards."""
WITH_UNITS: Mapping[str, Setting] = {s.with_unit: s for s in SETTINGS.values() if s.with_unit}
"""The key that takes a unit -> what it states in a request."""
KEYS = (*SETTINGS, *WITH_UNITS)
"""Every key a request may hold in a file."""


def request_from(given: Mapping[str, object], *, source: Source | None = None) -> Request:
    """Build a request from keys and plain values; ``None`` means not stated.

    Raises:
        UserError: Unknown keys or values of the wrong type, all of them.
    """
    values: dict[str, object] = {}
    problems: list[UserError] = []
    for key, value in given.items():
        if key not in SETTINGS and key not in WITH_UNITS:
            problems.append(
                RequestError(
                    f"unknown key '{key}'",
                    source=source,
                    hint=did_you_mean(key, KEYS) or f"Known: {', '.join(KEYS)}.",
                )
            )
        elif value is not None:
            _take(key, value, values, problems, source)
    request = Request(**values)  # type: ignore[arg-type]  # names and types were checked above
    if problems:
        raise_problems([*problems, *number_problems(request)])
    return request


def as_stated(request: Request) -> dict[str, Any]:
    """Give the settings that a scenario has as they were stated."""
    return dict(zip(_STATED, _stated(request), strict=True))


def number_problems(request: Request) -> Sequence[UserError]:
    """Find the numbers of a request that no scenario can have."""
    stated = zip(_BOUNDED, _bounded(request), strict=True)
    found = [out_of_bounds(one, value) for one, value in stated if value is not None]
    return [problem for problem in found if problem]


def _take(
    key: str,
    value: object,
    values: dict[str, object],
    problems: list[UserError],
    source: Source | None,
) -> None:
    setting = WITH_UNITS.get(key)
    try:
        if setting:
            values.update(quantities(setting, str(value)))
        else:
            values[key] = typed_value(SETTINGS[key], value)
    except UserError as error:
        problems.append(RequestError(f"{key}: {error.message}", source=source, hint=error.hint))
    except OverflowError:
        large = f"{key}: '{shortened(str(value))}' is too large a number."
        problems.append(RequestError(large, source=source))
    except (TypeError, ValueError) as error:
        problems.append(RequestError(f"{key}: {error}", source=source))
