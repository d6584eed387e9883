"""What ``advisor calibrate`` writes, as texts by file name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import exp, log
from pathlib import Path

from advisor.estimator.calibration import decode, fit, fits
from advisor.estimator.calibration.accuracy import PAGE, page, plots
from advisor.estimator.calibration.fit import Values
from advisor.estimator.calibration.fits import (
    Fitted,
    Material,
    fit_all,
    material_of,
    pairs_of_situations,
)
from advisor.estimator.calibration.held_out import (
    Held,
    Spread,
    fitted_ranges,
    spreads_by_situation,
    validate,
)
from advisor.estimator.calibration.published import MEASURED_FILE, measured_text, pairs_of_sources
from advisor.estimator.calibration.runs import unit_of
from advisor.estimator.calibration.strata import results_of
from advisor.estimator.speed_prefill import generation_of
from advisor.knowledge.types import Knowledge

FITTED_FILE = "calibration-fitted.yaml"
_HEAD = """\
# Written by `advisor calibrate` from measurements/ and calibration.yaml: do not edit, run it again.
#
# docs/decisions/0005-speed-model.md explains every name, docs/speed-accuracy.md how far it is off.
# Factors multiply the figure of their parent; overheads are milliseconds per 32 layers and token.
"""
_SOURCE = "see measurements/SOURCE.md"


def fitted_text(material: Material, fitted: Fitted, spreads: Mapping[str, Spread]) -> str:
    """Write the whole file."""
    parts = (
        _HEAD.rstrip("\n"),
        *_decode(material, fitted),
        *_prefill(material, fitted),
        *_engines(material, fitted),
        *_extras(material, fitted),
        *_speculation(),
        *_ranges(material, spreads),
    )
    return "\n".join(parts) + "\n"


def _number(value: float) -> str:
    return f"{value:.4g}"


def _quoted(text: str) -> str:
    """Quote a name that YAML would read otherwise."""
    plain = text.replace(" ", "").replace(".", "").replace("_", "").replace("-", "")
    return text if plain.isalnum() and not plain[0].isdigit() else f"'{text}'"


def _flow(pairs: Iterable[tuple[str, object]]) -> str:
    shown = ", ".join(
        f"{_quoted(key)}: {_number(value) if isinstance(value, float) else value}"
        for key, value in pairs
    )
    return f"{{{shown}}}"


def _members(values: Mapping[str, float], kind: str) -> list[str]:
    return sorted(name.partition(":")[2] for name in values if name.partition(":")[0] == kind)


def _decode(material: Material, fitted: Fitted) -> Iterator[str]:
    model, runs = fitted.decode, material.single
    values = model.values
    of = partial(decode.priors.factor, values)
    many = len({run.card[0] for run in runs})
    yield "\n# ---- one stream in the llama.cpp family"
    yield "decode:"
    yield f"  source: {len(runs)} runs on {many} cards; {_SOURCE}"
    yield f"  efficiency: {_number(of('efficiency'))}"
    yield f"  overhead_ms: {_number(of('overhead'))}"
    yield f"  expert_overhead_ms: {_number(of('expert'))}"
    yield f"  recurrent_overhead_ms: {_number(of('recurrent'))}"
    yield "  # What a program that serves takes for each token: it samples and sends."
    yield f"  serving_ms: {_number(1e3 * of('serving'))}"
    yield f"  cache: {_number(of('cache'))}"
    yield from _backends(values)
    yield from _architectures(material, values)
    yield "  formats:"
    for name in _members(values, "efficiency of format"):
        yield f"    {_quoted(name)}: {_number(of(f'efficiency of format:{name}'))}"
    yield "  # Caches of few bits that every head unpacks: what a type takes against the others."
    kinds = [(name, of(f"cache type:{name}")) for name in _members(values, "cache type")]
    yield f"  cache_types: {_flow(kinds)}"
    kind = "unpacked by head of architecture"
    own = [(name, of(f"{kind}:{name}")) for name in _members(values, kind)]
    yield f"  cache_generations: {_flow(own)}"
    yield "  # A measured card against the model above."
    yield "  cards:"
    counts = Counter(run.card for run in runs)
    for (gpu, backend), factor in model.own.items():
        line = _flow((
            ("gpu", f"'{gpu}'"), ("backend", backend), ("factor", factor),
            ("runs", counts[gpu, backend]),
        ))  # fmt: skip
        yield f"    - {line}"


def _backends(values: Values) -> Iterator[str]:
    of = partial(decode.priors.factor, values)
    yield "  backends:"
    for name in _members(values, "efficiency of backend"):
        pairs = (
            ("efficiency", of(f"efficiency of backend:{name}")),
            ("overhead", of(f"overhead of backend:{name}")),
            ("expert_overhead", of(f"expert of backend:{name}")),
            ("recurrent_overhead", of(f"recurrent of backend:{name}")),
            ("cache", of(f"cache of backend:{name}")),
            ("sixteen_bit_experts", of(f"efficiency of sixteen bit experts:{name}")),
            ("latent_cache", of("latent cache") * of(f"latent cache of backend:{name}")),
            ("unpacked", of("unpacked") * of(f"unpacked of backend:{name}")),
            (
                "unpacked_by_head_ns",
                1e9 * of("unpacked by head") * of(f"unpacked by head of backend:{name}"),
            ),
        )
        yield f"    {name}: {_flow(pairs)}"


def _architectures(material: Material, values: Values) -> Iterator[str]:
    of = partial(decode.priors.factor, values)
    cards: dict[tuple[str, str], set[str]] = defaultdict(set)
    for run in material.single:
        cards[run.architecture, run.card[1]].add(run.card[0])
    yield "  # cards: measured ones behind the figure; from three on others are `modelled`."
    yield "  architectures:"
    for name in _members(values, "efficiency of architecture"):
        line = material.policy.lines.get(name, "")
        behind = [
            (backend, _flow((
                ("efficiency", of(f"efficiency of pair:{name}/{backend}")),
                ("cards", len(known)),
            )))
            for (architecture, backend), known in sorted(cards.items())
            if architecture == name
        ]  # fmt: skip
        shown = [
            (kind, of(f"{kind} of architecture:{name}") * of(f"{kind} of line:{line}"))
            for kind in ("efficiency", "overhead")
        ]
        yield f"    {_quoted(name)}: {_flow([*shown, ('backends', _flow(behind))])}"


_BY_BACKEND = (
    ("experts", "experts"),
    ("attention", "attention"),
    ("attention_plain", "plain attention"),
    ("attention_latent", "latent attention"),
    ("launch_ms", "launch"),
)


def _prefill(material: Material, fitted: Fitted) -> Iterator[str]:
    model = fitted.prefill
    values, falls = model.values, model.falls
    of = partial(fit.priors.factor, values)
    units: dict[str, dict[str, float]] = defaultdict(dict)
    generations: dict[str, dict[str, float]] = defaultdict(dict)
    for run in material.prompts:
        backend, unit = unit_of(run, falls)
        if unit.startswith("none"):
            continue
        reached = of("share") * of(f"share of unit:{backend} {unit}")
        units[backend][unit] = reached
        if run.architecture and run.scenario.gpu:
            generation = generation_of(run.architecture, run.scenario.gpu)
            share = of(f"share of architecture:{generation}/{backend}")
            generations[generation][backend] = reached * share
    backends = sorted({run.card[1] for run in material.prompts})
    yield "\n# ---- reading prompts in the llama.cpp family: shares of the size in calibration.yaml"
    yield "prefill:"
    many = len({run.card for run in material.prompts})
    count = len(material.prompts)
    yield f"  source: {count} runs on {many} pairs of card and backend; {_SOURCE}"
    yield "  units:"
    for backend, found in sorted(units.items()):
        yield f"    {backend}: {_flow(sorted(found.items()))}"
    yield "  architectures:"
    for architecture, found in sorted(generations.items()):
        yield f"    {_quoted(architecture)}: {_flow(sorted(found.items()))}"
    yield "  # 16-bit weights over quantised ones; experts and attention over dense matrices."
    yield "  sixteen_bit: " + _flow((b, of(f"sixteen bit:{b}")) for b in backends)
    yield "  sixteen_bit_experts: " + _flow((b, of(f"sixteen bit experts:{b}")) for b in backends)
    yield "  # Packed weights of a group of formats over those of all."
    yield "  formats: " + _flow((name, of(f"packed:{name}")) for name in _members(values, "packed"))
    yield f"  experts_rows: {_number(log(of('experts rows')))}"
    for key, kind in _BY_BACKEND:
        shares = [(b, of(kind) * of(f"{kind} of backend:{b}")) for b in backends]
        yield f"  {key}: {_flow(shares)}"
    yield "  # Every layer with a recurrent state takes the tokens of a prompt in turn."
    steps = [(b, 1e6 * of("recurrent") * of(f"recurrent of backend:{b}")) for b in backends]
    yield f"  recurrent_us: {_flow(steps)}"
    yield "  # Weights in system RAM: shares of what bounds their way to the card."
    names = (("dense", "copied"), ("experts", "copied experts"))
    yield "  copied: " + _flow((key, of(name)) for key, name in names)
    yield "  # What measured cards reach with quantised weights."
    yield "  cards:"
    for (gpu, backend), tflops in fitted.tflops.items():
        pairs = (("gpu", f"'{gpu}'"), ("backend", backend), ("tflops", tflops))
        yield f"    - {_flow(pairs)}"


def _engines(material: Material, fitted: Fitted) -> Iterator[str]:
    model = fitted.engines
    of = partial(decode.engine_priors.factor, model.values)
    yield "\n# ---- one stream in other engines; efficiency by stored bits"
    yield "engines:"
    for name, cards in model.cards.items():
        runs = [run for run in material.engines if run.scenario.framework.name == name]
        eager = name in material.policy.overlapped
        overhead = of(f"{'eager ' if eager else ''}overhead:{name}")
        yield f"  {_quoted(name)}:"
        yield f"    source: {len(runs)} runs on {cards} cards; {_SOURCE}"
        for bits in (16, 8, 4):
            reached = of(f"efficiency:{name}") * of(f"bits:{name} {bits}")
            yield f"    efficiency_{bits}: {_number(min(reached, 0.97))}"
        yield f"    overhead_ms: {_number(overhead)}"
        families = [m for m in _members(model.values, "family") if m.startswith(f"{name} ")]
        if families:
            pairs = (
                (member.partition(" ")[2], overhead * of(f"family:{member}")) for member in families
            )
            yield f"    overhead_by_family_ms: {_flow(pairs)}"
        yield f"    expert_overhead_ms: {_number(of(f'expert:{name}'))}"
        yield f"    cache: {_number(of(f'cache:{name}'))}"
        yield f"    cards: {cards}"
        own = [card for card in _members(model.values, "card") if card.startswith(f"{name} ")]
        yield "    # Factors of the measured cards, each drawn towards 1 where little was measured."
        yield "    offsets:"
        for card in own:
            yield f"      {_quoted(card.partition(' ')[2])}: {_number(of(f'card:{card}'))}"


def _extras(material: Material, fitted: Fitted) -> Iterator[str]:
    batch, offload = fitted.batch.values, fitted.offload.values
    of = partial(fits.priors.factor, batch)
    yield "\n# ---- several streams: what each further one adds besides its cache"
    yield "batch:"
    cards = len({run.card[0] for run in material.batches})
    yield f"  source: {len(material.batches)} runs on {cards} cards; {_SOURCE}"
    yield "  # Share of the prefill throughput that one token per stream reaches."
    for name, engine in ((material.policy.leader, "family"), ("other", "other")):
        dense, experts = map(of, fits.arithmetic_of(engine))
        yield f"  {name}: {_flow([('arithmetic', dense), ('expert_arithmetic', experts)])}"
    yield "  # A backend over those of llama.cpp."
    yield "  backends:"
    for name in _members(batch, "arithmetic of backend"):
        dense, experts = (of(f"{kind}:{name}") for kind in fits.OF_BACKEND)
        yield f"    {name}: {_flow([('arithmetic', dense), ('expert_arithmetic', experts)])}"
    yield "  # Reads at the full bandwidth that servers' experts of 4 bits take more, by backend."
    pairs = ((name, of(f"packed experts:{name}")) for name in _members(batch, "packed experts"))
    yield f"  packed_experts: {_flow(pairs)}"
    yield "  # Tensor parallel over PCIe, by cards; for a hidden width of 5120."
    counts = _members(batch, "exchange")
    pairs = ((f"{n}", 1e6 * of(f"exchange:{n}")) for n in counts)
    yield f"  exchange_us_per_layer: {_flow(pairs)}"
    yield "\n# ---- weights in system RAM: shares of its bandwidth; hand-over per layer of experts"
    yield "offload:"
    count = len(material.splits)
    machines = len({run.source for run in material.splits})
    yield f"  source: {count} runs on {machines} machines; {_SOURCE}"
    for key, name in (
        ("ram_efficiency", "dense"),
        ("ram_efficiency_beside_experts", "dense beside experts"),
        ("ram_efficiency_experts", "experts"),
    ):
        yield f"  {key}: {_number(exp(offload[name]))}"
    yield f"  hand_over_us: {_number(1e6 * exp(offload['hand over']))}"
    yield "  # What the processor unpacks; formats that are looked up in tables (IQ) take longer."
    yield f"  unpack_us_per_mb: {_number(1e12 * exp(offload['unpack']))}"
    yield f"  unpack_by_table: {_number(exp(offload['unpack by table']))}"


def _speculation() -> Iterator[str]:
    yield "\n# ---- drafts: speed with them over the same run without, slowest and fastest pair"
    yield "speculation:"
    yield "  source: measurements/speculation.csv"
    for name, pairs in pairs_of_situations().items():
        line = _flow((
            ("low", pairs.low), ("median", pairs.middle), ("high", pairs.high),
            ("pairs", len(pairs.factors)), ("cards", pairs.cards),
        ))  # fmt: skip
        yield f"  {name}: {line}"


def _ranges(material: Material, spreads: Mapping[str, Spread]) -> Iterator[str]:
    yield "\n# ---- 80 % ranges from held-out errors: [low, high] as factors on the figure"
    yield "ranges:"
    yield "  source: the last table of docs/speed-accuracy.md"
    for name, (low, high) in sorted(fitted_ranges(spreads, material.policy.ranges).items()):
        yield f"  {_quoted(name)}: [{_number(low)}, {_number(high)}]"


def knowledge_files(knowledge: Knowledge) -> Mapping[str, str]:
    """Fit everything and write the two files of the knowledge base.

    Gives texts by name: ``calibration-fitted.yaml`` and ``measured.csv``.
    """
    material = material_of(knowledge)
    fitted = fit_all(material)
    held = [*validate(material, fitted), *pairs_of_sources(material, fitted)]
    return texts_of(material, fitted, held)


def texts_of(material: Material, fitted: Fitted, held: Sequence[Held]) -> Mapping[str, str]:
    """Write the two files of a finished fit."""
    spreads = spreads_by_situation(held, material)
    return {
        FITTED_FILE: fitted_text(material, fitted, spreads),
        MEASURED_FILE: measured_text(material.observed, material.known()),
    }


def stale_files(folder: Path, texts: Mapping[str, str]) -> Sequence[str]:
    """Name the files of a folder that differ from their texts."""
    return [
        name
        for name, text in texts.items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]


def write_files(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the texts into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def accuracy_files(knowledge: Knowledge) -> Mapping[str, str]:
    """Validate everything and write the accuracy page with its plots.

    Gives texts by name: ``speed-accuracy.md`` and one SVG per plot.
    """
    material = material_of(knowledge)
    fitted = fit_all(material)
    held = [*validate(material, fitted), *pairs_of_sources(material, fitted)]
    results = results_of(held, material.policy)
    spreads = spreads_by_situation(held, material)
    return {PAGE: page(material, held, results, spreads), **plots(results)}
