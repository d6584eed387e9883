"""``advisor models-for`` and ``advisor gpus-for``: the reverse questions, read and asked."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from inspect import Parameter
from pathlib import Path
from typing import Annotated, get_type_hints

import typer
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields, replace

from advisor import reverse
from advisor.cli.options import (
    KNOWLEDGE,
    Hub,
    Offline,
    flag_of,
    layers_option,
    names_of,
    read_flags,
    spread,
)
from advisor.cli.reverse_output import write_cards, write_models
from advisor.errors import RequestError, raise_problems
from advisor.knowledge import load_knowledge
from advisor.knowledge.field_kinds import is_date
from advisor.knowledge.merit import USES
from advisor.reading.model_names import local_model
from advisor.reverse import Settings
from advisor.reverse.answers import NO_LIMIT, Reader
from advisor.units import UnitError, parse_quantity

_RUN = "How it is to run"
_ENOUGH = "What is good enough"
_HOST = "The computer around the card"
_FLAGS = (
    "framework", "context", "batch", "kv_cache", "ram", "ram_type", "ram_bandwidth", "cpu",
    "gpu_memory_utilization", "max_num_batched_tokens", "eager", "text_only", "images",
    "image_size", "reserve",
)  # fmt: skip
_WHICH = "Which ones"
_HUB = "Models that are not in the knowledge base"
_OUTPUT = "The answer"
_PREFER = (
    "quality: the least measured loss that fits and is fast enough. balanced and speed: the "
    "smallest format that loses little. Models are ranked by merit, or with speed by tokens/s."
)
_CARDS = 4
"""Equal cards of each kind that are tried where no number was stated: what one board takes."""
_PANELS = (None, _RUN, _ENOUGH, _HOST, _WHICH, _HUB, _OUTPUT)


class Form(StrEnum):
    """How the answer is written."""

    table = "table"
    json = "json"
    csv = "csv"


class Given(Struct, frozen=True, kw_only=True):
    """The flags both commands share, as typed."""

    framework: Annotated[
        str | None,
        flag_of("framework", panel=_RUN, default="for each format the first that runs it"),
    ] = None
    precision: Annotated[
        list[str] | None,
        typer.Option(
            help="Weight format to be tried: Q4_K_M, AWQ, INT4 ...; repeatable. (default: all "
            "formats with a measured loss)",
            rich_help_panel=_RUN,
            autocompletion=names_of("precision"),
        ),
    ] = None
    context: Annotated[
        int | None, flag_of("context", panel=_RUN, default="what the use takes, else 4096")
    ] = None
    batch: Annotated[int | None, flag_of("batch", panel=_RUN)] = None
    kv_cache: Annotated[str | None, flag_of("kv_cache", panel=_RUN)] = None
    gpu_memory_utilization: Annotated[str | None, flag_of("gpu_memory_utilization", panel=_RUN)] = (
        None
    )
    max_num_batched_tokens: Annotated[int | None, flag_of("max_num_batched_tokens", panel=_RUN)] = (
        None
    )
    eager: Annotated[str | None, flag_of("eager", panel=_RUN)] = None
    text_only: Annotated[str | None, flag_of("text_only", panel=_RUN)] = None
    images: Annotated[int | None, flag_of("images", panel=_RUN)] = None
    image_size: Annotated[str | None, flag_of("image_size", panel=_RUN)] = None
    reserve: Annotated[str | None, flag_of("reserve_gib", panel=_RUN)] = None
    for_: Annotated[
        str | None,
        typer.Option(
            "--for",
            help=f"What the model is for: {', '.join(USES)}. Sets the context and the speed that "
            "suffice, and for models the leaderboards that count. (default: chat for models)",
            rich_help_panel=_ENOUGH,
            autocompletion=names_of("for", USES),
        ),
    ] = None
    min_speed: Annotated[
        str | None,
        typer.Option(help="Tokens/s of one sequence, at least.", rich_help_panel=_ENOUGH),
    ] = None
    max_loss: Annotated[
        str | None,
        typer.Option(
            help="Perplexity increase of the weight format over FP16 in %, at most; or any. "
            "(default: 12, or any with --precision)",
            rich_help_panel=_ENOUGH,
        ),
    ] = None
    unmeasured: Annotated[
        bool,
        typer.Option(
            "--unmeasured",
            help="Take formats whose loss nobody measured too. Always so with --framework or "
            "--precision.",
            rich_help_panel=_ENOUGH,
        ),
    ] = False
    ram: Annotated[
        str | None,
        typer.Option(
            help='System RAM, for example 64GB or "64GB DDR5-6000 x2": a part of what does not '
            "fit may lie there.",
            rich_help_panel=_HOST,
        ),
    ] = None
    ram_type: Annotated[str | None, flag_of("ram_type", panel=_HOST)] = None
    ram_bandwidth: Annotated[str | None, flag_of("ram_bandwidth_gb_s", panel=_HOST)] = None
    cpu: Annotated[str | None, flag_of("cpu", panel=_HOST)] = None
    released_after: Annotated[
        str | None,
        typer.Option(
            help="Released on this date or later: 2025, 2025-06 or 2025-06-30.",
            rich_help_panel=_WHICH,
        ),
    ] = None
    limit: Annotated[
        str, typer.Option(help="Most rows, or all.", metavar="N|all", rich_help_panel=_OUTPUT)
    ] = "10"
    format_: Annotated[
        Form, typer.Option("--format", help="How the answer is written.", rich_help_panel=_OUTPUT)
    ] = Form.table
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file.", rich_help_panel=_OUTPUT),
    ] = None
    knowledge: Annotated[list[Path] | None, layers_option(KNOWLEDGE, _OUTPUT)] = None


class GivenModels(Given, frozen=True, kw_only=True):
    """The flags of ``models-for``."""

    gpu: Annotated[str, flag_of("gpu", panel=None)]
    gpus: Annotated[int | None, flag_of("gpus", panel=_RUN)] = None
    prefer: Annotated[str, typer.Option(help=_PREFER, rich_help_panel=_ENOUGH)] = "quality"
    min_params: Annotated[
        str | None, typer.Option(help="Parameters, at least: 7B, 500M.", rich_help_panel=_WHICH)
    ] = None
    max_params: Annotated[
        str | None, typer.Option(help="Parameters, at most.", rich_help_panel=_WHICH)
    ] = None
    family: Annotated[
        str | None, typer.Option(help="Only this model family.", rich_help_panel=_WHICH)
    ] = None
    modality: Annotated[
        str | None,
        typer.Option(help="text, vision, audio or embedding.", rich_help_panel=_WHICH),
    ] = None
    licence: Annotated[
        list[str] | None,
        typer.Option(
            help="Only models of this licence: apache-2.0, mit ...; repeatable.",
            rich_help_panel=_WHICH,
        ),
    ] = None
    all_formats: Annotated[
        bool,
        typer.Option(
            "--all-formats",
            help="A row for every format that fits, not only the best.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False


class GivenCards(Given, frozen=True, kw_only=True):
    """The flags of ``gpus-for``."""

    model: Annotated[str, flag_of("model", panel=None)]
    gpus: Annotated[
        int | None,
        typer.Option(
            help="Up to this many equal cards; the fewest that run it are listed. "
            f"(default: {_CARDS})",
            rich_help_panel=_RUN,
        ),
    ] = None
    prefer: Annotated[str, typer.Option(help=_PREFER, rich_help_panel=_ENOUGH)] = "balanced"
    vendor: Annotated[
        str | None, typer.Option(help="NVIDIA, AMD, Intel or Apple.", rich_help_panel=_WHICH)
    ] = None
    form: Annotated[
        list[str] | None,
        typer.Option(
            help="desktop, workstation, laptop, datacenter, edge or unified (shared memory); "
            "repeatable.",
            rich_help_panel=_WHICH,
        ),
    ] = None
    max_price: Annotated[
        str | None,
        typer.Option(
            help="Launch price of all cards together in US dollars, at most.",
            rich_help_panel=_WHICH,
        ),
    ] = None
    max_power: Annotated[
        str | None,
        typer.Option(
            help="Board power of all cards together in W, at most.", rich_help_panel=_WHICH
        ),
    ] = None
    hub: Hub = False
    offline: Offline = False
    sort: Annotated[
        str,
        typer.Option(
            help="price, memory, speed or power; unknown figures come last.",
            rich_help_panel=_OUTPUT,
        ),
    ] = "price"


def _takes_given(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``given`` by its fields as flags, in the order of panels."""
    kind: type[Given] = get_type_hints(command)["given"]
    hints = get_type_hints(kind, include_extras=True)
    defaults = {one.name: one.default for one in fields(kind)}
    flags = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            annotation=hints[name],
            default=Parameter.empty if defaults[name] is NODEFAULT else defaults[name],
        )
        for name in (*kind.__annotations__, *Given.__annotations__)
    ]
    flags.sort(key=lambda flag: _PANELS.index(flag.annotation.__metadata__[0].rich_help_panel))
    return spread(command, "given", flags, lambda values: kind(**values))  # type: ignore[arg-type]  # its fields


@_takes_given
def models_for(given: GivenModels) -> None:
    """List the best models and formats that run on a card or cards.

    The best are those that public leaderboards rate highest for the use
    (--for), less what the weight format costs, with room for the context
    and the speed that the use takes.

    Example: advisor models-for --gpu "RTX 4070" --for code
    """
    reader, known = Reader(), load_knowledge(given.knowledge)
    settings = _settings(given, given.gpus, given.prefer, reader)
    limit = _limit(reader, given.limit)
    wanted = reverse.ModelFilter(
        family=given.family,
        modality=given.modality,
        min_parameters=_number(reader, "--min-params", given.min_params, "parameters", 1e9),
        max_parameters=_number(reader, "--max-params", given.max_params, "parameters", 1e9),
        released_from=_date(reader, given.released_after),
        licences=given.licence or (),
    )
    answer = reader.attempt(
        lambda: reverse.models_for(
            given.gpu, settings, wanted, known, limit=limit, all_formats=given.all_formats
        )
    )
    raise_problems(reader.errors)
    assert answer
    write_models(*answer, known, form=given.format_.value, output=given.output)


@_takes_given
def gpus_for(given: GivenCards) -> None:
    """List the cards that run a model: the cheapest, smallest, fastest, and at which format.

    Prices are launch prices, and only those that a source states: most
    cards have none and stand behind those that have one.

    Example: advisor gpus-for --model qwen3-32b --vendor AMD
    """
    reader, known = Reader(), load_knowledge(given.knowledge)
    settings = _settings(given, given.gpus or _CARDS, given.prefer, reader)
    limit = _limit(reader, given.limit)
    wanted = reverse.CardFilter(
        vendor=given.vendor,
        forms=given.form or (),
        max_price_usd=_number(reader, "--max-price", given.max_price, "money"),
        max_power_w=_number(reader, "--max-power", given.max_power, "power"),
        released_from=_date(reader, given.released_after),
    )
    answer = reader.attempt(
        lambda: reverse.gpus_for(
            local_model(given.model, known, hub=given.hub, offline=given.offline),
            settings,
            wanted,
            known,
            sort=given.sort,
            limit=limit,
        )
    )
    raise_problems(reader.errors)
    assert answer
    write_cards(*answer, known, form=given.format_.value, output=given.output)


def _settings(given: Given, gpus: int | None, prefer: str, reader: Reader) -> Settings:
    loss = given.max_loss
    asked = read_flags({name: getattr(given, name) for name in _FLAGS})
    reader.errors += asked.wrong
    any_loss = loss is not None and loss.strip().casefold() == "any"
    return Settings(
        request=replace(asked.request, gpus=gpus),
        precisions=given.precision or (),
        min_speed_tok_s=_number(reader, "--min-speed", given.min_speed, "rate"),
        max_loss_percent=NO_LIMIT if any_loss else _number(reader, "--max-loss", loss, "share"),
        unmeasured=given.unmeasured,
        prefer=prefer,
        use=given.for_,
    )


def _number(
    reader: Reader, flag: str, text: str | None, dimension: str, bare: float = 1.0
) -> float | None:
    """Read a quantity; a number without a unit counts ``bare`` base units."""
    if text is None:
        return None
    try:
        quantity = parse_quantity(text.strip().removeprefix("$"))
    except UnitError as error:
        reader.errors.append(RequestError(f"{flag}: {error}"))
        return None
    if quantity.dimension == "count":
        return quantity.value * bare
    if quantity.dimension == dimension:
        return quantity.value
    hint = f"Write a number, for example {_EXAMPLES[dimension]}."
    reader.errors.append(RequestError(f"{flag} is '{text}'", hint=hint))
    return None


_EXAMPLES = {
    "parameters": "7B",
    "money": "2000",
    "power": "300W",
    "rate": "20",
    "share": "5",
}


def _limit(reader: Reader, text: str) -> int | None:
    if text.strip().casefold() == "all":
        return None
    if text.strip().isdecimal() and int(text) > 0:
        return int(text)
    reader.errors.append(RequestError(f"--limit is '{text}'", hint="Write 1 or more, or all."))
    return None


def _date(reader: Reader, text: str | None) -> str | None:
    if text is None or is_date(text.strip()):
        return text and text.strip()
    hint = "Write 2025, 2025-06 or 2025-06-30."
    reader.errors.append(RequestError(f"--released-after is '{text}'", hint=hint))
    return None
