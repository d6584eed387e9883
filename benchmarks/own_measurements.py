"""How a card factor from a user's few figures should be made: what predicts the rest best.

    python benchmarks/own_measurements.py FILE

FILE is a table of published speeds with the columns gpu, n_gpu, model, params_b, quant, framework,
backend, context_depth, batch, metric, value, source, note, caution. Every source of a card plays
the user once: some of its setups are given, the others are predicted, 40 draws each. "Published"
is what the card's other sources say. Dense models, llama.cpp family, one card, one stream. The
parameters of the model itself were fitted on most of these rows, so levels are in sample; the
order of the columns is what counts.
"""

from __future__ import annotations

import csv
import math
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from advisor.errors import UserError
from advisor.estimator import estimate_memory
from advisor.estimator.calibration.user.benchmark import (
    backend_of,
    card_spellings,
    model_spellings,
    of_gguf,
    of_model_type,
)
from advisor.estimator.calibration.user.effect import modelled
from advisor.estimator.calibration.user.physics import FAR
from advisor.estimator.speed import estimate_speed, rate_of
from advisor.estimator.speed_rates import speeds_of
from advisor.knowledge import load_knowledge, names
from advisor.knowledge.types import Knowledge
from advisor.reading import find_gpu
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

Row = Mapping[str, str]
Residuals = Mapping[str, Mapping[str, Sequence[float]]]
"""Log of measured over modelled without a card factor, by card and source."""
FAMILY = frozenset({"llama.cpp", "llamacpp", "llama-server", "ollama", "lm studio"})
GIVEN = (1, 2, 3, 5)
DRAWS = 40
SAME_SIZE, OTHER_SIZE = 0.015, 0.1
DEEPEST = 2048
TARGET = 0.8


def usable(row: Row) -> bool:
    plain = row["metric"] == "decode_tok_s" and row["n_gpu"] == row["batch"] == "1"
    drafted = any(word in row["note"] for word in ("spec=yes", "spec=mtp", "spec=draft"))
    shallow = float(row["context_depth"] or 0) <= DEEPEST
    known = row["framework"].casefold() in FAMILY
    return plain and known and shallow and not drafted and not row["caution"]


def model_name(row: Row, knowledge: Knowledge) -> str | None:
    for text in (*model_spellings(row["model"]), *of_gguf(row["model"])[0]):
        try:
            return names.find_model(knowledge, text).name
        except UserError:
            continue
    size = float(row["params_b"] or 0)
    family = row["model"].split()[0].casefold()[:5] if row["model"] else ""
    alike = (
        record.name
        for record in knowledge.models.values()
        if size
        and record.parameters
        and abs(record.parameters / 1e9 / size - 1) < SAME_SIZE
        and family in record.name.casefold().replace("-", "")
    )
    return next(alike, None)


def residual(row: Row, knowledge: Knowledge) -> tuple[str, str, float] | None:
    """Give card with backend, setup, and the log over the model; None where either is unknown."""
    model = model_name(row, knowledge)
    card = next((c for c in (found(t, knowledge) for t in card_spellings(row["gpu"])) if c), "")
    if not model or not card:
        return None
    precision = of_model_type(row["quant"]) or row["quant"]
    backend = backend_of(row["backend"])[0] or None
    request = Request(
        gpu=card, model=model, precision=precision, framework="llama.cpp", backend=backend
    )
    scenario = resolve(request, knowledge)
    speed = estimate_speed(scenario, estimate_memory(scenario, knowledge), knowledge)
    rate = rate_of(scenario, speeds_of(knowledge))
    size = float(row["params_b"] or 0)
    other = bool(size) and abs(scenario.model.parameters / 1e9 / size - 1) > OTHER_SIZE
    if speed is None or rate is None or scenario.model.shape.moe or other:
        return None
    log = math.log(float(row["value"]) * rate.scale / modelled(speed.decode_tok_s))
    setup = f"{scenario.model.name} {scenario.precision.name}"
    return f"{card} {scenario.backend}", setup, log


def found(text: str, knowledge: Knowledge) -> str:
    try:
        return find_gpu(knowledge, text).name
    except UserError:
        return ""


def source_of(row: Row) -> str:
    """Name who measured: a repository, or one user of a site where many share."""
    place = row["source"].split("@")[0].split(" ")[0]
    user = row["note"].partition("user=")[2].partition(";")[0]
    return f"{place} {user}"


def read(path: Path, knowledge: Knowledge) -> Residuals:
    logs: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            try:
                one = residual(row, knowledge) if usable(row) else None
            except UserError:
                continue
            if one and abs(one[2]) <= math.log(FAR):
                logs[one[0], source_of(row), one[1]].append(one[2])
    by_card: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (card, source, _), values in logs.items():
        by_card[card][source].append(median(values))
    return by_card


def shrunk(logs: Sequence[float]) -> float:
    return median(logs) * len(logs) / (len(logs) + 1) if logs else 0.0


def draws(residuals: Residuals, given: int, *, shared: bool) -> Iterator[Mapping[str, list[float]]]:
    """Give, for every card and source, the misses of each way to make the factor."""
    for sources in residuals.values():
        if shared and len(sources) < 2:
            continue
        for name, own in sources.items():
            if len(own) <= given:
                continue
            others = [log for other, logs in sources.items() if other != name for log in logs]
            misses: dict[str, list[float]] = defaultdict(list)
            for _ in range(DRAWS):
                mixed = random.sample(own, len(own))
                mine, rest = mixed[:given], mixed[given:]
                published = shrunk(others)
                ways = {
                    "no factor": 0.0,
                    "published": published,
                    "pooled": shrunk([*others, *mine]),
                    "toward published": published + shrunk([log - published for log in mine]),
                    "own": shrunk(mine),
                }
                for way, log in ways.items():
                    misses[way] += [each - log for each in rest]
            yield misses


def main() -> None:
    random.seed(1)
    residuals = read(Path(sys.argv[1]), load_knowledge())
    print("cards with several sources: median miss in %, and the 90th percentile of sources")
    for given in GIVEN:
        groups = list(draws(residuals, given, shared=True))
        print(f"{given} given, {len(groups)} sources:", ", ".join(table(groups)))
    print("range factor that covers 80 % of the rest, and what 1.18 covers, all cards")
    for given in GIVEN:
        groups = list(draws(residuals, given, shared=False))
        pairs = sorted((abs(m), 1 / len(g["own"])) for g in groups for m in g["own"])
        held = sum(weight for miss, weight in pairs if miss <= math.log(1.18)) / len(groups)
        factor = math.exp(quantile(pairs, TARGET))
        print(f"{given} given, {len(groups)} sources: {factor:.2f}, {100 * held:.0f} %")


def table(groups: Sequence[Mapping[str, list[float]]]) -> Iterator[str]:
    for way in groups[0]:
        each = sorted(median(abs(math.expm1(-miss)) for miss in group[way]) for group in groups)
        ninth = each[int(0.9 * len(each))]
        yield f"{way} {100 * median(each):.1f} / {100 * ninth:.0f}"


def quantile(pairs: Sequence[tuple[float, float]], share: float) -> float:
    total, seen = sum(weight for _, weight in pairs), 0.0
    for value, weight in pairs:
        seen += weight
        if seen >= share * total:
            return value
    return pairs[-1][0]


if __name__ == "__main__":
    main()
