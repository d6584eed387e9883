"""The report in words and key figures, shared by the text, Markdown and HTML views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from advisor.render import figures as f
from advisor.render.barred import barred
from advisor.render.figures import Strings
from advisor.render.templating import Templates, templates_for
from advisor.render.view import LONG_CONTEXT_TOKENS
from advisor.render.views import Views

if TYPE_CHECKING:
    from advisor.render.contract import CommandDoc, Document, RecommendationDoc

Length = Literal["short", "standard", "full"]
STANDARD_WORDS = 400
_STANDARD_REMEDIES, _STANDARD_REMARKS = 6, 7
_FED = "<<"
"""A command that is a whole script: of those only the first is shown, unless all is wanted."""
_REMARKS_FIRST = 5
"""So many remarks come before the texts of the second and further remedies."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One recommendation as the views show it."""

    number: str
    title: str
    text: str
    """Empty where only title and figures are given."""
    summary: str
    """``28.1 -> 15.3 GiB`` and the speed, for people in a hurry."""
    also: str
    """Runners-up of the same kind, empty when there are none."""
    command: str
    unsaid: str
    """What the command cannot say, and why; empty when it says everything."""
    required: str
    headroom: str
    speed: str
    quality: str
    effort: str
    cost: str
    confidence: str
    rule: str


@dataclass(frozen=True, slots=True)
class Report:
    """The four movements, already chosen for a length."""

    title: str
    verdict: str
    state: str
    figures: tuple[tuple[str, str], ...]
    command: str
    """Runs the request as it stands; empty where it does not run."""
    unsaid: str
    have: str
    happens: str
    first: str
    remedies: tuple[Remedy, ...]
    watch: tuple[str, ...]
    warnings: tuple[str, ...]
    barred: tuple[str, ...]
    provenance: str


def report(
    doc: Document, length: Length, templates: Path | None = None, views: Views | None = None
) -> Report:
    """Write the report of a document in a length.

    ``standard`` keeps to about 400 words: the best remedy in full, the others by name and
    figures, then the best remarks and the texts of the other remedies as far as they fit in;
    ``short`` is the verdict and the best remedy; ``full`` is everything.

    Raises:
        TemplateError: A template of templates/report is missing or broken.
    """
    views = views or Views.of(doc)
    texts, situation = templates_for(templates), views.situation
    context = {**situation, "length": length}
    short = length == "short"
    have = "" if short else texts.text("report/have.md.j2", context)
    happens = "" if short else texts.text("report/happens.md.j2", context)
    first = _first(views, texts)
    opening = [doc["verdict"]["sentence"], have, happens, first]
    opening += doc["warnings"]
    chosen = _chosen(doc, length, sum(_words(text) for text in opening))
    return Report(
        title=title(situation),
        verdict=doc["verdict"]["sentence"],
        state=doc["verdict"]["state"],
        figures=tuple(
            key_figures(situation)
            + ([] if short else _tipping(texts.text("report/break_even.md.j2", context)))
            + _speeds_hold(doc, situation)
        ),
        command=doc["commands"][0]["text"] if doc["commands"] else "",
        unsaid=unsaid(doc["commands"]),
        have=have,
        happens=happens,
        first=first,
        remedies=tuple(
            _remedy(views.option(item), item, chosen.told, length) for item in chosen.items
        ),
        watch=tuple(chosen.watch),
        warnings=tuple(doc["warnings"]),
        barred=tuple(barred(doc)) if length == "full" else (),
        provenance=provenance(doc),
    )


def _tipping(text: str) -> list[tuple[str, str]]:
    return [("Break-even", text)] if text else []


def _first(views: Views, texts: Templates) -> str:
    doc, situation = views.doc, views.situation
    if not doc["recommendations"]:
        return texts.text("report/none.md.j2", situation)
    best = doc["recommendations"][0]
    context = {**situation, **views.option(best), "action_text": best["text"]}
    return texts.text("report/first.md.j2", context)


def _words(text: str) -> int:
    return len(text.split())


@dataclass(frozen=True, slots=True)
class _Choice:
    items: Sequence[RecommendationDoc]
    told: frozenset[int]
    """Ranks of the remedies that are told in full, not only named with their figures."""
    watch: Sequence[str]


def _chosen(doc: Document, length: Length, used: int) -> _Choice:
    items, notes = doc["recommendations"], [note["text"] for note in doc["notes"]]
    if length == "short":
        return _Choice(items[:1], _ranks(items[:1]), [])
    if length == "full":
        return _Choice(items, _ranks(items), notes)
    shown = items[:_STANDARD_REMEDIES]
    named = sum(_words(item["title"]) for item in shown[1:])
    return _within(shown, notes, STANDARD_WORDS - used - named)


def _ranks(items: Sequence[RecommendationDoc]) -> frozenset[int]:
    return frozenset(item["rank"] for item in items)


def _within(items: Sequence[RecommendationDoc], notes: Sequence[str], room: int) -> _Choice:
    """Take the best remarks, then remedies' texts, then more remarks, while words are left.

    A remedy that is not told still stands there with its title and figures.
    """
    first, room = _that_fit(notes, room, _REMARKS_FIRST)
    texts, room = _that_fit([item["text"] for item in items[1:]], room, len(items))
    later, _ = _that_fit(
        [note for note in notes if note not in first], room, _STANDARD_REMARKS - len(first)
    )
    told = _ranks([item for item in items[1:] if item["text"] in texts]) | _ranks(items[:1])
    return _Choice(items, told, [note for note in notes if note in {*first, *later}])


def _that_fit(texts: Sequence[str], room: int, most: int) -> tuple[list[str], int]:
    """Take texts in order while they fit; give them and the words that are left."""
    taken = list[str]()
    for text in texts:
        if len(taken) < most and _words(text) <= room:
            taken.append(text)
            room -= _words(text)
    return taken, room


def title(situation: Strings) -> str:
    """Name what the report is about."""
    named = situation["gpu_name"] if situation["unequal_cards"] else situation["cards"]
    card = named.removeprefix("the ")
    return f"{situation['model_name']} in {situation['weights_format']} on {card}"


def key_figures(s: Strings) -> list[tuple[str, str]]:
    """List the figures a reader looks for first, label and value."""
    parts = [
        f"weights {s['memory_weights']}",
        f"KV cache {s['memory_kv_cache']}" if s["memory_kv_cache"] else "",
        f"work buffers {s['memory_compute_buffer']}",
        f"overhead {s['memory_overhead']}",
    ]
    rows = [
        ("Needs", s["memory_required"] + (f" ({s['memory_range']})" if s["memory_range"] else "")),
        ("Made of", ", ".join(part for part in parts if part)),
        ("Rule of thumb", _nominal(s)),
        ("Usable", _usable(s)),
        ("Free", _with_share(s)),
        ("By card", s["card_shares"]),
        ("Missing", s["memory_deficit"] + _fullest(s) if s["memory_deficit"] else ""),
        ("In system RAM", s["memory_host"]),
        ("System RAM", _short_of_ram(s)),
        ("Speed", _speed(s)),
        ("With draft", s["speed_speculative"]),
        ("Prompt speed", s["speed_prefill"]),
        ("First token", _first_token(s)),
        ("All sequences", s["speed_aggregate"]),
        ("Limits", _limits(s)),
        ("Cache room", _cache_room(s)),
        ("Setup", ", ".join(part for part in _setup(s) if part)),
        ("Unknown", s["missing_figures"]),
    ]
    return [(label, value) for label, value in rows if value]


def _first_token(s: Strings) -> str:
    wait = s["speed_first_token"]
    return f"{wait} after a prompt of {s['speed_prompt']} tokens" if wait else ""


def _setup(s: Strings) -> list[str]:
    return [
        s["weights_format"],
        f"{s['request_context']} tokens of context",
        f"{s['request_batch']} sequence{'s' if s['request_several'] else ''}",
        f"KV cache {s['request_kv_cache']}" if s["memory_kv_cache"] else "",
        s["framework_name"] + (f" with {s['backend']}" if s["backend_unusual"] else ""),
        f"{s['request_draft_model']} as draft model" if s["request_draft_model"] else "",
        s["request_split"],
    ]


def _nominal(s: Strings) -> str:
    if not s["weights_nominal"] or s["memory_host"]:
        return ""
    said = f"{s['weights_nominal']} for the weights alone; in full it is {s['memory_required_gb']}"
    return f"{said}, because {s['weights_nominal_why']}" if s["weights_nominal_above"] else said


def _short_of_ram(s: Strings) -> str:
    if not s["host_ram_short"]:
        return ""
    return f"{s['host_ram']} stated, at least {s['host_ram_needed']} needed for the rest"


def _speeds_hold(doc: Document, s: Strings) -> list[tuple[str, str]]:
    """Say what the speeds of the remedies stand for where the request itself has none."""
    named = any(item["after"]["decode_tok_s"] for item in doc["recommendations"])
    asked = doc["scenario"]
    if s["speed_known"] or not named or asked["context_tokens"] < LONG_CONTEXT_TOKENS:
        return []
    depth = f.count(asked["depth_tokens"])
    when = f"with {depth} tokens cached" if asked["depth_tokens"] else "with an empty cache"
    return [("Speeds below", f"{when}; they fall as a conversation fills it")]


def _usable(s: Strings) -> str:
    if not s["memory_usable"]:
        return ""
    kind = s["memory_capacity"] if s["several_cards"] else s["gpu_memory"]
    return f"{s['memory_usable']} of {kind.replace(' of memory', '').replace(' of ', ' ')}"


def _fullest(s: Strings) -> str:
    return " on the fullest card" if s["several_cards"] else ""


def _with_share(s: Strings) -> str:
    if not s["memory_headroom"]:
        return ""
    share = f" ({s['memory_headroom_share']})" if s["memory_headroom_share"] else ""
    return s["memory_headroom"] + share + _fullest(s)


def _speed(s: Strings) -> str:
    if s["speed_known"]:
        return f"{s['speed_decode']} {s['speed_when']}; {s['speed_evidence']}"
    if not s["runs"]:
        return "none, because it does not fit"
    if not s["gpu_bandwidth"]:
        return "not known: the memory bandwidth is missing"
    return "not known" if s["model_generates"] else "not estimated for models that write no text"


def _limits(s: Strings) -> str:
    if not s["runs"]:
        return ""
    context, batch = s["memory_max_context"], s["memory_max_batch"]
    parts = [f"at most {context} tokens of context"] if context else []
    if batch:
        most = "" if batch.startswith("at least") or context else "at most "
        plural = "" if batch == "1" else "s"
        parts.append(f"{most}{batch} sequence{plural} of {s['request_context']} tokens")
    return " or ".join(parts)


def _cache_room(s: Strings) -> str:
    if not s["cache_room"]:
        return ""
    tokens = f"{s['cache_tokens']} tokens, or " if s["cache_tokens"] else ""
    plural = "s" if s["cache_serves_several"] else ""
    at_once = f"{s['cache_sequences']} sequence{plural} of {s['request_context']} tokens"
    why = ", since computing them takes room too" if s["cache_not_all"] else ""
    return f"{s['cache_room']}: {tokens}{at_once} at once{why}"


def _remedy(s: Strings, item: RecommendationDoc, told: frozenset[int], length: Length) -> Remedy:
    shown = length == "full" or item["rank"] == 1 or _FED not in item["command"]
    return Remedy(
        number=str(item["rank"]),
        title=item["title"],
        text=item["text"] if item["rank"] in told else "",
        summary=_summary(s),
        also=s["option_alternatives"],
        command=item["command"] if shown else "",
        unsaid=unsaid(item["commands"]),
        required=s["option_required"],
        headroom=s["option_headroom"] or "does not fit",
        speed=_drafted(s) or s["option_speed"] or "not known",
        quality=_quality(s),
        effort=s["option_effort_kind"],
        cost=s["option_cost"],
        confidence=item["confidence"],
        rule=item["rule"],
    )


_SETTINGS = {
    "gpus": "number of cards",
    "gpu_layers": "layers on the card",
    "cpu_experts": "experts in system RAM",
    "kv_cache": "KV-cache type",
    "kv_unified": "sharing of the cache",
    "swa_full": "full window cache",
    "ubatch": "tokens computed at once",
    "backend": "back end",
}


def unsaid(commands: Sequence[CommandDoc]) -> str:
    """Say what the first command cannot say, and why; empty when it says everything."""
    if not commands:
        return ""
    gaps = commands[0]["gaps"]
    named = (_SETTINGS.get(gap["setting"], gap["setting"].replace("_", " ")) for gap in gaps)
    reasons = list(dict.fromkeys(gap["reason"] for gap in gaps))
    return f"Not in this command: {f.listed(list(named))}. {' '.join(reasons)}" if gaps else ""


def _summary(s: Strings) -> str:
    memory = f"{s['before_required'].removesuffix(' GiB')} -> {s['option_required']}"
    free = f"{s['option_headroom']} free" if s["option_headroom"] else ""
    free += " (thin)" if free and s["option_thin"] else ""
    before = s["before_speed"].split(" (")[0].removeprefix("about ").removesuffix(" tok/s")
    point = _drafted(s) or s["option_speed_point"]
    same = before == point.removesuffix(" tok/s")
    speed = f"{before} -> {point}" if before and point and not same else point
    return ", ".join(part for part in (memory, free, speed) if part)


def _drafted(s: Strings) -> str:
    """The span a draft model leads to, where the draft is what is recommended."""
    return s["option_speculative"] if s["option_action"] == "speculative" else ""


def _quality(s: Strings) -> str:
    if s["option_quality_cost"]:
        return f"perplexity +{s['option_quality_cost']}".replace("+under", "by under")
    if s["option_quality_gain"]:
        return f"perplexity -{s['option_quality_gain'].removesuffix(' %')} points"
    return "same" if s["option_quality_same"] else "not measured"


def provenance(doc: Document) -> str:
    """Name what made the report, for the last line."""
    made = doc["provenance"]
    rules, knowledge = made["rules_sha256"][:12], made["knowledge_sha256"][:12]
    own = made["measurements_sha256"]
    yours = f", your measurements {own[:12]}" if own else ""
    return f"advisor {made['advisor']}, rules {rules}, knowledge {knowledge}{yours}"
