"""The flags that state a request, the same for every command that takes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer
from msgspec import Struct

from advisor.cli.inputs import FlagReader, count_or_all, on_off, read_bandwidth, read_size
from advisor.errors import UserError, raise_problems
from advisor.scenario.request_data import CHOICES, SIZES
from advisor.scenario.scenario import Request

if TYPE_CHECKING:
    from typer.models import OptionInfo

    from advisor.knowledge.types import Knowledge

_RUN = "What to run"
_MEMORY = "How it runs"
_HOST = "The computer around the card"


def _flag(panel: str, text: str, *, word: bool = False) -> OptionInfo:
    found: OptionInfo = typer.Option(
        help=text, rich_help_panel=panel, metavar="<word>" if word else None
    )
    return found


class Flags:
    """Name, type and help of every flag, in the order of the help; two have no default."""

    gpu: Annotated[
        str,
        _flag(
            _RUN,
            'The card: a name ("RTX 4090"), NAME:SIZE ("M4 Pro:48GB"), or local. Several: '
            '"2x RTX 3090", "RTX 3090 + RTX 3060:12GB".',
        ),
    ]
    model: Annotated[
        str,
        _flag(
            _RUN,
            "A known name or Hugging Face id, a folder with a config.json, or a .gguf or "
            ".safetensors file.",
        ),
    ]
    precision: Annotated[
        str | None,
        _flag(
            _RUN,
            "Weight format: FP16, Q4_K_M, AWQ ..., or INT8 or INT4 for the best that runs. "
            "(default: FP16)",
        ),
    ]
    context: Annotated[
        int | None, _flag(_RUN, "Tokens per sequence. (default: 4096 or the trained length)")
    ]
    batch: Annotated[int | None, _flag(_RUN, "Sequences held at once. (default: 1)")]
    framework: Annotated[
        str | None,
        _flag(_RUN, "llama.cpp, vLLM, transformers ... (default: the first that runs it)"),
    ]
    gpus: Annotated[int | None, _flag(_RUN, "Number of equal cards. (default: 1)")]
    split: Annotated[
        str | None,
        _flag(
            _RUN,
            "How several cards share the model: whole layers (a pipeline in servers), rows "
            "of every matrix (llama.cpp) or every tensor. (default: as the framework does)",
            word=True,
        ),
    ]
    prefer: Annotated[
        str | None,
        _flag(
            _RUN,
            "What matters most: balanced, quality, speed or cost. (default: balanced)",
            word=True,
        ),
    ]
    use: Annotated[
        str | None,
        _flag(
            _RUN,
            "How fast it has to be: interactive (read along), batch (left to run) or none. "
            "(default: interactive)",
            word=True,
        ),
    ]
    kv_cache: Annotated[
        str | None, _flag(_MEMORY, "KV-cache type: f16, q8_0, fp8 ... (default: f16)")
    ]
    kv_cache_k: Annotated[str | None, _flag(_MEMORY, "Type of the K half alone.")]
    kv_cache_v: Annotated[str | None, _flag(_MEMORY, "Type of the V half alone.")]
    gpu_layers: Annotated[
        str | None, _flag(_MEMORY, "Layers on the card, a number or all. (default: all)")
    ]
    cpu_experts: Annotated[
        str | None,
        _flag(_MEMORY, "Layers whose experts stay in RAM, a number or all. (default: 0)"),
    ]
    flash_attention: Annotated[
        str | None, _flag(_MEMORY, "on or off. (default: on where supported)")
    ]
    ubatch: Annotated[int | None, _flag(_MEMORY, "Tokens computed at once. (default: 512)")]
    kv_unified: Annotated[
        str | None, _flag(_MEMORY, "One cache for all sequences: on or off. (default: on)")
    ]
    swa_full: Annotated[
        str | None,
        _flag(_MEMORY, "Full cache for sliding-window layers: on or off. (default: off)"),
    ]
    logits_rows: Annotated[int | None, _flag(_MEMORY, "Rows of logits kept. (default: the batch)")]
    backend: Annotated[
        str | None, _flag(_MEMORY, "CUDA, ROCm, Vulkan, Metal, SYCL. (default: by vendor)")
    ]
    depth: Annotated[
        int | None,
        _flag(_MEMORY, "Tokens already cached when speed is stated. (default: 0)"),
    ]
    draft_model: Annotated[str | None, _flag(_MEMORY, "A small model that drafts tokens.")]
    mtp: Annotated[
        int | None,
        _flag(
            _MEMORY,
            "Tokens that the model's own head drafts at once (multi-token prediction).",
        ),
    ]
    ram: Annotated[str | None, _flag(_HOST, "System RAM, for example 64GB.")]
    ram_bandwidth: Annotated[str | None, _flag(_HOST, "RAM bandwidth, for example 80GB/s.")]
    cpu_cores: Annotated[int | None, _flag(_HOST, "CPU cores.")]


_NEEDED = ("gpu", "model")
_READ: Mapping[str, Callable[[str, str | None], object]] = {
    "gpu_layers": count_or_all,
    "cpu_experts": count_or_all,
    "flash_attention": on_off,
    "kv_unified": on_off,
    "swa_full": on_off,
    "ram": read_size,
    "ram_bandwidth": read_bandwidth,
}


class Asked(Struct, frozen=True):
    """What the flags state; those that cannot be read are left out of the request."""

    request: Request
    wrong: Sequence[UserError] = ()

    def checked(self, knowledge: Knowledge) -> Request:
        """Give the request if every flag could be read.

        Raises:
            UserError: Every flag that could not, and everything wrong with the rest.
        """
        if self.wrong:
            from advisor.scenario.resolve import problems_of  # noqa: PLC0415  only where something is wrong

            raise_problems([*self.wrong, *problems_of(self.request, knowledge)])
        return self.request


def takes_request(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``asked`` of a command by the flags that state a request."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for one in inspect.signature(command).parameters.values():
        own = one.replace(annotation=hints[one.name], kind=inspect.Parameter.KEYWORD_ONLY)
        parameters += _flags() if one.name == "asked" else [own]
    names = {flag.name for flag in _flags()}

    def wrapped(**values: object) -> None:
        rest = {name: value for name, value in values.items() if name not in names}
        command(asked=read_flags({n: v for n, v in values.items() if n in names}), **rest)

    wrapped.__name__ = command.__name__
    wrapped.__doc__ = command.__doc__
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by inspect
    return wrapped


def _flags() -> list[inspect.Parameter]:
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(
            name,
            kind,
            annotation=hint,
            default=inspect.Parameter.empty if name in _NEEDED else None,
        )
        for name, hint in get_type_hints(Flags, include_extras=True).items()
    ]


def read_flags(values: Mapping[str, object]) -> Asked:
    """Read flags, by name, as they were typed."""
    reader = FlagReader()
    read = {SIZES.get(name, name): _value(reader, name, v) for name, v in values.items()}
    return Asked(Request(**read), reader.errors)  # type: ignore[arg-type]  # as ``Flags`` says


def _value(reader: FlagReader, name: str, value: object) -> object:
    flag = f"--{name.replace('_', '-')}"
    text = None if value is None else str(value)
    if name in _READ:
        return reader.take(_READ[name], flag, text)
    return reader.word(CHOICES[name], flag, text) if name in CHOICES else value
