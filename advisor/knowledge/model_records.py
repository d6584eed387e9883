"""knowledge/models/*.yaml: read and check the models.

``config`` holds Hugging Face config.json keys and one key of ours: ``layer_pattern``, one
letter per decoder layer in order (F full attention, S sliding window, C chunked or local
attention, L recurrent or linear attention, c short convolution, - feed-forward only,
E experts only, X cross-attention). Runs may be folded: ``(SSSSSF)5 SSSS`` is 34 letters.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import get_args

from advisor.errors import KnowledgeError, UserError
from advisor.knowledge.entry import Parsed
from advisor.knowledge.fields import Record
from advisor.knowledge.tables import records_of
from advisor.knowledge.types import Modality
from advisor.suggest import did_you_mean

_LETTERS = "FSCLc-EX"
_RUN = re.compile(r"\(([^()]+)\)(\d+)")
_EXPERT_KEYS = (
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "moe_num_experts",
    "moe_num_primary_experts",
)
_USED_KEYS = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k")
_CONTEXT_KEYS = (
    "max_position_embeddings",
    "max_seq_len",
    "n_positions",
    "max_target_positions",
)
_PLAIN_NUMBERS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


def read_models(
    files: Mapping[str, bytes], ids: Collection[str], problems: list[UserError]
) -> list[Parsed]:
    """Read every model, in file order.

    Args:
        files: All knowledge files by relative path.
        ids: The declared source ids.
        problems: Takes what is wrong.
    """
    return [
        Parsed(_model(record, ids), record.place)
        for record in records_of(files, "models", problems)
    ]


def check_formats(
    models: Sequence[Parsed], formats: Collection[str], problems: list[UserError]
) -> None:
    """Report published formats that ``formats.yaml`` does not have."""
    for model in models:
        stated = model.fields.get("native_formats", ())
        assert isinstance(stated, tuple | list)
        for name in stated:
            if name not in formats:
                message = f"'native_formats' names '{name}', which is no weight format here"
                hint = did_you_mean(str(name), formats) or "See formats.yaml."
                problems.append(KnowledgeError(message, source=model.place, hint=hint))


def unfold(pattern: str) -> str:
    """Write a layer pattern out: ``(SSF)2 S`` -> ``SSFSSFS``."""
    flat = _RUN.sub(lambda run: run[1] * int(run[2]), pattern.replace(" ", ""))
    return flat if flat == pattern else unfold(flat)


def _model(record: Record, ids: Collection[str]) -> Mapping[str, object]:
    config = _config(record)
    label = record.quantity("label_parameters", "parameters")
    fields: dict[str, object] = {
        "name": record.name,
        "hf_id": record.text("hf_id"),
        "aliases": record.texts("aliases"),
        "family": record.text("family", required=True),
        "modality": record.choice("modality", get_args(Modality), required=True),
        "config": config,
        "parameters": record.whole("parameters", "parameters"),
        "active_parameters": record.whole("active_parameters", "parameters"),
        "label_parameters_b": None if label is None else label / 1e9,
        "vision_parameters": record.whole("vision_parameters", "parameters"),
        "trained_context_tokens": _context(record, config),
        "image_tokens": record.text("image_tokens"),
        "native_dtype": record.text("native_dtype"),
        "native_formats": record.texts("native_formats"),
        "licence": record.text("licence"),
        "released": record.day("released"),
        "verified": record.text("verified", required=True),
        "notes": record.text("notes"),
    }
    fields["sources"] = record.sources(ids)
    record.finish()
    _check(record, fields)
    _check_config(record, _text_part(config))
    kept = {key: value for key, value in fields.items() if value not in (None, ())}
    return {"hf_id": None, "aliases": (), **kept}


def _config(record: Record) -> dict[str, object]:
    found = record.plain("config")
    if not isinstance(found, dict):
        record.problem("'config' is missing or not a mapping", at=record.at("config"))
        return {}
    if not isinstance(found.get("model_type"), str):
        record.problem("'config' has no 'model_type'", at=record.at("config"))
    part = _text_part(found)
    if isinstance(pattern := part.get("layer_pattern"), str):
        part["layer_pattern"] = unfold(pattern)
    return found


def _text_part(config: dict[str, object]) -> dict[str, object]:
    inner = config.get("text_config")
    return inner if isinstance(inner, dict) else config


def _context(record: Record, config: dict[str, object]) -> int | None:
    stated = record.whole("trained_context", "tokens")
    if stated is not None:
        return stated
    return _first(_text_part(config), _CONTEXT_KEYS) or None


def _check(record: Record, fields: Mapping[str, object]) -> None:
    total = fields["parameters"]
    for key in ("active_parameters", "vision_parameters"):
        part = fields[key]
        if isinstance(part, int) and isinstance(total, int) and part > total:
            record.problem(f"{key} are more than parameters", at=record.at(key))


def _check_config(record: Record, part: Mapping[str, object]) -> None:
    at = record.at("config")
    for key in _PLAIN_NUMBERS:
        if key in part and not (isinstance(part[key], int) and _number(part, key)):
            record.problem(f"config: '{key}' must be a positive whole number", at=at)
    heads, kv_heads = _number(part, "num_attention_heads"), _number(part, "num_key_value_heads")
    if heads and kv_heads and heads % kv_heads:
        record.problem(f"config: {kv_heads} key/value heads do not divide {heads} heads", at=at)
    experts, used = (_first(part, keys) for keys in (_EXPERT_KEYS, _USED_KEYS))
    if experts and used and used > experts:
        record.problem(f"config: a token uses {used} of {experts} experts", at=at)
    _check_layers(record, part)


def _check_layers(record: Record, part: Mapping[str, object]) -> None:
    layers = _number(part, "num_hidden_layers")
    for key in ("layer_pattern", "layer_types"):
        kinds = part.get(key)
        if isinstance(kinds, str | list) and layers and len(kinds) != layers:
            message = f"config: '{key}' has {len(kinds)} layers, num_hidden_layers {layers}"
            record.problem(message, at=record.at("config"))
    pattern = part.get("layer_pattern")
    if isinstance(pattern, str) and (bad := sorted(set(pattern) - set(_LETTERS))):
        message = f"config: 'layer_pattern' has the unknown letter '{bad[0]}'"
        record.problem(message, at=record.at("config"), hint=f"Known: {' '.join(_LETTERS)}.")


def _first(part: Mapping[str, object], keys: tuple[str, ...]) -> int:
    return next((found for key in keys if (found := _number(part, key))), 0)


def _number(part: Mapping[str, object], key: str) -> int:
    found = part.get(key)
    return found if isinstance(found, int) and found > 0 else 0
