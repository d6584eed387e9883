"""What-ifs that keep card and model: another framework, a draft model or own head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from advisor.knowledge.types import Framework
from advisor.models.model import Model
from advisor.remedies.baseline import Base, make_option, may_help
from advisor.remedies.format_choice import other_frameworks
from advisor.remedies.formats import in_framework
from advisor.remedies.option import Effort, Option
from advisor.remedies.smaller_models import relatives
from advisor.scenario import support
from advisor.scenario.speculation import DRAFT_SHARE, same_vocabulary

_LIGHT_DRAFT = 0.1


def framework_options(base: Base) -> Iterator[Option]:
    """Other frameworks that run the same or an equally small format on this card."""
    scenario = base.scenario
    for precision, framework in other_frameworks(scenario, base.knowledge):
        other = in_framework(base, framework, precision)
        if other and may_help(base, other):
            change: dict[str, object] = {"framework": framework.name}
            if precision is not scenario.precision:
                change["precision"] = precision.name
            yield make_option(base, "change-framework", change, other, "rebuild")


def draft_options(base: Base) -> Iterator[Option]:
    """A relative small enough to draft for this model, where the framework can use one."""
    scenario = base.scenario
    if not (base.card_fits and scenario.framework.speculative and scenario.draft_model is None):
        return
    if scenario.mtp or scenario.model.modality != "text" or scenario.batch > 1:
        return
    others = relatives(base.knowledge, scenario.model)
    draft = _draft_for(scenario.model, others, scenario.framework)
    if draft:
        other = replace(scenario, draft_model=draft)
        yield make_option(base, "speculative", {"draft_model": draft.name}, other, "download")


def own_head_options(base: Base) -> Iterator[Option]:
    """The model's own head drafts (multi-token prediction), where the framework can run it."""
    scenario = base.scenario
    if not base.card_fits or scenario.draft_model or scenario.mtp or scenario.batch > 1:
        return
    if support.no_head(scenario.framework, scenario.model):
        return
    tokens = int(base.knowledge.policy["mtp_tokens"])
    other = replace(scenario, mtp=tokens)
    effort: Effort = "download" if scenario.framework.memory_model == "llama.cpp" else "setting"
    yield make_option(base, "speculative", {"mtp": tokens}, other, effort)


def _draft_for(model: Model, others: Sequence[Model], framework: Framework) -> Model | None:
    """The largest with a tenth of the active parameters, else the smallest up to a fifth.

    One of the same family goes before the others: a tokenizer may change between families.

    Args:
        model: What the draft is for.
        others: Its relatives, the largest first.
        framework: Says by how many tokens the vocabularies may differ.
    """
    small = [
        m
        for m in others
        if m.active_parameters <= model.active_parameters * DRAFT_SHARE
        and same_vocabulary(m, model, framework)
        and m.shape.moe is None
    ]
    light = [m for m in small if m.active_parameters <= model.active_parameters * _LIGHT_DRAFT]
    for group, choice in ((light, 0), (small, -1)):
        own = [m for m in group if m.family == model.family]
        if own or group:
            return (own or group)[choice]
    return None
