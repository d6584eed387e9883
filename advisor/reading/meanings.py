"""What the words of a command mean as settings of a request.

``flags.csv`` says which flag has which meaning; here each meaning becomes settings.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from advisor.errors import RequestError
from advisor.knowledge.catalogue import BACKEND_OF_WORD
from advisor.knowledge.programs import TRAINED, ProgramFlag
from advisor.reading.command_lines import Pasted
from advisor.units import GIB

_HUMAN = re.compile(r"(\d+(?:\.\d+)?)([kKmM])?")
_FACTORS = {"k": 1_000, "K": 1_024, "m": 1_000_000, "M": 2**20}
_ON = frozenset({"on", "1", "true", "yes", "t"})
_OFF = frozenset({"off", "0", "false", "no", "f"})
_NUMBER_AT_END = re.compile(r"\d+$")
_OWN_HEAD = frozenset({"draft-mtp", "mtp", "NEXTN", "deepseek_mtp", "qwen3_next_mtp"})
_SECOND_MODEL = frozenset({"", "draft-simple", "draft_model", "STANDALONE", "draft"})
_EXPERTS = ("ffn_up_exps", "ffn_gate_exps", "ffn_down_exps")
_ATTENTION = ("attn_q", "attn_k", "attn_v", "attn_output")
_RULES = re.compile(r"(.+?)=([^,=]+)(?:,|$)")
_PLACE = re.compile(r"CPU|CUDA\d|ROCm\d")
_USUAL_DRAFTED = 3


class Meant(Struct):
    """The settings that a command comes to, and what could not be turned into one."""

    settings: dict[str, object] = field(default_factory=dict)
    """Keys of a request and their values."""
    not_sized: list[str] = field(default_factory=list)
    """Sentences on what has an effect that is not sized."""
    cards: int | None = None
    """How many cards it takes; None: all that there are."""
    layers_share: float | None = None
    """The share of the layers on the card, where it is told so."""
    cpu_tensors: str = ""
    """The pattern of tensors kept in system RAM (``-ot``)."""
    named: str = ""
    """The model as the command names it."""
    drafts_with: str = ""
    attention_ranks: int = 1
    """Ranks that each attend to requests of their own, where it is so told."""
    batch_of_a_rank: bool = False
    """Whether the sequences are counted for each of them."""
    whole_copies: bool = False
    """Whether each of them has the whole model, experts too."""


def meant_by(pasted: Pasted) -> Meant:
    """Turn the flags of a command into settings.

    Raises:
        RequestError: A value that must be a number is none.
    """
    said, meant = _translated(pasted), Meant(cards=pasted.cards)
    short = (i for i in pasted.items if i.flag and i.flag.whole and i.value[-1:] in {*_FACTORS})
    for item in short:
        told = f"{item.words[0]} takes a whole number: write {whole(item.value)}, not {item.value}."
        meant.not_sized.append(told)
    for meaning, apply in _MEANINGS.items():
        if meaning in said:
            apply(meant, said[meaning])
    meant.named = said.get("file") or said.get("model", "")
    _tokens_together(meant, said)
    _ranks(meant, said)
    _drafts(meant, said)
    return meant


def _translated(pasted: Pasted) -> Mapping[str, str]:
    """Give each meaning with the project's word; words that say nothing are left out."""
    words = dict[str, str]()
    for item in pasted.items:
        flag: ProgramFlag | None = item.flag
        if flag and flag.sets:
            value = flag.values.get(item.value, item.value)
            if flag.sets == "override_tensor" and flag.sets in words:
                value = f"{words[flag.sets]},{value}"
            if value or item.value not in flag.values:
                words[flag.sets] = value
            else:
                words.pop(flag.sets, None)
    return words


_MOST_DIGITS = 30


def whole(text: str) -> int:
    """Read ``32768``, ``32k`` or ``128K`` (1,024 tokens) as vLLM does.

    Raises:
        RequestError: Not a number.
    """
    matched = _HUMAN.fullmatch(text.strip().replace(",", "").replace("_", ""))
    if matched is None or len(text) > _MOST_DIGITS:
        raise RequestError(f"'{text[:_MOST_DIGITS]}' is not a whole number")
    return round(float(matched[1]) * _FACTORS.get(matched[2] or "", 1))


def _number(name: str) -> Callable[[Meant, str], None]:
    def apply(meant: Meant, value: str) -> None:
        number = whole(value)
        if number > 0:
            meant.settings[name] = number

    return apply


def _word(name: str) -> Callable[[Meant, str], None]:
    def apply(meant: Meant, value: str) -> None:
        meant.settings[name] = value.casefold() if name.startswith("kv_") else value

    return apply


def _switch(name: str) -> Callable[[Meant, str], None]:
    def apply(meant: Meant, value: str) -> None:
        if value.casefold() in _ON | _OFF:
            meant.settings[name] = value.casefold() in _ON

    return apply


def _share(name: str) -> Callable[[Meant, str], None]:
    def apply(meant: Meant, value: str) -> None:
        try:
            meant.settings[name] = float(value)
        except ValueError:
            raise RequestError(f"'{value}' is not a share", hint="Write for example 0.9.") from None

    return apply


def _images(meant: Meant, value: str) -> None:
    """Read ``{"image": 4}``, ``{"image": {"count": 4, "width": 9, "height": 9}}``, ``image=4``."""
    old = re.fullmatch(r"image=(\d+)(?:,.*)?", value)
    stated = old[1] if old else _json(value).get("image")
    limits = stated if isinstance(stated, dict) else {"count": stated}
    count, width, height = (limits.get(key) for key in ("count", "width", "height"))
    if count is not None and whole(f"{count}") == 0:
        meant.settings["text_only"] = True
    elif count is not None:
        meant.settings["images"] = whole(f"{count}")
    if width and height:
        meant.settings["image_size"] = f"{width}x{height}"


def _image_of(form: str) -> Callable[[Meant, str], None]:
    def apply(meant: Meant, value: str) -> None:
        meant.settings["image_size"] = form.format(whole(value))

    return apply


def _bytes_kept(meant: Meant, value: str) -> None:
    meant.settings["reserve_gib"] = whole(value) / GIB


def _context(meant: Meant, value: str) -> None:
    if value != "fit":
        _number("context")(meant, value)


def _layers(meant: Meant, value: str) -> None:
    if value.casefold() == "all" or value.startswith("-"):
        meant.settings["gpu_layers"] = "all"
    else:
        meant.settings["gpu_layers"] = whole(value)


def _experts(meant: Meant, value: str) -> None:
    meant.settings["cpu_experts"] = "all" if value in {"on", "all"} else whole(value)


def _layers_share(meant: Meant, value: str) -> None:
    if value.casefold() == "off":
        meant.settings["gpu_layers"] = 0
    elif value.casefold() not in {"max", "auto"}:
        meant.layers_share = float(value)


def _split(meant: Meant, value: str) -> None:
    if value == "one card":
        meant.cards = 1
    else:
        meant.settings["split"] = value


def _shares(meant: Meant, value: str) -> None:
    parts = [part for part in re.split(r"[,/]", value) if part]
    meant.cards = len([part for part in parts if part.strip("0.")]) or None
    if len(set(parts)) > 1:
        meant.not_sized.append(
            f"The shares {value} are not sized: the cards are taken to be filled alike."
        )


def _devices(meant: Meant, value: str) -> None:
    names = [part for part in value.split(",") if part]
    kinds = [BACKEND_OF_WORD.get(_NUMBER_AT_END.sub("", name).casefold()) for name in names]
    if names and all(kinds):
        meant.settings |= {"backend": kinds[0]} if len(set(kinds)) == 1 else {}
        meant.cards = len(names)
    elif value.casefold() == "none":
        meant.settings["gpu_layers"] = 0


def _library(meant: Meant, value: str) -> None:
    """Read the folder of libraries that Ollama loads: ``vulkan``, ``rocm``, ``cuda_v13``."""
    if backend := BACKEND_OF_WORD.get(value.partition("_")[0].casefold()):
        meant.settings["backend"] = backend


def _tensors(meant: Meant, value: str) -> None:
    meant.cpu_tensors = value


def _twice(meant: Meant, value: str) -> None:
    if value == "on" and meant.settings.get("precision") == "NF4":
        meant.settings["precision"] = "NF4 double quant"


_MEANINGS: Mapping[str, Callable[[Meant, str], None]] = {
    "context": _context,
    "slots": _number("batch"),
    "ubatch": _number("ubatch"),
    "gpu_layers": _layers,
    "layers_share": _layers_share,
    "cpu_experts": _experts,
    "override_tensor": _tensors,
    "kv": _word("kv_cache"),
    "kv_k": _word("kv_cache_k"),
    "kv_v": _word("kv_cache_v"),
    "flash": _switch("flash_attention"),
    "kv_unified": _switch("kv_unified"),
    "swa_full": _switch("swa_full"),
    "split": _split,
    "shares": _shares,
    "devices": _devices,
    "computes_with": _library,
    "load_format": _word("precision"),
    "quantization": _word("precision"),
    "double_quant": _twice,
    "memory_fraction": _share("gpu_memory_utilization"),
    "static_fraction": _share("gpu_memory_utilization"),
    "free_fraction": _share("gpu_memory_utilization"),
    "batched_tokens": _number("max_num_batched_tokens"),
    "eager": _switch("eager"),
    "text_only": _switch("text_only"),
    "images": _images,
    "image_tokens": _image_of("{:.0f} tokens"),
    "image_side": _image_of("{0:.0f}x{0:.0f}"),
    "reserve": _bytes_kept,
}


_ELSEWHERE = frozenset(
    """
    model file draft dtype backend tokens_all tensor_ranks pipeline_ranks spec_method spec_tokens
    speculative_json config_file modelfile fits_itself placing attention_ranks replicas
    attends_apart all_attend_apart whole_experts states projector
    """.split()  # noqa: SIM905  a table of words
)
"""Meanings that are read together with others."""


def not_sized(pasted: Pasted) -> Sequence[str]:
    """Name the flags that change memory or speed and have no setting here, as typed."""
    known = {"", *_MEANINGS, *_ELSEWHERE}
    found = (i.words[0] for i in pasted.items if i.words and i.flag and i.sets not in known)
    return list(dict.fromkeys(found))


def _tokens_together(meant: Meant, said: Mapping[str, str]) -> None:
    """Divide the tokens of all sequences: by their number, or by those of one."""
    stated = said.get("tokens_all", TRAINED)
    every = 0 if stated == TRAINED else whole(stated)
    if not every:
        return
    each, batch = meant.settings.get("context"), meant.settings.get("batch")
    if not isinstance(each, int):
        meant.settings["context"] = every // (batch if isinstance(batch, int) else 1)
    elif batch is None and every >= each:
        meant.settings["batch"] = every // each


def _ranks(meant: Meant, said: Mapping[str, str]) -> None:
    """Say how many cards a server takes, and how they share the model."""
    if not {"tensor_ranks", "pipeline_ranks", "attention_ranks", "replicas"} & said.keys():
        return
    tensor, pipeline = (whole(said.get(f"{kind}_ranks", "1")) for kind in ("tensor", "pipeline"))
    meant.cards = tensor * pipeline
    if meant.cards > 1:
        meant.settings["split"] = "tensor" if tensor > 1 else "layer"
    if tensor > 1 and pipeline > 1:
        meant.settings["stages"] = pipeline
    _attention(meant, said, tensor)


def _attention(meant: Meant, said: Mapping[str, str], tensor: int) -> None:
    """Read data parallel: as many ranks as cards, each with requests of its own.

    vLLM counts these ranks beside those of a tensor split, SGLang and TensorRT-LLM within them.
    SGLang divides the sequences by the ranks where attention alone is apart; else they are each
    rank's. Its copies have the experts whole.
    """
    ranks, apart = whole(said.get("attention_ranks", "1")), "attends_apart" in said
    replicas = whole(said.get("replicas", "1"))
    if said.get("all_attend_apart", "").casefold() in _ON:
        ranks = tensor
    elif apart:
        ranks = max(ranks, replicas)
    elif replicas > 1:
        ranks, meant.whole_copies = replicas, True
    within = {1} if meant.whole_copies else {1, ranks}
    if ranks > 1 and tensor not in within:
        meant.not_sized.append(
            "Copies of a tensor split are not sized: one of them is."
            if meant.whole_copies
            else "Attention data parallel beside a tensor split is not sized."
        )
    elif ranks > 1:
        meant.attention_ranks = ranks
        meant.batch_of_a_rank = tensor == 1 or "all_attend_apart" in said


def _drafts(meant: Meant, said: Mapping[str, str]) -> None:
    method, draft = said.get("spec_method", ""), said.get("draft", "")
    tokens = said.get("spec_tokens", "")
    if "speculative_json" in said:
        stated = _json(said["speculative_json"])
        method = str(stated.get("method", ""))
        draft, tokens = str(stated.get("model", "")), str(stated.get("num_speculative_tokens", ""))
    if method in _OWN_HEAD or method.endswith("_mtp") or (method == "EAGLE" and not draft):
        meant.settings["mtp"] = whole(tokens) if tokens else _USUAL_DRAFTED
    elif draft and method in _SECOND_MODEL:
        meant.drafts_with = draft
    elif method and method != "none":
        meant.not_sized.append(f"Drafting with '{method}' is not sized.")


def _json(text: str) -> Mapping[str, object]:
    """Read JSON, or a dictionary as Python writes it."""
    for reads in (json.loads, ast.literal_eval):
        try:
            found = reads(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return found if isinstance(found, dict) else {}
    raise RequestError(f"this is not JSON: {text[:80]}")


def layers_in_ram(pattern: str, layers: int) -> int | None:
    """Count the layers whose experts a pattern of ``-ot`` keeps in system RAM.

    Args:
        pattern: ``REGEX=CPU,REGEX=CUDA0``; the first that a name holds decides.
        layers: Layers of the model.

    Returns:
        None where the pattern does more, or keeps only a part of a layer's experts there.
    """
    rules = [(_compiled(rule), place) for rule, place in _RULES.findall(pattern)]
    if any(rule is None or not _PLACE.fullmatch(place) for rule, place in rules):
        return None

    def kept(name: str) -> bool:
        return next((place for rule, place in rules if rule and rule.search(name)), "") == "CPU"

    counts = [sum(kept(f"blk.{i}.{name}.weight") for name in _EXPERTS) for i in range(layers)]
    others = any(kept(f"blk.{i}.{name}.weight") for i in range(layers) for name in _ATTENTION)
    if others or any(count not in {0, len(_EXPERTS)} for count in counts):
        return None
    return sum(count == len(_EXPERTS) for count in counts)


def _compiled(rule: str) -> re.Pattern[str] | None:
    try:
        return re.compile(rule)
    except re.error:
        return None


def layers_of_share(share: float, layers: int) -> int | None:
    """Count the layers, the output as one, that a share of them comes to; None: all."""
    found = math.ceil(share * (layers + 1) - 1e-9)
    return found if found <= layers else None
