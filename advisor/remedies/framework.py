"""Another framework on the same card, or flash attention in this one."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.remedies.formats import in_framework, other_frameworks
from advisor.remedies.option import Base, Option, Remedy, make_option, may_help


def _others(base: Base, *_: object) -> Iterator[Option]:
    """Other frameworks that run the same or an equally small format on this card."""
    scenario = base.scenario
    for precision, framework in other_frameworks(scenario, base.knowledge):
        other = in_framework(base, framework, precision)
        if other and may_help(base, other):
            change: dict[str, object] = {"framework": framework.name}
            if precision is not scenario.precision:
                change["precision"] = precision.name
            yield make_option(base, FRAMEWORK, change, other)


def _flash_attention(base: Base, *_: object) -> Iterator[Option]:
    """Flash attention on, where it was turned off and needs less memory on."""
    scenario = base.scenario
    if scenario.flash_attention or scenario.framework.flash_attention is False:
        return
    other = replace(scenario, flash_attention=True)
    option = make_option(base, FLASH_ATTENTION, {"flash_attention": True}, other)
    if option.memory.required_bytes < base.memory.required_bytes:
        yield option


FRAMEWORK = Remedy(
    "change-framework",
    frozenset({"framework", "precision"}),
    "rebuild",
    _others,
    told_by="framework",
)
FLASH_ATTENTION = Remedy(
    FRAMEWORK.action, frozenset({"flash_attention"}), "setting", _flash_attention
)
