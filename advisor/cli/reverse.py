"""``advisor models-for`` and ``advisor gpus-for``: the reverse questions."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Form(StrEnum):
    """How the answer is written."""

    table = "table"
    json = "json"
    csv = "csv"


_RUN = "How it is to run"
_ENOUGH = "What is good enough"
_HOST = "The computer around the card"
_WHICH = "Which ones"
_OUTPUT = "The answer"
_HUB = "Models that are not in the knowledge base"

_Precision = Annotated[
    list[str] | None,
    typer.Option(
        help="Weight format to be tried: Q4_K_M, AWQ, INT4 ...; repeatable. (default: all formats "
        "with a measured loss)",
        rich_help_panel=_RUN,
    ),
]
_Context = Annotated[
    int | None,
    typer.Option(
        help="Tokens per sequence. (default: 4096 or the trained length)", rich_help_panel=_RUN
    ),
]
_Batch = Annotated[
    int | None, typer.Option(help="Sequences held at once. (default: 1)", rich_help_panel=_RUN)
]
_KvCache = Annotated[
    str | None,
    typer.Option(help="KV-cache type: f16, q8_0, fp8 ... (default: f16)", rich_help_panel=_RUN),
]
_Framework = Annotated[
    str | None,
    typer.Option(
        help="llama.cpp, vLLM, transformers ... (default: for each format the first that runs it)",
        rich_help_panel=_RUN,
    ),
]
_Prefer = Annotated[
    str,
    typer.Option(
        help="quality: the least measured loss that fits. balanced and speed: the smallest format "
        "that loses little. Models are ranked by parameters, or with speed by tokens/s.",
        rich_help_panel=_ENOUGH,
    ),
]
_MinSpeed = Annotated[
    str | None,
    typer.Option(help="Tokens/s of one sequence, at least.", rich_help_panel=_ENOUGH),
]
_MaxLoss = Annotated[
    str | None,
    typer.Option(
        help="Perplexity increase of the weight format over FP16 in %, at most; or any. "
        "(default: 12, or any with --precision)",
        rich_help_panel=_ENOUGH,
    ),
]
_Unmeasured = Annotated[
    bool,
    typer.Option(
        "--unmeasured",
        help="Take formats whose loss nobody measured too. Always so with --framework or "
        "--precision.",
        rich_help_panel=_ENOUGH,
    ),
]
_Ram = Annotated[
    str | None,
    typer.Option(
        help="System RAM, for example 64GB: a part of what does not fit may lie there.",
        rich_help_panel=_HOST,
    ),
]
_RamBandwidth = Annotated[
    str | None, typer.Option(help="RAM bandwidth, for example 80GB/s.", rich_help_panel=_HOST)
]
_ReleasedAfter = Annotated[
    str | None,
    typer.Option(
        help="Released on this date or later: 2025, 2025-06 or 2025-06-30.", rich_help_panel=_WHICH
    ),
]
_Limit = Annotated[
    str, typer.Option(help="Most rows, or all.", metavar="N|all", rich_help_panel=_OUTPUT)
]
_Format = Annotated[
    Form, typer.Option("--format", help="How the answer is written.", rich_help_panel=_OUTPUT)
]
_Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write to this file.", rich_help_panel=_OUTPUT),
]
_Knowledge = Annotated[
    Path | None,
    typer.Option(help="Folder of knowledge, over the built-in one.", rich_help_panel=_OUTPUT),
]
_Gpu = Annotated[
    str,
    typer.Option(help='The card: a name ("RTX 4090"), NAME:SIZE ("M4 Pro:48GB"), or local.'),
]
_Gpus = Annotated[
    int | None, typer.Option(help="Number of equal cards. (default: 1)", rich_help_panel=_RUN)
]
_MinParams = Annotated[
    str | None,
    typer.Option(help="Parameters, at least: 7B, 500M.", rich_help_panel=_WHICH),
]
_MaxParams = Annotated[
    str | None, typer.Option(help="Parameters, at most.", rich_help_panel=_WHICH)
]
_Family = Annotated[
    str | None, typer.Option(help="Only this model family.", rich_help_panel=_WHICH)
]
_Modality = Annotated[
    str | None,
    typer.Option(help="text, vision, audio or embedding.", rich_help_panel=_WHICH),
]
_AllFormats = Annotated[
    bool,
    typer.Option(
        "--all-formats",
        help="A row for every format that fits, not only the best.",
        rich_help_panel=_OUTPUT,
    ),
]
_Model = Annotated[
    str,
    typer.Option(
        help="A known name or Hugging Face id, a folder with a config.json, or a .gguf or "
        ".safetensors file.",
    ),
]
_MostGpus = Annotated[
    int | None,
    typer.Option(
        help="Up to this many equal cards; the fewest that run it are listed. (default: 1)",
        rich_help_panel=_RUN,
    ),
]
_Vendor = Annotated[
    str | None, typer.Option(help="NVIDIA, AMD, Intel or Apple.", rich_help_panel=_WHICH)
]
_Form = Annotated[
    list[str] | None,
    typer.Option(
        help="desktop, workstation, laptop, datacenter, edge or unified (shared memory); "
        "repeatable.",
        rich_help_panel=_WHICH,
    ),
]
_MaxPrice = Annotated[
    str | None,
    typer.Option(
        help="Launch price of all cards together in US dollars, at most.",
        rich_help_panel=_WHICH,
    ),
]
_MaxPower = Annotated[
    str | None,
    typer.Option(help="Board power of all cards together in W, at most.", rich_help_panel=_WHICH),
]
_Hub = Annotated[
    bool,
    typer.Option(
        "--hub",
        help="Read an unknown model from Hugging Face: headers only. Needs the extra 'hub'.",
        rich_help_panel=_HUB,
    ),
]
_Offline = Annotated[
    bool,
    typer.Option(
        "--offline",
        help="Take only what --hub read before; never use the network.",
        rich_help_panel=_HUB,
    ),
]
_Sort = Annotated[
    str,
    typer.Option(
        help="price, memory, speed or power; unknown figures come last.",
        rich_help_panel=_OUTPUT,
    ),
]


def models_for(
    gpu: _Gpu,
    gpus: _Gpus = None,
    framework: _Framework = None,
    precision: _Precision = None,
    context: _Context = None,
    batch: _Batch = None,
    kv_cache: _KvCache = None,
    prefer: _Prefer = "quality",
    min_speed: _MinSpeed = None,
    max_loss: _MaxLoss = None,
    unmeasured: _Unmeasured = False,
    ram: _Ram = None,
    ram_bandwidth: _RamBandwidth = None,
    min_params: _MinParams = None,
    max_params: _MaxParams = None,
    family: _Family = None,
    modality: _Modality = None,
    released_after: _ReleasedAfter = None,
    all_formats: _AllFormats = False,
    limit: _Limit = "20",
    format_: _Format = Form.table,
    output: _Output = None,
    knowledge: _Knowledge = None,
) -> None:
    """List the best models and formats that run on a card.

    Quality here is only what the knowledge base holds: parameters, and how
    much a weight format raises perplexity, where that was measured. No
    benchmark scores are used: compare like with like by --released-after,
    --family and --modality.
    """
    from advisor.cli.reverse_output import Given, write_models  # noqa: PLC0415  start-up

    given = Given(
        framework, precision or (), context, batch, gpus, kv_cache, prefer, min_speed, max_loss,
        unmeasured, ram, ram_bandwidth, released_after, limit, format_.value, output, knowledge,
    )  # fmt: skip
    write_models(
        given, gpu, sizes=(min_params, max_params), family=family, modality=modality,
        all_formats=all_formats,
    )  # fmt: skip


def gpus_for(
    model: _Model,
    gpus: _MostGpus = None,
    framework: _Framework = None,
    precision: _Precision = None,
    context: _Context = None,
    batch: _Batch = None,
    kv_cache: _KvCache = None,
    prefer: _Prefer = "balanced",
    min_speed: _MinSpeed = None,
    max_loss: _MaxLoss = None,
    unmeasured: _Unmeasured = False,
    ram: _Ram = None,
    ram_bandwidth: _RamBandwidth = None,
    vendor: _Vendor = None,
    form: _Form = None,
    max_price: _MaxPrice = None,
    max_power: _MaxPower = None,
    released_after: _ReleasedAfter = None,
    hub: _Hub = False,
    offline: _Offline = False,
    sort: _Sort = "price",
    limit: _Limit = "20",
    format_: _Format = Form.table,
    output: _Output = None,
    knowledge: _Knowledge = None,
) -> None:
    """List the cards that run a model: the cheapest, smallest, fastest, and at which format.

    Prices are launch prices, and only those that a source states: most
    cards have none and stand behind those that have one.
    """
    from advisor.cli.reverse_output import Given, write_cards  # noqa: PLC0415  start-up

    given = Given(
        framework, precision or (), context, batch, gpus, kv_cache, prefer, min_speed, max_loss,
        unmeasured, ram, ram_bandwidth, released_after, limit, format_.value, output, knowledge,
    )  # fmt: skip
    write_cards(
        given, model, hub=hub, offline=offline, vendor=vendor, forms=form or (),
        most=(max_price, max_power), sort=sort,
    )  # fmt: skip
