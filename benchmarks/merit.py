"""Makes knowledge/merit.csv of the files of public leaderboards (docs/merit.md says which).

    python benchmarks/merit.py --from FOLDER            writes the table, and says what was left out
    python benchmarks/merit.py --from FOLDER --unread   names on the boards that no known model has

The folder holds files as their repositories have them, with the date of each in its name. A row is
a figure that a board states of a model that is known here, by its record or by the public list; of
several settings of a model (effort, with and without thinking) the best is kept.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from advisor.errors import UserError
from advisor.files import data_dir
from advisor.knowledge import load_knowledge
from advisor.knowledge.index import model_key, models_called, models_published
from advisor.knowledge.types import Knowledge
from advisor.reading.public_list import exact, find_public

TABLE = data_dir("knowledge") / "merit.csv"
NAMES = data_dir("knowledge") / "merit_names.tsv"
COLUMNS = ("model", "board", "value", "low", "high", "thinks", "seen", "called")
_DATE = re.compile(r"(.*?)-(\d{4}-\d\d-\d\d)")
_MODE = re.compile(
    r"\s*\((?:non-)?(?:reasoning|thinking)[^)]*\)|\s*\((?:x?high|medium|low|max|no think|chat|"
    r"reasoner)\)|[-_ ](?:no-)?thinking(?:-turbo|-\d+k)?$|[-_ ](?:instant|preview|base|reasoner)$",
    re.IGNORECASE,
)
_THINKS = re.compile(
    r"\((?:reasoning|thinking|x?high|medium|low|max|reasoner)|think", re.IGNORECASE
)
_NOT = re.compile(r"non-reasoning|no[- ]think", re.IGNORECASE)


class Figure(NamedTuple):
    """What a board says of a model, by the name that it has there."""

    called: str
    board: str
    value: float
    low: float | None = None
    high: float | None = None
    thinks: bool = False
    repository: str = ""


_INDEX = {
    "aa-intelligence": "artificial_analysis_intelligence_index",
    "aa-coding": "artificial_analysis_coding_index",
    "aa-agentic": "artificial_analysis_agentic_index",
}
_ESTIMATE = "aa-intelligence-estimate"
"""Where not all parts of the index were run, its makers estimate it."""
_SHARES = {
    "aa-gpqa": "gpqa", "aa-hle": "hle", "aa-lcr": "aa_lcr", "aa-mmmu-pro": "mmmu_pro",
    "aa-scicode": "scicode", "aa-terminal-hard": "terminal_bench_hard", "aa-tau2": "tau2_bench",
}  # fmt: skip


def of_artificial_analysis(path: Path) -> Iterator[Figure]:
    """Read llms.json: indices as they stand, shares in percent."""
    for model in json.loads(path.read_text(encoding="utf-8"))["models"]:
        weights, found = model.get("open_weights") or {}, model["evaluations"]
        if not weights.get("is_open_weights"):
            continue
        repository = (weights.get("huggingface_url") or "").partition("huggingface.co/")[2]
        name, thinks = model["name"], _does_think(model)
        for board, key in {**_INDEX, **_SHARES}.items():
            value = found.get(key)
            if value is None:
                continue
            guessed = board == "aa-intelligence" and found[f"{key}_is_estimated"]
            scaled = value * 100 if key in _SHARES.values() else value
            yield Figure(
                name,
                _ESTIMATE if guessed else board,
                scaled,
                None,
                None,
                thinks,
                repository.removesuffix("/tree/main"),
            )


def _does_think(model: Mapping[str, Any]) -> bool:
    counts = model.get("intelligence_index_token_counts") or {}
    return bool(counts.get("reasoningTokens")) or _says_so(model["name"])


def _says_so(name: str) -> bool:
    return bool(_THINKS.search(name)) and not _NOT.search(name)


_CATEGORIES = {"full": "lmarena-text", "coding": "lmarena-coding"}


def of_arena_catalog(path: Path) -> Iterator[Figure]:
    """Read leaderboard-text-style-control.json, or that of vision: ratings with 95 % intervals."""
    boards = {"full": "lmarena-vision"} if "vision" in path.name else _CATEGORIES
    tables = json.loads(path.read_text(encoding="utf-8"))
    for category, board in boards.items():
        for name, one in tables[category].items():
            span = one["rating_q025"], one["rating_q975"]
            yield Figure(name, board, one["rating"], *span, _says_so(name))


def of_arena_day(path: Path) -> Iterator[Figure]:
    """Read a board of one day: text.json, code.json (web development) or vision.json."""
    stem = path.name.split("-")[1]
    board = {"text": "lmarena-text", "code": "lmarena-webdev", "vision": "lmarena-vision"}[stem]
    for one in json.loads(path.read_text(encoding="utf-8"))["models"]:
        if one["license"] != "proprietary":
            value, ci = one["score"], one["ci"]
            yield Figure(one["model"], board, value, value - ci, value + ci, _says_so(one["model"]))


_LIVEBENCH = {
    "livebench-coding": ("Coding", "Agentic Coding"),
    "livebench-reasoning": ("Reasoning", "Mathematics"),
}


def of_livebench(path: Path) -> Iterator[Figure]:
    """Read table_DATE.csv: the mean of two categories, each the mean of its tasks."""
    categories = json.loads(path.with_name(f"categories-of-{path.stem}.json").read_text())
    month = "-".join(path.stem.split("-")[1:3])
    for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        for board, names in _LIVEBENCH.items():
            means = [_mean([float(row[t]) for t in categories[n] if row.get(t)]) for n in names]
            yield Figure(row["model"], f"{board}-{month}", _mean(means), None, None, True)


def of_openhands(path: Path) -> Iterator[Figure]:
    """Read results/: the mean of the five benchmarks of the index, for models that ran all."""
    for folder in sorted(path.iterdir()):
        scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
        found = {one["benchmark"]: one["score"] for one in scores}
        if len(found) == _OPENHANDS:
            yield Figure(folder.name, "openhands", _mean([*found.values()]), None, None, True)


_OPENHANDS = 5
_TASKS = (
    "ArguAna", "FiQA2018", "SCIDOCS", "TRECCOVID", "CQADupstackGamingRetrieval",
    "CQADupstackUnixRetrieval",
)  # fmt: skip


def of_mteb(path: Path) -> Iterator[Figure]:
    """Read results/: the mean nDCG@10 of six English retrieval tasks that most models ran."""
    for folder in sorted(path.iterdir()):
        found = {task: max(_scores(folder, task), default=None) for task in _TASKS}
        known = [value for value in found.values() if value is not None]
        if len(known) == len(_TASKS):
            name = folder.name.replace("__", "/", 1)
            yield Figure(name, "mteb-retrieval", 100 * _mean(known), repository=name)


def _scores(folder: Path, task: str) -> Iterator[float]:
    for file in folder.glob(f"*/{task}.json"):
        scores = json.loads(file.read_text(encoding="utf-8")).get("scores", {}).get("test", ())
        yield from (
            one["main_score"] for one in scores if one.get("hf_subset", "default") == "default"
        )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


READERS: Mapping[str, Callable[[Path], Iterator[Figure]]] = {
    "aa-llms": of_artificial_analysis,
    "arena-catalog-text": of_arena_catalog,
    "arena-catalog-vision": of_arena_catalog,
    "arena-text": of_arena_day,
    "arena-code": of_arena_day,
    "arena-vision": of_arena_day,
    "livebench": of_livebench,
    "openhands": of_openhands,
    "mteb": of_mteb,
}
"""By the name of a file or folder, less its date."""


def model_called(figure: Figure, knowledge: Knowledge, said: Mapping[str, str]) -> str | None:
    """Give the record, or else the repository of the public list, that a board's name means."""
    name = figure.called
    for text in (name, _MODE.sub("", name)):
        if text in said:
            return said[text] or None
    bare = _MODE.sub("", name)
    of_name = (name, bare, f"{bare}-instruct")
    repository, tail = figure.repository, figure.repository.rpartition("/")[2]
    published, called = models_published(knowledge), models_called(knowledge)
    for text in (repository, tail) if repository else of_name:
        known = published.get(text.casefold()) or _only(called.get(model_key(text), ()))
        if known:
            return known
    return next(filter(None, map(_listed, (repository,) if repository else of_name)), None)


def _listed(text: str) -> str | None:
    """Give the repository of the public list that is meant."""
    try:
        found = exact(text) if "/" in text else find_public(text)
    except UserError:
        return None
    return found.hf_id if found else None


def _only(names: Sequence[str]) -> str | None:
    return names[0] if len(names) == 1 else None


def rows_of(folder: Path, knowledge: Knowledge) -> tuple[list[tuple[str, ...]], list[Figure]]:
    """Read every file; gives the rows, sorted, and the figures of models that are not known."""
    said = dict(line.split("\t")[:2] for line in NAMES.read_text().splitlines() if "\t" in line)
    best: dict[tuple[str, str], tuple[str, Figure]] = {}
    unread = []
    for path in sorted(folder.iterdir()):
        kind = _DATE.match(path.name)
        if kind is None or kind[1] not in READERS:
            continue
        for figure in READERS[kind[1]](path):
            model = model_called(figure, knowledge, said)
            if model is None:
                unread.append(figure)
                continue
            before = best.get((model, figure.board))
            if before is None or (kind[2], figure.value) > (before[0], before[1].value):
                best[model, figure.board] = (kind[2], figure)
    rows = [
        _row(model, date, one)
        for (model, board), (date, one) in best.items()
        if board != _ESTIMATE or (model, "aa-intelligence") not in best
    ]
    return sorted(rows, key=lambda row: (row[0].casefold(), row[1])), unread


def _row(model: str, seen: str, one: Figure) -> tuple[str, ...]:
    figures = ["" if v is None else f"{v:.4g}" for v in (one.value, one.low, one.high)]
    return (model, one.board, *figures, "yes" if one.thinks else "", seen, one.called)


def main() -> int:
    """Write the table, or say which names of the boards are not known."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--from", dest="folder", type=Path, required=True)
    arguments.add_argument("--unread", action="store_true")
    asked = arguments.parse_args()
    rows, unread = rows_of(asked.folder, load_knowledge())
    if asked.unread:
        for name in sorted({f"{one.board}: {one.called} {one.repository}" for one in unread}):
            print(name)
        return 0
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *rows])
    print(f"{len(rows)} figures of {len({row[0] for row in rows})} models; {len(unread)} left out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
