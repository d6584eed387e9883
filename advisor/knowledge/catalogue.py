"""What-ifs look through the catalogue by these few figures, without building every record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from advisor.knowledge.types import Gpu, Knowledge, ModelRecord


class CardRow(NamedTuple):
    """A card one can buy or rent, whose memory and release are known."""

    name: str
    vendor: str
    segment: str
    vram_bytes: int
    bandwidth_bytes_s: float | None
    released: str | None
    """Unknown only for machines that share their memory, which are all recent."""
    launch_price_usd: float | None
    unified_memory: bool | None


def card_row(card: Mapping[str, object]) -> CardRow | None:
    """Pick a row from the fields of a card; None where memory or release is unknown."""
    dated = card.get("released") or card.get("unified_memory")
    if not card.get("vram_bytes") or not dated or card.get("not_for_sale"):
        return None
    return CardRow(*(card.get(field) for field in CardRow._fields))  # type: ignore[arg-type]  # fields of a checked record


def family_key(model: Mapping[str, object]) -> str:
    """Name the group of models that are siblings: one family, one kind of input."""
    return f"{model.get('family')}|{model.get('modality')}"


def kin_key(model: Mapping[str, object]) -> str:
    """Name the models of one publisher that share a vocabulary size; empty where unknown."""
    config = model.get("config")
    vocab = _vocabulary(config) if isinstance(config, Mapping) else None
    publisher = str(model.get("hf_id") or "").partition("/")[0]
    return f"{publisher}|{vocab}" if publisher and vocab else ""


def _vocabulary(config: Mapping[str, object]) -> object:
    inner = config.get("text_config")
    text = inner if isinstance(inner, Mapping) else config
    return text.get("vocab_size") or config.get("vocab_size")


def kin(knowledge: Knowledge, name: str) -> Sequence[str]:
    """List the models of the same publisher and vocabulary, the model itself among them."""
    key = kin_key(_plain(knowledge.models[name])) if name in knowledge.models else ""
    stored = knowledge.index.get("kin")
    if not key:
        return ()
    if stored is None:
        return [m.name for m in knowledge.models.values() if kin_key(_plain(m)) == key]
    return cast("Mapping[str, Sequence[str]]", stored).get(key, ())


def cards(knowledge: Knowledge) -> Sequence[CardRow]:
    """List the cards with known memory and release, in file order."""
    stored = knowledge.index.get("cards")
    if stored is None:
        rows = (card_row(_plain(card)) for card in knowledge.gpus.values())
        return [row for row in rows if row is not None]
    return [CardRow(*row) for row in cast("Sequence[Sequence[object]]", stored)]  # type: ignore[arg-type]  # written by card_row


def siblings(knowledge: Knowledge, family: str, modality: str) -> Sequence[str]:
    """List the models of a family and kind, in file order."""
    key = f"{family}|{modality}"
    stored = knowledge.index.get("families")
    if stored is None:
        return [m.name for m in knowledge.models.values() if family_key(_plain(m)) == key]
    return cast("Mapping[str, Sequence[str]]", stored).get(key, ())


def _plain(record: Gpu | ModelRecord) -> Mapping[str, object]:
    return {name: getattr(record, name) for name in record.__struct_fields__}
