"""Spellings of the measurements -> names of the knowledge base.

First the table ``names.csv``, then the knowledge base's own lookup, then the longest known model
name inside the text: most community files are a known model trained on, of the same shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from advisor.calibration.dataset import Row, name_rows
from advisor.errors import UserError
from advisor.knowledge import names
from advisor.knowledge.tokens import model_key
from advisor.knowledge.types import Knowledge
from advisor.knowledge.vendors import BACKEND_OF_WORD, MAKERS
from advisor.runtimes import runtime_of
from advisor.runtimes.llamacpp import FRAMEWORK

_FILE_END = re.compile(r"\.gguf$|[-_]GGUF$", re.IGNORECASE)
_FORMAT_END = re.compile(
    r"[-_.](UD-|i1-)?(I?Q\d\w*|F16|BF16|FP8\w*|MXFP4|AWQ|\d-?bit).*$", re.IGNORECASE
)
_OLLAMA_END = re.compile(r"[:-](latest|instruct|\w*q\d\w*)$")
_RECIPE = re.compile(r"^UD-|_(XL|L|P)$|bpw$|custom|reap|dynamic", re.IGNORECASE)
_LEAST_NAME = 6
_NOT_A_CARD = re.compile(r"cpu|rpc|section|tensorrt", re.IGNORECASE)
_UNSTATED = frozenset({"", "linux", "macos", "windows", "gguf", "mlx", "nvfp4", "mxfp4", "int4"})


class Spelling(Struct):
    """Lookup with a memory."""

    knowledge: Knowledge
    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    found: dict[tuple[str, ...], str | None] = field(default_factory=dict)
    keys: list[tuple[str, str]] = field(default_factory=list)
    exact: set[tuple[str, str]] = field(default_factory=set)
    """Spellings of models that name the model itself."""

    def __post_init__(self) -> None:
        """Index the table and the known model names."""
        for row in name_rows():
            key = f"{row['spelled']}@{row['params_b']}" if row["params_b"] else row["spelled"]
            self.tables.setdefault(row["kind"], {})[key] = row["name"]
        spelled = [
            (text, record.name)
            for record in self.knowledge.models.values()
            for text in (record.name, *record.aliases, (record.hf_id or "").rpartition("/")[2])
            if len(text) >= _LEAST_NAME
        ]
        keyed = {(model_key(text), name) for text, name in spelled}
        self.keys = sorted(keyed, key=lambda pair: (-len(pair[0]), pair))

    def gpu(self, row: Row) -> str | None:
        """Name the card; its memory tells apart boards that share a name."""
        return self._memory(("gpu", row["gpu"], row.get("vram_gb_each", "")), self._gpu)

    def model(self, row: Row) -> str | None:
        """Name the model, or the one it was trained on."""
        return self._memory(("model", row["model"], row.get("params_b", "")), self._model)

    def precision(self, row: Row, framework: str) -> str | None:
        """Name the weight format."""
        text = row["quant"].strip()
        known = self.tables["format"].get(text)
        name = known or (text if text in self.knowledge.formats else None)
        if name == "MXFP4" and runtime_of(self.knowledge.frameworks[framework]).gguf_alone:
            return "MXFP4_MOE"
        return name if name in self.knowledge.formats else None

    def is_exact(self, row: Row) -> bool:
        """Say whether a row names model and format as the knowledge base does.

        A model found inside a longer name was trained on; ``UD``, ``_XL`` and the like are recipes
        of their own.
        """
        return (row["model"], row.get("params_b", "")) in self.exact and not _RECIPE.search(
            row["quant"]
        )

    def framework(self, row: Row) -> str | None:
        """Name the runtime."""
        name = self.tables["framework"].get(row["framework"])
        return name if name in self.knowledge.frameworks else None

    def backend(self, row: Row, gpu: str, framework: str) -> str | None:
        """Name the backend; None for a processor, several machines or one that is not told."""
        text = row["backend"].strip().casefold()
        vendor = self.knowledge.gpus[gpu].vendor
        table = self.tables["backend"]
        known = table.get(f"{framework} {vendor} {text}")
        if known is not None:
            return known
        if text in _UNSTATED:
            return table.get(f"{framework} {vendor}", MAKERS[vendor].backends[0]) or None
        if _NOT_A_CARD.search(text):
            return None
        text = text.removeprefix(f"{FRAMEWORK}-")
        return next((name for word, name in BACKEND_OF_WORD.items() if text.startswith(word)), None)

    def _memory(self, key: tuple[str, ...], find: Callable[[str, str], str | None]) -> str | None:
        if key not in self.found:
            self.found[key] = find(key[1], key[2])
        return self.found[key]

    def _gpu(self, text: str, memory: str) -> str | None:
        known = self.tables["gpu"].get(text)
        if known is not None:
            return known if known in self.knowledge.gpus else None
        if text.startswith("CPU:") or "unstated" in text or "+" in text:
            return None
        plain = self._try(names.find_gpu, text)
        sized = f"{text}:{round(float(memory))}GB" if memory else text
        return plain or self._try(names.find_gpu, sized)

    def _model(self, text: str, params: str) -> str | None:
        table: Mapping[str, str] = self.tables["model"]
        for key in (f"{text}@{params}", text):
            if key in table:
                self.exact.add((text, params))
                return table[key] or None
        short = _FILE_END.sub("", text.rpartition("/")[2])
        bare = _FORMAT_END.sub("", short)
        for attempt in (text, short, bare, _OLLAMA_END.sub("", text)):
            name = self._try(names.find_model, attempt)
            if name:
                self.exact.add((text, params))
                return name
        key = model_key(bare)
        return next((name for known, name in self.keys if known in key), None)

    def _try(self, find: Callable[[Knowledge, str], object], text: str) -> str | None:
        try:
            return str(getattr(find(self.knowledge, text), "name", "")) or None
        except UserError:
            return None
