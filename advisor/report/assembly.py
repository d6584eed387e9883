"""Advice -> the result document: numbers first, then the sentences written from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.estimate.certainty import certainty_of
from advisor.estimate.memory import sequences_at_once
from advisor.knowledge.vocabulary import shown_in
from advisor.remedies.option import Expected
from advisor.report.document_view import Views
from advisor.report.figures import plain, typed
from advisor.report.not_recommended import title
from advisor.report.picture import picture_doc
from advisor.report.provenance import switched_off_docs, user_entry_docs, user_rule_doc
from advisor.report.quoted_facts import QUOTED_FACTS
from advisor.report.remedy_view import caveats_of
from advisor.report.request_view import scenario_doc, setup_doc
from advisor.report.templates import Templates, templates_for
from advisor.report.words import spoken
from advisor.runtimes.commands import commands_for
from advisor.scenario.scenario import offloads

if TYPE_CHECKING:
    from advisor.advice.document import Advice, Because, Note, NotRecommended, Recommendation
    from advisor.estimate.picture import MemoryPicture
    from advisor.remedies.option import Option
    from advisor.report.contract import (
        AfterDoc,
        AlternativeDoc,
        BecauseDoc,
        BreakEvenDoc,
        CommandDoc,
        Document,
        FigureDoc,
        MemoryDoc,
        NotRecommendedDoc,
        OptionDoc,
        RecommendationDoc,
        SpanDoc,
        SpeedDoc,
        TradeoffDoc,
    )
    from advisor.report.contract_provenance import YoursDoc
    from advisor.scenario.figures import Figure, Limits, Memory, Speed
    from advisor.scenario.scenario import Scenario

SCHEMA_VERSION = 1
_RUNS = ("fits", "tight")


def document(
    advice: Advice,
    *,
    templates: Path | None = None,
    picture: MemoryPicture | None = None,
    options: bool = False,
) -> Document:
    """Turn advice into the result document that every view reads.

    Args:
        advice: The pipeline's answer.
        templates: A folder whose templates stand in front of the built-in ones.
        picture: How memory grows, where it is to be shown.
        options: Whether to list the what-ifs that fit.

    Raises:
        TemplateError: A template is missing, broken or names an unknown placeholder.
    """
    doc = document_and_views(advice, templates=templates, picture=picture)[0]
    if options:
        from advisor.report.pareto import options_doc  # noqa: PLC0415 - for --options alone

        barred = frozenset(item.option.key for item in advice.not_recommended)
        doc["options"] = options_doc(advice.options, options_table(advice.options), barred)
    return doc


def document_and_views(
    advice: Advice, *, templates: Path | None = None, picture: MemoryPicture | None = None
) -> tuple[Document, Views]:
    """Give the document with its placeholders, for whoever writes its report as well."""
    with spoken(templates):
        doc = _numbers(advice)
        doc["memory_picture"] = picture_doc(picture) if picture else None
        doc["provenance"]["yours"] = user_entry_docs(advice, templates)
        views = Views.of(doc)
        _write_sentences(views, advice, templates_for(templates))
    return doc, views


def options_table(options: Iterable[Option]) -> list[OptionDoc]:
    """List what-ifs as data, in their given order, for ``advise --options``."""
    return [
        {
            "action": option.action,
            "change": dict(option.change),
            "setup": setup_doc(option.scenario),
            "after": _after(option),
            "tradeoff": _tradeoff(option),
            "steps": option.steps,
            "best": False,
        }
        for option in options
    ]


def _numbers(advice: Advice) -> Document:
    speed = speed_doc(advice.speed) if _speed_may_be_shown(advice) else None
    decode = speed["decode_tok_s"] if speed else None
    required = advice.memory.required_bytes
    made = advice.provenance
    return {
        "schema_version": SCHEMA_VERSION,
        "request": dict(advice.request.stated()),
        "scenario": scenario_doc(advice.scenario),
        "memory": memory_doc(advice.memory, advice.limits),
        "break_even": _break_even(advice),
        "speed": speed,
        "speculative_tok_s": _span(advice.speed),
        "verdict": {"state": advice.state, "sentence": ""},
        "commands": _commands(advice.scenario, advice.memory) if _runs(advice) else [],
        "recommendations": [
            _recommendation(item, required, decode, user_rule_doc(made, item.rule))
            for item in advice.recommendations
        ],
        "notes": [],
        "not_recommended": [
            _barred(item, user_rule_doc(made, item.rule)) for item in advice.not_recommended
        ],
        "warnings": [plain(text) for text in advice.warnings],
        "missing": list(advice.missing),
        "facts": {name: advice.facts[name] for name in QUOTED_FACTS if name in advice.facts},
        "options": None,
        "memory_picture": None,
        "provenance": {
            "advisor": made.advisor,
            "rules_sha256": made.rules_sha256,
            "knowledge_sha256": made.knowledge_sha256,
            "templates_sha256": made.templates_sha256,
            "engine": made.engine,
            "measurements_sha256": made.measurements_sha256,
            "yours": [],
            "switched_off": switched_off_docs(made),
        },
    }


def _break_even(advice: Advice) -> BreakEvenDoc:
    edges = advice.break_even
    return {
        "max_context_tokens": advice.limits.max_context_tokens,
        "missing_bytes": advice.memory.deficit_bytes,
        "too_large_batch": edges.too_large_batch,
        "largest_format": edges.largest_format,
        "largest_format_bits": edges.largest_format_bits,
        "fewest_gpus": edges.fewest_gpus,
        "smallest_capacity_bytes": edges.smallest_capacity_bytes,
    }


def _runs(advice: Advice) -> bool:
    """Whether the setup starts as asked; a split that its RAM cannot hold does not."""
    return advice.state in _RUNS


def _speed_may_be_shown(advice: Advice) -> bool:
    known = advice.scenario.ram_bandwidth_bytes_s is not None
    return advice.state in _RUNS or (offloads(advice.scenario) and known)


def _write_sentences(views: Views, advice: Advice, texts: Templates) -> None:
    doc, situation = views.doc, views.situation
    doc["verdict"]["sentence"] = texts.text("report/verdict.md.j2", situation)
    for shown, item in zip(doc["recommendations"], advice.recommendations, strict=True):
        name = item.text_template or f"{item.option.action}.md.j2"
        context = views.told(shown)
        shown["title"], shown["text"] = texts.titled(f"actions/{name}", context)
        caveats = [texts.text(f"report/{caveat}.md.j2", context) for caveat in caveats_of(context)]
        shown["text"] = " ".join([shown["text"], *filter(None, caveats)])
    doc["notes"] = [
        {"rule": note.rule, "yours": user_rule_doc(advice.provenance, note.rule), "text": text}
        for note in advice.notes
        if (text := _note_text(note, situation, texts))
    ]


def _note_text(note: Note, situation: dict[str, str], texts: Templates) -> str:
    """A note without a template of its own carries its sentence itself."""
    if note.text_template:
        return texts.text(f"notes/{note.text_template}", situation)
    return plain(note.text)


def _recommendation(
    item: Recommendation, required: int, decode: FigureDoc | None, yours: YoursDoc | None
) -> RecommendationDoc:
    return {
        "rank": item.rank,
        "action": item.option.action,
        "title": "",
        "text": "",
        "change": dict(item.option.change),
        "setup": setup_doc(item.option.scenario),
        "before": {"required_bytes": required, "decode_tok_s": decode},
        "after": _after(item.option),
        "tradeoff": _tradeoff(item.option),
        "confidence": item.confidence,
        "command": item.command,
        "commands": _commands(item.option.scenario, item.option.memory),
        "alternatives": [_alternative(option) for option in item.alternatives],
        "speculative_tok_s": _span(item.option.speed),
        "rule": item.rule,
        "yours": yours,
        "score": item.score,
        "score_terms": [
            {"text": plain(term.text), "points": term.points} for term in item.score_terms
        ],
        "because": _because(item.because),
    }


def _commands(scenario: Scenario, memory: Memory) -> list[CommandDoc]:
    return [
        {
            "program": command.program,
            "what": command.what,
            "version": command.version,
            "text": typed(command.text),
            "gaps": [{"setting": gap.setting, "reason": gap.reason} for gap in command.gaps],
        }
        for command in commands_for(scenario, memory)
    ]


def _alternative(option: Option) -> AlternativeDoc:
    return {
        "change": dict(option.change),
        "setup": setup_doc(option.scenario),
        "after": _after(option),
    }


def _span(speed: Speed | None) -> SpanDoc | None:
    span = speed.speculative_tok_s if speed else None
    return {"low": span[0], "high": span[1]} if span else None


def _after(option: Option) -> AfterDoc:
    memory, speed = option.memory, option.speed if option.fits else None
    host = (memory.host_weights_bytes, memory.host_kv_cache_bytes, memory.host_compute_bytes)
    return {
        "required_bytes": memory.required_bytes,
        "headroom_bytes": memory.headroom_bytes,
        "deficit_bytes": memory.deficit_bytes,
        "usable_bytes": memory.usable_bytes,
        "weights_bytes": memory.weights_bytes,
        "kv_cache_bytes": memory.kv_cache_bytes,
        "host_bytes": sum(host),
        "fits": option.fits,
        "margin": option.margin,
        "decode_tok_s": _figure(speed.decode_tok_s) if speed else None,
        "aggregate_tok_s": _figure_or_none(speed.aggregate_tok_s) if speed else None,
    }


def _tradeoff(option: Option) -> TradeoffDoc:
    return {
        "quality": option.quality_loss_percent,
        "quality_change": option.quality_cost_percent,
        "cost_usd": option.cost_usd,
        "effort": option.effort,
    }


def _barred(item: NotRecommended, yours: YoursDoc | None) -> NotRecommendedDoc:
    option = item.option
    facts = option.facts if isinstance(option, Expected) else {}
    return {
        "title": plain(title(option.action, option.change, facts)),
        "action": option.action,
        "change": dict(option.change),
        "rule": item.rule,
        "yours": yours,
        "reason": plain(item.reason),
        "because": _because(item.because),
    }


def _because(items: Sequence[Because]) -> list[BecauseDoc]:
    return [
        {
            "fact": item.fact,
            "value": item.value,
            "test": item.test,
            "shown": shown_in(item.kind.unit, item.value),
            "distance": item.distance,
        }
        for item in items
    ]


def memory_doc(memory: Memory, limits: Limits) -> MemoryDoc:
    """Put memory and its limits as the result document has them."""
    room = memory.cache_room
    return {
        "capacity_bytes": memory.capacity_bytes,
        "usable_bytes": memory.usable_bytes,
        "required_bytes": memory.required_bytes,
        "deficit_bytes": memory.deficit_bytes,
        "headroom_bytes": memory.headroom_bytes,
        "weights_bytes": memory.weights_bytes,
        "kv_cache_bytes": memory.kv_cache_bytes,
        "compute_buffer_bytes": memory.compute_buffer_bytes,
        "overhead_bytes": memory.overhead_bytes,
        "host_weights_bytes": memory.host_weights_bytes,
        "host_kv_cache_bytes": memory.host_kv_cache_bytes,
        "host_compute_bytes": memory.host_compute_bytes,
        "nominal_weights_gb": memory.nominal_weights_gb,
        "max_context_tokens": limits.max_context_tokens,
        "max_batch": limits.max_batch,
        "bits_per_weight": memory.bits_per_weight,
        "low_bytes": memory.low_bytes,
        "high_bytes": memory.high_bytes,
        "certainty": certainty_of(memory),
        "cache_room_bytes": room.room_bytes if room else None,
        "cache_tokens": room.tokens if room else None,
        "cache_sequences": sequences_at_once(memory, limits),
        "approximate": list(memory.approximate),
        "per_gpu": [
            {
                "name": plain(card.name),
                "capacity_bytes": card.capacity_bytes,
                "usable_bytes": card.usable_bytes,
                "required_bytes": card.required_bytes,
                "weights_bytes": card.weights_bytes,
                "kv_cache_bytes": card.kv_cache_bytes,
                "compute_buffer_bytes": card.compute_buffer_bytes,
                "overhead_bytes": card.overhead_bytes,
                "low_bytes": card.low_bytes,
                "high_bytes": card.high_bytes,
            }
            for card in memory.per_gpu
        ],
    }


def speed_doc(speed: Speed | None) -> SpeedDoc | None:
    """Put a speed as the result document has it."""
    if speed is None:
        return None
    return {
        "depth_tokens": speed.depth_tokens,
        "decode_tok_s": _figure(speed.decode_tok_s),
        "prefill_tok_s": _figure_or_none(speed.prefill_tok_s),
        "aggregate_tok_s": _figure_or_none(speed.aggregate_tok_s),
        "bound_by": speed.bound_by,
        "first_token_s": _figure_or_none(speed.first_token_s),
        "prompt_tokens": speed.prompt_tokens,
        "cards": speed.cards,
    }


def _figure_or_none(figure: Figure | None) -> FigureDoc | None:
    return _figure(figure) if figure else None


def _figure(figure: Figure) -> FigureDoc:
    return {
        "estimate": figure.estimate,
        "low": figure.low,
        "high": figure.high,
        "evidence": figure.evidence,
        "source": plain(figure.source),
        "modelled": figure.modelled,
    }
