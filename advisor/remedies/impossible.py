"""What people look for and cannot run here: named, so that rules can say why.

Of what-ifs nothing is estimated; the rules under rules/not-possible.yaml decide which are worth a
word. What an error names in place of a request that cannot run is estimated, as any remedy is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import UserError
from advisor.estimator import estimate_memory
from advisor.estimator.limits import largest_batch, largest_fitting_context
from advisor.knowledge.types import Format, Framework, Knowledge
from advisor.knowledge.vocabulary import ACTION_FACT, FactValue
from advisor.remedies.assessment import outlook_of, speed_when_full
from advisor.remedies.cards import MORE
from advisor.remedies.format_lists import of_equal_bits
from advisor.remedies.formats import REMEDY as QUANTIZE
from advisor.remedies.framework import FRAMEWORK
from advisor.remedies.kv_cache import EXPERTS, LAYERS, LAYERS_DEGREE, moved_to_ram
from advisor.remedies.kv_cache import REMEDY as KV_CACHE
from advisor.remedies.kv_cache import propose as smaller_cache
from advisor.remedies.machines import least_set_ups
from advisor.remedies.option import Base, Expected, Option, Remedy, option_key
from advisor.remedies.search import Bounds, Plan, bounds, least_decode, ram_limit, within_reach
from advisor.scenario import Scenario, support
from advisor.scenario.capability import refusal
from advisor.scenario.choices import choices_for
from advisor.scenario.figures import Figure, Margin
from advisor.scenario.instead import CannotRunError, Held, Way
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from advisor.units import gib, rate

_FULL_BITS = 16
_USUAL_BITS = 4
_EIGHT = 8
_ASKED_FOR = frozenset({"q8_0", "q4_0", "fp8"})
"""Cache types."""
Facts = dict[str, FactValue]


def resolved(request: Request, knowledge: Knowledge) -> Scenario:
    """Resolve a request; what runs in its place fits with its context and requests.

    Raises:
        UserError: What is wrong with it, as ``resolve`` gives it.
    """
    try:
        return resolve(request, knowledge)
    except CannotRunError as error:
        many = (request.batch or 1) >= knowledge.policy["server_from_sequences"]
        holds = partial(_holds, request, knowledge)
        raise CannotRunError(error.message, error.ways, holds, _amid(request), whole=many) from None


def _amid(request: Request) -> str:
    """Say what it has to fit with, where the request states it."""
    tokens = f"{request.context:,} tokens of context" if request.context else ""
    batch = f"{request.batch} requests" if (request.batch or 1) > 1 else ""
    stated = " and ".join(filter(None, (tokens, batch)))
    return f"with {stated}" if stated else "here"


def _holds(request: Request, knowledge: Knowledge, way: Way) -> Held:
    """Estimate what runs in place of a request: on its cards, else with a part in system RAM."""
    asked = replace(request, framework=way.framework.name, precision=way.precision.name)
    try:
        scenario = resolve(asked, knowledge)
        now = outlook_of(scenario, knowledge)
    except UserError:
        return Held(missing="")
    base = Base(asked, scenario, now.memory, now.speed, knowledge)
    if now.fits:
        return _on_its_cards(base, now.margin)
    return (not way.harsh and next(_with_less_cache(base), None)) or _beside(base)


def _with_less_cache(base: Base) -> Iterator[Held]:
    """Say how it runs whole with a cache of eight bits, which costs next to nothing."""
    for option in smaller_cache(base):
        kind, margin = option.scenario.kv_cache_k, option.margin
        if option.fits and kind.bits >= _EIGHT and margin != "thin":
            changed = replace(base, scenario=option.scenario, memory=option.memory)
            held = _on_its_cards(replace(changed, speed=option.speed), margin)
            yield held._replace(said=f", its KV cache in {kind.name}{held.said}", cache=kind.name)


def _on_its_cards(base: Base, margin: Margin | None) -> Held:
    """Say how many of the requests it holds, what stays free and how fast it runs."""
    held, batch = base.memory.held_sequences, base.scenario.batch
    few = f", {held} of {batch} requests at once" if held is not None and held < batch else ""
    free = base.memory.headroom_bytes
    at_once = batch if held is None else min(held, batch)
    if free is None:
        return Held(few, at_once=at_once)
    only = "only " if margin == "thin" else ""
    where = " on the fullest card" if base.scenario.gpus > 1 else ""
    said = f"{few}, with {only}{gib(free)} free{where}{_pace(base, base)}"
    return Held(said, thin=margin == "thin", at_once=at_once)


def _pace(base: Base, now: Base | Option) -> str:
    """Say how fast one request is answered, with its range, at both ends of a long context."""
    if now.speed is None:
        return ", speed not known"
    figure, slow = now.speed.decode_tok_s, least_decode(base)
    each = " for each request" if base.scenario.batch > 1 else ""
    if figure.estimate < slow:
        return f" at below {slow:g} tok/s{each}"
    last = speed_when_full(now.scenario, now.memory, now.speed, base.knowledge)
    full = _ranged(last.decode_tok_s) if last else ""
    ends = f", {full} when all of the context is in use" if full != _ranged(figure) else ""
    return f" at about {_ranged(figure)}{each}{ends if full else ''}"


def _ranged(figure: Figure) -> str:
    low, high = rate(figure.low), rate(figure.high)
    return f"{rate(figure.estimate)} tok/s" + (f" ({low} to {high})" if low != high else "")


def _beside(base: Base) -> Held:
    """Say how much lies in system RAM, where it is there or a PC may have it, and how fast.

    The caches of many requests do not go there where that is more than a PC has.
    """
    most = base.scenario.ram_bytes or base.knowledge.policy["unstated_ram_bytes"]
    for option in moved_to_ram(base):
        cache = option.memory.host_kv_cache_bytes
        moved = option.memory.host_weights_bytes + cache
        if option.fits and option.alone.get("option.host_ram_ok") is not False and cache <= most:
            pace = _pace(base, option)
            said = f", with {gib(moved)} in system RAM{pace}"
            tok_s = option.speed.decode_tok_s.estimate if option.speed else float("inf")
            slow = tok_s < base.knowledge.policy["reading_speed"]
            crawls, batch = tok_s < least_decode(base), base.scenario.batch
            return Held(said, beside=True, at_once=batch, crawls=crawls, slow=slow)
    missing, batch = base.memory.deficit_bytes, base.scenario.batch
    few = largest_batch(base.scenario, base.knowledge, batch) or 0 if batch > 1 else 0
    shorter = "" if few else _shorter(base)
    less = f"; {few} of {batch} requests would fit" if few else shorter
    where = " on the fullest card" if base.scenario.gpus > 1 else ""
    said = f" ({gib(missing)} missing{where}{less})" if missing else ""
    return Held(missing=said, at_once=few, shorter=bool(shorter))


def _shorter(base: Base) -> str:
    """Say how much of a stated context would fit, where that is worth a chat."""
    if base.request.context is None:
        return ""
    most = largest_fitting_context(base.scenario, base.knowledge) or 0
    enough = most >= base.knowledge.policy["least_context_tokens"]
    return f"; {most:,} tokens would fit" if enough else ""


def expected_options(base: Base) -> tuple[Expected, ...]:
    """List them in a stable order, unique by key; none without a card."""
    if base.scenario.gpu is None:
        return ()
    unique: dict[str, Expected] = {}
    for option in _all(base):
        unique.setdefault(option.key, option)
    return tuple(unique.values())


def _all(base: Base) -> Iterator[Expected]:
    yield from _formats(base)
    yield from _frameworks(base)
    yield from _cache_types(base)
    yield from _tensor_split(base)
    yield from _offload(base)


def _made(remedy: Remedy, change: Mapping[str, object], facts: Facts) -> Expected:
    action = remedy.action
    values: Facts = {ACTION_FACT: action, "option.runs": False, **facts}
    return Expected(f"{option_key(action, change)} (cannot run)", action, change, values)


def _formats(base: Base) -> Iterator[Expected]:
    """One format of each family: in this framework, or in its own where this card is at fault."""
    for precision in _well_known(base):
        runners = _runners(base, precision)
        own = base.scenario.framework
        if own.name in runners:
            continue
        home = own if runners else _home(base, precision)
        if home is not None:
            change = {"precision": precision.name, "framework": home.name}
            yield _made(QUANTIZE, change, _barred(base, home, precision, runners))


def _well_known(base: Base) -> Iterator[Format]:
    """Of each family the four-bit format, else the one with the fewest bits above that."""
    families: dict[str, list[Format]] = {}
    for precision in base.knowledge.formats.values():
        if precision.offered and precision.family not in {"unquantized", *support.EXPERTS_ONLY}:
            families.setdefault(precision.family, []).append(precision)
    return (min(group, key=_distance) for group in families.values())


def _distance(precision: Format) -> tuple[bool, float]:
    bits = precision.class_bits or precision.bits_per_weight or _FULL_BITS
    return (bits < _USUAL_BITS, abs(bits - _USUAL_BITS))


def _runners(base: Base, precision: Format) -> Mapping[str, Framework]:
    scenario = base.scenario
    return choices_for(base.knowledge, scenario.gpu, scenario.model).runners(precision)


def _home(base: Base, precision: Format) -> Framework | None:
    """The first framework that has the format and knows the model."""
    known = (
        f for f in base.knowledge.frameworks.values() if f.sized and precision.name in f.formats
    )
    return next(
        (f for f in known if support.supports_model(f, base.scenario.model, precision)), None
    )


def _barred(base: Base, framework: Framework, precision: Format, runners: Iterable[str]) -> Facts:
    """The facts of a format in a framework that cannot run it here."""
    scenario = base.scenario
    found = support.obstacle(framework, precision, scenario.gpu, scenario.model)
    facts: Facts = {
        "option.framework": framework.name,
        "option.format": precision.name,
        "option.format_family": precision.family,
    }
    if found:
        facts["option.barrier"] = found.kind
        if found.needed is not None:
            also = precision.min_compute_capability or found.needed
            facts["option.needed_capability"] = max(found.needed, also)
    if precision.class_bits:
        facts["option.bits_per_weight"] = float(precision.class_bits)
    facts.update(_elsewhere(base, framework, precision, runners))
    return facts


def _elsewhere(
    base: Base, framework: Framework, precision: Format, runners: Iterable[str]
) -> Facts:
    """Where the format runs, what to take in this framework instead, and whose cards it is for."""
    facts: Facts = {}
    if names := list(runners)[:2]:
        facts["option.runs_in"] = " and ".join(names)
    equal = of_equal_bits(base.scenario, base.knowledge, framework, precision)
    if instead := next(equal, None):
        facts["option.instead"] = instead.name
    if vendors := support.vendors_for(framework, precision):
        facts["option.made_for"] = " and ".join(
            [", ".join(vendors[:-1]), vendors[-1]] if len(vendors) > 1 else vendors
        )
    return facts


def _frameworks(base: Base) -> Iterator[Expected]:
    """Frameworks for such models that cannot run the request's own format here."""
    scenario, model = base.scenario, base.scenario.model
    for framework in base.knowledge.frameworks.values():
        if framework is scenario.framework or not framework.sized:
            continue
        if refusal(framework, "task", model.modality, scenario.gpu, model.shape):
            continue
        runners = _runners(base, scenario.precision)
        if framework.name in runners:
            continue
        facts = _barred(base, framework, scenario.precision, runners)
        yield _made(FRAMEWORK, {"framework": framework.name}, facts)


def _cache_types(base: Base) -> Iterator[Expected]:
    """8-bit cache types of other runtimes, asked of this one."""
    framework = base.scenario.framework
    for kind in base.knowledge.kv_types.values():
        if kind.bits < _FULL_BITS and kind.name in _ASKED_FOR - set(framework.kv_types):
            facts: Facts = {
                "option.framework": framework.name,
                "option.barrier": "cache_type",
                "option.kv_cache": kind.name,
                "option.kv_bits": float(kind.bits),
            }
            if instead := _cache_instead(base):
                facts["option.instead"] = instead
            yield _made(KV_CACHE, {"kv_cache": kind.name}, facts)


def _cache_instead(base: Base) -> str:
    """The smaller cache types that this framework has here."""
    scenario = base.scenario
    kinds = (base.knowledge.kv_types[name] for name in scenario.framework.kv_types)
    smaller = [
        kind.name
        for kind in kinds
        if kind.bits < _FULL_BITS
        and support.runs_kv(scenario.framework, kind, scenario.gpu, scenario.model.shape)
    ]
    return " or ".join(smaller[:2])


def _tensor_split(base: Base) -> Iterator[Expected]:
    """Every layer over all cards at once, where this framework hands out whole layers."""
    scenario = base.scenario
    split = scenario.framework.multi_gpu
    if not split or "tensor" in split or scenario.gpu is None or scenario.gpu.unified_memory:
        return
    cards = max(2, scenario.gpus)
    facts: Facts = {
        "option.framework": scenario.framework.name,
        "option.barrier": "split",
        "option.split": "tensor",
        "option.gpus": float(cards),
    }
    yield _made(MORE, {"gpus": cards}, facts)


def _offload(base: Base) -> Iterator[Expected]:
    """Layers or experts in system RAM, where the request does not fit and its framework cannot."""
    scenario = base.scenario
    if base.card_fits:
        return
    facts: Facts = {"option.framework": scenario.framework.name, "option.barrier": "placement"}
    if not scenario.framework.places_layers:
        yield _made(LAYERS, {}, facts)
    if scenario.model.shape.moe and not scenario.framework.expert_offload:
        yield _made(EXPERTS, {}, facts)


class Proof(Struct, frozen=True):
    """Why nothing helps: the least that was found to be needed, and the most there is."""

    least_needed_bytes: int
    most_memory_bytes: int
    """Of one machine's cards, as sold, with the RAM that may be used beside them."""
    format: str
    card: str
    cards: int


def proof_of(base: Base, options: Sequence[Option]) -> Proof | None:
    """Why nothing helps, where nothing does; None where the request or an option fits."""
    if base.fits or any(within_reach(base, option) for option in options):
        return None
    limits = bounds(base)[-1]
    found = [_proof(base, plan, limits) for plan in least_set_ups(base, limits)]
    return min(found, key=lambda p: (p.least_needed_bytes, -p.most_memory_bytes), default=None)


def _proof(base: Base, plan: Plan, limits: Bounds) -> Proof:
    scenario = plan.scenario
    memory = estimate_memory(scenario, base.knowledge)
    assert scenario.gpu
    beside = ram_limit(base, limits) if LAYERS_DEGREE.applies(scenario, limits) else 0.0
    return Proof(
        least_needed_bytes=memory.required_bytes,
        most_memory_bytes=round((memory.capacity_bytes or 0) + beside),
        format=scenario.precision.name,
        card=scenario.gpu.name,
        cards=scenario.gpus,
    )
