"""A what-if: what it is built from, how it is estimated, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import UserError
from advisor.estimator import free_bytes
from advisor.estimator.limits import spare_bytes
from advisor.estimator.placement import host_fits
from advisor.estimator.weights import weight_profile
from advisor.knowledge import catalogue
from advisor.knowledge.catalogue import default_backend
from advisor.knowledge.types import Format, Framework, Knowledge
from advisor.knowledge.vocabulary import FactValue
from advisor.models import model_from_record
from advisor.models.stored_tensors import Model
from advisor.reading.known import as_tuned, tells_instruct
from advisor.remedies.assessment import best_shared, known_outlook, outlook_of, quality_loss, singly
from advisor.scenario import Scenario, can_split, offloads, split_of
from advisor.scenario.asked_format import precision_asked, server_caches
from advisor.scenario.capability import makes, repository_of
from advisor.scenario.choices import Pair, choices_for
from advisor.scenario.figures import Limits, Memory, Speed
from advisor.scenario.host import beside_its_card
from advisor.scenario.resolve import (
    asks_for_split,
    cards_asked,
    default_context,
    default_ubatch,
    layers_of_experts,
    layers_on_cards,
)
from advisor.scenario.settings import Request
from advisor.scenario.support import without_lost_drafts

if TYPE_CHECKING:
    from advisor.scenario.figures import Margin


Effort = Literal["setting", "download", "rebuild", "purchase"]
EFFORTS: Sequence[Effort] = get_args(Effort)
"""The least first."""


class Option(Struct, frozen=True):
    """One what-if: a change in ``estimate`` keys, and the changed scenario estimated."""

    key: str
    """Unique and stable within a scenario, for ordering and tracing."""
    action: str
    change: Mapping[str, object]
    scenario: Scenario
    memory: Memory
    speed: Speed | None
    fits: bool
    steps: int
    quality_loss_percent: float | None
    quality_cost_percent: float | None
    cost_usd: float | None
    effort: Effort
    margin: Margin | None = None
    """How far one may rely on what stays free; None where it does not fit."""
    alone: Mapping[str, FactValue] = {}
    """The ``option.*`` facts that follow from the changed scenario, whatever was asked."""


class Expected(Struct, frozen=True):
    """A what-if that people look for and that cannot run here, so nothing is estimated."""

    key: str
    action: str
    change: Mapping[str, object]
    facts: Mapping[str, FactValue]
    """Its ``option.*`` facts, for the rules that bar it."""


class Base(Struct, frozen=True):
    """The request, resolved and estimated."""

    request: Request
    scenario: Scenario
    memory: Memory
    speed: Speed | None
    knowledge: Knowledge
    gave_way: Framework | None = None
    """The framework that was stated, and could not run what was stated."""
    first: Request | None = None
    """What was stated, where another framework had to run it."""

    @property
    def card_fits(self) -> bool:
        """Whether the request fits on its cards."""
        return self.memory.deficit_bytes == 0

    @property
    def fits(self) -> bool:
        """Whether the request fits on its cards and in system RAM."""
        return self.card_fits and host_fits(self.scenario, self.memory)


Propose = Callable[[Base, Limits, Mapping[str, Option]], Iterator[Option]]
"""The request, how far it can grow, and what was proposed so far by key -> what-ifs."""


class Remedy(Struct, frozen=True):
    """A change worth proposing: what it says of itself, and how it is found.

    Several may stand for one action; what they say then counts together.
    """

    action: str
    """What rules recommend and texts are named after."""
    settings: frozenset[str]
    """Settings of a request that are its subject; none where it has no single subject."""
    effort: Effort
    """What it usually takes."""
    propose: Propose | None = None
    """None where another remedy's search finds it as well."""
    told_by: str = ""
    """The setting whose new value tells one such change from another; empty: all that changes."""
    joins: bool = False
    """Whether it is looked for only when every other change was proposed."""
    uncertain: bool = False
    """Whether its gain hangs on what is written."""


def may_help(base: Base, other: Scenario) -> bool:
    """Whether a what-if is worth estimating: where the request fits, or the what-if would."""
    return (base.card_fits and can_split(other)) or cards_hold(base, other)


def cards_hold(base: Base, other: Scenario, *, roomy: bool = False) -> bool:
    """Whether a what-if fits on its cards: the estimate's own answer, without its details.

    ``roomy`` leaves so much free that the margin is not thin.
    """
    if not can_split(other):
        return False
    known = None if roomy else known_outlook(other, base.knowledge)
    if known:
        return not known.memory.deficit_bytes
    free = free_bytes(other, base.knowledge)
    return free is None or free >= (spare_bytes(other, base.knowledge) if roomy else 0)


def whole_if_held(base: Base, other: Scenario) -> Scenario:
    """Drop a stated split where the cards of a what-if hold all of it, or share their memory."""
    if other.gpu is None or not offloads(other):
        return other
    whole = replace(other, gpu_layers=None, cpu_experts=0)
    return whole if other.gpu.unified_memory or cards_hold(base, whole) else other


def on_the_larger(base: Base, other: Scenario) -> Scenario:
    """Of unequal cards that share every tensor the largest alone, where it holds a what-if.

    Together each of them takes an equal part, so the larger would wait for the smaller.
    """
    if not other.cards or other.split or split_of(other) != "tensor":
        return other
    alone = next(singly(other))
    return alone if cards_hold(base, alone, roomy=True) else other


def make_option(
    base: Base,
    remedy: Remedy,
    change: Mapping[str, object],
    scenario: Scenario,
    *,
    effort: Effort | None = None,
    cost_usd: float | None = None,
    steps: int = 1,
) -> Option:
    """Estimate a changed scenario with the request's own estimator and complete its change."""
    if scenario.gpu is not base.scenario.gpu:
        scenario = beside_its_card(scenario, base.request, base.knowledge)
    if base.request.ubatch is None and scenario.model.modality == "embedding":
        at_once = default_ubatch(scenario.model, scenario.framework, scenario.context_tokens)
        scenario = replace(scenario, ubatch=at_once)
    own = base.scenario
    moved = (scenario.gpus, scenario.framework) != (own.gpus, own.framework)
    if own.stages and (moved or split_of(scenario) != "tensor"):
        scenario = replace(scenario, stages=None)
    scenario = without_lost_drafts(best_shared(own, scenario, base.knowledge))
    then = outlook_of(scenario, base.knowledge)
    same = scenario.model.name == own.model.name
    loss = then.quality_loss_percent if same else None
    cost = _quality_cost(own, scenario, loss) if same else None
    full = _completed(base, change, scenario)
    return Option(
        key=option_key(remedy.action, full),
        action=remedy.action,
        change=full,
        scenario=scenario,
        memory=then.memory,
        speed=then.speed,
        fits=then.fits,
        steps=steps,
        quality_loss_percent=loss,
        quality_cost_percent=cost,
        cost_usd=cost_usd,
        effort=effort or remedy.effort,
        margin=then.margin,
        alone=then.facts,
    )


def _quality_cost(own: Scenario, scenario: Scenario, loss: float | None) -> float | None:
    """What a what-if of the same model loses beside the request, points of perplexity."""
    if scenario.precision is own.precision and scenario.kv_cache_k is own.kv_cache_k:
        return 0.0
    before = quality_loss(own)
    return None if before is None or loss is None else round(loss - before, 6)


def stored_bytes(base: Base, scenario: Scenario, precision: Format | None = None) -> int:
    """What the weights take wherever they lie, bytes: the floor of any what-if.

    ``precision`` is another format than the scenario's own.
    """
    stored_as = precision or scenario.precision
    return weight_profile(
        scenario.model, stored_as, scenario.framework, base.knowledge.ggml_types
    ).total_bytes


def effort_of(own: Scenario, precision: Format) -> Effort:
    """A setting where the program packs the checkpoint at hand itself, else another download."""
    packs = own.precision.family == "unquantized" and not repository_of(own.model, precision)
    return "setting" if packs and makes(own.framework, precision, own.model) else "download"


def option_key(action: str, change: Mapping[str, object]) -> str:
    """A stable, readable identity: ``quantize precision=Q8_0``."""
    if len(change) == 1:
        ((name, value),) = change.items()
        return f"{action} {name}={value}"
    return " ".join([action, *[f"{key}={value}" for key, value in sorted(change.items())]])


def _completed(
    base: Base, change: Mapping[str, object], scenario: Scenario
) -> Mapping[str, object]:
    """Add the keys without which running the changed request would fall back to other defaults."""
    request, own = base.request, base.scenario
    full = {**change, **_split_changes(base, change, scenario)}
    if own.mtp or own.draft_model:
        full.update(_draft_changes(base, full, scenario))
    if scenario.gpu is not own.gpu or scenario.gpus != own.gpus:
        full.update(_card_changes(base, full, scenario))
    for shared in ("stages", "split"):
        if getattr(scenario, shared) != getattr(own, shared):
            full.setdefault(shared, getattr(scenario, shared))
    stated = full.get("split", request.split)
    if stated and scenario.gpus > 1 and stated != (way := split_of(scenario)):
        full["split"] = way
    full.update(_choice_changes(base, full, scenario))
    stated_context = request.context or default_context(scenario.model, request)
    if "context" not in full and stated_context != scenario.context_tokens:
        full["context"] = scenario.context_tokens
    if scenario.gpu and "backend" not in full:
        stated = base.scenario.backend if request.backend else default_backend(scenario.gpu)
        if scenario.backend != stated:
            full["backend"] = scenario.backend
    return full


def _choice_changes(
    base: Base, full: Mapping[str, object], scenario: Scenario
) -> Mapping[str, object]:
    """Name the framework and the format where the defaults would choose others."""
    if full.keys().isdisjoint(_CHOSEN_BY) and not _moved(base, scenario):
        return {}
    framework, added = scenario.framework, dict[str, object]()
    stated = framework if "framework" in full else None
    if stated is None and base.request.framework:
        stated = base.scenario.framework

    def text() -> str:
        return str(full.get("precision") or precision_asked(base.request, scenario.model, stated))

    choices = choices_for(base.knowledge, scenario.gpu, scenario.model)
    stated_split = [full.get(k, getattr(base.request, k)) for k in ("gpu_layers", "cpu_experts")]
    split, own_split = asks_for_split(*stated_split), base.request.split

    def pair(asked: str, framework: Framework | None) -> Pair | None:
        kinds = scenario.kv_cache_k, scenario.kv_cache_v
        stands = replace(base.request, batch=scenario.batch, split=full.get("split", own_split))
        equal = 0 if scenario.cards else scenario.gpus
        on = scenario.gpu, scenario.model, equal
        serves = server_caches(base.knowledge, stands, asked, kinds, on=on)
        return choices.default_pair(asked, framework, scenario.model, split=split, serves=serves)

    expected = pair(text(), stated)
    if expected is None or expected[1] is not framework:
        added["framework"] = framework.name
        stated = framework
        expected = pair(text(), stated)
    if expected is None or expected[0] is not scenario.precision:
        added["precision"] = scenario.precision.name
        named = pair(scenario.precision.name, stated)
        if named is None or named[1] is not framework:
            added["framework"] = framework.name
    return added


def _draft_changes(
    base: Base, full: Mapping[str, object], scenario: Scenario
) -> Mapping[str, object]:
    """Take back a head or a draft model that the changed scenario cannot use."""
    lost: dict[str, object] = {}
    if base.scenario.mtp and not scenario.mtp and "mtp" not in full:
        lost["mtp"] = 0
    if base.scenario.draft_model and scenario.draft_model is None:
        lost["draft_model"] = None
    return lost


def _card_changes(
    base: Base, full: Mapping[str, object], scenario: Scenario
) -> Mapping[str, object]:
    """Say which and how many cards where the request's own words would give others."""
    request, gpu = base.request, scenario.gpu
    if gpu is None or scenario.cards:
        return {}
    added: dict[str, object] = {}
    if "gpu" not in full and cards_asked(request, base.knowledge).counted:
        added["gpu"] = gpu.name
    stated = full.get("gpus", request.gpus) or 1
    if stated != scenario.gpus:
        added["gpus"] = scenario.gpus
    return added


def _split_changes(
    base: Base, full: Mapping[str, object], scenario: Scenario
) -> Mapping[str, object]:
    """Name the split where the stated one would mean another for the changed model."""
    request, model = base.request, scenario.model
    undone: dict[str, object] = {}
    layers = layers_on_cards(request.gpu_layers, model)
    if "gpu_layers" not in full and scenario.gpu_layers != layers:
        undone["gpu_layers"] = "all" if scenario.gpu_layers is None else scenario.gpu_layers
    experts = layers_of_experts(request.cpu_experts, model)
    if "cpu_experts" not in full and scenario.cpu_experts != experts:
        undone["cpu_experts"] = scenario.cpu_experts
    return undone


_CHOSEN_BY = frozenset(
    {"gpu", "gpus", "model", "config", "framework", "precision", "gpu_layers", "cpu_experts",
     "batch", "split"}
)  # fmt: skip
"""Keys of a request from which its default framework and format follow."""


def _moved(base: Base, scenario: Scenario) -> bool:
    """Whether framework or format is another than the request's own, which needs no naming."""
    own = base.scenario
    return scenario.framework is not own.framework or scenario.precision is not own.precision


def relatives(knowledge: Knowledge, model: Model) -> Sequence[Model]:
    """Models of the family, or of the publisher with the same vocabulary, largest first.

    Of the same kind of input, and tuned alike where that is published; of known size.
    """
    names = dict.fromkeys(
        [
            *catalogue.siblings(knowledge, model.family, model.modality),
            *catalogue.siblings(knowledge, f"{model.family} Distill", model.modality),
            *catalogue.kin(knowledge, model.name, model.hf_id, model.shape.vocab),
        ]
    )
    sized = (m for name in names if (m := sized_record(name, knowledge)) is not None)
    found = (tuned_like(m, model, knowledge) for m in sized if m.modality == model.modality)
    return sorted(found, key=lambda m: (-m.parameters, m.name))


def tuned_like(model: Model, other: Model, knowledge: Knowledge) -> Model:
    """Give a model in the tuning that another's name tells, where that is published."""
    if model.name not in knowledge.models or not tells_instruct(other.hf_id or other.name):
        return model
    return as_tuned(knowledge, knowledge.models[model.name], "instruct")


def sized_record(name: str, knowledge: Knowledge) -> Model | None:
    """A model of the knowledge base; None where its weights or its cache cannot be computed."""
    try:
        model = model_from_record(knowledge.models[name], knowledge)
    except UserError:
        return None
    return model if model.shape.described else None
