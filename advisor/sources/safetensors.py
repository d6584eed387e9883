"""Models in safetensors files: one file, or a folder with shards, beside a config.json."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from advisor.errors import SourceFileError
from advisor.sources.config import read_config
from advisor.sources.counted import counts_of
from advisor.sources.jsonfile import read_json_object
from advisor.sources.safetensors_formats import Recognised, recognise
from advisor.sources.safetensors_header import load_header
from advisor.sources.safetensors_index import shards_of
from advisor.sources.shape import Shape
from advisor.sources.stored import (
    MAX_TENSORS,
    StoredModel,
    StoredTensor,
    fail,
    names_in,
    place_of,
    shown_name,
)

_SHARD: Final = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.safetensors")
_SUFFIX: Final = ".safetensors"
_INDEX: Final = ".safetensors.index.json"
_WHOLE: Final = "model.safetensors"
_ADAPTER: Final = "adapter_model.safetensors"
_CONFIG: Final = "config.json"
_MODELOPT: Final = "hf_quant_config.json"
