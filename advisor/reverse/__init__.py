"""The reverse questions: which models run on a card, which cards run a model."""

from advisor.reverse.answers import Answer, Found, Row, Settings
from advisor.reverse.cards import CardFilter, gpus_for
from advisor.reverse.models import ModelFilter, models_for
from advisor.reverse.search import Search

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
