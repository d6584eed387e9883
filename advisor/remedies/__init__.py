"""Remedies: changed scenarios, each estimated by the estimator that sized the request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from advisor.knowledge.layers import Stack
from advisor.knowledge.vocabulary import ACTION_FACT, Vocabulary, load_vocabulary, vocabulary
from advisor.remedies import (
    cards,
    combine,
    formats,
    framework,
    kv_cache,
    levers,
    machines,
    model,
    sharing,
)
from advisor.remedies.option import Base, Option, Remedy
from advisor.scenario.figures import Limits

REMEDIES: list[Remedy] = [
    formats.REMEDY,
    kv_cache.REMEDY,
    levers.TEXT_ONLY,
    levers.SHARE,
    levers.GRAPHS,
    levers.STEPS,
    kv_cache.SHORTER,
    kv_cache.LONGER,
    kv_cache.SMALLER,
    kv_cache.LARGER,
    kv_cache.LAYERS,
    kv_cache.EXPERTS,
    framework.FLASH_ATTENTION,
    sharing.FEWER,
    sharing.SPLIT,
    sharing.STAGES,
    framework.BACKEND,
    framework.LARGER_STEPS,
    cards.MORE,
    cards.SECOND,
    cards.LARGER,
    cards.RENTED,
    model.REMEDY,
    model.MIXTURE,
    framework.FRAMEWORK,
    levers.DRAFT,
    levers.HEAD,
    combine.REMEDY,
    machines.LAST_RESORT,
]


def build_options(base: Base, limits: Limits) -> tuple[Option, ...]:
    """Build every what-if of a request, in a stable order, unique by key."""
    found: dict[str, Option] = {}
    if base.scenario.gpu is None:
        return ()
    for remedy in sorted(REMEDIES, key=lambda remedy: remedy.joins):
        if remedy.propose:
            for option in remedy.propose(base, limits, found):
                found.setdefault(option.key, option)
    return tuple(found.values())


def actions() -> tuple[str, ...]:
    """What rules may recommend."""
    return tuple(dict.fromkeys(remedy.action for remedy in REMEDIES))


def remedies_of(action: str) -> Iterator[Remedy]:
    """Those that stand for an action; none where it is unknown."""
    return (remedy for remedy in REMEDIES if remedy.action == action)


def settings_of(action: str) -> frozenset[str]:
    """Settings of a request of which the title and the text of an action speak."""
    return frozenset().union(*(remedy.settings for remedy in remedies_of(action)))


def told_by(action: str) -> str:
    """The setting that tells one change of an action from another; empty: all that changes."""
    return next((remedy.told_by for remedy in remedies_of(action) if remedy.told_by), "")


def is_uncertain(action: str) -> bool:
    """Whether the gain of an action hangs on what is written."""
    return any(remedy.uncertain for remedy in remedies_of(action))


def rule_vocabulary(folder: Stack = None) -> Vocabulary:
    """Read what rules may name: the facts of a knowledge folder, and every action there is.

    Raises:
        KnowledgeError: facts.yaml is wrong; several problems come as ``Problems``.
    """
    known = load_vocabulary(folder) if folder else vocabulary()
    fact = known.facts.get(ACTION_FACT)
    more = [action for action in actions() if fact and action not in fact.values]
    if fact is None or not more:
        return known
    facts = {**known.facts, ACTION_FACT: replace(fact, values=(*fact.values, *more))}
    return Vocabulary(facts, " ".join([known.sha256, *more]), known.texts)


def speed_at_hand(base: Base, options: Sequence[Option]) -> float:
    """The fastest that the model itself gets without a purchase and without losing much."""
    most = base.knowledge.policy["gentle_up_to_percent"]
    here = (
        option.speed
        for option in options
        if option.fits and option.effort != "purchase" and not is_uncertain(option.action)
        if option.scenario.model.name == base.scenario.model.name
        if (option.quality_loss_percent or 0.0) <= most
    )
    speeds = (base.speed if base.fits else None, *here)
    return max((speed.total_tok_s for speed in speeds if speed), default=0.0)


def least_speed(base: Base) -> float:
    """The slowest decoding that is of use for what the user has in mind, tokens per second."""
    names = {"interactive": "reading_speed", "batch": "usable_batch_tok_s"}
    name = names.get(base.scenario.use)
    return base.knowledge.policy[name] if name else 0.0


def marked(base: Base) -> Iterator[tuple[str, float]]:
    """Give the thresholds that scores and the order of advice are told by, as facts."""
    for name in ("roomy_ram_bytes", "clear_gain_percent", "little_gain_percent"):
        yield f"policy.{name.rpartition('_')[0]}", base.knowledge.policy[name]
    yield "policy.clearly_faster", base.knowledge.policy["clearly_faster_percent"]
    yield "policy.mixture_below", base.knowledge.policy["mixture_below_tok_s"]
