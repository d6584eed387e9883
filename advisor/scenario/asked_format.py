"""Which formats a precision stands for, which is meant where none is, and what runs instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from advisor.errors import RequestError
from advisor.knowledge.index import plain_key
from advisor.knowledge.names import find_kv_type, runtime_said
from advisor.knowledge.programs import Capability
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge, KvType
from advisor.models.stored_tensors import PACKED, Model, shown_name
from advisor.reading.format_patterns import (
    GGUF_TYPE,
    bits_of_family,
    in_words_of,
    library_format,
    said_in,
    why_unread,
)
from advisor.reading.known import read_format
from advisor.reading.published import packed_config, packings_of
from advisor.scenario import capability, support
from advisor.scenario.setting_kinds import is_sixteen, stated
from advisor.scenario.settings import Request

Caches = tuple[str, ...]
"""Names of types of the cache."""
DEFAULT_PRECISION = "FP16"
PUBLISHED = "the published format"
"""Stands for the formats that hold what was released, those of as many bits, then FP16."""
USUAL = "the usual format"
"""Stands for what a runtime takes where nobody names a format (``Framework.usual_formats``)."""


@cache  # 1.3 of a plan
def kinds_of(hf_id: str) -> frozenset[tuple[str, object]]:
    """Give the kinds of formats that a model's known files are of, as kernels tell them apart."""
    held = {"": hf_id, **packings_of(hf_id)}
    told = ((name, packed_config(repository).get("scheme")) for name, repository in held.items())
    return frozenset((name, kind) for name, kind in told if kind)


def formats_named(text: str, knowledge: Knowledge) -> tuple[Format, ...]:
    """List the formats a precision stands for: one, or all of a family name such as INT4.

    Raises:
        RequestError: Unknown.
    """
    bits = support.family_bits(text)
    if bits is None:
        return read_format(knowledge, text).formats
    meant = (f for f in knowledge.formats.values() if f.class_bits == bits and f.offered)
    return tuple(f for f in meant if not (f.floats and support.is_other(f, text)))


def released_of(text: str, model: Model, knowledge: Knowledge) -> tuple[Format, ...]:
    """List the formats of as many bits as a family name says that a model is released in.

    Eight-bit floats are not among those of INT8, which means integers.
    """
    bits = support.family_bits(text)
    released = (*model.native_formats, *((model.held_format,) if model.held_format else ()))
    known = (knowledge.formats[name] for name in released if name in knowledge.formats)
    alike = (f for f in known if f.class_bits == bits)
    return tuple(f for f in alike if not (f.floats and support.is_other(f, text)))


def formats_for(text: str, model: Model | None, knowledge: Knowledge) -> tuple[Format, ...]:
    """List the formats a precision stands for, as ``precision_asked`` gives it.

    Raises:
        RequestError: Unknown.
    """
    if text == USUAL:
        return formats_named(DEFAULT_PRECISION, knowledge)
    if model and is_sixteen(text):
        return (knowledge.formats[support.own_sixteen(model)],)
    if text != PUBLISHED or model is None:
        meant = formats_named(text, knowledge)
        if model is None or len(meant) == 1 or not is_family(text):
            return meant
        return tuple(f for f in meant if not support.is_rounded(f, model))
    released = [knowledge.formats[name] for name in model.native_formats]
    bits = released[0].class_bits
    alike = [f for f in knowledge.formats.values() if f.class_bits == bits and f.offered]
    plain = formats_named(DEFAULT_PRECISION, knowledge)
    return tuple({f.name: f for f in (*released, *alike, *plain)}.values())


def taken_said(
    request: Request, named: str, chosen: Format, framework: Framework, knowledge: Knowledge, *,
    on: tuple[Model, Gpu | None],
) -> tuple[str, ...]:  # fmt: skip
    """Say which format, types of the cache and runtime were taken for what no entry lists just so.

    ``named`` is what the name of the model says of the format.
    """
    of_caches = [*_caches_said(request, knowledge, framework)]
    if row := _unasked(request, framework, *on):
        of_caches += [f"{framework.name} keeps the cache in {row.of[0]} unasked: {row.why}."]
    of_format = _format_said(request.precision, named, chosen, framework, knowledge)
    return (*of_format, *of_caches, *runtime_said(knowledge, request.framework, framework))


def _format_said(
    text: str | None, named: str, chosen: Format, framework: Framework, knowledge: Knowledge
) -> tuple[str, ...]:
    if (text == chosen.name and not named) or not (text := stated(text)):
        return ()
    if named and (why_unread(named) or chosen not in formats_named(named, knowledge)):
        return (f"The name says {named}, the stated precision {text}: that is what is sized.",)
    if text == chosen.name or is_family(text):
        how = f"{chosen.name}, which holds floats: in integers it is not released or does not run"
        return (f"{text} is sized as {how}.",) * support.is_other(chosen, text)
    own = in_words_of(text, framework.formats)
    read = read_format(knowledge, bits_of_family(own, named))
    if own != text and GGUF_TYPE.fullmatch(text.casefold()):
        return (f"{text} is a type of GGUF files: {chosen.name}, of as many bits, is sized.",)
    return read.said(text, chosen)


def precision_asked(
    request: Request, model: Model | None, framework: Framework | None = None
) -> str:
    """The precision stated, else what the model's name, files, library or publisher say, or usual.

    Raises:
        RequestError: The files hold a mix that has no name here.
    """
    if said := stated(request.precision):
        said = in_words_of(said, framework.formats) if framework else said
        return bits_of_family(said, model.told_format) if model and model.told_format else said
    if model is None:
        return DEFAULT_PRECISION
    if model.told_format:
        return model.told_format
    packed = model.origin == "config" and model.native_dtype == PACKED
    if model.stored is None and not packed:
        return _asked_by_none(model, framework)
    if model.stored is None or model.stored.format_name is None:
        how = (model.shape.quantization or {}).get("quant_method", "unnamed")
        config = f"the config of {model.name} states a packing ({shown_name(f'{how}')})"
        files = f"the files of {model.name} hold a mix of types"
        raise RequestError(
            f"{files if model.stored else config} that has no name here",
            hint="State the precision to size it as: --precision.",
        )
    return model.stored.format_name


def _asked_by_none(model: Model, framework: Framework | None) -> str:
    """Say what a model is taken in whose files are not here; a config.json alone is 16 bits."""
    if framework and framework.library_tags and (held := library_format(model.name)):
        return held
    if model.native_dtype == PACKED and is_family(bits := said_in(model.name).precision):
        return bits
    readable = set(framework.formats if framework and framework.usual_formats else ())
    if model.native_formats and (not readable or readable.intersection(model.native_formats)):
        return PUBLISHED
    return DEFAULT_PRECISION if model.origin == "config" and not model.hf_id else USUAL


def is_family(text: str) -> bool:
    """Whether a precision is a name of a family of formats: INT4, 8-bit ..."""
    return support.family_bits(text) is not None


def is_own_dtype(asked: str, chosen: Format) -> bool:
    """Whether 16 bits were taken as the checkpoint's own type, which no command need name."""
    return (asked == USUAL or is_sixteen(asked)) and chosen.family == "unquantized"


_BITS_ALONE: Final = re.compile(r"(?i)(?:kv|q|int|fp|bf)?[-_ ]?(\d{1,2})(?:[-_ ]?bits?)?")


def caches_asked(
    request: Request, knowledge: Knowledge, framework: Framework | None
) -> tuple[KvType, KvType]:
    """Find the types of K and V; what says no more than its bits is the framework's own of them.

    Raises:
        RequestError: Unknown.
    """
    both = request.kv_cache or "f16"
    pair = _PAIR.fullmatch(both.strip()) if request.kv_cache else None
    key = request.kv_cache_k or (pair[1] if pair else both)
    value = request.kv_cache_v or (pair[2] if pair else both)
    kind = _cache(key, knowledge, framework)
    return kind, kind if value == key else _cache(value, knowledge, framework)


def caches_kept(
    request: Request, knowledge: Knowledge, framework: Framework, model: Model, gpu: Gpu | None
) -> tuple[KvType, KvType]:
    """Give the types of K and V as they are kept: unasked those that the runtime takes here.

    A latent cache has that of K alone.
    """
    key, value = caches_asked(request, knowledge, framework)
    if row := _unasked(request, framework, model, gpu):
        key = value = knowledge.kv_types[row.of[0]]
    return key, key if framework.one_latent_type and model.shape.mla else value


def _unasked(
    request: Request, framework: Framework, model: Model, gpu: Gpu | None
) -> Capability | None:
    if not {request.kv_cache, request.kv_cache_k, request.kv_cache_v} <= {None, "auto"}:
        return None
    rows = (
        capability.asked(framework, "kv_unasked", kind, gpu, model.shape)
        for kind in framework.kv_types
    )
    return next(filter(None, rows), None)


def _cache(text: str, knowledge: Knowledge, framework: Framework | None) -> KvType:
    found = None
    try:
        found = find_kv_type(knowledge, text, framework)
    except RequestError:
        if not (framework and _BITS_ALONE.fullmatch(text.strip())):
            raise
    if found and (framework is None or found.name in (*framework.kv_types, *framework.beyond)):
        return found
    assert framework
    said = _BITS_ALONE.fullmatch(text.strip())
    bits = int(said[1]) if said else _WIDE if found and found.bits == _WIDE else 0
    if framework.serves_batches and found and found.name == text and bits != _WIDE:
        return found  # the name of a server's own type, INT8 of TensorRT-LLM
    own = (knowledge.kv_types[name] for name in framework.kv_types)
    meant = next((one for one in own if int(one.bits) == bits), found)
    return meant or find_kv_type(knowledge, text, framework)


_WIDE: Final = 16
_PAIR: Final = re.compile(
    r"(?:k\W+)?([\w.-]*\d[\w.-]*)(?:\s*[,/;+]\s*|\s+(?=v\b))(?:v\W+)?([\w.-]*\d[\w.-]*)",
    re.IGNORECASE,
)
"""The types of keys and of values: ExLlama's ``8,4``, ``q8_0/q5_1``, ``K q8_0 V q4_0``."""


def _caches_said(request: Request, knowledge: Knowledge, framework: Framework) -> Iterator[str]:
    for text in sorted(filter(None, {request.kv_cache, request.kv_cache_k, request.kv_cache_v})):
        kinds = caches_asked(request, knowledge, framework)
        names = {plain_key(name) for kind in kinds for name in (kind.name, *kind.aliases)}
        if plain_key(text) not in names:
            kept = " and ".join(dict.fromkeys(kind.name for kind in kinds))
            yield f"A cache in {text} is sized as {kept}."


_FULL: Final = frozenset({"BF16", "FP16"})
AT_WORK: Final = frozenset({"workstation", "datacenter"})
_SERVED: Final = 0.8  # of the cards, for weights: a server claims 0.92 with its cache


def server_caches(
    knowledge: Knowledge,
    request: Request,
    asked: str,
    caches: tuple[KvType, KvType],
    *,
    on: tuple[Gpu | None, Model, int],
) -> Caches:
    """Name the cache of a server where one is meant: by many requests, or by what it alone has.

    Or by 16 bits that so many equal cards for work can share of nearly any model: those of ``on``.
    """
    gpu, model, cards = on
    several = cards > 1 == cards.bit_count() and asked in _FULL and not request.split
    room = cards * (gpu.vram_bytes or 0) if gpu and gpu.segment in AT_WORK else 0
    shared = several and 2 * model.parameters <= _SERVED * room
    many = (request.batch or 1) >= knowledge.policy["server_from_sequences"]
    on_server = shared or (many and gpu is not None and gpu.segment == "datacenter")
    kept = caches[0].name, caches[1].name
    usual = next(iter(knowledge.frameworks.values()))
    can = (request.split or "layer") in usual.multi_gpu
    meant = on_server or not (can and all(map(usual.kv_types.__contains__, kept)))
    return kept if meant and (asked in {USUAL, PUBLISHED, *_FULL} or is_family(asked)) else ()


_FOR_WEIGHTS: Final = 0.9
"""Share of the memory that weights may take where something is to be computed beside them."""


def has_room(
    precision: Format, gpu: Gpu | None, model: Model, cards: float, policy: Mapping[str, float]
) -> bool:
    """Whether the cards may hold the weights; what is not GGUF keeps embedding and output whole."""
    bits = precision.bits_per_weight or precision.class_bits
    if gpu is None or not gpu.vram_bytes or not bits:
        return True
    wide = model.shape.vocab * model.shape.hidden * (1 if model.shape.tied else 2)
    wide = min(wide, model.parameters) if precision.kind != "gguf" else 0
    size = ((model.parameters - wide) * bits + wide * max(bits, 16)) / 8
    kept = policy[unified_share(gpu, policy)] / 100 if gpu.unified_memory else 0.0
    return size <= _FOR_WEIGHTS * (1 - kept) * cards * gpu.vram_bytes


def unified_share(gpu: Gpu, policy: Mapping[str, float]) -> str:
    """Name the share that a machine's system keeps of one memory: the kind's own, or the usual."""
    own = f"reserve_{gpu.segment}_unified_share"
    return own if own in policy else "reserve_unified_share"
