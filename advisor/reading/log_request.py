"""What a log says, as the settings of a request: its names found, or said to be unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from advisor.errors import RequestError, UserError
from advisor.knowledge.catalogue import MAKERS, TOGETHER
from advisor.knowledge.merit_scale import card_names
from advisor.knowledge.names import find_format_candidates, find_framework
from advisor.knowledge.types import Gpu, Knowledge
from advisor.models.hub_names import in_cache
from advisor.models.stored_tensors import Model
from advisor.reading import find_cards, read_model
from advisor.reading.format_patterns import library_format
from advisor.reading.known import ModelRead
from advisor.reading.logs import Log
from advisor.reading.pasted_request import Asked, asked_by, read_pasted
from advisor.units import GIB

_BLOB = re.compile(r".*/blobs/sha256[-:]")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_ENDING = re.compile(r"\.(?:gguf|safetensors)$", re.IGNORECASE)
_TAGGED = re.compile(r"[-_]GGUF$", re.IGNORECASE)
_TAG = re.compile(r"[\w.-]+:[\w.-]+")
_IN_BRACKETS = re.compile(r"\s*\([^)]*\)")
_SAME_SIZE = 0.03
"""How far the parameters that a log counts may lie from those of the model of that name: files
leave vision towers out, and round."""
_SAME_MEMORY = 0.12
"""How far the memory that a driver shows may lie below what the card is sold with."""
_MORE_MEMORY = 0.02
_MOST_OF_ONE_MEMORY = 0.8
"""The largest share of a Mac's memory that Metal gives a card: two thirds to 78 % in logs."""
_LEAST_SHARE = 0.01


class FromLog(Struct, frozen=True):
    """What a request takes from a log."""

    settings: Mapping[str, object]
    unknown: Mapping[str, str]
    """Setting -> what the log says of it that is not known here; empty text: it says nothing."""
    ranks: int = 1
    """Cards that the program was told to take."""


def settings_of(log: Log, knowledge: Knowledge) -> FromLog:
    """Read the settings that a log tells, and what it leaves open.

    What the program prints counts before the command that started it.
    """
    asked = _asked(log, knowledge)
    settings: dict[str, object] = dict(asked.settings) if asked else {}
    started = str(settings.get("model", ""))
    if started and not _known(started, knowledge):
        del settings["model"]
    unknown: dict[str, str] = {}
    if log.runtime and (log.certain or not asked):
        settings["framework"] = _engine(log.runtime, asked, knowledge)
    gguf = _places_layers(str(settings.get("framework", "")), knowledge)
    ranks = _ranks(log) or (asked.cards if asked else None) or 1
    card, seen = _cards(log, knowledge, ranks, every=gguf or "framework" not in settings)
    _put("gpu", card, seen, settings, unknown)
    model, named, in_name = _model(log, knowledge)
    _put("model", model, named or started, settings, unknown)
    computes_in = "" if gguf or format_told(settings, knowledge) else log.text("dtype")
    precision, written = _precision(log, knowledge, in_name, computes_in)
    told = log.text("model") or log.text("name")
    if precision or (gguf and not format_told(settings, knowledge, told)):
        _put("precision", precision, written, settings, unknown)
    settings |= _context(log) | _cache_types(log, knowledge) | _split(log) | _share(log)
    if gguf:
        settings |= _placed(log)
    return FromLog(settings, unknown, ranks)


def _asked(log: Log, knowledge: Knowledge) -> Asked | None:
    """Read the last command in the log that starts a program with a model."""
    for texts in reversed(log.commands):
        for text in texts:
            try:
                return asked_by(read_pasted(text), knowledge)
            except (RequestError, OverflowError):  # a number of hundreds of digits
                continue
    return None


def _engine(runtime: str, asked: Asked | None, knowledge: Knowledge) -> str:
    """Give the framework; where it runs inside the one that was started, that one."""
    if asked is None:
        return runtime
    inside, started = (find_framework(knowledge, name) for name in (runtime, asked.framework))
    return started.name if inside.memory_model == started.memory_model else runtime


def _put(
    key: str, found: str, seen: str, settings: dict[str, object], unknown: dict[str, str]
) -> None:
    if found:
        settings[key] = found
    elif key not in settings:
        unknown[key] = seen


def _places_layers(framework: str, knowledge: Knowledge) -> bool:
    """Whether the program places layers of one file, on every card that it is shown."""
    return bool(framework) and find_framework(knowledge, framework).places_layers


# ---- cards


def _cards(log: Log, knowledge: Knowledge, ranks: int, *, every: bool) -> tuple[str, str]:
    """Name the cards as a request does; else give what the log calls them.

    Args:
        log: What was read.
        knowledge: The cards that are known.
        ranks: How many cards the program was told to take.
        every: Whether all cards that are shown are meant: the program takes them, or there is none.
    """
    found = {device: _card(log, device, name, knowledge) for device, name in log.cards.items()}
    if not found or not all(found.values()):
        seen = next((name for device, name in log.cards.items() if not found[device]), "")
        return "", seen if log.trust else ""
    names = list(found.values()) if every else list(found.values())[:1]
    if ranks > 1 and len(names) < ranks:
        return f"{ranks}x {names[0]}", ""
    if len(set(names)) == 1:
        return f"{len(names)}x {names[0]}" if len(names) > 1 else names[0], ""
    return TOGETHER.join(names), ""


def _card(log: Log, device: str, printed: str, knowledge: Knowledge) -> str:
    """Find a card by the name that its driver prints, and the memory it shows."""
    name = _IN_BRACKETS.sub("", printed).strip()
    shown = log.capacity(device)
    sold = f":{max(1, round(shown / GIB + 0.2))}GB" if shown else ""
    for text in (name, name + sold) if sold else (name,):
        try:
            card = find_cards(knowledge, text).gpu
        except RequestError:
            continue
        if _has(card, shown):
            return _sized(text, card, shown or log.figure("claimed"))
    return ""


def _sized(text: str, card: Gpu, shown: float | None) -> str:
    """Name the memory too, where it is the computer's: the least of which so much may be shown."""
    own = MAKERS[card.vendor].one_memory
    most = _MOST_OF_ONE_MEMORY if own else 1.0
    sizes = sorted(card.vram_sizes) if card.unified_memory and shown else ()
    least = next((size for size in sizes if shown and shown <= size * most), None)
    return f"{card.name}:{least // GIB}GB" if least else text


def may_be(text: str, log: Log, knowledge: Knowledge) -> bool:
    """Whether the memory that a log shows may be that of these cards."""
    try:
        card = find_cards(knowledge, text).gpu
    except RequestError:
        return False
    return all(_has(card, log.capacity(device)) for device in (*log.cards, "0"))


def usual_card(log: Log, knowledge: Knowledge) -> str:
    """Name the usual card of the memory that a log shows of a card that it does not name."""
    shown = log.capacity("0") if not log.cards else None
    usual = (knowledge.gpus[name] for name in card_names(knowledge).of_memory) if shown else ()
    backend = log.text("backend")
    fits = (card for card in usual if not backend or backend in MAKERS[card.vendor].backends)
    return next((card.name for card in fits if _has(card, shown)), "")


def _has(card: Gpu, shown: float | None) -> bool:
    """Whether a card may show this memory: drivers keep a part of it."""
    if not shown or not card.vram_bytes or card.unified_memory:
        return True
    return -_MORE_MEMORY <= 1 - shown / card.vram_bytes <= _SAME_MEMORY


# ---- the model


def _model(log: Log, knowledge: Knowledge) -> tuple[str, str, str]:
    """Give the model's name, else what the log calls it; and the format that the name tells."""
    said = [text for text in (log.text("model"), log.text("name")) if text]
    for text in [*said, *filter(None, [log.text("told_model")])]:
        for name in _spellings(text):
            read = _known(name, knowledge)
            if read and _same_size(log, read.model):
                own = read.model.name if read.model.origin == "knowledge" else name
                return own, "", read.precision
    shown = [text for text in said if not _BLOB.match(text)]
    return "", shown[0] if shown else "", ""


def _spellings(text: str) -> Iterator[str]:
    """Give what may be the name in a path, a repository or a tag."""
    if _BLOB.match(text):
        return
    text = text.replace("\\", "/").rstrip("/")
    stem = _SHARD.sub("", _ENDING.sub("", in_cache(text) or text))
    if stem.count("/") <= 1 and not stem.startswith(("/", ".")):
        yield stem
    last = stem.rpartition("/")[2]
    yield last
    yield _TAGGED.sub("", last)


def _known(name: str, knowledge: Knowledge) -> ModelRead | None:
    try:
        return read_model(knowledge, name)
    except UserError:
        return None


def format_told(settings: Mapping[str, object], knowledge: Knowledge, named: str = "") -> bool:
    """Whether the model comes in a format of its own, or its name or tag tells one."""
    found = _known(str(settings.get("model", "")), knowledge)
    if found is None:
        return False
    model, program = found.model, str(settings.get("framework", ""))
    if found.precision or model.held_format or model.native_formats:
        return True
    of_library = bool(program) and find_framework(knowledge, program).library_tags
    return bool(of_library and (library_format(model.name) or _TAG.fullmatch(named)))


def _same_size(log: Log, model: Model) -> bool:
    counted = log.figure("parameters")
    if not counted:
        return True
    sizes = (model.parameters, model.parameters - model.vision_parameters)
    return any(abs(counted / size - 1) <= _SAME_SIZE for size in sizes)


# ---- settings


def _precision(log: Log, knowledge: Knowledge, in_name: str, computes_in: str) -> tuple[str, str]:
    """Give the format of the weights, else what the log calls it.

    The type that is computed in is theirs only where nothing says that they are quantised.
    """
    stated = log.text("precision")
    for text in (stated, in_name, "" if stated else computes_in):
        try:
            if text and find_format_candidates(knowledge, text):
                return text, ""
        except RequestError:
            continue
    return "", stated


def _context(log: Log) -> dict[str, object]:
    """Give context and sequences; a cache shared by all is divided among them."""
    each, whole, sequences = (
        log.figure(name) for name in ("context", "context_total", "sequences")
    )
    if whole and sequences:
        each = whole // sequences
    found = {"context": each or whole, "batch": sequences, "ubatch": log.figure("ubatch")}
    return {key: int(value) for key, value in found.items() if value and value >= 1}


def _cache_types(log: Log, knowledge: Knowledge) -> dict[str, object]:
    both = log.text("cache_type")
    stated = {"kv_cache": both} if both else {}
    for half in ("k", "v"):
        if text := log.text(f"cache_type_{half}"):
            stated[f"kv_cache_{half}"] = text
    known = {name.casefold() for name in knowledge.kv_types}
    found: dict[str, object] = {
        key: text for key, text in stated.items() if text.casefold() in known
    }
    flash = log.text("flash_attention")
    return found | ({"flash_attention": flash == "on"} if flash in {"on", "off"} else {})


def _ranks(log: Log) -> int | None:
    """Give the cards that a server says it was told to take."""
    said = [log.figure(f"{kind}_ranks") for kind in ("tensor", "pipeline")]
    return int((said[0] or 1) * (said[1] or 1)) if any(said) else None


def _split(log: Log) -> dict[str, object]:
    tensor, pipeline = (log.figure(f"{kind}_ranks") or 1 for kind in ("tensor", "pipeline"))
    if tensor > 1 and pipeline > 1:
        return {"split": "tensor", "stages": int(pipeline)}
    return {"split": "tensor"} if tensor > 1 else {"split": "layer"} if pipeline > 1 else {}


def _share(log: Log) -> dict[str, object]:
    """Give the share of each card that a server claims."""
    share = log.figure("fraction")
    return {"gpu_memory_utilization": share} if share and _LEAST_SHARE <= share <= 1 else {}


def _placed(log: Log) -> dict[str, object]:
    """Give the layers on the cards, and the back end where it is not the usual one."""
    found: dict[str, object] = {}
    some, every = log.figure("layers_on_card"), log.figure("layers")
    if some is not None and every and some < every:
        found["gpu_layers"] = int(some)
    if backend := log.text("backend"):
        found["backend"] = backend
    return found
