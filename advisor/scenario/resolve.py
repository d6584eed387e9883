"""Request -> Scenario: names looked up, defaults applied, everything checked at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.errors import Problems, RequestError, UserError, did_you_mean, raise_problems
from advisor.knowledge import names
from advisor.knowledge.catalogue import (
    ALONE,
    BACKEND_OF_WORD,
    BACKENDS,
    MAKERS,
    Cards,
    backends_of,
    cards_by,
    check_beside,
    default_backend,
    machines_said,
)
from advisor.knowledge.programs import SWITCHES
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge, KvType
from advisor.models import model_from_path, text_alone
from advisor.models.stored_tensors import Model
from advisor.reading import find_cards, requested_cards
from advisor.reading.known import ModelRead, is_mix, names_processor
from advisor.scenario import Scenario, impossible_split, offloads, support
from advisor.scenario.asked_format import (
    caches_asked,
    caches_kept,
    formats_for,
    is_own_dtype,
    precision_asked,
    server_caches,
    taken_said,
)
from advisor.scenario.asked_model import (
    draft_problems,
    find_model_named,
    is_of_library,
    model_named,
)
from advisor.scenario.choices import choose
from advisor.scenario.host import (
    RamPace,
    as_machine,
    asks_here,
    cards_here,
    either_of,
    pace_fields,
    raised_said,
    ram_pace,
    said_here,
    said_of,
    with_its_ram,
    with_processor,
)
from advisor.scenario.images import images_said, least_context, prompt_tokens, read_size
from advisor.scenario.instead import shared_otherwise, with_images
from advisor.scenario.settings import DEFAULT_UBATCH, Request, as_stated, number_problems
from advisor.units import GIB

DEFAULT_CONTEXT_TOKENS = 4096
_IMAGE_STEP = 256  # to which tokens of images are rounded up, where they make a context longer
NOTHING_STATED = Request()
_T = TypeVar("_T")
_In = TypeVarTuple("_In")


class _Found(Struct):
    """Errors collected while the rest of the request is still being read."""

    errors: list[UserError] = field(default_factory=list)

    def attempt(self, action: Callable[[*_In], _T], *given: *_In) -> _T | None:
        try:
            return action(*given)
        except UserError as error:
            self.errors.append(error)
            return None

    def given(self, text: str | None, find: Callable[[str], _T]) -> _T | None:
        """Look up what was stated; None where nothing was."""
        return self.attempt(find, text) if text else None


def resolve(request: Request, knowledge: Knowledge) -> Scenario:
    """Look up every name and apply the documented defaults.

    Raises:
        UserError: What is unknown, ambiguous or impossible; all of it at once (``Problems``).
    """
    request, problems = as_machine(request, knowledge), _Found(list(number_problems(request)))
    cards = problems.attempt(_cards_of, request, knowledge) if request.gpu else None
    gpu = cards.gpu if cards else None
    read = problems.attempt(_find_model, request, knowledge)
    framework = problems.given(request.framework, lambda one: names.sized_framework(knowledge, one))
    request, seen = with_images(request, framework, read.model if read else None)
    model = _found_model(request, read, framework) if read else None
    kv_types = problems.attempt(caches_asked, request, knowledge, framework)
    asked = problems.attempt(precision_asked, request, model, framework)
    formats = problems.attempt(formats_for, asked, model, knowledge) if asked else None
    backend = problems.attempt(_backend, request, gpu, knowledge)
    draft = problems.given(request.draft_model, lambda one: find_model_named(one, knowledge))
    pace = problems.attempt(ram_pace, request, gpu, knowledge)
    problems.given(request.image_size, read_size)
    raise_problems(problems.errors)
    assert model and read and formats and kv_types  # noqa: PT018
    precision, framework = choose(
        knowledge, formats, asked or "", framework=framework, gpu=gpu, model=model,
        split=asks_for_split(request.gpu_layers, request.cpu_experts),
        serves=server_caches(
            knowledge, request, asked or "", kv_types,
            on=(gpu, model, cards.count if cards and not cards.each else 0),
        ),
        cards=cards.count if cards else 1,
        beside_ram=bool(request.ram_gib and not request.framework),
    )  # fmt: skip
    mixed = read.mixed and precision.name == read.precision and not request.precision
    told = taken_said(request, read.precision, precision, framework, knowledge, on=(model, gpu))
    request, told = shared_otherwise(request, framework, told)
    scenario = assembled(
        request, cards=cards, model=model, precision=precision, framework=framework,
        kv_types=caches_kept(request, knowledge, framework, model, gpu),
        backend=backend,
        draft=draft,
        pace=pace,
        own_dtype=is_own_dtype(asked or "", precision),
        mixed=precision.name if mixed or is_mix(knowledge, asked or "") else "",
        read_as=(*_said(cards, read, draft), *said_here(request, cards, knowledge), *told, *seen),
    )  # fmt: skip
    raise_problems(list(_impossible(request, scenario, knowledge)))
    said = (*scenario.read_as, *said_of(pace), *_settings_said(scenario))
    return replace(scenario, read_as=said, stands_in=names.stands_in(knowledge, request.framework))


def _found_model(request: Request, read: ModelRead, framework: Framework | None) -> Model:
    """Give the model to size, of a library's file the one that the runtime reads."""
    model = text_alone(read.model) if request.text_only else read.model
    if framework and is_of_library(model) and model.held_format not in framework.formats:
        return replace(model, held_format=None)
    return model


def _said(cards: Cards | None, read: ModelRead, draft: Model | None) -> tuple[str, ...]:
    sized = [model.sized_as for model in (read.model, draft) if model and model.sized_as]
    return (*(cards.read_as if cards else ()), *read.said, *sized)


_OF_SERVERS = {
    "gpu_memory_utilization": "The server claims {:.4g} of each card, as stated.",
    "max_num_batched_tokens": "The server computes up to {:,} tokens in one step, as stated.",
    "eager": "The server runs without CUDA graphs, as stated.",
}


def _settings_said(scenario: Scenario) -> Iterator[str]:
    """Say what was stated of the memory beside the model."""
    if scenario.reserve_gib:
        yield f"{scenario.reserve_gib:g} GiB of each card is left to other programs, as stated."
    if scenario.text_only:
        yield "The part that reads images is left out, as stated."
    yield from images_said(scenario)
    framework = scenario.framework
    for name, sentence in _OF_SERVERS.items():
        if value := getattr(scenario, name):
            known = name not in SWITCHES or any(name in one.says for one in framework.commands)
            nothing = f"--{name.replace('_', '-')} changes nothing in {framework.name}."
            other = raised_said(scenario, name) or nothing
            yield sentence.format(value) if known and framework.serves_batches else other


def problems_of(request: Request, knowledge: Knowledge) -> Sequence[UserError]:
    """List what is wrong with a request, see ``resolve``."""
    try:
        resolve(request, knowledge)
    except UserError as error:
        return error.errors if isinstance(error, Problems) else [error]
    return []


def cards_asked(request: Request, knowledge: Knowledge) -> Cards:
    """Find the cards a request names; ``local`` asks this machine for its own.

    Raises:
        UserError: Unknown or ambiguous, none found here, or counted twice.
    """
    return _cards_of(with_processor(request, knowledge), knowledge)


def _cards_of(request: Request, knowledge: Knowledge) -> Cards:
    here = asks_here(request)
    found = cards_here(knowledge) if here else requested_cards(knowledge, request.gpu or "")
    cards = with_its_ram(either_of(request, found), request, knowledge)
    if cards.count == 1 and request.gpus in {None, 1}:
        return cards
    if not cards.counted:
        check_beside([cards.gpu] * min(count := request.gpus or cards.count, 2))
        return replace(cards, count=count, read_as=cards.read_as + machines_said(cards.gpu, count))
    several, rest = divmod(request.gpus or 0, cards.count)
    if several > 1 and not (rest or cards.each):  # of two machines, or a pair named twice over
        return replace(cards, count=request.gpus)
    if request.gpus is not None and request.gpus != cards.count:
        raise RequestError(
            f"gpus is {request.gpus}, but '{request.gpu}' names {cards.count} cards",
            hint=f"Leave gpus out{', or name the cards' if here else ''}.",
        )
    return cards


def _find_model(request: Request, knowledge: Knowledge) -> ModelRead:
    if request.config:
        return ModelRead(model_from_path(Path(request.config)))
    if not request.model:
        raise RequestError("no model is named", hint="Add --model, for example --model llama-3-8b.")
    return model_named(request.model, knowledge)


def _of_graphics(error: RequestError, request: Request, knowledge: Knowledge) -> RequestError:
    """Answer with the graphics of a processor where they are known, else with the processor."""
    try:
        find_cards(knowledge, beside := f"{request.cpu or request.gpu} iGPU")
    except UserError:
        return error.answered("What follows is computed on the processor.", backend=None)
    return error.answered("What follows is of the graphics in it.", gpu=beside)


def _backend(request: Request, gpu: Gpu | None, knowledge: Knowledge) -> str | None:
    asked = request.backend or (request.framework and names.backend_beside(request.framework))
    stands_in = gpu is not None and gpu.vendor == ALONE and not names_processor(request.gpu or "")
    if not asked or stands_in:  # the processor, for graphics beside it
        return default_backend(gpu) if gpu else None
    word = (asked.split() or [""])[0].casefold()
    words = {**BACKEND_OF_WORD, **{name.casefold(): name for name in BACKENDS}}
    if not (backend := words.get(word)):
        known = did_you_mean(word, BACKENDS) or f"Known: {', '.join(BACKENDS)}."
        raise RequestError(f"unknown backend '{request.backend}'", hint=known)
    if gpu and backend not in MAKERS[gpu.vendor].backends:
        runs = " or ".join(MAKERS[gpu.vendor].backends)
        error = RequestError(f"{backend} does not run on {gpu.name}", hint=f"Use {runs}.")
        raise _of_graphics(error, request, knowledge) if gpu.vendor == ALONE else error
    return backend


def default_context(model: Model, request: Request = NOTHING_STATED) -> int:
    """The context used when none is stated, tokens; a depth and images of a prompt come beside."""
    beside = -(-(prompt_tokens(model, request) or 0) // _IMAGE_STEP) * _IMAGE_STEP
    tokens = DEFAULT_CONTEXT_TOKENS * (1 + (request.depth or 0) // DEFAULT_CONTEXT_TOKENS) + beside
    return min(tokens, model.trained_context_tokens or tokens)


def default_ubatch(model: Model, framework: Framework, context_tokens: int) -> int:
    """Tokens that llama.cpp computes at once: its default, for an encoder a whole input.

    An encoder looks at a whole input, so llama-server refuses longer ones (llama.cpp PR 7389).
    """
    whole = model.shape.role == "encoder" and framework.whole_inputs
    return max(DEFAULT_UBATCH, context_tokens) if whole else DEFAULT_UBATCH


def assembled(
    request: Request,
    *,
    cards: Cards | None,
    model: Model,
    precision: Format,
    framework: Framework,
    kv_types: tuple[KvType, KvType],
    backend: str | None,
    draft: Model | None = None,
    pace: RamPace | None = None,
    own_dtype: bool = False,
    mixed: str = "",
    read_as: tuple[str, ...] = (),
) -> Scenario:
    """Apply the documented defaults to what was looked up."""
    batch = request.batch or 1
    context = request.context or default_context(model, request)
    flash = request.flash_attention
    return Scenario(
        gpu=cards.gpu if cards else None,
        gpus=cards.count if cards else request.gpus or 1,
        model=model,
        precision=precision,
        context_tokens=context,
        batch=batch,
        kv_cache_k=kv_types[0],
        kv_cache_v=kv_types[1],
        framework=framework,
        backend=backend,
        flash_attention=framework.flash_attention is not False if flash is None else flash,
        ubatch=request.ubatch or default_ubatch(model, framework, context),
        kv_unified=True if request.kv_unified is None else request.kv_unified,
        swa_full=bool(request.swa_full),
        gpu_layers=layers_on_cards(request.gpu_layers, model),
        cpu_experts=layers_of_experts(request.cpu_experts, model),
        logits_rows=request.logits_rows or batch,
        slots=request.batch or 0,
        depth_tokens=request.depth or 0,
        ram_bytes=round(request.ram_gib * GIB) if request.ram_gib else None,
        **pace_fields(pace),
        prefer=request.prefer or "balanced",
        draft_model=draft,
        mtp=request.mtp or 0,
        use=request.use or "interactive",
        cards=cards.each if cards else (),
        own_dtype=own_dtype,
        mixed=mixed,
        read_as=read_as,
        **as_stated(request),
    )


def asks_for_split(gpu_layers: object, cpu_experts: object) -> bool:
    """Whether these settings of a request leave something in system RAM, whatever the model."""
    return gpu_layers not in {None, "all"} or cpu_experts not in {None, 0}


def layers_on_cards(stated: object, model: Model) -> int | None:
    """Give the layers that a model has on the cards; None: all of them."""
    return stated if isinstance(stated, int) and stated <= model.shape.layers else None


def layers_of_experts(stated: object, model: Model) -> int:
    """Give the layers of a model whose experts stay in system RAM."""
    if stated == "all":
        return model.shape.layers
    return min(stated, model.shape.layers) if isinstance(stated, int) else 0


def _impossible(request: Request, scenario: Scenario, knowledge: Knowledge) -> Iterator[UserError]:
    yield from _cannot_place(request, scenario)
    gpu, backend = scenario.gpu, scenario.backend
    usual = gpu is None or backend == default_backend(gpu)
    if gpu and not usual and backend not in (known := backends_of(gpu, scenario.framework)):
        yield RequestError(
            f"{scenario.framework.name} does not compute with {backend} on {cards_by(gpu.vendor)}",
            hint=f"Use {' or '.join(known)}, or llama.cpp.",
        )
    if scenario.depth_tokens > scenario.context_tokens:
        yield RequestError(
            f"depth is {scenario.depth_tokens:,}, the context {scenario.context_tokens:,}",
            hint="Give a depth of at most the context.",
        )
    if least_context(scenario) > max(scenario.context_tokens, scenario.depth_tokens + 1):
        yield RequestError(
            f"the images of a prompt take {least_context(scenario) - 1:,} tokens, the context is "
            f"{scenario.context_tokens:,}",
            hint="Give a longer context, or fewer or smaller images.",
        )
    yield from impossible_split(scenario)
    yield from support.cache_problems(scenario)
    yield from draft_problems(scenario, knowledge)


def _cannot_place(request: Request, scenario: Scenario) -> Iterator[UserError]:
    framework = scenario.framework
    for name in ("gpu_layers", "cpu_experts"):
        value = getattr(request, name)
        if isinstance(value, int) and value < 0:
            yield RequestError(f"{name} is {value}", hint="Give 0 or more, or all.")
        if isinstance(value, str) and value != "all":
            yield RequestError(f"{name} is '{value}'", hint="Give a whole number or all.")
    if scenario.gpu and scenario.gpu.unified_memory and offloads(scenario):
        yield RequestError(
            f"{scenario.gpu.name} shares one memory with the processor: parts kept off the GPU "
            "take the same memory",
            hint="Leave gpu_layers and cpu_experts out.",
        )
    if scenario.gpu_layers is not None and not framework.places_layers:
        yield RequestError(
            f"{framework.name} does not place single layers",
            hint="Leave gpu_layers out, or use llama.cpp.",
        )
    if scenario.cpu_experts and not framework.expert_offload:
        yield RequestError(
            f"{framework.name} cannot keep experts in system RAM",
            hint="Leave cpu_experts out, or use llama.cpp.",
        )
    if scenario.cpu_experts and not scenario.model.shape.moe:
        yield RequestError(f"{scenario.model.name} has no experts", hint="Leave cpu_experts out.")


def apply_change(request: Request, change: dict[str, object]) -> Request:
    """Apply a recommendation's ``change`` to the request, ready to run again."""
    return replace(request, **change)
