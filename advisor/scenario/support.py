"""What runs where: frameworks, formats, cards, architectures and draft models matched."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.catalogue import MAKERS, cards_by
from advisor.knowledge.programs import About, Capability
from advisor.knowledge.types import Format, Framework, Gpu, KvType
from advisor.models.shape import UNKNOWN, Shape
from advisor.models.stored_tensors import Model
from advisor.scenario import Scenario, divides, pipeline_ranks, split_of, ways_for
from advisor.scenario.capability import DTYPES, asked, config_of, refusal

EXPERTS_ONLY = frozenset({"gguf-mxfp4"})
"""Families of formats that store only experts."""
KEPT_EXPERTS = "MXFP4_MOE"
"""Experts published in it stay in it in every other GGUF file (source ``gpt-oss-gguf``)."""
_FAMILY_BITS = {
    "int8": 8, "8bit": 8, "q8": 8, "w8": 8, "int4": 4, "4bit": 4, "q4": 4, "w4": 4,
    "int6": 6, "int5": 5, "int3": 3, "3bit": 3, "int2": 2, "2bit": 2,
}  # fmt: skip
_GROUP = re.compile(r"[-_ ](?:gs?|group[-_ ]?)\d{2,3}$")


def family_bits(text: str) -> int | None:
    """Give the bits of a family name (INT8, 8-bit, INT4, Q4, 3-bit ...), None for another."""
    return _FAMILY_BITS.get("".join(filter(str.isalnum, _GROUP.sub("", text.casefold()))))


def is_other(precision: Format, text: str) -> bool:
    """Whether it holds floats where a family name says integers, which INT8 means alone.

    INT4 does not: what is published in 4-bit floats may be published in no integers, and cards
    that multiply them lack kernels for integers in some runtimes.
    """
    return precision.family in FLOAT_UNITS and text.strip().casefold().startswith("int")


def runs_kv(framework: Framework, kind: KvType, gpu: Gpu | None, shape: Shape | None) -> bool:
    """Whether a framework can keep a model's KV cache in this type on this card."""
    had = kind.name in framework.kv_types or kind.name in framework.beyond
    return had and not why_no_cache(framework, kind, gpu, shape)


def why_no_cache(framework: Framework, kind: KvType, gpu: Gpu | None, shape: Shape | None) -> str:
    """Say in one clause why a type of the cache that it knows is refused; empty where it is not."""
    return refusal(framework, "kv_cache", kind.name, gpu, shape)


def slow_cache(scenario: Scenario) -> str:
    """Say in one clause why the cache's types are slow here; empty where nothing says so."""
    framework, gpu, shape = scenario.framework, scenario.gpu, scenario.model.shape
    key, value = scenario.kv_cache_k.name, scenario.kv_cache_v.name
    for kind in dict.fromkeys((key, value)):
        row = asked(framework, "kv_cache", kind, gpu, shape, backend=scenario.backend)
        if row and row.answer == "slow":
            return row.why
    if key == value or not scenario.flash_attention:
        return ""
    row = asked(framework, "kv_pair", f"{key}-{value}", gpu, shape, backend=scenario.backend)
    return row.why if row and row.answer == "slow" else ""


def in_turn(scenario: Scenario) -> str:
    """Say in one clause why requests wait for each other; empty where several run at once."""
    return refusal(scenario.framework, "sequences", "", scenario.gpu, scenario.model.shape)


def upkeep(framework: Framework) -> str | None:
    """Say whether work on it has ended (archived) or nearly so (maintenance); None: it goes on."""
    row = asked(framework, "upkeep", "", None, None)
    return None if row is None else "archived" if row.answer == "refused" else "maintenance"


def stands_back(framework: Framework) -> bool:
    """Whether another goes first that does as much: it is slow step by step, or not kept up."""
    return framework.step_by_step or upkeep(framework) is not None


def can_share(framework: Framework, precision: Format, model: Model, cards: int) -> bool:
    """Whether a framework divides a model among this many cards in the way it prefers.

    Frameworks that split every tensor need a number that divides heads and widths (``divides``).
    """
    ways = ways_for(framework, precision)
    return cards == 1 or (bool(ways) and divides(ways[0], framework, precision, model, cards))


def supports_model(framework: Framework, model: Model, precision: Format | None = None) -> bool:
    """Whether a framework knows the model's architecture (in this format), image tower included."""
    shape, known = model.shape, framework.model_types
    kind = shape.outer_type or shape.model_type
    limit = framework.format_limits.get(precision.family) if precision else None
    blind = model.vision_parameters and framework.vision is False
    if blind or (limit and limit.model_types and kind not in limit.model_types):
        return False
    at = bisect_left(known, kind)
    if known[at : at + 1] == (kind,) or known[:1] == ("*",) or _made_for(framework, model):
        return True
    # A family goes by one of its names; a runtime may list the one in the file.
    return not shape.outer_type and shape.config.get("model_type") in known


def may_advise(framework: Framework, model: Model) -> bool:
    """Whether to name the model to others: not where only code of its own would run it."""
    return supports_model(framework, model) and (model.shape.described or not framework.own_code)


def _made_for(framework: Framework, model: Model) -> bool:
    """Whether its files make it one for such frameworks, or code of its own, not described here."""
    stored = model.stored
    if stored is None or stored.kind != "gguf":
        return framework.own_code and not (model.shape.described and model.shape.outer_described)
    return framework.places_layers and stored.format_name in framework.formats


def no_head(framework: Framework, model: Model) -> str:
    """Say in one clause why no head of the model's own can draft here; empty where one can."""
    if not model.shape.mtp_layers:
        return f"{model.name} has no layer for multi-token prediction"
    if model.shape.model_type not in framework.mtp_model_types:
        return f"{framework.name} is not known to draft with the head of {model.name}"
    return ""


def no_drafting(scenario: Scenario, *, head: bool = False) -> str:
    """Say in one clause why nothing drafts with the cards shared so; empty where something can.

    A ``head`` that was trained to draft for the model may do so where another model cannot.
    """
    staged, shape = pipeline_ranks(scenario) > 1, scenario.model.shape
    way = "layer" if staged else split_of(scenario) or ""
    asked_for = f"{way} with a head" if head and way else way
    return refusal(scenario.framework, "draft", asked_for, scenario.gpu, shape)


def unsized(framework: Framework, shape: Shape) -> str:
    """Say in one clause why the framework's memory for this architecture is unknown, if it is."""
    sized = framework.sized_states
    if shape.encoder_positions is not None and "encoder" not in sized:
        return f"how {framework.name} keeps the output of an encoder is not established"
    recurrent = shape.recurrent
    if recurrent is not None and recurrent.kind == "rwkv" and "rwkv" not in sized:
        return f"how {framework.name} keeps the state of RWKV-4 is not established"
    if shape.mla and shape.mla.index_dim and "index" not in sized:
        return f"how {framework.name} keeps its token index is not established"
    return ""


class Obstacle(NamedTuple):
    """What keeps a combination from running."""

    kind: Literal["framework", "format", "architecture", "vendor", "card", "capability"]
    text: str
    """One clause."""
    needed: float | None = None
    """The compute capability that is missing, for ``capability``."""


def obstacle(
    framework: Framework, precision: Format, gpu: Gpu | None, model: Model
) -> Obstacle | None:
    """Give the first thing that keeps this combination from running; None when it runs."""
    if not framework.sized:
        return Obstacle("framework", f"{framework.name} is known by name only")
    if precision.name not in framework.formats:
        name, no = precision.name, refusal(framework, "weights", precision.kind, gpu, model.shape)
        why = no or framework.not_sized.get(precision.kind)
        text = f"is not sized in {name}: {why}" if why else f"does not run {name}"
        return Obstacle("format", f"{framework.name} {text}")
    if not supports_model(framework, model, precision):
        kind = model.shape.outer_type or model.shape.model_type
        limited = f" in {precision.name}" if supports_model(framework, model) else ""
        text = f"{framework.name} does not support the architecture '{kind}'{limited}"
        if not limited and (why := framework.not_sized.get("architecture")):
            text = f"{framework.name} has no code of its own for the architecture '{kind}': {why}"
        if why := refusal(framework, "model", model.name, gpu, model.shape):
            text = f"{framework.name} is not offered for the architecture '{kind}': {why}"
        if kind == UNKNOWN:
            text = f"whether {framework.name} runs it is not known: nor is its architecture"
        return Obstacle("architecture", text)
    if unknown := unsized(framework, model.shape):
        return Obstacle("architecture", unknown)
    found = _card_obstacle(framework, precision, gpu) if gpu else None
    return found or _table_obstacle(framework, precision, gpu, model)


def _table_obstacle(
    framework: Framework, precision: Format, gpu: Gpu | None, model: Model
) -> Obstacle | None:
    """Ask the capability table about the card, the model and the format."""
    on, kind = f" on {gpu.name}" if gpu else "", precision.name
    held = config_of(model, precision, framework) if _by_kind(framework, kind) else {}
    questions: tuple[tuple[About, str, str], ...] = (
        ("card", "", ""), ("model", model.name, ""), ("task", model.name, model.modality),
        *(("weights", kind, f"{one}") for one in (kind, held.get("scheme"), precision.kind)),
    )  # fmt: skip
    for about, what, name in dict.fromkeys(questions):
        row = asked(framework, about, name, gpu, model.shape)
        if row is not None and row.answer == "refused":
            if about == "weights" and not (row.vendors or row.architectures or row.model_types):
                files = "mixtures" if row.experts else "checkpoints"
                return _refused(row, f"{framework.name} does not load {what} {files}")
            return _refused(row, f"{framework.name} does not run {what}".rstrip() + on)
    if gpu is None:
        return None
    rows = [asked(framework, "dtype", t, gpu, model.shape, precision=precision) for t in DTYPES]
    reasons = [row.why for row in rows if row and row.answer == "refused"]
    text = f"{framework.name} does not run {model.name}{on}: {'; '.join(reasons)}"
    return Obstacle("architecture", text) if len(reasons) == len(DTYPES) else None


def _by_kind(framework: Framework, kind: str) -> bool:
    """Whether a row tells kinds of a format apart: which of them a file is takes a search."""
    rows = (row.of for row in framework.capabilities if row.about == "weights")
    return any(name.startswith(f"{kind} by ") for of in rows for name in of)


def _refused(row: Capability, what: str) -> Obstacle:
    text = f"{what}: {row.why}"
    if row.below_capability and row.from_capability is None:
        return Obstacle("capability", text, row.below_capability)
    return Obstacle("card" if row.from_capability else "architecture", text)


def vendors_for(framework: Framework, precision: Format) -> Sequence[str]:
    """List the makers on whose cards a framework runs a format."""
    limit = framework.format_limits.get(precision.family)
    listed = [known for known in (precision.vendors, limit and limit.vendors) if known]
    return [v for v in framework.vendors if all(v in known for known in listed)]


def why_not(framework: Framework, precision: Format, gpu: Gpu | None, model: Model) -> str:
    """Say in one clause why this combination does not run; empty when it does."""
    found = obstacle(framework, precision, gpu, model)
    return found.text if found else ""


def never_there(framework: Framework, gpu: Gpu | None) -> str:
    """Say in one clause what keeps the framework from the card in any format; empty: nothing."""
    found = _not_at_all(framework, gpu) if gpu else None
    return found.text if found else ""


def _not_at_all(framework: Framework, gpu: Gpu) -> Obstacle | None:
    """Give what keeps the framework from the card, whatever the format."""
    if gpu.vendor not in framework.vendors:
        why, cards = framework.not_sized.get(gpu.vendor), cards_by(gpu.vendor)
        text = f"is not sized on {cards}: {why}" if why else f"does not run on {cards}"
        return Obstacle("vendor", f"{framework.name} {text}")
    if gpu.architecture in framework.not_on:
        return Obstacle("card", f"{framework.name} does not run on {gpu.architecture}")
    row = asked(framework, "card", "", gpu, None)
    if row is not None and row.answer == "refused":
        return _refused(row, f"{framework.name} does not run on {gpu.name}")
    return _too_old(framework.name, framework.min_compute_capability, gpu)


def _too_old(what: str, needed: float | None, gpu: Gpu) -> Obstacle | None:
    if not needed or not gpu.compute_capability or gpu.compute_capability >= needed:
        return None
    has = f"{gpu.name} has {gpu.compute_capability:g}"
    return Obstacle("capability", f"{what} needs compute capability {needed:g}, {has}", needed)


def _card_obstacle(framework: Framework, precision: Format, gpu: Gpu) -> Obstacle | None:
    if found := _not_at_all(framework, gpu):
        return found
    limit, cards = framework.format_limits.get(precision.family), cards_by(gpu.vendor)
    if precision.vendors is not None and gpu.vendor not in precision.vendors:
        return Obstacle("vendor", f"{precision.name} does not run on {cards}")
    if limit and limit.vendors and gpu.vendor not in limit.vendors:
        return Obstacle("vendor", f"{framework.name} does not run {precision.name} on {cards}")
    return _too_old(precision.name, precision.min_compute_capability, gpu)


def keeps_experts(precision: Format, model: Model) -> bool:
    """Whether a file in this format differs from the published one in little but its name."""
    kept = KEPT_EXPERTS in model.native_formats and precision.kind == "gguf"
    return kept and precision.name not in model.native_formats


def own_sixteen(model: Model) -> str:
    """Name the 16 bits in which a model is published: FP16 where nothing says BF16."""
    said = model.native_dtype or model.shape.dtype or ""
    return "BF16" if "bf16" in said or "bfloat16" in said else "FP16"


def is_published(precision: Format, model: Model) -> bool:
    """Whether a format of less than 16 bits holds exactly what the publisher released."""
    return precision.name in model.native_formats


def is_rounded(precision: Format, model: Model) -> bool:
    """Whether it is MXFP4, whose scales are powers of two, of a model not trained for it."""
    return precision.family == "mxfp4" and not is_published(precision, model)


def format_loss(precision: Format, model: Model) -> float | None:
    """Perplexity increase of a format over what was published, %; None: not measured."""
    return 0.0 if is_published(precision, model) else precision.quality_loss_percent


def after_loss(points: float, loss: float | None, policy: Mapping[str, float]) -> float:
    """Take from a model's merit, in any unit, what its weight format costs.

    ``loss`` is its increase of perplexity, %; None, where nobody measured it, takes nothing.
    """
    return points * (1 - (loss or 0.0) / 100 * policy["merit_loss_share"] / 100)


def quality_order(precision: Format) -> tuple[bool, float]:
    """Order formats from the least to the most quality loss, unknown last."""
    return (precision.quality_loss_percent is None, precision.quality_loss_percent or 0.0)


def is_native(precision: Format, gpu: Gpu) -> bool | None:
    """Whether the card computes in the format itself; None where that is not known."""
    if precision.family == "unquantized":
        return gpu.bf16 if precision.name == "BF16" else True
    if not MAKERS[gpu.vendor].by_capability:
        return True if precision.family == "fp8" and gpu.fp8_tflops else None
    return 0 < (precision.native_compute_capability or 0) <= (gpu.compute_capability or 0)


FLOAT_UNITS = frozenset({"fp8", "nvfp4", "mxfp4"})
"""Families of formats that some cards multiply as they are."""


def is_unpacked(precision: Format, model: Model, gpu: Gpu | None) -> bool:
    """Whether it is made for units that this card lacks; what the publisher released is not."""
    if gpu is None or precision.family not in FLOAT_UNITS or is_published(precision, model):
        return False
    return is_native(precision, gpu) is False


def cache_problems(scenario: Scenario) -> Iterator[RequestError]:
    """Say what keeps the cache from having the types asked for."""
    framework, key, value = scenario.framework, scenario.kv_cache_k, scenario.kv_cache_v
    for kind in {key.name: key, value.name: value}.values():
        if not runs_kv(framework, kind, scenario.gpu, scenario.model.shape):
            yield _no_cache(scenario, kind)
    if value.needs_flash_attention and not scenario.flash_attention:
        yield RequestError(
            f"a {value.name} V cache needs flash attention",
            hint="Turn it on: --flash-attention on.",
        )


def _no_cache(scenario: Scenario, kind: KvType) -> RequestError:
    framework, gpu, shape = scenario.framework, scenario.gpu, scenario.model.shape
    why, on = why_no_cache(framework, kind, gpu, shape), f" on {gpu.name}" if gpu else ""
    kept = [n for n in framework.kv_types if not refusal(framework, "kv_cache", n, gpu, shape)]
    text = f"{framework.name} cannot keep the KV cache as {kind.name}{on}"
    error = RequestError(f"{text}: {why}" if why else text, hint=f"It keeps: {', '.join(kept)}.")
    other = {"kv_cache": None, "kv_cache_k": None, "kv_cache_v": None}
    return error.answered("What follows is with the cache that it keeps by default.", **other)


DRAFT_SHARE = 0.2
"""Share of the model's active parameters that a draft has at most."""


def same_vocabulary(draft: Model, model: Model, framework: Framework) -> bool:
    """Whether the vocabularies are of one size, or differ by padding that the framework allows."""
    return abs(draft.shape.vocab - model.shape.vocab) <= framework.draft_padding


def without_lost_drafts(scenario: Scenario) -> Scenario:
    """Leave out what no longer drafts, after a change of the model, the framework or the split."""
    draft = scenario.draft_model
    refused = no_drafting(scenario) if draft or scenario.mtp else ""
    if scenario.mtp and (refused or no_head(scenario.framework, scenario.model)):
        scenario = replace(scenario, mtp=0)
    if draft is None or (not refused and _drafts(draft, scenario)):
        return scenario
    return replace(scenario, draft_model=None)


def _drafts(draft: Model, scenario: Scenario) -> bool:
    """Whether a draft has the vocabulary of the model and is smaller than it."""
    model = scenario.model
    smaller = draft.active_parameters < model.active_parameters
    return smaller and same_vocabulary(draft, model, scenario.framework)
