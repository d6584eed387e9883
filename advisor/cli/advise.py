"""``advisor advise``: one report."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer
from msgspec.structs import replace

from advisor.cli.hub import local_model
from advisor.cli.inputs import (
    FlagReader,
    count_or_all,
    on_off,
    read_bandwidth,
    read_size,
)
from advisor.cli.own import NoMeasurements, measurements_of
from advisor.errors import raise_problems
from advisor.knowledge.types import SPLITS
from advisor.requests import number_problems
from advisor.scenario import Prefer, Request, Use

NOT_FITTING = 3


class Format(StrEnum):
    """How a report is written."""

    text = "text"
    markdown = "markdown"
    html = "html"
    json = "json"


class Length(StrEnum):
    """How much is said."""

    short = "short"
    standard = "standard"
    full = "full"


LENGTHS: Mapping[Length, Literal["short", "standard", "full"]] = {
    Length.short: "short",
    Length.standard: "standard",
    Length.full: "full",
}


_RUN = "What to run"
_MEMORY = "How it runs"
_HOST = "The computer around the card"
_OUTPUT = "The report"
_HUB = "Models that are not in the knowledge base"
_FILES = "Your own files"


def advise(
    gpu: Annotated[
        str,
        typer.Option(
            help='The card: a name ("RTX 4090"), NAME:SIZE ("M4 Pro:48GB"), or local. Several: '
            '"2x RTX 3090", "RTX 3090 + RTX 3060:12GB".',
            rich_help_panel=_RUN,
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="A known name or Hugging Face id, a folder with a config.json, or a .gguf or "
            ".safetensors file.",
            rich_help_panel=_RUN,
        ),
    ],
    precision: Annotated[
        str | None,
        typer.Option(
            help="Weight format: FP16, Q4_K_M, AWQ ..., or INT8 or INT4 for the best that runs. "
            "(default: FP16)",
            rich_help_panel=_RUN,
        ),
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(
            help="Tokens per sequence. (default: 4096 or the trained length)", rich_help_panel=_RUN
        ),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="Sequences held at once. (default: 1)", rich_help_panel=_RUN)
    ] = None,
    framework: Annotated[
        str | None,
        typer.Option(
            help="llama.cpp, vLLM, transformers ... (default: the first that runs it)",
            rich_help_panel=_RUN,
        ),
    ] = None,
    gpus: Annotated[
        int | None, typer.Option(help="Number of equal cards. (default: 1)", rich_help_panel=_RUN)
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="<word>",
            help="How several cards share the model: whole layers (a pipeline in servers), rows "
            "of every matrix (llama.cpp) or every tensor. (default: as the framework does)",
            rich_help_panel=_RUN,
        ),
    ] = None,
    prefer: Annotated[
        str | None,
        typer.Option(
            metavar="<word>",
            help="What matters most: balanced, quality, speed or cost. (default: balanced)",
            rich_help_panel=_RUN,
        ),
    ] = None,
    use: Annotated[
        str | None,
        typer.Option(
            metavar="<word>",
            help="How fast it has to be: interactive (read along), batch (left to run) or none. "
            "[default: interactive]",
            rich_help_panel=_RUN,
        ),
    ] = None,
    kv_cache: Annotated[
        str | None,
        typer.Option(
            help="KV-cache type: f16, q8_0, fp8 ... (default: f16)", rich_help_panel=_MEMORY
        ),
    ] = None,
    kv_cache_k: Annotated[
        str | None, typer.Option(help="Type of the K half alone.", rich_help_panel=_MEMORY)
    ] = None,
    kv_cache_v: Annotated[
        str | None, typer.Option(help="Type of the V half alone.", rich_help_panel=_MEMORY)
    ] = None,
    gpu_layers: Annotated[
        str | None,
        typer.Option(
            help="Layers on the card, a number or all. (default: all)", rich_help_panel=_MEMORY
        ),
    ] = None,
    cpu_experts: Annotated[
        str | None,
        typer.Option(
            help="Layers whose experts stay in RAM, a number or all. (default: 0)",
            rich_help_panel=_MEMORY,
        ),
    ] = None,
    flash_attention: Annotated[
        str | None,
        typer.Option(help="on or off. (default: on where supported)", rich_help_panel=_MEMORY),
    ] = None,
    ubatch: Annotated[
        int | None,
        typer.Option(help="Tokens computed at once. (default: 512)", rich_help_panel=_MEMORY),
    ] = None,
    kv_unified: Annotated[
        str | None,
        typer.Option(
            help="One cache for all sequences: on or off. (default: on)", rich_help_panel=_MEMORY
        ),
    ] = None,
    swa_full: Annotated[
        str | None,
        typer.Option(
            help="Full cache for sliding-window layers: on or off. (default: off)",
            rich_help_panel=_MEMORY,
        ),
    ] = None,
    logits_rows: Annotated[
        int | None,
        typer.Option(help="Rows of logits kept. (default: the batch)", rich_help_panel=_MEMORY),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            help="CUDA, ROCm, Vulkan, Metal, SYCL. (default: by vendor)", rich_help_panel=_MEMORY
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            help="Tokens already cached when speed is stated. (default: 0)", rich_help_panel=_MEMORY
        ),
    ] = None,
    draft_model: Annotated[
        str | None, typer.Option(help="A small model that drafts tokens.", rich_help_panel=_MEMORY)
    ] = None,
    mtp: Annotated[
        int | None,
        typer.Option(
            help="Tokens that the model's own head drafts at once (multi-token prediction).",
            rich_help_panel=_MEMORY,
        ),
    ] = None,
    ram: Annotated[
        str | None, typer.Option(help="System RAM, for example 64GB.", rich_help_panel=_HOST)
    ] = None,
    ram_bandwidth: Annotated[
        str | None, typer.Option(help="RAM bandwidth, for example 80GB/s.", rich_help_panel=_HOST)
    ] = None,
    cpu_cores: Annotated[int | None, typer.Option(help="CPU cores.", rich_help_panel=_HOST)] = None,
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar="<word>",
            help="How the report is written: text, markdown, html or json.",
            rich_help_panel=_OUTPUT,
        ),
    ] = Format.text,
    length: Annotated[
        Length,
        typer.Option(
            metavar="<word>",
            help="How much is said: short (at most 150 words), standard (at most 500) or full.",
            rich_help_panel=_OUTPUT,
        ),
    ] = Length.standard,
    memory: Annotated[
        bool,
        typer.Option(
            "--memory",
            help="Show how memory grows with context, and which contexts and batches fit.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    options: Annotated[
        bool,
        typer.Option(
            "--options", help="List every what-if that was estimated.", rich_help_panel=_OUTPUT
        ),
    ] = False,
    why: Annotated[
        bool,
        typer.Option(
            "--why",
            help="Show which rules fired, which did not, and by how much.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file.", rich_help_panel=_OUTPUT),
    ] = None,
    fail_unless_fits: Annotated[
        bool,
        typer.Option(
            "--fail-unless-fits",
            help="Exit 3 unless the verdict is 'fits'.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    hub: Annotated[
        bool,
        typer.Option(
            "--hub",
            help="Read an unknown model from Hugging Face: headers only. Needs the extra 'hub'.",
            rich_help_panel=_HUB,
        ),
    ] = False,
    offline: Annotated[
        bool,
        typer.Option(
            "--offline",
            help="Take only what --hub read before; never use the network.",
            rich_help_panel=_HUB,
        ),
    ] = False,
    rules: Annotated[
        Path | None,
        typer.Option(help="Folder of rules, over the built-in ones.", rich_help_panel=_FILES),
    ] = None,
    templates: Annotated[
        Path | None,
        typer.Option(help="Folder of templates, over the built-in ones.", rich_help_panel=_FILES),
    ] = None,
    knowledge: Annotated[
        Path | None,
        typer.Option(help="Folder of knowledge, over the built-in one.", rich_help_panel=_FILES),
    ] = None,
    no_measurements: NoMeasurements = False,
) -> None:
    """Say whether a model runs on a card, how well, and what to change."""
    read = FlagReader()
    request = Request(
        gpu=gpu,
        model=model,
        precision=precision,
        context=context,
        batch=batch,
        kv_cache=kv_cache,
        kv_cache_k=kv_cache_k,
        kv_cache_v=kv_cache_v,
        framework=framework,
        backend=backend,
        gpus=gpus,
        flash_attention=read.take(on_off, "--flash-attention", flash_attention),
        ubatch=ubatch,
        kv_unified=read.take(on_off, "--kv-unified", kv_unified),
        swa_full=read.take(on_off, "--swa-full", swa_full),
        gpu_layers=read.take(count_or_all, "--gpu-layers", gpu_layers),
        cpu_experts=read.take(count_or_all, "--cpu-experts", cpu_experts),
        logits_rows=logits_rows,
        depth=depth,
        ram_gib=read.take(read_size, "--ram", ram),
        ram_bandwidth_gb_s=read.take(read_bandwidth, "--ram-bandwidth", ram_bandwidth),
        cpu_cores=cpu_cores,
        draft_model=draft_model,
        mtp=mtp,
        prefer=read.word(get_args(Prefer), "--prefer", prefer),
        use=read.word(get_args(Use), "--use", use),
        split=read.word(SPLITS, "--split", split),
    )
    if read.errors:
        raise_problems([*read.errors, *number_problems(request)])
    from advisor.cli.show import write_report  # noqa: PLC0415
    from advisor.pipeline import Advisor  # noqa: PLC0415  start-up: --help must not pay for it
    from advisor.render import template_problems  # noqa: PLC0415

    if templates and templates.is_dir():
        raise_problems(template_problems(templates))
    advisor = Advisor.load(
        rules=rules,
        templates=templates,
        knowledge=knowledge,
        measurements=None if no_measurements else measurements_of(knowledge),
    )
    request = replace(
        request,
        model=local_model(model, advisor.knowledge, hub=hub, offline=offline),
        draft_model=draft_model
        and local_model(draft_model, advisor.knowledge, hub=hub, offline=offline),
    )
    advice = advisor.advise(request)
    write_report(
        advisor,
        advice,
        templates=templates,
        form=format_.value,
        length=LENGTHS[length],
        output=output,
        options=options,
        why=why,
        memory=memory,
    )
    if fail_unless_fits and advice.state != "fits":
        raise typer.Exit(NOT_FITTING)
