"""Makes knowledge/class_defaults.tsv: what absent keys of a config.json mean in transformers.

    python benchmarks/class_defaults.py > knowledge/class_defaults.tsv

Needs transformers, which the product does not: run it where that is installed. Only keys that may
shape a model are kept; a wrapper's line says by ``sub_configs`` what its parts are by default, and
``caches`` is false where the code of a class never speaks of a cache. ``benchmarks/meta_oracle.py
factors`` then adds ``built``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PretrainedConfig

NOISE = re.compile(
    r"token|_id$|_ids$|dropout|drop_|_eps|epsilon|init|_act$|activation|rope|rotary|loss|coef|"
    r"^output_|return_|use_cache|^is_|scal(e|ing)|theta|position_embedding_type|label|prob|mask_|"
    r"max_position|temperature|softcap|norm_topk|_method|_func|grad|checkpoint|interpol|"
    r"image_(mean|std)|feature_|clip_|residual|time_step_(min|max|floor|limit)|epsilon|"
    r"attn_implementation|_fn$|sampling|beam|length_penalty|jitter|dtype|chunk_size_feed|problem"
)
_FRACTIONS = re.compile(r"ratio|factor|multiplier|expand")


def _classes() -> Iterator[type[PretrainedConfig]]:
    from transformers import PretrainedConfig, models  # noqa: PLC0415

    folder = Path(models.__file__).parent
    for path in sorted(folder.glob("*/configuration_*.py")):
        module = f"transformers.models.{path.parent.name}.{path.stem}"
        with contextlib.suppress(Exception):
            held = vars(importlib.import_module(module)).values()
            for one in held:
                own = isinstance(one, type) and issubclass(one, PretrainedConfig)
                if own and one.__module__ == module and one.model_type:
                    yield one


def _kept(name: str, value: Any) -> bool:
    if NOISE.search(name) or value is None:
        return False
    if isinstance(value, float):
        return bool(_FRACTIONS.search(name))
    return isinstance(value, bool | int | str | list | tuple)


def _fields(one: type[PretrainedConfig]) -> dict[str, Any]:
    from transformers import PretrainedConfig  # noqa: PLC0415

    base = {field.name for field in dataclasses.fields(PretrainedConfig)}
    found = {}
    for field in dataclasses.fields(one):
        value = field.default
        if value is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        if value is not dataclasses.MISSING and _kept(field.name, value):
            known = field.name not in base or field.name == "tie_word_embeddings"
            if known:
                found[field.name] = value
    # A field that is another name of a later one has no value of its own.
    return {name: v for name, v in found.items() if one.attribute_map.get(name) not in found}


def _caches(one: type[PretrainedConfig]) -> bool:
    """Whether the modelling code of a class speaks of a cache at all; an encoder's does not."""
    folder = Path(str(importlib.import_module(one.__module__).__file__)).parent
    code = "".join(file.read_text("utf-8") for file in folder.glob("modeling_*.py"))
    return not code or re.search(r"past_key_values|cache_params|\bCache\b", code) is not None


def _parts(one: type[PretrainedConfig]) -> dict[str, Any]:
    """What the parts of a wrapper are by default, as differences from the parts' own classes."""
    from transformers import PretrainedConfig  # noqa: PLC0415

    try:
        whole = one()
    except Exception:  # noqa: BLE001  a class without defaults of its own
        return {}
    parts = {}
    for name in one.sub_configs or {}:
        part = getattr(whole, name, None)
        if isinstance(part, PretrainedConfig):
            own = _fields(type(part))
            now = {k: v for k, v in part.__dict__.items() if k in own or type(v) is int}
            differing = {k: v for k, v in now.items() if _kept(k, v) and v != own.get(k)}
            parts[name] = {"model_type": part.model_type, **differing}
    return parts


def main() -> None:
    """Print the table, or with any argument what it is."""
    if sys.argv[1:]:
        print(__doc__)
        return
    from transformers import __version__  # noqa: PLC0415

    print(f"# Defaults of the configuration classes of transformers {__version__} (Apache-2.0).")
    print("# Made by benchmarks/class_defaults.py. Model type, file below models/, keys as JSON.")
    lines: dict[str, str] = {}
    for one in _classes():
        fields = _fields(one)
        if not _caches(one):
            fields["caches"] = False
        parts = _parts(one)
        if parts:
            fields["sub_configs"] = parts
        file = "/".join(one.__module__.split(".")[-2:]) + ".py"
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        lines.setdefault(one.model_type, f"{one.model_type}\t{file}\t{text}")
    print(*(lines[key] for key in sorted(lines)), sep="\n")


if __name__ == "__main__":
    main()
