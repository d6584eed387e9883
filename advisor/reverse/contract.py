"""The JSON of ``models-for`` and ``gpus-for``; keys may be added, never renamed.

``scenario``, ``memory`` and ``speed`` are the objects of ``advise --format json``.
"""

from __future__ import annotations

from typing_extensions import TypedDict

from advisor.report.contract import MemoryDoc, ScenarioDoc, SpeedDoc
from advisor.report.contract_provenance import YoursDoc


class RowDoc(TypedDict):
    """One model, or one card, that runs."""

    rank: int
    request: dict[str, object]
    """Keys of ``advisor estimate``; run by itself it gives these very figures."""
    scenario: ScenarioDoc
    memory: MemoryDoc
    headroom_percent: float | None
    """Of the fullest card's usable memory."""
    margin: str | None
    """thin, narrow or ample."""
    speed: SpeedDoc | None
    quality_loss_percent: float | None
    """Perplexity increase of the weight format over FP16; null: not measured."""
    model_released: str | None
    form: str
    """desktop, workstation, laptop, datacenter, edge or unified."""
    price_usd: float | None
    """Launch price of all cards together; null: no source states it."""
    power_w: float | None
    """Board power of all cards together; null: no source states it."""
    command: str
    """How to run it; empty where no sourced command is known."""


class BestDoc(TypedDict):
    """The first of all cards by one figure."""

    gpu: str
    gpus: int
    precision: str
    value: float


class AskedDoc(TypedDict):
    """What was asked, defaults filled in."""

    context_tokens: int | None
    """Null: the smaller of 4096 and the trained length of each model."""
    batch: int
    gpus: int
    """With ``gpus-for`` the most equal cards."""
    kv_cache: str
    framework: str | None
    """Null: for each format the first that runs it."""
    min_speed_tok_s: float | None
    max_loss_percent: float | None
    """Null: any."""
    unmeasured: bool
    prefer: str
    sort: str | None


class ReverseDoc(TypedDict):
    """One answer."""

    schema_version: int
    question: str
    """models-for or gpus-for."""
    subject: str
    """The card or the model that was asked for."""
    asked: AskedDoc
    ranking: str
    """How the rows are ordered, in words."""
    tried: int
    """Models or cards of the knowledge base: ``fitting`` and all of ``left_out`` together."""
    fitting: int
    """Models or cards that run, shown or not."""
    rows: list[RowDoc]
    best: dict[str, BestDoc]
    """For ``gpus-for``: price, memory, speed and power; those without any known figure lack."""
    left_out: dict[str, int]
    yours: list[YoursDoc]
    """What of the user's own knowledge the rows rest on."""
    warnings: list[str]
    """Plain sentences about what was asked."""
    knowledge_sha256: str
    advisor: str
