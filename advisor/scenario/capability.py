"""What a runtime does on this card with this model, and the files that hold it, by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from advisor.files import table_rows
from advisor.knowledge.programs import GGUF_FILE, About, Capability
from advisor.knowledge.types import Format, Framework, Gpu
from advisor.models.shape import Shape
from advisor.models.stored_tensors import Model

if TYPE_CHECKING:
    from advisor.reading.format_patterns import Tag

_END: Final = "-GGUF"
_NOT_WORD: Final = re.compile(r"[^A-Za-z0-9.]+")
_ONE_FILE_GB: Final = 50  # larger ones lie in parts, of which Ollama pulls none (hub-docs, 2702)
DTYPES = ("float16", "bfloat16")  # in which models of 16 bits or fewer are computed


def asked(
    framework: Framework,
    about: About,
    what: str,
    gpu: Gpu | None,
    shape: Shape | None,
    *,
    backend: str | None = None,
    precision: Format | None = None,
) -> Capability | None:
    """Find the row that answers a question; None: only the lists of frameworks.yaml say anything.

    ``what`` is the name in question, as in ``of`` of the rows. Without a card, a shape or a
    precision no row about these holds; without a back end it is the card's usual one.
    """
    for row in framework.capabilities:
        if row.about != about or (row.of and what not in row.of):
            continue
        held = not row.formats or (precision is not None and precision.name in row.formats)
        if held and _holds_card(row, gpu, backend) and _holds_model(row, shape):
            return row
    return None


def refusal(
    framework: Framework, about: About, what: str, gpu: Gpu | None, shape: Shape | None
) -> str:
    """Say in one clause why the runtime refuses; empty where it does not."""
    row = asked(framework, about, what, gpu, shape)
    return row.why if row and row.answer == "refused" else ""


def slow_weights(
    by: Framework, of: Format, gpu: Gpu | None, model: Model | None, at: str = ""
) -> Capability | None:
    """Find the row that says why it reads weights of a format slowly here; None: none does.

    A file of a kind for which it has kernels of its own is read by these.
    """
    row = asked(by, "weights", of.name, gpu, None, backend=at)
    if row is None or row.answer != "slow":
        return None
    scheme = config_of(model, of, by).get("scheme") if model else None
    kind = asked(by, "weights", str(scheme), gpu, None, backend=at) if scheme else None
    return None if kind and kind.answer != "slow" else row


def has_slow_kernels(by: Framework, of: Format, gpu: Gpu | None, model: Model | None) -> bool:
    """Whether a format is unpacked at each product, as bitsandbytes does it everywhere."""
    return of.family == "bnb" or slow_weights(by, of, gpu, model) is not None


def dtypes(
    framework: Framework, gpu: Gpu | None, shape: Shape, precision: Format | None = None
) -> tuple[str, ...]:
    """List the 16-bit types in which it computes this model here, or a format of its weights."""
    found = {d: asked(framework, "dtype", d, gpu, shape, precision=precision) for d in DTYPES}
    return tuple(d for d, row in found.items() if not row or row.answer != "refused")


def _holds_card(row: Capability, gpu: Gpu | None, backend: str | None) -> bool:
    if gpu is None:
        return not (row.vendors or row.architectures or row.backends)
    backends = row.backends if backend else ()
    had = ((row.vendors, gpu.vendor), (row.architectures, gpu.architecture), (backends, backend))
    held = all(not listed or one in listed for listed, one in had)
    return held and _within(row, gpu.compute_capability)


def _within(row: Capability, capability: float | None) -> bool:
    """Whether a compute capability lies in the range of a row; an unknown one lies in none."""
    low, high = row.from_capability, row.below_capability
    if low is None and high is None:
        return True
    return capability is not None and (low or 0) <= capability < (high or float("inf"))


def _holds_model(row: Capability, shape: Shape | None) -> bool:
    if shape is None:
        named = (row.attention, row.other_head_sizes, row.model_types, row.other_model_types)
        return not (any(named) or row.experts or row.lookups)
    kinds = {shape.model_type, shape.outer_type} - {""}
    kept, sized = "mla" if shape.mla else "heads", str(shape.head_dim) in row.other_head_sizes
    if sized or kinds & set(row.other_model_types) or kept not in (row.attention or kept):
        return False
    if row.model_types and not kinds & set(row.model_types):
        return False
    return not ((row.experts and shape.moe is None) or (row.lookups and not shape.lookup))


_FEED_FORWARD = frozenset(
    {"mlp", "gate_proj", "up_proj", "down_proj", "gate_up_proj", "shared_expert", "shared_experts"}
)
"""Modules of a config's list of what is not quantised that leave open which widths are."""


def as_held(model: Model, precision: Format) -> bool:
    """Whether the model's own files are in this very format."""
    if model.held_format:
        return precision.name == model.held_format
    released = model.native_formats or (precision.name,)
    return model.holds_family == precision.family and precision.name in released


def repository_of(model: Model, precision: Format, by: Framework | None = None) -> str | None:
    """The repository of the weights in this very format (for one framework), where it is known."""
    if as_held(model, precision) or model.hf_id is None:
        return model.hf_id
    if model.held_format or precision.kind == "gguf" or precision.family == "bnb":
        return None
    from advisor.reading.published import packings_of  # noqa: PLC0415  formats of servers

    known, name = packings_of(model.hf_id), precision.name
    return known.get(f"{name} in {by.name}" if by else name, known.get(name))


def config_of(model: Model, of: Format, by: Framework | None = None) -> Mapping[str, object]:
    """Give what is known of the quantization_config of the files in this format."""
    repository = repository_of(model, of, by)
    if repository is None or (repository == model.hf_id and model.origin == "config"):
        return {}
    from advisor.reading.published import packed_config  # noqa: PLC0415  formats of servers

    return packed_config(repository)


def by_publisher(model: Model, precision: Format) -> bool:
    """Whether the publisher of the model is known to publish the weights in this format, too."""
    owner = (model.hf_id or "").partition("/")[0]
    return bool(owner) and (repository_of(model, precision) or "").partition("/")[0] == owner


def makes(framework: Framework, precision: Format, model: Model) -> bool:
    """Whether a program of the framework makes the format from the model's 16-bit checkpoint."""
    if model.hf_id is None or model.held_format or model.holds_family != "unquantized":
        return False
    words = (word for program in framework.commands for word in program.on_load.values())
    return any(precision.name in word or precision.family in word for word in words)


def is_obtainable(framework: Framework, precision: Format, model: Model) -> bool:
    """Whether somebody is known to publish the weights so, or the program makes them so itself."""
    if model.hf_id is None or model.stored or model.held_format:
        return True
    if precision.kind == "gguf":
        return not _has_gguf(model) or seen_gguf(model, precision) is not None
    made = precision.family == "unquantized" or makes(framework, precision, model)
    return made or repository_of(model, precision) is not None


def is_likely_had(framework: Framework, precision: Format, model: Model) -> bool:
    """Whether it is obtainable and, of GGUF files, not under another name alone (``UD-IQ2_M``)."""
    if precision.kind != "gguf" or not _has_gguf(model):
        return is_obtainable(framework, precision, model)
    address = seen_gguf(model, precision)
    return address is not None and address.partition(":")[2] in {"", precision.name}


def _has_gguf(model: Model) -> bool:
    """Whether a repository of GGUF files is known, and what it usually holds."""
    if model.stored is not None or model.hf_id in _files().models:
        return model.stored is None
    known = [publisher for publisher, *_ in _files().usual]
    return any(one.partition("/")[0] in known for one in _gguf_repos(model))


def _gguf_repos(model: Model) -> Sequence[str]:
    from advisor.reading.published import gguf_repos_of  # noqa: PLC0415  for a download alone

    listed = gguf_repos_of(model.hf_id) if model.hf_id else ()
    return (*listed, *_files().beside.get(model.hf_id or "", ()))


def download_of(
    framework: Framework, precision: Format, model: Model, *, head: bool = False
) -> str | None:
    """Name what holds the weights and can be downloaded, where one is known."""
    if framework.library_tags and (tag := _library_tag(model, precision)) and not head:
        return tag.name
    if _is_gguf(framework, precision):
        return seen_gguf(model, precision, head=head)
    made = model.hf_id if makes(framework, precision, model) else None
    return repository_of(model, precision, framework) or made


def download_facts(
    framework: Framework, precision: Format, model: Model, *, head: bool = False
) -> Iterator[tuple[str, str | float | bool | None]]:
    """Tell rules where the weights come from, and whether it was seen or is a publisher's habit."""
    tag = _library_tag(model, precision) if framework.library_tags and not head else None
    seen = tag is not None or ((model.hf_id or "", precision.name) in _files().seen and not head)
    own = _library_tag(model, precision, loaded=False) if framework.library_tags else None
    yield "weights.library_size", own.listed_bytes if own else None
    yield "weights.download", download_of(framework, precision, model, head=head)
    yield "weights.download_seen", seen or not _is_gguf(framework, precision)
    yield "weights.own_files", model.hf_id is None or model.stored is not None


def _is_gguf(framework: Framework, precision: Format) -> bool:
    """Whether the framework reads the format from a GGUF file, 16 bits included."""
    plain = framework.places_layers and precision.family == "unquantized"
    return plain or precision.kind == "gguf"


def seen_gguf(model: Model, precision: Format, *, head: bool = False) -> str | None:
    """Name a GGUF file, ``repository:FORMAT``, seen or as its publisher usually has it.

    With ``head`` of one that holds the layer which drafts (most are converted without it).
    """
    if model.hf_id is None or model.stored:
        return None
    if head:
        return _usual_gguf(model, precision, _files().heads.get(model.hf_id, ()))
    if _END in model.hf_id.upper():
        if precision.name != model.held_format:
            return _usual_gguf(model, precision, [model.hf_id])
        alone = model.hf_id in _files().seen.values()
        return _tagged(model.hf_id, "" if alone else precision.name)
    seen = _files().seen.get((model.hf_id, precision.name))
    return seen or _usual_gguf(model, precision, _gguf_repos(model))


def holds_head(model: Model, precision: Format) -> bool:
    """Whether a GGUF file with the layer that drafts can be had, or is the user's own to say."""
    own = model.hf_id is None or model.stored is not None
    return own or seen_gguf(model, precision, head=True) is not None


def brings_images(model: Model, precision: Format) -> bool:
    """Whether a download of the GGUF file of a text model brings an image tower that was added."""
    repository = (seen_gguf(model, precision) or "").partition(":")[0]
    return repository in _files().towers.get(model.hf_id or "", ())


def _usual_gguf(model: Model, precision: Format, repositories: Sequence[str]) -> str | None:
    size, usual = _size_gb(model, precision), _files().usual
    apart = {publisher for publisher, *_ in usual if "/" in publisher}
    for publisher, tags, most, end in usual if size else ():
        for one in repositories:
            held = publisher == (one if one in apart else one.partition("/")[0])
            if held and precision.name in tags and size <= most:
                named = one.removesuffix(_END) + end if end else one
                return _tagged(named, tags[precision.name])
    return None


def _size_gb(model: Model, precision: Format) -> float:
    return model.parameters * (precision.bits_per_weight or 0.0) / 8e9


def _tagged(repository: str, tag: str) -> str:
    return f"{repository}:{tag}" if tag else repository


def _tags(text: str) -> Mapping[str, str]:
    """Read ``FORMAT`` or ``FORMAT=TAG``: by which tag a repository gives a format."""
    parts = (one.partition("=") for one in text.split())
    return {name: tag if given else name for name, given, tag in parts}


class _Files(Struct, frozen=True):
    """Which GGUF files there are to download."""

    usual: Sequence[tuple[str, Mapping[str, str], float, str]]
    """Publisher, or one repository of its that differs; tags of the formats, GB at most, where."""
    seen: Mapping[tuple[str, str], str]  # model and format -> where it was seen
    models: Collection[str]  # the models among these
    heads: Mapping[str, Sequence[str]]  # model -> where files hold the layer that drafts
    beside: Mapping[str, Sequence[str]]  # model -> repositories that the public list does not name
    towers: Mapping[str, Sequence[str]]  # text model -> repositories that hold an image tower too


_HEADS, _BESIDE, _TOWERS = "mtp", "also", "mmproj"  # before a line of such a repository


@cache  # 1.32 of an advice, 4.1 of reports
def _files() -> _Files:
    rows = table_rows(GGUF_FILE)
    usual = [(r[1], _tags(r[2]), float(r[3]), "".join(r[4:])) for r in rows if r[0] == "*"]
    kinds: dict[str, dict[str, tuple[str, ...]]] = {_HEADS: {}, _BESIDE: {}, _TOWERS: {}}
    seen: dict[tuple[str, str], str] = {}
    for first, second, third, *_ in rows:
        if (of := kinds.get(first)) is not None:
            of[second] = (*of.get(second, ()), third)
        elif first != "*":
            for name, tag in _tags(third).items():
                seen.setdefault((first, name), _tagged(second, tag))
    return _Files(usual, seen, {model for model, _ in seen}, *kinds.values())


def cut_width(
    framework: Framework, precision: Format, model: Model, cards: int
) -> tuple[int, int] | None:
    """Give a width of which no card can hold whole blocks, and a block, where the server needs it.

    Blocks share a scale. None where every share is whole, and where nothing tells of blocks.
    """
    limit = framework.format_limits.get(precision.family)
    if cards == 1 or not limit or not limit.whole_blocks:
        return None
    widths = map(_widths(model, precision, cards).__getitem__, limit.whole_blocks)
    parts = ((width, _block(precision, width)) for width in widths)
    cut = next(((width, b) for width, b in parts if b and width % (cards * b)), None)
    return cut if cut and (precision.kind == "gguf" or _in_blocks(precision, model)) else None


def _block(precision: Format, width: int) -> int:
    """Count the weights that share a scale: rows of GGUF that are no multiple get smaller ones."""
    if precision.kind == "gguf":
        return 256 if precision.family in {"gguf-k", "gguf-i"} and width % 256 == 0 else 32
    return precision.block or 0


def _widths(model: Model, precision: Format, cards: int) -> Mapping[str, int]:
    """Widths that every card takes a share of, by part; 0 for what it lacks or what goes whole."""
    shape, moe = model.shape, model.shape.moe
    return {
        "dense": shape.intermediate if "D" in shape.ffn_kinds else 0,
        "shared": moe.shared_width if moe else 0,
        "experts": moe.width if moe and (moe.experts % cards or not precision.block) else 0,
        "attention": shape.heads * (shape.mla.value_dim if shape.mla else shape.head_dim),
    }


def _in_blocks(precision: Format, model: Model) -> bool:
    """Whether the files hold all feed-forward weights in the format's blocks: stated, or known."""
    stated = model.shape.quantization
    if stated and as_held(model, precision):
        kept = stated.get("modules_to_not_convert") or ()
        names = {str(name).rpartition(".")[2] for name in kept} if isinstance(kept, list) else set()
        whole = stated.get("weight_block_size") == [precision.block] * 2
        return whole and not names & _FEED_FORWARD
    if model.origin == "config":
        return False
    return (repository_of(model, precision) or "").partition("/")[0] in precision.block_publishers


def folder_name(model: Model, precision: Format) -> str:
    """Name a checkpoint in a format of its own: those are downloads of their own."""
    return f"{file_word(model.name)}-{_NOT_WORD.sub('-', precision.name).strip('-')}"


def file_word(name: str) -> str:
    """A model's name as part of a file name: no separators, no leading dash."""
    return name.replace("/", "-").replace("\\", "-").lstrip("-") or "model"


def gguf(model: Model, precision: Format) -> str:
    """Name the GGUF file: the one that is there, else one named after model and format."""
    if (own := model.stored) and (own.kind, own.format_name) == ("gguf", precision.name):
        return file_word(own.files[0].name)
    kind = {"FP16": "F16", "FP32": "F32"}.get(precision.name, precision.name)
    return f"{file_word(model.name)}-{kind.split(' ')[0]}.gguf"


def ollama_from(model: Model, precision: Format) -> str:
    """Name what Ollama builds on: a tag of its library, the repository asked for, else a file."""
    if tag := _library_tag(model, precision):
        return tag.name
    seen = _size_gb(model, precision) < _ONE_FILE_GB and seen_gguf(model, precision)
    return f"hf.co/{seen}" if seen else f"./{gguf(model, precision)}"


def _library_tag(model: Model, precision: Format, *, loaded: bool = True) -> Tag | None:
    """Find the tag; to be loaded, where no file is as large as was counted and its is larger."""
    from advisor.reading.format_patterns import tag_of  # noqa: PLC0415  of one framework

    own = model.stored or "gguf" in (model.hf_id or "gguf").casefold()
    tag = None if own else tag_of(model.name, (precision.name, *precision.aliases))
    other = tag and tag.listed_bytes and "qat" not in tag.name and seen_gguf(model, precision)
    return None if loaded and other else tag
