"""Which types of model vllm-gguf-plugin loads: its own mapping of names, tried on each.

    python benchmarks/gguf_plugin.py PLUGIN_FOLDER [MODEL_TYPE ...]

Needs torch, the release of transformers that vLLM asks for, and gguf; of the plugin its files, of
vLLM nothing. For each type that transformers has as a language model, the adapter that the plugin
takes for what has none of its own maps the names of an unfilled model (of few layers, on the meta
device) to those of GGUF. Prints the types that pass as a list for knowledge/capabilities.yaml, and
why others do not, as the plugin says it.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

_PACKAGE = "gguf_plugin_alone"
_IMPORTED = (
    "get_gguf_extra_tensor_names", "get_gguf_weight_type_map", "gguf_quant_weights_iterator_multi",
    "maybe_patch_hf_config_from_gguf", "GGUFLoadSpec",
)  # fmt: skip
"""What the module imports for work that the mapping does not need."""
_FEW = 8
"""Layers of the model whose names are mapped; every kind of layer is among the first."""


def main() -> int:
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    folder, *asked = sys.argv[1:]
    adapter, passed = _adapter(Path(folder)), []
    for kind in asked or _kinds():
        why = _refusal(adapter, kind)
        if why is None:
            passed.append(kind)
        else:
            print(f"{kind}: {why[:200]}", file=sys.stderr)
    print(", ".join(passed))
    return 0


def _kinds() -> list[str]:
    """Types with a language model in transformers, those with an adapter of their own left out."""
    from transformers.models.auto.modeling_auto import (  # noqa: PLC0415
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    )

    return sorted(set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) - {"gemma3", "gemma3_text"})


def _adapter(folder: Path) -> Any:
    """The plugin's adapter for everything, loaded without vLLM."""
    _module("vllm")
    _module("vllm.logger", init_logger=logging.getLogger)
    unused = dict.fromkeys(_IMPORTED)
    for name in ("", ".weights_adapter", ".gguf_utils", ".weight_utils"):
        _module(f"{_PACKAGE}{name}", __path__=[], **unused)
    base = type("Base", (), {})
    _module(f"{_PACKAGE}.weights_adapter.base", BaseGGUFWeightsAdapter=base, **unused)
    name = f"{_PACKAGE}.weights_adapter.default"
    spec = importlib.util.spec_from_file_location(name, folder / "weights_adapter/default.py")
    assert spec
    assert spec.loader
    loaded = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded.GGUFWeightsAdapter()


def _module(name: str, **names: object) -> None:
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(names)


def _refusal(adapter: Any, kind: str) -> str | None:
    """Why the names of a type cannot be mapped; None where all can."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: PLC0415

    try:
        config = CONFIG_MAPPING[kind]()
        _shorten(config.get_text_config())
        asked = type("Asked", (), {"hf_config": config, "trust_remote_code": False})
        names = adapter.build_name_map(asked)
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    bare = [name for name in names if name.endswith(".") and "exps" not in name]
    return f"maps to {bare[0]}, which no file has" if bare else None


def _shorten(config: Any) -> None:
    """Leave a model its first layers, where its config can be told so."""
    layers = getattr(config, "num_hidden_layers", 0)
    if layers > _FEW and isinstance(kinds := getattr(config, "layer_types", []) or [], list):
        config.num_hidden_layers = _FEW
        if kinds and hasattr(type(config), "layer_types") is False:
            config.layer_types = kinds[:_FEW]


if __name__ == "__main__":
    sys.exit(main())
