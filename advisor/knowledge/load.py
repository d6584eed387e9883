"""knowledge/ -> Knowledge: parsed and checked once, then read back from the cache."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from advisor.errors import KnowledgeError, Problems, Source, UserError
from advisor.files import compiled, data_dir, digest, read_tree
from advisor.knowledge.entry import Parsed
from advisor.knowledge.lazy_table import Table
from advisor.knowledge.overlay_files import Files
from advisor.knowledge.types import (
    Format,
    Framework,
    GgmlType,
    Gpu,
    Knowledge,
    KvType,
    ModelRecord,
)

_SUFFIXES = (".yaml", ".csv")
_NOT_READ = "measurements/"
_loaded: dict[str, Knowledge] = {}
_refused: dict[tuple[str, str], UserError] = {}
"""What was wrong with files that were read before, so that nobody parses them twice."""


def load_knowledge(folder: Path | None = None, *, alone: bool = False) -> Knowledge:
    """Load the built-in knowledge, with a user's own laid over it (docs/overlays.md).

    Args:
        folder: The user's knowledge folder; ``None`` for the built-in knowledge alone.
        alone: Take ``folder`` as it is, without the built-in files.

    Raises:
        KnowledgeError: One thing is wrong in a file.
        Problems: Several are.
    """
    files, own = read_files(folder, alone=alone)
    sha256 = digest(files)
    key = layers_key(files) if own else sha256
    found = _loaded.get(key)
    if found is None:
        shown = str(folder or "knowledge")
        if (key, shown) in _refused:
            raise _refused[key, shown].with_traceback(None)
        try:
            data = compiled("knowledge", key, lambda: build(files, own, shown), dict[str, object])
        except UserError as error:
            _refused[key, shown] = error
            raise
        found = _loaded[key] = _knowledge(data, sha256)
    return found


def build(
    files: Mapping[str, bytes], own: Collection[str] = (), shown: str = "knowledge"
) -> dict[str, object]:
    """Parse and check the files; gives JSON-able data.

    Args:
        files: Contents by path below the knowledge folder.
        own: Paths of the user's files, whose records replace others of the same name.
        shown: The folder as messages show it.

    Raises:
        KnowledgeError: One thing is wrong in a file.
        Problems: Several are.
    """
    problems: list[UserError] = []
    from advisor.knowledge.validation import type_problems  # noqa: PLC0415 - pydantic, see parse

    made = parse(files, problems)
    raise_at(problems, shown, own)
    raise_at(list(type_problems(made)), shown, own)
    return made


def raise_at(problems: Sequence[UserError], shown: str, own: Collection[str] = ()) -> None:
    """Raise what was collected, with the folder before every file name."""
    moved = [moved_to(problem, shown, own) for problem in problems]
    if len(moved) == 1:
        raise moved[0]
    if moved:
        raise Problems(moved)


def moved_to(problem: UserError, shown: str, own: Collection[str] = ()) -> UserError:
    """Write the folder before the file name of a problem: the user's, or the built-in one."""
    at = problem.source or Source("")
    shown = "knowledge" if own and at.file and at.file not in own else shown
    place = Source(f"{shown}/{at.file}" if at.file else shown, at.line, at.column)
    return KnowledgeError(problem.message, source=place, hint=problem.hint)


def parse(files: Mapping[str, bytes], problems: list[UserError]) -> dict[str, object]:
    """Parse the files into JSON-able tables, collecting every problem."""
    from advisor.knowledge import (  # noqa: PLC0415 - not needed when the cache is warm
        gpu_records,
        index,
        model_records,
        runtime_records,
        second_card_records,
        tables,
    )

    problems += tables.unread_problems(files)
    tables.check_sources(files, problems)
    ids = tables.source_ids(files)
    cards = _unique(gpu_records.read_gpus(files, ids, problems), "gpu", problems)
    models = _unique(model_records.read_models(files, ids, problems), "model", problems)
    index.report_shared_names(cards, models, problems)
    names = index.build_index(map(index.named, cards), map(index.named, models))
    runtime = runtime_records.parse_runtime(files, problems)
    formats = runtime["formats"]
    assert isinstance(formats, dict)
    model_records.check_formats(models, formats, problems)
    return {
        "gpus": {str(card.fields["name"]): _json(card.fields) for card in cards},
        "models": {str(model.fields["name"]): _json(model.fields) for model in models},
        **runtime,
        "second_cards": second_card_records.read_second_cards(
            files, ids, {str(card.fields["name"]) for card in cards}, problems
        ),
        "calibration": _calibration(files, problems),
        "index": {**names, **_catalogue(cards, models)},
        "yours": files.yours if isinstance(files, Files) else {},
        "switched_off": files.off if isinstance(files, Files) else {},
    }


def _catalogue(cards: Iterable[Parsed], models: Iterable[Parsed]) -> dict[str, object]:
    from advisor.knowledge import catalogue  # noqa: PLC0415 - not needed when the cache is warm

    rows = (catalogue.card_row(card.fields) for card in cards)
    groups: dict[str, dict[str, list[str]]] = {"families": {}, "kin": {}}
    for model in models:
        name = str(model.fields["name"])
        groups["families"].setdefault(catalogue.family_key(model.fields), []).append(name)
        groups["kin"].setdefault(catalogue.kin_key(model.fields), []).append(name)
    return {"cards": [row for row in rows if row is not None], **groups}


def read_files(
    folder: Path | None, *, alone: bool = False
) -> tuple[Mapping[str, bytes], frozenset[str]]:
    """Read the built-in files with a user's beside or in front of them; gives the user's paths.

    Raises:
        KnowledgeError: The folder does not exist.
    """
    built_in = {} if alone and folder else _files_of(data_dir("knowledge"))
    if folder is None:
        return built_in, frozenset()
    if not folder.is_dir():
        what = "a file, not a folder" if folder.is_file() else "missing"
        raise KnowledgeError(
            f"there is no folder '{folder}': it is {what}", hint="Name one with knowledge files."
        )
    own = _files_of(folder)
    every = dict(sorted((built_in | own).items()))
    if not built_in or folder.resolve() == data_dir("knowledge").resolve():
        return every, frozenset(own)
    unread = _unread(folder)
    names = frozenset([*own, *(path for path, _ in unread)])
    whole = all(name in own for name in built_in)
    shadowed = {name: built_in[name] for name in own if name in built_in}
    return Files(every, names, shadowed, whole=whole, unread=unread), names


def _unread(folder: Path) -> list[tuple[str, str]]:
    from advisor.knowledge.tables import unread  # noqa: PLC0415 - for overlays alone

    paths = (path for path in folder.rglob("*") if path.is_file())
    named = sorted(path.relative_to(folder).as_posix() for path in paths)
    return unread([name for name in named if "/." not in f"/{name}"])


def layers_key(files: Mapping[str, bytes]) -> str:
    """Name what the files lead to: their contents, whose they are, and what lies behind them."""
    if not isinstance(files, Files):
        return digest(files)
    behind = {f"behind {name}": content for name, content in files.shadowed.items()}
    return digest({**files, **behind, "": "\n".join(sorted(files.own)).encode()})


def _files_of(folder: Path) -> dict[str, bytes]:
    """Read what knowledge is made of; the raw measurements are read by ``calibrate`` alone."""
    read = read_tree(folder, _SUFFIXES)
    return {name: content for name, content in read.items() if not name.startswith(_NOT_READ)}


def _unique(table: Sequence[Parsed], kind: str, problems: list[UserError]) -> list[Parsed]:
    kept: dict[str, Parsed] = {}
    for parsed in table:
        name = str(parsed.fields["name"])
        if name in kept:
            message = f"{kind} '{name}' stands twice (first in {kept[name].place})"
            problems.append(KnowledgeError(message, source=parsed.place))
        kept.setdefault(name, parsed)
    return list(kept.values())


def _calibration(files: Mapping[str, bytes], problems: list[UserError]) -> dict[str, object]:
    """Join what people decide, what was fitted, and what was published."""
    from advisor.knowledge.published_speeds import measured_by_card  # noqa: PLC0415 - not needed when the cache is warm
    from advisor.knowledge.tables import gone_problems  # noqa: PLC0415 - likewise

    problems += gone_problems(files)
    found = _mapping(files, "calibration.yaml", problems)
    if "calibration-fitted.yaml" in files:
        found["fitted"] = _mapping(files, "calibration-fitted.yaml", problems)
    if "measured.csv" in files:
        found["measured"] = measured_by_card(files["measured.csv"], "measured.csv", problems)
    return found


def _mapping(files: Mapping[str, bytes], name: str, problems: list[UserError]) -> dict[str, object]:
    from advisor.knowledge.fields import read_yaml  # noqa: PLC0415 - pyyaml, see parse

    content = files.get(name)
    node = None if content is None else read_yaml(content, name, problems)
    plain = None if node is None else node.plain()
    if node is not None and not isinstance(plain, dict):
        problems.append(KnowledgeError("the file must be a mapping", source=node.source))
    return plain if isinstance(plain, dict) else {}


def _json(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _knowledge(data: Mapping[str, object], sha256: str) -> Knowledge:
    return Knowledge(
        gpus=Table(_part(data, "gpus"), Gpu),
        models=Table(_part(data, "models"), ModelRecord),
        ggml_types=Table(_part(data, "ggml_types"), GgmlType),
        formats=Table(_part(data, "formats"), Format),
        kv_types=Table(_part(data, "kv_types"), KvType),
        frameworks=Table(_part(data, "frameworks"), Framework),
        policy=_numbers(_part(data, "policy")),
        calibration=_part(data, "calibration"),
        sha256=sha256,
        index=_part(data, "index"),
        yours=_part(data, "yours"),
        switched_off=_part(data, "switched_off"),
        second_cards=_names(data, "second_cards"),
    )


def _part(data: Mapping[str, object], key: str) -> Mapping[str, object]:
    part = data[key]
    assert isinstance(part, Mapping)
    return part


def _names(data: Mapping[str, object], key: str) -> tuple[str, ...]:
    found = data[key]
    assert isinstance(found, list)
    return tuple(map(str, found))


def _numbers(part: Mapping[str, object]) -> dict[str, float]:
    return {name: value for name, value in part.items() if isinstance(value, int | float)}
