"""Real model metadata: Hugging Face configs and the headers of model files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Raw, json
from msgspec.structs import replace

from advisor.errors import RequestError, SourceFileError, UserError
from advisor.files import compiled, hashed, table_rows
from advisor.knowledge.layers import check_path
from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.memo import by_identity
from advisor.models.shape import Counts, Shape, kept_in_full, mean_bits, packs_head
from advisor.models.stored_tensors import PACKED, Model
from advisor.units import format_quantity

if TYPE_CHECKING:
    from advisor.models.stored_tensors import StoredModel


def known_shape(record: ModelRecord, knowledge: Knowledge) -> Shape:
    """Give the shape of a model of the knowledge base.

    Raises:
        SourceFileError: The architecture cannot be sized; the message says why.
    """
    stored = stored_shapes(knowledge).get(record.name)
    found = read_record(record) if stored is None else json.decode(stored, type=Shape | str)
    if isinstance(found, str):
        raise SourceFileError(found)
    return found if found.config else replace(found, config=_text_part(record))


def _text_part(record: ModelRecord) -> Mapping[str, object]:
    inner = record.config.get("text_config")
    return inner if isinstance(inner, Mapping) else record.config


@by_identity  # 1.14 of an advice, 1.09 of lines
def stored_shapes(knowledge: Knowledge) -> Mapping[str, Raw]:
    """Give every shape as JSON, or the message why it cannot be sized; one start needs a few."""
    names = table_rows("config_names.tsv")
    key = hashed(f"{knowledge.sha256}{names}".encode())
    return compiled("shapes", key, lambda: _all(knowledge), dict[str, Raw])


def _all(knowledge: Knowledge) -> dict[str, Raw]:
    return {name: Raw(json.encode(_shape_or_why(one))) for name, one in knowledge.models.items()}


def _shape_or_why(record: ModelRecord) -> Shape | str:
    """Read a shape; the config that the record has anyhow is left out of it."""
    try:
        found = read_record(record)
    except UserError as error:
        return str(error)
    return replace(found, config={}) if found.config == _text_part(record) else found


def read_record(record: ModelRecord) -> Shape:
    """Read the shape of a record's config."""
    from advisor.models.config import read_config  # noqa: PLC0415  a warm start does without

    return read_config(record.config, f"knowledge: {record.name}", whole=False)


_MOST_FILES = 512
_INDEX = ".safetensors.index.json"
_made: dict[int, tuple[ModelRecord, Model]] = {}
"""Without it a plan takes 2.3 times as long, lines of ``estimate`` 1.4."""
_read: dict[tuple[str, int, int, int, int], Model] = {}


def model_from_record(record: ModelRecord, knowledge: Knowledge) -> Model:
    """Build a model from knowledge/, once per record.

    Raises:
        RequestError: Its size or architecture is not known well enough.
    """
    found = _made.get(id(record))
    if found is not None and found[0] is record:
        return found[1]
    model = built(record, known_shape(record, knowledge))
    _made[id(record)] = (record, model)
    return model


def built(record: ModelRecord, shape: Shape) -> Model:
    """Build a model from a record and its shape.

    Raises:
        RequestError: Its size is not known, or not that of the shape.
    """
    if said := total_problem(record, shape):
        raise RequestError(f"model '{record.name}': {said}.", hint=ONE_OF_BOTH)
    counts = _with_towers(record, shape)
    total = counts.total if counts else record.parameters
    if total is None:
        raise RequestError(
            f"the knowledge base does not know how many parameters {record.name} has",
            hint="Give a folder with its config.json.",
        )
    active = counts.active if counts else (record.active_parameters or total)
    return Model(
        name=record.name,
        family=record.family,
        modality=record.modality,
        shape=shape,
        parameters=total,
        active_parameters=active,
        vision_parameters=counts.vision if counts else (record.vision_parameters or 0),
        label_parameters_b=record.label_parameters_b,
        trained_context_tokens=record.trained_context_tokens or shape.trained_context,
        hf_id=record.hf_id,
        image_tokens=record.image_tokens,
        licence=record.licence,
        released=record.released,
        native_dtype=record.native_dtype,
        companions=record.companions,
        yarn=record.yarn,
        native_formats=record.native_formats,
    )


def model_from_path(path: Path) -> Model:
    """Build a model from files on disk.

    Takes a ``.gguf`` or ``.safetensors`` file (any shard), an index of shards, a folder with
    weight files, or a config.json (or its folder) alone. The same state of a file gives the same
    model, so that what hangs on it is computed once.

    Raises:
        UserError: The file is missing, broken, of an architecture nobody can size, or may not be
            read for this request.
    """
    check_path(path)
    state = _state_of(path)
    model = _read.get(state) if state else None
    if model is None:
        model = _from_file(path)
        if state:
            if len(_read) >= _MOST_FILES:
                _read.clear()
            _read[state] = model
    return model


def _state_of(path: Path) -> tuple[str, int, int, int, int] | None:
    """Identify a file's content without reading it; None where it cannot be looked at."""
    try:
        file = path / "config.json" if path.is_dir() else path
        found = file.stat()
    except (OSError, ValueError):
        return None
    return str(path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _from_file(path: Path) -> Model:
    stored = _stored(path)
    if stored is None:
        return _from_config(path)
    if stored.shape.counts is None:
        raise _unknown_size(path, stored.shape)
    model = _of_shape(stored.name, stored.shape, stored.shape.counts)
    return replace(model, stored=stored, notes=(*model.notes, *stored.notes))


def _stored(path: Path) -> StoredModel | None:
    """Read weight files where the path names or holds some; only files need the readers."""
    if path.suffix == ".gguf":
        from advisor.models.gguf import read_gguf  # noqa: PLC0415

        return read_gguf(path)
    if path.suffix == ".safetensors" or path.name.endswith(_INDEX) or _holds_weights(path):
        from advisor.models.safetensors import read_safetensors  # noqa: PLC0415

        return read_safetensors(path)
    return None


def _holds_weights(path: Path) -> bool:
    try:
        return path.is_dir() and any(path.glob("*.safetensors"))
    except OSError:
        return False


def _from_config(path: Path) -> Model:
    from advisor.models import any_config, stated_format  # noqa: PLC0415

    file = path / "config.json" if path.is_dir() else path
    shape = stated_format.counted_beside(file, any_config.load_config(path))
    if shape.counts is None:
        raise _unknown_size(path, shape)
    name = path.resolve().name if path.is_dir() else path.stem
    model = _of_shape(name, shape, shape.counts)
    stated = stated_format.stated_beside(file, shape)
    return _in_format(model, stated) if stated else model


def _in_format(model: Model, stated: Mapping[str, object]) -> Model:
    """Give the model in the format that its config states."""
    from advisor.models.stated_format import format_of  # noqa: PLC0415

    found = format_of(stated, mean_bits(stated, model.shape))
    notes = (*model.notes, *filter(None, (found.note,)))
    packed = None if found.name else PACKED
    wide = kept_in_full(stated, model.shape)
    if wide and model.parameters:
        share = sum(wide) / model.parameters
        notes += (f"Its config leaves {share:.0%} of the weights, in its layers, in 16 bits.",)
    return replace(
        model,
        held_format=found.name,
        held_bits=found.bits,
        held_wide=wide,
        held_head=packs_head(stated),
        native_dtype=packed,
        notes=notes,
    )


def _of_shape(name: str, shape: Shape, counts: Counts) -> Model:
    return Model(
        name=name,
        family=shape.outer_type or shape.model_type,
        modality="vision" if counts.vision else "text",
        shape=shape,
        parameters=counts.total,
        active_parameters=counts.active,
        vision_parameters=counts.vision,
        label_parameters_b=None,
        trained_context_tokens=shape.trained_context,
        origin="config",
        notes=shape.doubts,
    )


def _unknown_size(path: Path, shape: Shape) -> RequestError:
    return RequestError(
        f"{path}: no parameter formula covers the architecture "
        f"'{shape.outer_type or shape.model_type}', so its size is unknown",
        hint="Name a model of the knowledge base instead.",
    )


def _with_towers(record: ModelRecord, shape: Shape) -> Counts | None:
    """Add the towers that an entry states in figures alone to what is counted."""
    counts, towers = shape.counts, record.vision_parameters or 0
    if counts is None or counts.vision or not towers:
        return counts
    total, active = counts.total + towers, counts.active + towers
    return replace(counts, total=total, active=active, vision=towers)


_TOLERANCE = 0.15
"""A total that was not verified is up to 10 % off in the carried entries."""


def total_problem(record: ModelRecord, shape: Shape) -> str:
    """Say where the parameters that an entry states are not those of its shape; empty where so."""
    counts, stated = _with_towers(record, shape), record.parameters
    if counts is None or stated is None or abs(stated / counts.total - 1) <= _TOLERANCE:
        return ""
    said, counted = (format_quantity(number, "B") for number in (stated, counts.total))
    return f"'parameters' is {said}, and its shape has {counted}"


ONE_OF_BOTH = "Correct the total or the config."


@by_identity
def text_alone(model: Model) -> Model:
    """Give a model without the part that reads images; what lies in one file stays whole."""
    if not model.vision_parameters or model.stored:
        return model
    text = model.parameters - model.vision_parameters
    active = min(model.active_parameters, text)
    return replace(model, parameters=text, active_parameters=active, vision_parameters=0)
