"""What runtimes do on which card, and how they are started: capabilities and commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Final, Literal, get_args

from msgspec import Struct, field

from advisor.errors import RequestError
from advisor.files import data_dir
from advisor.knowledge.field_kinds import Flag, Kind, Number, Text, Texts, choice, choices

PLACEHOLDERS: Mapping[str, tuple[str, ...]] = {
    "model": (), "folder": (), "gguf": (), "slug": (), "projector": (), "context": ("context",),
    "context_all": ("context", "batch"), "context_less_one": (), "cache_tokens": (),
    "slots": ("batch",), "batch": ("batch",), "ubatch": ("ubatch",), "logical_batch": (),
    "gpu_layers": ("gpu_layers",), "layers_placed": ("gpu_layers",),
    "layers_share": ("gpu_layers",), "cpu_experts": ("cpu_experts",),
    "kv": ("kv_cache_k", "kv_cache_v"), "kv_k": ("kv_cache_k",), "kv_v": ("kv_cache_v",),
    "gpus": ("gpus",), "tensor_ranks": ("gpus", "split"),
    "pipeline_ranks": ("gpus", "split", "stages"),
    "data_ranks": ("gpus", "split"), "expert_ranks": ("gpus", "split"),
    "replicas": ("gpus", "split"), "slots_of_a_copy": ("batch", "split"),
    "slots_of_a_rank": ("batch",),
    "stated_slots_of_a_rank": ("batch",),
    "split_mode": ("split",), "card_shares": ("gpus",), "cuda_devices": ("gpus",),
    "hip_devices": ("gpus",), "cuda_kept": (), "hip_kept": (), "devices_named": ("backend", "gpus"),
    "gguf_seen": (), "gguf_own": (), "gguf_at": (), "gguf_of": (), "mlx_at": (),
    "ollama_from": (), "model_key": (), "ggml": (),
    "ggml_file": (), "draft_key": ("draft_model",),
    "draft_model": ("draft_model",), "draft_gguf": ("draft_model",),
    "draft_gguf_seen": ("draft_model",),
    "draft_gguf_at": ("draft_model",),
    "draft_folder": ("draft_model",), "mtp": ("mtp",), "mtp_checked": (), "memory_fraction": (),
    "memory_fraction_lowered": (), "static_fraction": (),
    "yarn_factor": (), "yarn_original": (), "yarn_theta": (),
    "batched_tokens": (), "state_slots": (),
    "image_limit": (), "image_count": (), "image_tokens": (),
}  # fmt: skip
"""Placeholder -> the settings (keys of ``change``) that a piece with it carries."""

LISTED: Final = ("own_code", "images_on_request")
"""Switches that are on for the models which a list of their name holds."""
SWITCHES: Mapping[str, tuple[str, ...]] = {
    "shared_cache": ("kv_unified",), "separate_caches": ("kv_unified",),
    "flash_on": ("flash_attention",), "flash_off": ("flash_attention",),
    "full_window_cache": ("swa_full",), "several_cards": (), "uneven_memory": (),
    "one_of_several": (), "not_the_makers": ("backend",),
    "shares_layers": ("split",), "shares_tensors": ("split",), "shares_requests": ("split",),
    "in_file": (),
    "beyond_trained": (), "eager": ("eager",), "text_only": ("text_only",), "kv_set": (),
    "blind": ("text_only",), "load_whole": (),
    "cache_limited": (), "makes_format": (),
    "own_code": (), "images_on_request": (), "brings_images": (),
    "whole_experts": (), "reads_text": (), "sees_images": (), "answers": (),
    "embedding": (), "writes": (), "own_file": (), "of_library": (),
}  # fmt: skip
"""Switch -> the settings that a piece under it carries."""

_MORE = ("kv_cache", "kv_unified", "flash_attention", "swa_full", "text_only", "images")
SETTINGS = tuple(dict.fromkeys([*(k for keys in PLACEHOLDERS.values() for k in keys), *_MORE]))
"""Settings a command can carry, or say that it cannot."""

GGUF_FILE: Final = "gguf_repos.tsv"
"""Which GGUF files there are to download, in knowledge/."""


class CommandPart(Struct, frozen=True, array_like=True):
    """A stretch of fixed text, then one placeholder (or none)."""

    before: str
    name: str = ""
    mode: str = ""
    """``json`` inside JSON, ``raw`` as it is; empty: quoted for the shell or for Python."""


class CommandPiece(Struct, frozen=True, array_like=True):
    """Words of a command that are left out where their switch is off or a value is missing."""

    when: str
    words: tuple[str | tuple[CommandPart, ...], ...]
    """Each as it is written, or its parts where a placeholder is in it."""
    carries: tuple[str, ...]
    """The settings of a request that they say."""


class Program(Struct, frozen=True):
    """A program that starts a framework (commands.yaml), its lines taken apart."""

    name: str
    what: str
    version: str
    lines: tuple[tuple[CommandPiece, ...], ...]
    interpreter: tuple[CommandPiece, ...]
    """What the lines are handed to where they are Python; else empty."""
    by_format: Mapping[str, Mapping[str, str]]
    """Placeholder -> weight format or family -> this program's word."""
    on_load: Mapping[str, Mapping[str, str]]
    """The same for formats that it makes itself from a 16-bit checkpoint."""
    kv_types: Mapping[str, str]
    """Cache type -> this program's word; empty: the names are its words."""
    kv_equal: bool
    own_code: tuple[str, ...]
    """``model_type`` whose code stands in the model's repository."""
    images_on_request: tuple[str, ...]
    """``model_type`` whose images are left out unless a piece asks for them."""
    cannot: Mapping[str, str]
    """Setting -> why it cannot be told."""
    sources: Mapping[str, str]

    @property
    def says(self) -> frozenset[str]:
        """The settings of a request that its lines say."""
        return frozenset(key for line in self.lines for piece in line for key in piece.carries)


NOT_SIZED = "?"
"""What a flag sets that changes memory or speed in a way that has no figure here."""
TAKES_NONE = "flag"


class ProgramFlag(Struct, frozen=True):
    """One flag of one program: its spellings, what it takes, and what it means here."""

    names: tuple[str, ...]
    kind: str
    choices: tuple[str, ...]
    sets: str
    """The meaning (advisor/reading/meanings.py), ``NOT_SIZED``, or empty: neither memory nor
    speed."""
    values: Mapping[str, str]
    """Word of the program -> word of this project; empty: as if the flag were not there."""
    source: str
    whole: bool = False
    """Whether its parser reads a whole number, and so no ``32k``."""
    earlier: bool = False
    """Whether versions before the known one alone took it."""


class Start(Struct, frozen=True):
    """What starts a program: words of a command, an image of a container, a call in Python."""

    kind: str
    words: tuple[str, ...]
    tool: str


BY_MODELFILE = "ollama"
"""The program that is told by a file, by variables and by flags together."""
_EARLIER = " (earlier)"
_TABLES = {
    BY_MODELFILE: ("ollama run", "Modelfile", "ollama serve"),
    "ik_llama.cpp": ("llama-server", "ik_llama.cpp"),
    "llama-batched-bench": ("llama-server", "llama-batched-bench"),
    f"ik_llama.cpp{_EARLIER}": (f"llama-server{_EARLIER}",),
    f"llama-batched-bench{_EARLIER}": (f"llama-server{_EARLIER}",),
    f"llama-cli{_EARLIER}": (f"llama-server{_EARLIER}", f"llama-cli{_EARLIER}"),
}
"""Programs that take the flags of several tables; what stands later counts."""
FORKED = {"llama-server": "ik_llama.cpp", "llama-cli": "ik_llama.cpp"}
"""Programs of which a fork bears the name, and takes flags more."""
FORK_FLAGS = frozenset("-mla -amb -fmoe -rtr -ser -ger -muge -mqkv -khad -sas".split())  # noqa: SIM905
"""Flags that only the fork ever had."""
IN_PYTHON = "transformers"
"""What Python loads that is not told otherwise."""
IN_A_CALL = "call"
"""The kind of start that is a call in Python; the others are words of a command or an image."""
NAMED = "named"
"""The kind of words that start a program whose flags stand in no table."""


def starts() -> Sequence[Start]:
    """Every way to start a program, the longest first."""
    found = [Start(r["kind"], tuple(r["words"].split()), r["tool"]) for r in _rows("starts.csv")]
    return sorted(found, key=lambda start: (-len(start.words), -len(start.words[0])))


def not_started(said: Sequence[Sequence[str]]) -> RequestError:
    """Say that none of some commands starts a program whose flags are known, and which one does."""
    joined = [f" {' '.join(words)} " for words in said]
    for start in starts():
        if start.kind == NAMED and any(f" {' '.join(start.words)} " in one for one in joined):
            return RequestError(
                f"'{' '.join(start.words)}' starts {start.tool}, whose flags are not read here",
                hint="Ask for its model, format and context: "
                f"advisor advise --framework {start.tool} --model ...",
            )
    known = sorted({start.tool for start in starts() if start.kind != NAMED})
    first = "".join(said[0][:1] if said else ())[:80]
    return RequestError(
        f"no program that is known here is started in '{first}'",
        hint=f"Known: {', '.join(known)}; of transformers the Python that loads the model.",
    )


@lru_cache(maxsize=32)
def flags_of(tool: str) -> Mapping[str, ProgramFlag]:
    """Give the flags of a program by spelling, with hyphens for underscores."""
    tools = _TABLES.get(tool, (tool,))
    found = [_flag(row) for row in _rows("flags.csv") if row["tool"] in tools]
    return {spelled(name): flag for flag in found for name in flag.names}


def earlier_flags_of(tool: str) -> Mapping[str, ProgramFlag]:
    """Give the flags by spelling that a program took before the version that is known."""
    return flags_of(f"{tool}{_EARLIER}")


TRAINED = "trained"
"""A context that is as long as the model was trained for."""


def its_context(tool: str, trained: int | None) -> int | None:
    """Give the tokens that a program takes where its command says none; None: not known."""
    itself = {unsaid(tool, one) for one in ("context", "tokens_all")}
    number = next(map(int, filter(str.isdigit, itself)), None)
    return trained if trained and TRAINED in itself else number


_IN_NAME = " in the name"


def found_by_name(tool: str, model: str) -> str:
    """Give the back end that a program finds out by a word in the model's name, or nothing."""
    known = (flag.values for flag in flags_of(tool).values() if flag.sets == "backend")
    told = ((said.partition(_IN_NAME), means) for one in known for said, means in one.items())
    return next((m for (word, sign, _), m in told if sign and word in model.casefold()), "")


def unsaid(tool: str, meaning: str) -> str:
    """Give what a program takes where its command does not say it; empty: not known."""
    found = (flag.values.get("", "") for flag in flags_of(tool).values() if flag.sets == meaning)
    return next(found, "")


def spelled(name: str) -> str:
    """Write a flag with hyphens: parsers take underscores for them."""
    return name.replace("_", "-") if name.startswith("-") else name


def _flag(row: Mapping[str, str]) -> ProgramFlag:
    pairs = (pair.partition("=") for pair in row["values"].split("|") if pair)
    return ProgramFlag(
        tuple(row["names"].split(";")),
        row["kind"],
        tuple(filter(None, row["choices"].split(";"))),
        row["sets"],
        {word: meant for word, _, meant in pairs},
        row["source"],
        whole=row["type"] == "int",
        earlier=row["tool"].endswith(_EARLIER),
    )


def _rows(name: str) -> Sequence[Mapping[str, str]]:
    import csv  # noqa: PLC0415 - a start that reads no command does without

    path = data_dir("knowledge") / "flags" / name
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


About = Literal[
    "card", "model", "task", "weights", "dtype", "kv_cache", "kv_pair", "kv_unasked", "split",
    "draft", "sequences", "upkeep", "yarn", "images", "cache_limit", "text_only",
    "load_whole", "setup",
]  # fmt: skip
"""What a row answers; capabilities.yaml says what each means."""
Answer = Literal["runs", "refused", "slow"]
Attention = Literal["heads", "mla"]


class Capability(Struct, frozen=True, omit_defaults=True):
    """One row; all conditions that are stated must hold."""

    name: Text = field(name="capability")
    framework: Text
    version: Text
    about: Annotated[About, Kind(choice(get_args(About)))]
    answer: Annotated[Answer, Kind(choice(get_args(Answer)))]
    why: Text
    """One clause."""
    at: Text
    """File and line of the source."""
    of: Texts = ()
    """Names in question; empty: all."""
    vendors: Texts = ()
    architectures: Texts = ()
    from_capability: Number | None = None
    below_capability: Number | None = None
    backends: Texts = ()
    attention: Annotated[tuple[str, ...], Kind(choices(get_args(Attention)))] = ()
    other_head_sizes: Texts = ()
    """Elements of a head that it does not hold for."""
    model_types: Texts = ()
    other_model_types: Texts = ()
    """Architectures that it does not hold for."""
    experts: Flag = False
    """For mixtures of experts alone."""
    lookups: Flag = False
    """For models with tables beside the embedding that are looked up by token alone."""
    formats: Texts = ()
    """Of the weights."""
    times: Number | None = None
    """How many times as long it takes to read weights that it reads slowly."""
    sources: Mapping[str, str] = field(default_factory=dict)
