"""The reverse questions: which models run on a card, which cards run a model.

Models stand in the order that is made here: by merit for a use, less what the format costs; then
by date and size.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from advisor.bulk.reverse.answers import Answer, RatedModel, Wish, ascending, descending
from advisor.knowledge.merit import Merit, is_aged, merit_of
from advisor.knowledge.types import Knowledge
from advisor.models.stored_tensors import Model
from advisor.scenario.support import after_loss

_CONTEXTS: Mapping[str, str] = {
    "chat": "chat_context_tokens",
    "vision": "chat_context_tokens",
    "code": "code_context_tokens",
    "reasoning": "code_context_tokens",
    "agents": "agents_context_tokens",
    "long-context": "long_context_tokens",
}
"""Use -> the policy that says how many tokens it takes; embedding goes without."""
_SHORTER_WILL_DO = frozenset({"chat", "vision"})
"""Uses for which a model that was trained on less is of use as well."""
_WORKS_ALONE = frozenset({"code", "reasoning", "agents"})
_WRITES = frozenset({"text", "vision"})
_EMBEDS = "embedding"


def may_be_of_use(modality: str, use: str | None) -> bool:
    """Whether models of this kind are asked for by a use."""
    if use is None:
        return True
    if use in {"vision", _EMBEDS}:
        return modality == use
    return modality in _WRITES


def context_for(wish: Wish, policy: Mapping[str, float]) -> int | None:
    """Give the tokens that a use takes where none were stated; None: the usual number."""
    name = _CONTEXTS.get(wish.use or "")
    return int(policy[name]) if name and wish.request.context is None else wish.request.context


def least_context(wish: Wish, policy: Mapping[str, float]) -> int:
    """Give the tokens that a model has to be trained on."""
    if wish.request.context is None and (wish.use is None or wish.use in _SHORTER_WILL_DO):
        return 0
    return context_for(wish, policy) or 0


class Ranking(Struct, frozen=True):
    """Puts models in order for one wish."""

    knowledge: Knowledge
    wish: Wish

    def least_speed(self, model: Model) -> float:
        """Give the tokens per second that a model has to write for the use; 0: any."""
        wish, policy = self.wish, self.knowledge.policy
        stated = wish.min_speed_tok_s or 0.0
        if wish.use in {None, _EMBEDS} or wish.prefer == "speed":
            return stated
        merit = self._merit_of(model)
        works = wish.use in _WORKS_ALONE or (merit is not None and merit.thinks)
        return max(stated, policy["thinking_speed" if works else "reading_speed"])

    def merit(self, answer: Answer) -> RatedModel | None:
        """Rate a model in its format; None where no board names it or a relative."""
        merit = self._merit_of(answer.scenario.model)
        if merit is None:
            return None
        loss = answer.loss_percent
        return RatedModel(merit, after_loss(merit.counted, loss, self.knowledge.policy))

    def key(self, answer: Answer) -> tuple[object, ...]:
        """Sort the best first: fast enough, not old, then by merit, date and size."""
        model, rated = answer.scenario.model, self.merit(answer)
        by_merit = (
            self._is_old(model),
            descending(rated.points if rated else None),
            ascending(answer.loss_percent) if rated is None else (False, 0.0),
            _age(model),
            -model.parameters,
            model.name,
        )
        writes = self.wish.use == _EMBEDS or model.modality in _WRITES
        if self.wish.prefer == "speed":
            return (not writes, descending(answer.decode_tok_s), *by_merit)
        least = self.least_speed(model)
        slow = least > 0 and (answer.decode_tok_s or 0.0) < least
        return (not writes, slow, *by_merit)

    def _merit_of(self, model: Model) -> Merit | None:
        return merit_of(self.knowledge, model.name, model.hf_id, self.wish.use or "")

    def _is_old(self, model: Model) -> bool:
        if self.wish.use in {None, _EMBEDS}:
            return False
        return is_aged(self.knowledge, model.released)


def _age(model: Model) -> tuple[bool, int]:
    """Sort the newest first and those of unknown date last."""
    day = int((model.released or "0").replace("-", ""))
    return (not day, -day)
