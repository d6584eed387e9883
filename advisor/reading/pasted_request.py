"""A pasted command, or Python that loads a model, as the settings of a request."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from advisor.errors import RequestError, UserError
from advisor.knowledge.names import framework_called
from advisor.knowledge.programs import (
    IN_A_CALL,
    IN_PYTHON,
    ProgramFlag,
    flags_of,
    its_context,
    starts,
    unsaid,
)
from advisor.knowledge.types import Framework, Knowledge, ModelRecord
from advisor.models.hub_names import in_cache
from advisor.models.stored_tensors import Model
from advisor.reading import is_read, read_model
from advisor.reading.command_lines import Item, Pasted, pasted_of, read_command
from advisor.reading.meanings import Meant, layers_in_ram, layers_of_share, meant_by
from advisor.reading.name_parts import packs
from advisor.reading.public_list import PublicModel, find_public
from advisor.reading.shell import Python, python_of, visible_cards

_LOADER = re.compile(r"(?i)(?!.*(?:tokenizer|processor|config)).*\.from_pretrained")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_ENDING = re.compile(r"\.(gguf|safetensors)$", re.IGNORECASE)
_ON_A_CARD = re.compile(r"=(?:CUDA|ROCm)\d")
_ON_DISK = (".gguf", ".safetensors", ".json")


class Asked(Struct, frozen=True):
    """What a command asks for."""

    settings: Mapping[str, object]
    """Keys of a request; the card is not among them."""
    cards: int | None
    """How many cards it takes; None: all."""
    framework: str
    version: str
    not_sized: tuple[str, ...]
    own_context: bool
    """Whether the program chooses the context, as the command does not say one."""
    fits_context: bool
    """Whether it then lowers the context until it fits."""
    places_itself: bool
    """Whether it decides itself what of the model lies on the card."""


def read_pasted(text: str) -> Pasted:
    """Read a command, a Modelfile or Python that loads a model.

    Raises:
        RequestError: It is none of these, or not to be read.
    """
    return _read_python(python) if (python := python_of(text)) else read_command(text)


def asked_by(pasted: Pasted, knowledge: Knowledge) -> Asked:
    """Turn a command into the settings of a request.

    Raises:
        RequestError: It names no model, or a value is no number.
    """
    meant = meant_by(pasted)
    if not meant.named:
        raise RequestError(
            f"the command names no model for {pasted.tool}", hint="Paste it with its model."
        )
    settings = meant.settings
    framework, version = _program(pasted.tool, knowledge)
    model, precision = named_model(meant.named, knowledge, framework)
    settings["model"] = model
    if precision:
        settings.setdefault("precision", precision)
    if meant.drafts_with:
        _with_draft(meant, knowledge, framework)
    _with_dtype(settings, pasted, known := _record_of(model, knowledge))
    if framework.usual_formats and known and _is_plain(known, meant.named):
        settings.setdefault("precision", "FP16")  # as its files hold it
    own_context, said = "context" not in settings, pasted.said()
    trained = known.trained_context_tokens if known else None
    if own_context and (tokens := its_context(pasted.tool.partition(" with ")[0], trained)):
        settings["context"] = tokens
    if known:
        _see(meant, pasted, known)
        _count_layers(meant, known)
        _attend_apart(meant, known)
    elif meant.cpu_tensors:
        meant.not_sized.append("-ot is not sized, as the layers of the model are not known.")
    settings["framework"] = framework.name
    around = framework_called(knowledge, pasted.tool.partition(" with ")[0])
    if around and "backend" not in said and framework.name in around.beyond:
        meant.not_sized.append(f"{around.beyond[framework.name]}.")
    fits = said.get("fits_itself", "on") != "off"
    return Asked(
        settings,
        _cards(meant, pasted),
        framework.name,
        version,
        tuple(meant.not_sized),
        own_context,
        own_context and fits and _fits_context(pasted, framework),
        fits and _places_itself(pasted, said),
    )


def _with_draft(meant: Meant, knowledge: Knowledge, framework: Framework) -> None:
    """Take the model that drafts, or say that it is not known."""
    draft = named_model(meant.drafts_with, knowledge, framework)[0]
    if _record_of(draft, knowledge) or Path(draft).exists():
        meant.settings["draft_model"] = draft
    else:
        meant.not_sized.append(f"The draft {draft} is not known, so it is not sized.")


def _cards(meant: Meant, pasted: Pasted) -> int | None:
    """Count the cards it takes: a server that is told no number may take one alone."""
    usual = unsaid(pasted.tool, "tensor_ranks")
    if not usual or "split" in meant.settings:
        return meant.cards
    return int(usual) if meant.cards is None else min(int(usual), meant.cards)


def _fits_context(pasted: Pasted, framework: Framework) -> bool:
    asked = any(i.flag and i.flag.values.get(i.value) == "fit" for i in pasted.items)
    itself = any(f.sets == "fits_itself" for f in flags_of(pasted.tool).values())
    if its_context(pasted.tool.partition(" with ")[0], None):
        return asked
    return asked or itself or ("lowered" in {tokens for _, tokens in framework.usual_context})


def _places_itself(pasted: Pasted, said: Mapping[str, str]) -> bool:
    places = any(unsaid(pasted.tool, meaning) for meaning in ("gpu_layers", "layers_share"))
    told = {i.sets for i in pasted.items if i.flag and i.flag.values.get(i.value, i.value)}
    stated = {"gpu_layers", "layers_share", "cpu_experts", "override_tensor"} & told
    return said.get("placing") == "auto" or (places and not stated)


def _program(tool: str, knowledge: Knowledge) -> tuple[Framework, str]:
    for framework in knowledge.frameworks.values():
        for program in framework.commands:
            if program.name == tool:
                return framework, program.version
    base, _, inner = tool.partition(" with ")
    for framework in knowledge.frameworks.values():
        if base in framework.variants or inner == framework.name:
            source = list(flags_of(base).values())[-1].source
            return framework, source.partition(" ")[0].rpartition("-")[2]
    raise RequestError(f"no runtime is known for '{tool}'")


def _is_plain(model: Model, named: str) -> bool:
    """Whether a model is named by its own repository, which then loads in its own 16 bits."""
    return model.hf_id == named and not (model.native_formats or model.held_format)


def _see(meant: Meant, pasted: Pasted, model: Model) -> None:
    """Leave the part that reads images out where a file is loaded without the one that holds it."""
    takes = any(flag.sets == "projector" for flag in flags_of(pasted.tool).values())
    alone = pasted.said().get("model", "").endswith(".gguf") and "projector" not in pasted.said()
    if model.vision_parameters and takes and alone and "text_only" not in meant.settings:
        meant.settings["text_only"] = True
        meant.not_sized.append("No --mmproj is named: the file is loaded without reading images.")


def _with_dtype(settings: dict[str, object], pasted: Pasted, known: Model | None) -> None:
    """Take a stated 16-bit type as the format, unless the model has one of its own."""
    stated = [item for item in pasted.items if item.sets == "dtype" and item.flag]
    if not stated or "precision" in settings or known is None or known.native_formats:
        return
    flag, word = stated[-1].flag, stated[-1].value
    if flag and (meant := flag.values.get(word)):
        settings["precision"] = meant


def _count_layers(meant: Meant, model: Model) -> None:
    layers = model.shape.layers
    if meant.layers_share is not None:
        found = layers_of_share(meant.layers_share, layers)
        meant.settings["gpu_layers"] = "all" if found is None else found
    if meant.cpu_tensors:
        kept = layers_in_ram(meant.cpu_tensors, layers)
        if kept is None:
            meant.not_sized.append(f"The placement -ot {meant.cpu_tensors} is not sized.")
        elif kept:
            meant.settings["cpu_experts"] = kept
        if kept is not None and _ON_A_CARD.search(meant.cpu_tensors):
            told = "Which card holds which layers (-ot) is not sized: all are taken to be filled."
            meant.not_sized.append(told)
    if not model.shape.moe and meant.settings.pop("cpu_experts", None):
        meant.not_sized.append(f"{model.name} has no experts, so none are kept in system RAM.")


def _attend_apart(meant: Meant, model: Model) -> None:
    """Divide requests and experts over the ranks; without experts the ranks are copies."""
    ranks, batch = meant.attention_ranks, meant.settings.get("batch")
    if ranks == 1:
        return
    meant.cards = ranks
    copies = meant.whole_copies or not model.shape.moe
    meant.settings["split"] = "data" if copies else "dp-attention"
    if meant.batch_of_a_rank and isinstance(batch, int):
        meant.settings["batch"] = batch * ranks


# ---- the model


def named_model(text: str, knowledge: Knowledge, framework: Framework) -> tuple[str, str | None]:
    """Give the model that a command names, and its format where the name says it.

    A file that lies here stays a path. A name is first taken apart as this project writes names
    of files and folders; what is found in no way is given back as it is.
    """
    if text.casefold().endswith(_ON_DISK) and Path(text).is_file():
        return text, None
    if _record(text, knowledge) or _listed(text):
        return text, None
    for name in _names_in(text):
        if found := _with_format(name, knowledge, framework):
            return found
    if read := next((one for one in _names_in(text) if is_read(knowledge, one)), None):
        return read, None
    is_file = text.casefold().endswith(_ON_DISK)
    return (text.replace("\\", "/").rpartition("/")[2] if is_file else text), None


def _names_in(text: str) -> Iterator[str]:
    """Give what may be the name: of the hub's cache, without folders and endings, or publisher."""
    if cached := in_cache(text):
        yield cached
    stem = _SHARD.sub("", _ENDING.sub("", text.replace("\\", "/").rstrip("/")))
    stem = re.sub(r"[-_]GGUF(?=$|:)", "", stem, flags=re.IGNORECASE)
    if not text.casefold().endswith(_ON_DISK):
        yield stem
    *_, publisher, name = ("", *stem.split("/"))
    if packs(publisher) and "@" not in name:
        yield f"{publisher}/{name}"
    yield stem.rpartition("/")[2]


def _with_format(
    name: str, knowledge: Knowledge, framework: Framework
) -> tuple[str, str | None] | None:
    """Divide a name into a model and a format behind it."""
    if record := _record(name, knowledge):
        return record.name, None
    cuts = [at for at, sign in enumerate(name) if sign in "-_.:"]
    for at in cuts:
        record = _record(name[:at], knowledge)
        form = _format(name[at + 1 :], knowledge, framework) if record else None
        if record and form:
            return record.name, form
    return None


def _record(text: str, knowledge: Knowledge) -> ModelRecord | None:
    written = _by_file_name(knowledge).get(text.casefold())
    if written:
        return knowledge.models[written]
    try:
        read = read_model(knowledge, text)
    except UserError:
        return None
    return None if read.said else knowledge.models.get(read.model.name)


def _by_file_name(knowledge: Knowledge) -> Mapping[str, str]:
    """Names as commands write them in files -> models."""
    return {name.replace("/", "-").replace("\\", "-").casefold(): name for name in knowledge.models}


def _format(text: str, knowledge: Knowledge, framework: Framework) -> str | None:
    """Find a format by its letters and figures; of several one that the framework runs."""
    wanted = _letters(text)
    found = [
        form.name
        for form in knowledge.formats.values()
        if any(
            _letters(word) == wanted for word in (form.name, form.name.split(" ")[0], *form.aliases)
        )
    ]
    runs = [name for name in found if name in framework.formats]
    exact = [name for name in runs if _letters(name) == wanted]
    return next(iter([*exact, *runs, *found]), None)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "", text.casefold())


def _listed(text: str) -> PublicModel | None:
    try:
        return find_public(text) if "/" in text else None
    except RequestError:
        return None


def _record_of(text: str, knowledge: Knowledge) -> Model | None:
    """Give the model that a name stands for, where it can be sized."""
    try:
        return read_model(knowledge, text).model
    except UserError:
        return None


def _read_python(python: Python) -> Pasted:
    """Read what a script loads, with which settings."""
    calls = [node for node in ast.walk(python.tree) if isinstance(node, ast.Call)]
    ways = [start for start in starts() if start.kind == IN_A_CALL]
    called = ((call, way.tool) for call in calls for way in ways if _is(python, call, way.words[0]))
    served, tool = next(called, (None, IN_PYTHON))
    items = _of_call(served, tool) if served else _of_transformers(python.tree, calls)
    return pasted_of(tool, list(items), visible_cards(python.variables))


def _is(python: Python, call: ast.Call, name: str) -> bool:
    written = ast.unparse(call.func)
    whole = python.imported.get(written, written)
    return whole == name or whole.endswith(f".{name}")


def _of_call(call: ast.Call, tool: str) -> Iterator[Item]:
    """Read the arguments of a call as the flags of the program that it stands for."""
    known = flags_of(tool)
    for place in call.args[:1]:
        yield _item("model", _text(place), known.get("--model"))
    said = {key.arg: _text(key.value) for key in call.keywords if key.arg}
    if "repo_id" in said:
        file = said.pop("filename", "").strip("*").removesuffix(".gguf")
        said["model_path"] = f"{said.pop('repo_id')}{file and f':{file}'}"
    for name, value in said.items():
        flag = known.get(f"--{name.replace('_', '-')}") or known.get(name)
        yield _item(name, value, flag)


def _of_transformers(tree: ast.Module, calls: list[ast.Call]) -> Iterator[Item]:
    known = flags_of(IN_PYTHON)
    loaded = [call for call in calls if _LOADER.fullmatch(ast.unparse(call.func))]
    models = loaded or [call for call in calls if ast.unparse(call.func).endswith("pipeline")]
    for place, call in enumerate(models):
        said = (key.value for key in call.keywords if key.arg == "model")
        named = next(map(_text, (*call.args[not loaded :], *said)), "")
        yield _item(named, named, known["assistant_model" if place else "model"])
    for name, value in _stated(tree, calls, models):
        if name in known:
            yield _item(name, value, known[name])


def _stated(
    tree: ast.Module, calls: list[ast.Call], models: list[ast.Call]
) -> Iterator[tuple[str, str]]:
    """Give the keywords of loading, generating and quantising, and what a dictionary collects."""
    for call in calls:
        if call in models[:1] or ast.unparse(call.func).endswith(
            ("BitsAndBytesConfig", ".generate")
        ):
            yield from ((key.arg, _text(key.value)) for key in call.keywords if key.arg)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            if not isinstance(node.value, ast.Call):
                yield _text(node.targets[0].slice), _text(node.value)
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from ((_text(key), _text(value)) for key, value in pairs if key)
        elif isinstance(node, ast.BinOp) and isinstance(node.left, ast.List):
            yield "prompts", _text(node.right)


def _item(name: str, value: str, flag: ProgramFlag | None) -> Item:
    if flag and flag.kind == "flag":
        value = {"True": "on", "False": "off"}.get(value, value)
    return Item((name,), flag, value)


def _text(node: ast.expr) -> str:
    """Give a constant as text; ``torch.float16`` is ``float16``."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return ast.unparse(node)
