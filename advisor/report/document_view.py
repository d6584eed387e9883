"""The placeholders of one document, written once and shared by its sentences and its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from advisor.report.figures import Strings
from advisor.report.remedy_view import OptionView, ToldView, option_view
from advisor.report.report_view import situation_view
from advisor.report.variants import SEED, turned

if TYPE_CHECKING:
    from advisor.report.contract import Document, RecommendationDoc


class Views(Struct, frozen=True):
    """Placeholders hold figures and names, never sentences, so later sentences change none."""

    doc: Document
    situation: Strings
    options: dict[int, OptionView] = field(default_factory=dict)
    """By rank, as far as asked for."""
    _told: dict[int, Strings] = field(default_factory=dict)

    @classmethod
    def of(cls, doc: Document) -> Views:
        """Write the placeholders of the scenario."""
        return cls(doc, situation_view(doc))

    def option(self, item: RecommendationDoc) -> OptionView:
        """Give the placeholders of a recommendation of this document."""
        found = self.options.get(item["rank"])
        if found is None:
            found = self.options[item["rank"]] = option_view(self.doc, item)
        return found

    def told(self, item: RecommendationDoc) -> Strings:
        """Give the placeholders that a recommendation's own texts are written from.

        Each has its own turn of the variation, so that neighbours differ within a report too.
        """
        rank = item["rank"]
        found = self._told.get(rank)
        if found is None:
            found = self._told[rank] = self.told_with(item)
        return found

    def told_with(self, item: RecommendationDoc, **more: str) -> Strings:
        """Give the same placeholders and some more."""
        seed = turned(self.situation[SEED], item["rank"])
        ready = {**self.situation, SEED: seed, **more}
        return ToldView(ready, self.option(item))
