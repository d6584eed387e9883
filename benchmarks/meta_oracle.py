"""What transformers itself builds of configs: parameters counted on the meta device.

    python benchmarks/meta_oracle.py cases  > cases.jsonl      class defaults, one key changed
    python benchmarks/meta_oracle.py drop CONFIGS.json.gz > cases.jsonl   one key left out
    python benchmarks/meta_oracle.py count < cases.jsonl > counts.tsv     needs torch
    python benchmarks/meta_oracle.py compare cases.jsonl counts.tsv       needs advisor
    python benchmarks/meta_oracle.py factors cases.jsonl counts.tsv knowledge/class_defaults.tsv
    python benchmarks/meta_oracle.py listed     models whose tensors in a GGUF file are listed
    python benchmarks/meta_oracle.py types cases.jsonl    how class defaults are answered
    python -m benchmarks.meta_oracle gguf       what is read of each architecture in gguf's list

The first three need transformers, the others only the product, so each can run where that is
installed. ``compare`` prints how many configs are exact, approximate (said so), refused and wrong,
and ends with 1 where one is wrong.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_TEXT = ("text_config", "llm_config", "language_config")
_MOST_LAYERS = 8
_BESIDE = {
    "architectures",
    "dtype",
    "torch_dtype",
    "transformers_version",
    "max_position_embeddings",
}


def _lines(found: Iterator[tuple[str, dict[str, Any]]]) -> None:
    for name, config in found:
        print(json.dumps({"name": name, "config": config}, separators=(",", ":"), default=str))


def dropped(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the configs of a file, each without one of its keys."""
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        configs = json.load(stream)
    seen = set()
    for name, released in sorted(configs.items()):
        if released.get("model_type") in seen:
            continue
        seen.add(released.get("model_type"))
        config = _shortened(released)
        yield name, config
        for key in sorted(filter(_may_matter, config)):
            yield f"{name} -{key}", {k: v for k, v in config.items() if k != key}
        for part in [p for p in ("text_config", "vision_config") if config.get(p)]:
            for key in sorted(filter(_may_matter, config[part])):
                inner = {k: v for k, v in config[part].items() if k != key}
                yield f"{name} -{part}.{key}", {**config, part: inner}


def _may_matter(key: str) -> bool:
    from class_defaults import NOISE  # noqa: PLC0415

    return key not in _BESIDE and key != "model_type" and not NOISE.search(key)


def _shortened(config: dict[str, Any]) -> dict[str, Any]:
    """Cut a model to few layers, and lists by layer with it: building takes so long as it is."""
    part = next((p for p in _TEXT if isinstance(config.get(p), dict)), None)
    text = config[part] if part else config
    layers = text.get("num_hidden_layers")
    if not isinstance(layers, int) or layers <= _MOST_LAYERS:
        return config
    short = {
        k: v[:_MOST_LAYERS] if isinstance(v, list) and len(v) == layers else v
        for k, v in text.items()
    }
    kept = _MOST_LAYERS
    if special := text.get("per_layer_config"):
        # Gemma 4's class wants the last layer to be one of these.
        inside = {k: v for k, v in special.items() if int(k) < _MOST_LAYERS}
        kept = max(map(int, inside), default=_MOST_LAYERS - 1) + 1
        short |= {"per_layer_config": inside, "layer_types": text["layer_types"][:kept]}
    short["num_hidden_layers"] = kept
    return {**config, part: short} if part else short


def varied() -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the class defaults of every causal and image-text type, and with one key changed."""
    from transformers import CONFIG_MAPPING  # noqa: PLC0415
    from transformers.models.auto import modeling_auto as auto  # noqa: PLC0415

    causal = auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    seeing = auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    hearing = auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES
    seeing = {**seeing, **hearing}
    for model_type in sorted({**causal, **seeing}):
        try:
            text = CONFIG_MAPPING[model_type]().to_json_string(use_diff=False)
            plain = json.loads(text, object_hook=_number)
        except Exception as error:  # noqa: BLE001  a class that cannot be made without arguments
            print(model_type, f"{error}"[:100], file=sys.stderr)
            continue
        named = seeing.get(model_type) or causal[model_type]
        config = {
            **_shortened(plain),
            "architectures": [named if isinstance(named, str) else named[0]],
        }
        yield f"default {model_type}", config
        yield from _with_one_changed(model_type, config)


def _number(one: dict[str, Any]) -> Any:
    """Read a number as transformers writes one that JSON has not."""
    return float(one["__float__"]) if "__float__" in one else one


def _with_one_changed(name: str, config: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    part = next((p for p in _TEXT if isinstance(config.get(p), dict)), None)
    text = config[part] if part else config
    for key, value in sorted(text.items()):
        if not _may_matter(key):
            continue
        if isinstance(value, bool):
            new: Any = not value
        elif isinstance(value, int) and value > 1:
            new = value * 2
        else:
            continue
        changed = {**text, key: new}
        if key == "num_hidden_layers":
            changed = {
                k: v for k, v in changed.items() if not isinstance(v, list) or k == "architectures"
            }
        yield f"{name} {key}={new}", {**config, part: changed} if part else changed


def count() -> None:
    """Print name and parameters of every config that comes in; -1 with the error where none."""
    import torch  # noqa: PLC0415
    import transformers  # noqa: PLC0415

    for line in sys.stdin:
        case = json.loads(line)
        try:
            found, why = _counted(case["config"], torch, transformers), ""
        except Exception as error:  # noqa: BLE001  the class refuses this config
            found, why = -1, f"{type(error).__name__}: {error}"
        print(case["name"], found, " ".join(why.split())[:150], sep="\t", flush=True)


def _counted(config: dict[str, Any], torch: Any, transformers: Any) -> int:
    made = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(dict(config))
    named = (config.get("architectures") or [""])[0]
    one = getattr(transformers, named, None)
    with torch.device("meta"):
        if one is not None:
            model = one(made)
        else:
            try:
                model = transformers.AutoModelForCausalLM.from_config(made)
            except ValueError:
                model = transformers.AutoModelForImageTextToText.from_config(made)
    model.tie_weights()
    return sum(p.numel() for p in model.parameters())


def compare(cases: Path, counts: Path) -> int:
    """Print how the product's counts stand against those of transformers."""
    from advisor.errors import UserError  # noqa: PLC0415
    from advisor.models.any_config import read_any  # noqa: PLC0415

    true = dict(line.split("\t")[:2] for line in counts.read_text().splitlines())
    how: Counter[str] = Counter()
    wrong: dict[str, list[str]] = defaultdict(list)
    types: dict[str, set[str]] = defaultdict(set)
    with cases.open(encoding="utf-8") as stream:
        for line in stream:
            case = json.loads(line)
            wanted = int(true.get(case["name"], -1))
            model_type = case["config"]["model_type"]
            said = ""
            try:
                shape = read_any(case["config"], "config.json")
                total = shape.counts.total if shape.counts else 0
            except UserError as error:
                shape, total, said = None, 0, error.message
            if shape is None or not total:
                result = "refused" if shape is None else "not counted"
            elif shape.spread:
                off = abs(total / max(wanted, 1) - 1)
                result = "estimated, inside" if off <= shape.spread else "estimated, outside"
                said = f"{total / max(wanted, 1) - 1:+.1%}"
            elif any(doubt.startswith("Approximate") for doubt in shape.doubts):
                result, said = "approximate", f"{total / max(wanted, 1) - 1:+.2%} {shape.doubts}"
            elif wanted < 0:
                result = "no reference"
            else:
                result = "exact" if total == wanted else "wrong"
                said = f"{total:,} for {wanted:,} ({total / wanted - 1:+.2%})"
            if wanted < 0:
                result = "no reference"
            how[result] += 1
            types[result].add(model_type)
            if result != "exact" and os.environ.get("SHOW", "wrong") in {result, "all"}:
                wrong[model_type].append(f"{result} {case['name']}: {said}")
    for model_type in sorted(wrong):
        print(*wrong[model_type][:12], sep="\n")
    print(*(f"{n:6} {what} ({len(types[what])} types)" for what, n in how.most_common()), sep="\n")
    return 1 if how["wrong"] else 0


def factors(cases: Path, counts: Path, defaults: Path) -> None:
    """Print the class defaults with what a class builds of them over what is estimated of them."""
    table = defaults.read_text(encoding="ascii").splitlines()
    found = dict(_factors(cases, counts))
    for line in table:
        model_type, *rest = line.split("\t")
        if not rest:
            print(line)
            continue
        keys = {k: v for k, v in json.loads(rest[-1]).items() if k != "built"}
        if model_type in found:
            keys["built"] = found[model_type]
        print(model_type, rest[0], json.dumps(keys, separators=(",", ":")), sep="\t")


def _factors(cases: Path, counts: Path) -> Iterator[tuple[str, float]]:
    from advisor.errors import UserError  # noqa: PLC0415
    from advisor.models import any_config  # noqa: PLC0415

    setattr(any_config, "built_factor", lambda _: 1.0)  # noqa: B010  not exported
    true = dict(line.split("\t")[:2] for line in counts.read_text().splitlines())
    for line in cases.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        built = int(true.get(case["name"], -1))
        if not case["name"].startswith("default ") or built < 0:
            continue
        with contextlib.suppress(UserError):
            if not any_config.read_any(case["config"], "config.json").spread:
                continue
            shape = any_config._estimated(case["config"], "config.json")  # noqa: SLF001
            counted = shape.counts
            if counted:
                exact = counted.total - counted.vision if shape.described else 0
                factor = (built - exact) / max(counted.total - exact, 1)
                # Further apart, the defaults of the class are those of no release.
                if 0.1 < factor < 10 and abs(factor - 1) >= 0.0005:
                    yield case["config"]["model_type"], float(f"{factor:.4g}")


def listed() -> Counter[str]:
    """Count the known models whose tensors in a GGUF file are listed."""
    from advisor.errors import UserError  # noqa: PLC0415
    from advisor.estimator.gguf_tensors import gguf_layout  # noqa: PLC0415
    from advisor.knowledge import load_knowledge  # noqa: PLC0415
    from advisor.models import known_shape  # noqa: PLC0415

    knowledge, found = load_knowledge(), Counter[str]()
    for record in knowledge.models.values():
        with contextlib.suppress(UserError):
            layout = gguf_layout(known_shape(record, knowledge))
            found["tensor by tensor" if layout else "by average"] += 1
    return found


def types(cases: Path) -> Counter[str]:
    """Count the types of transformers by the answer that the defaults of their class get."""
    from advisor.errors import UserError  # noqa: PLC0415
    from advisor.models.any_config import read_any  # noqa: PLC0415

    found = Counter[str]()
    for line in cases.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if not case["name"].startswith("default "):
            continue
        try:
            shape = read_any(case["config"], "config.json")
        except UserError as error:
            found[f"refused: {error.message}"] += 1
            continue
        doubted = any(doubt.startswith("Approximate") for doubt in shape.doubts)
        found["a range" if shape.spread else "approximate" if doubted else "counted"] += 1
    return found


def gguf_list() -> Counter[str]:
    """Count the architectures of the ``gguf`` package by what is read of a small file of each."""
    import tempfile  # noqa: PLC0415

    from gguf import MODEL_ARCH_NAMES  # noqa: PLC0415

    from advisor.errors import UserError  # noqa: PLC0415
    from advisor.models.gguf import read_gguf  # noqa: PLC0415
    from tests.models.gguf_files import tiny_metadata, tiny_tensors, write  # noqa: PLC0415

    found = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(MODEL_ARCH_NAMES.values()):
            file = write(Path(folder, "a.gguf"), tiny_metadata(name), tiny_tensors())
            try:
                said = " ".join(read_gguf(file).shape.doubts)
                found["cache estimated" if "not described" in said else "described"] += 1
            except UserError as error:
                found[error.message] += 1
    return found


def main() -> int:
    """Do what the first argument says."""
    warnings.filterwarnings("ignore")
    task, *rest = sys.argv[1:] or [""]
    if task == "cases":
        _lines(varied())
    elif task == "drop" and rest:
        _lines(dropped(Path(rest[0])))
    elif task == "count":
        count()
    elif task == "listed":
        print(listed())
    elif task == "gguf" or (task == "types" and rest):
        counted = types(Path(rest[0])) if rest else gguf_list()
        print(*(f"{n:4} {what}" for what, n in counted.most_common()), sep="\n")
    elif task == "factors" and len(rest) == 3:
        factors(*map(Path, rest))
    elif task == "compare" and len(rest) == 2:
        return compare(Path(rest[0]), Path(rest[1]))
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
