"""Everything that comes before the rules: request -> scenario -> estimate -> what-ifs -> facts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice.facts import (
    break_even_facts,
    cleaned,
    option_facts,
    proof_facts,
    scenario_facts,
)
from advisor.errors import RequestError, UserError, raise_problems
from advisor.estimator.limits import find_limits, first_batch_too_large, smallest_capacity_bytes
from advisor.estimator.placement import host_fits
from advisor.estimator.speed import estimate_speed
from advisor.knowledge import names
from advisor.knowledge.catalogue import MAKERS
from advisor.knowledge.index import plain_key
from advisor.knowledge.types import Framework, Gpu, Knowledge
from advisor.knowledge.vocabulary import FactValue
from advisor.models.stored_tensors import Model
from advisor.reading import requested_cards
from advisor.reading.known import siblings, with_size
from advisor.remedies import build_options
from advisor.remedies.assessment import outlook_of
from advisor.remedies.cards import fewest_cards, fewest_in_turns, with_smaller_card
from advisor.remedies.formats import largest_format
from advisor.remedies.impossible import expected_options, proof_of, resolved
from advisor.remedies.levers import slow_drafter
from advisor.remedies.machines import as_asked, least
from advisor.remedies.option import Base, Option
from advisor.remedies.sharing import on_fewest, options_on_fewest
from advisor.rules.engine.base import OptionFacts
from advisor.runtimes import runtime_of
from advisor.scenario import Scenario, capability, support, with_batch
from advisor.scenario.asked_model import find_model_named, model_named
from advisor.scenario.capability import is_obtainable
from advisor.scenario.figures import BreakEven, Limits
from advisor.scenario.host import asks_here, with_processor, with_ram_here
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from advisor.units import GIB, gib


class Prepared(Struct, frozen=True):
    """A request as rules see it: estimated, with every what-if, as facts."""

    base: Base
    limits: Limits
    options: tuple[Option, ...]
    edges: BreakEven
    facts: Mapping[str, FactValue]
    option_facts: Sequence[OptionFacts]


_NO_GPU = RequestError("no GPU is named", hint='Add --gpu, for example --gpu "RTX 4090".')


def _other_problems(request: Request, knowledge: Knowledge) -> Sequence[UserError]:
    try:
        resolve(request, knowledge)
    except UserError as error:
        return [error]
    return []


def prepare(
    request: Request, knowledge: Knowledge, first: Request | None = None, *, all_cards: bool = False
) -> Prepared:
    """Do everything that comes before the rules; the rest as ``Advisor.advise`` has it.

    Raises:
        UserError: The request is wrong.
    """
    if not request.gpu:
        raise_problems([_NO_GPU, *_other_problems(request, knowledge)])
    base = estimate(request, knowledge, all_cards=True)
    if first:
        stated = first.framework and names.sized_framework(knowledge, first.framework)
        base = _unstated(replace(base, gave_way=stated or None, first=first))
    now = base if all_cards else on_fewest(base)
    limits = find_limits(base.scenario, knowledge, base.memory)
    options = build_options(base, limits)
    if now is not base:
        limits = find_limits(now.scenario, knowledge, now.memory)
    return _with_facts(now, limits, options if all_cards else options_on_fewest(base, now, options))


def _with_facts(base: Base, limits: Limits, options: tuple[Option, ...]) -> Prepared:
    edges = _break_even(base, limits, options)
    tried = option_facts(base, options)
    facts = {**scenario_facts(base, limits, options, tried), **cleaned(break_even_facts(edges))}
    return Prepared(base, limits, options, edges, facts, tried)


def with_last_resort(ready: Prepared) -> Prepared:
    """Add the last resort, or the proof that there is none, where rules bar all that fits."""
    known = {option.key for option in ready.options}
    found = (*as_asked(ready.base), *least(ready.base))
    more = tuple({one.key: one for one in found if one.key not in known}.values())
    if more:
        return _with_facts(ready.base, ready.limits, (*ready.options, *more))
    proof = proof_facts(proof_of(ready.base, ()))
    return replace(ready, facts={**ready.facts, **cleaned(proof)})


def _break_even(base: Base, limits: Limits, options: Sequence[Option]) -> BreakEven:
    """Say where a request tips over, all else as it is; what was sized already is not again."""
    if base.memory.usable_bytes is None:
        return BreakEven(limits.max_context_tokens, base.memory.deficit_bytes)
    largest = largest_format(base, options)
    found = BreakEven(
        max_context_tokens=limits.max_context_tokens,
        missing_bytes=base.memory.deficit_bytes,
        too_large_batch=first_batch_too_large(base.scenario, limits, base.memory),
        largest_format=largest[0].name if largest else None,
        largest_format_bits=largest[1].bits_per_weight if largest else None,
        fewest_gpus=fewest_cards(base, options),
        fewest_in_turns=fewest_in_turns(base, options),
        smallest_capacity_bytes=smallest_capacity_bytes(base.scenario, base.knowledge, base.memory),
    )
    return with_smaller_card(base, options, found)


def all_option_facts(ready: Prepared) -> Sequence[OptionFacts]:
    """Give the facts of the what-ifs and of what people look for and cannot run here."""
    expected = {option.key: option.facts for option in expected_options(ready.base)}
    return [*ready.option_facts, *[OptionFacts(key, of) for key, of in expected.items()]]


def estimate(request: Request, knowledge: Knowledge, *, all_cards: bool = False) -> Base:
    """Resolve and estimate a request, without options or rules.

    On the fewest of its cards that do as well, or on ``all_cards`` of them.

    Raises:
        UserError: The request is wrong.
    """
    request = with_ram_here(request)
    scenario = resolved(request, knowledge)
    if request.framework and names.sized_framework(knowledge, request.framework) is None:
        request = replace(request, framework=None)  # nothing of it is known that could be kept
    now = outlook_of(scenario, knowledge)
    speed = now.speed
    if not now.fits and host_fits(scenario, now.memory):
        speed = estimate_speed(scenario, now.memory, knowledge)
    base = Base(request, scenario, now.memory, speed, knowledge)
    return base if all_cards else on_fewest(base)


def _unstated(base: Base) -> Base:
    """Take the framework as chosen, not stated, where the rest of the request leads to it, too."""
    open_to_others = replace(base.request, framework=None)
    with suppress(UserError):
        now = resolved(open_to_others, base.knowledge)
        if (now.framework, now.precision) == (base.scenario.framework, base.scenario.precision):
            return replace(base, request=open_to_others)
    return base


_MOST_MEANT = 8
_SIZED = re.compile(r"\d\s*(GB|GiB)\b", re.IGNORECASE)


def request_warnings(base: Base) -> tuple[str, ...]:
    """Say what the user may not have meant: a sibling card, a context beyond training."""
    scenario = base.scenario
    found = list(model_warnings(scenario.model, scenario.context_tokens))
    found += variant_warnings(base.request, scenario, base.knowledge)
    if scenario.batch > 1 and (why := support.in_turn(scenario)):
        said = f"{scenario.framework.name} answers one request at a time here"
        found.append(f"{said}: {why}. All are sized at once.")
    if scenario.draft_model and (why := slow_drafter(scenario)):
        found.append(f"{why}. The span told is that of other programs.")
    if not any(line.startswith(f"'{base.request.model}'") for line in scenario.read_as):
        found += published_warnings(base.request, scenario)
    found += context_warnings(base)
    found += model_meanings(base)
    speeds = base.knowledge.user_speeds
    if speeds and scenario.gpu and any(scenario.gpu.name == key.gpu for key in speeds.factors):
        found.append(
            f"Speeds on the {scenario.gpu.name} follow your own measurements; "
            "`--no-measurements` leaves them out."
        )
    asked = with_processor(base.request, base.knowledge).gpu or ""
    read = None if asks_here(base.request) or not asked else requested_cards(base.knowledge, asked)
    if read and read.read_as:
        return (*found, *meaning_warnings(base, read.others))
    for gpu in {gpu.name: gpu for gpu in scenario.cards or (scenario.gpu,) if gpu}.values():
        found += card_warnings(base.knowledge, asked, gpu)
    if scenario.gpu and not scenario.cards and not _SIZED.search(asked):
        found += meaning_warnings(base, siblings(base.knowledge, scenario.gpu))
    return tuple(found)


def meaning_warnings(base: Base, others: Sequence[Gpu]) -> Iterator[str]:
    """Say where the verdict depends on which card or memory an ambiguous name means."""
    scenario, gpu = base.scenario, base.scenario.gpu
    if gpu is None or base.memory.usable_bytes is None:
        return
    fitting: dict[bool, list[str]] = {True: [], False: []}
    for other in (gpu, *others[:_MOST_MEANT]):
        fits = outlook_of(replace(scenario, gpu=other), base.knowledge).fits
        size = f"{other.vram_bytes / GIB:g} GB" if other.vram_bytes else ""
        shown = other.name if size in other.name else f"{other.name} with {size}"
        fitting[fits].append(shown)
    if fitting[True] and fitting[False]:
        yield (
            f"The name decides the verdict: it fits on {', '.join(fitting[True])}, and not on "
            f"{', '.join(fitting[False])}. Write the full name or NAME:SIZE."
        )


def model_meanings(base: Base) -> Iterator[str]:
    """Say where the verdict depends on which model a name without its version means."""
    if base.memory.usable_bytes is None or not base.scenario.read_as or not base.request.model:
        return
    others = model_named(base.request.model, base.knowledge).others[:_MOST_MEANT]
    fitting: dict[bool, list[str]] = {True: [], False: []}
    named = (base.scenario.model, *(find_model_named(name, base.knowledge) for name in others))
    for model in named if others else ():
        here = replace(base.scenario, model=model)
        fitting[outlook_of(here, base.knowledge).fits].append(model.name)
    if fitting[True] and fitting[False]:
        yield (
            f"The name decides the verdict: {', '.join(fitting[True])} fits, and "
            f"{', '.join(fitting[False])} does not. Write the full name."
        )


def model_warnings(model: Model, context_tokens: int) -> Iterator[str]:
    """Say what a model's files say about themselves, and what its training says of a context."""
    yield from model.notes
    trained = model.trained_context_tokens
    if trained and context_tokens > trained:
        yield (
            f"{model.name} is configured for {trained:,} tokens; {context_tokens:,} were asked for."
        )
    if trained is None:
        yield f"The trained context length of {model.name} is not known."


def variant_warnings(request: Request, scenario: Scenario, knowledge: Knowledge) -> Iterator[str]:
    """Say that the program asked for is sized as another, and what it runs only elsewhere."""
    framework, base = scenario.framework, scenario.framework.name
    chip = scenario.gpu.architecture if scenario.gpu else ""
    row = capability.asked(framework, "model", "", scenario.gpu, scenario.model.shape)
    for name in (chip, row.name if row else ""):
        if name in framework.beyond:
            yield f"{framework.beyond[name]}."
    if not request.framework:
        return
    asked = names.framework_meant(knowledge, request.framework) or framework
    told = request.framework if asked is framework else asked.name
    if asked.loads_with and framework is not asked:
        yield f"{asked.name} loads models with several programs; {base} is the one that is sized."
        yield from (f"{asked.beyond[name]}." for name in (base,) if name in asked.beyond)
    for name, difference in framework.variants.items():
        if plain_key(name) == plain_key(told):
            built = f"built on {base} and " if asked is framework else ""
            yield f"{name} is {built}sized as {base}: {difference}."
            yield from _not_itself(asked, scenario)
    precision, caches = scenario.precision, (scenario.kv_cache_k.name, scenario.kv_cache_v.name)
    shape = scenario.model.shape.model_type
    for name in dict.fromkeys((precision.name, precision.kind, shape, *caches)):
        if name in framework.beyond and name not in framework.formats:
            yield f"{framework.beyond[name]}."


def _not_itself(asked: Framework, scenario: Scenario) -> Iterator[str]:
    """Say what keeps a program from this by its own record, where another is sized for it."""
    if asked is scenario.framework:
        return
    shape, why = scenario.model.shape, support.never_there(asked, scenario.gpu)
    if not (why or support.supports_model(asked, scenario.model)):
        kind = shape.outer_type or shape.model_type
        why = f"{asked.name} {asked.version} is not known to run the architecture '{kind}'"
    if why:
        yield f"{why}, so what is said here holds for {scenario.framework.name} alone."


def published_warnings(request: Request, scenario: Scenario) -> Iterator[str]:
    """Say that no precision was stated, so that the published one is what is sized."""
    model, precision = scenario.model, scenario.precision
    if request.precision or model.stored is not None:
        yield from _repacked(scenario)
        return
    if not model.native_formats and not model.held_format:
        if scenario.gpu and model.hf_id:
            yield usual_said(scenario)
        return
    published = model.held_format or model.native_formats[0].partition("_")[0]
    said = f"{model.name} is published in {published}"
    if model.native_inherited:
        said = (
            f"The published format of {model.name} is not known, that of its shape is {published}"
        )
    if support.is_published(precision, model) or precision.name == model.held_format:
        yield f"{said}, so that is what is sized."
    elif request.ram_gib and not request.framework:
        yield f"{said}. Beside the system RAM {scenario.framework.name} takes {precision.name}."
    else:
        yield f"{said}, which does not run here; {precision.name} is sized instead."


def _repacked(scenario: Scenario) -> Iterator[str]:
    """Say what a packed model is published in, where nobody is known to pack it as was asked."""
    model, framework, precision = scenario.model, scenario.framework, scenario.precision
    if runtime_of(framework).lays_sixteen(scenario):
        yield (
            f"Nobody is known to publish {model.name} in {precision.name}. {framework.name} makes "
            "it of the 16-bit files, all of which lie on the card while it loads."
        )
    if is_obtainable(framework, precision, model):
        return
    for name in model.native_formats:
        if name in framework.formats:
            yield (
                f"{model.name} is published in {name}, and nobody is known to publish it in "
                f"{precision.name}: --precision {name} takes what there is."
            )
            return


def usual_said(scenario: Scenario) -> str:
    """Say where the format comes from that nobody stated."""
    name, precision = scenario.framework.name, scenario.precision.name
    if scenario.own_dtype and scenario.model.origin == "list" and not scenario.model.native_dtype:
        return "No precision is stated, and the public list names none: 16 bits are assumed."
    if scenario.own_dtype:
        return f"No precision is stated: {name} takes the 16 bits published."
    return f"No precision is stated: {name} takes {precision}."


def context_warnings(base: Base) -> Iterator[str]:
    """Say what a stated runtime itself takes where no context is stated, and whether it starts."""
    scenario, named = base.scenario, base.request.framework
    trained = scenario.model.trained_context_tokens
    if base.request.context or not named or not trained:
        return
    asked = names.framework_called(base.knowledge, named)  # a server around what is sized
    framework = asked if asked and asked.usual_context else scenario.framework
    taken = usual_context(scenario, framework)
    if not taken:
        return
    tokens = min(int(taken), trained) if taken.isdigit() else trained
    if tokens == scenario.context_tokens:
        yield (
            f"No context is stated, so {tokens:,} tokens are sized, "
            f"which {framework.name} {framework.version} itself takes."
        )
        return
    alone = replace(with_batch(scenario, 1), context_tokens=tokens)
    missing = outlook_of(alone, base.knowledge).memory.deficit_bytes
    began = f"No context is stated, so {scenario.context_tokens:,} tokens are sized. "
    began += f"{framework.name} {framework.version} itself takes {tokens:,}"
    if missing is None:
        yield f"{began}."
    elif not missing:
        yield f"{began}, which fits here too."
    elif taken == "lowered":
        yield f"{began} and lowers them until they fit."
    elif framework.cpu_offload and framework.places_layers:
        yield f"{began}, for which {gib(missing)} is missing: layers then stay in system RAM."
    else:
        on = " on the fullest card" if scenario.gpus > 1 else ""
        yield f"{began} and should not start here: {gib(missing)} is missing{on}."


def usual_tokens(scenario: Scenario) -> int | None:
    """Give the tokens that a framework takes by itself, where it takes a number of them."""
    taken = usual_context(scenario, scenario.framework)
    trained = scenario.model.trained_context_tokens
    return min(int(taken), trained or int(taken)) if taken.isdigit() else None


def usual_context(scenario: Scenario, framework: Framework) -> str:
    """Give what a framework takes by the memory of the cards; empty where it is not known."""
    cards = scenario.cards or (scenario.gpu,) * scenario.gpus
    total = sum(card.vram_bytes or 0 for card in cards if card)
    steps = [tokens for least, tokens in framework.usual_context if total >= least]
    return steps[-1] if steps else ""


def card_warnings(knowledge: Knowledge, text: str, gpu: Gpu) -> Iterator[str]:
    """Say which other cards of the same generation a name may mean, unless it states a size."""
    if not _SIZED.search(text):
        if MAKERS[gpu.vendor].one_memory and gpu.vram_bytes:
            most = f"{gpu.vram_bytes / GIB:g} GB"
            yield f"{gpu.name} is taken with {most}, the most it is sold with. Else give NAME:SIZE."
        if others := [with_size(card) for card in siblings(knowledge, gpu)]:
            yield f"Taken as {with_size(gpu)}; there is also {', '.join(others[:3])}."
