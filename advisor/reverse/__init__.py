"""The reverse questions: which models run on a card, which cards run a model."""

from advisor.reverse.answers import Found, Row
from advisor.reverse.cards import CardFilter, gpus_for
from advisor.reverse.criteria import Settings
from advisor.reverse.models import ModelFilter, models_for
from advisor.reverse.search import Answer, Search

__all__ = [
    "Answer",
    "CardFilter",
    "Found",
    "ModelFilter",
    "Row",
    "Search",
    "Settings",
    "gpus_for",
    "models_for",
]
