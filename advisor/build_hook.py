"""Compiles rules, knowledge and templates while the wheel is built, so that the first run is fast.

Run by hatchling (pyproject.toml); not imported by the program.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledData(BuildHookInterface[Any]):
    """Adds ``advisor/data/compiled`` to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into a temporary folder and name its files for inclusion.

        Args:
            version: ``standard`` or ``editable``; an editable install compiles on first use.
            build_data: What hatchling includes.
        """
        if version != "standard":
            return
        self._scratch = tempfile.TemporaryDirectory(prefix="advisor-compiled-")  # gone at the end
        folder = Path(self._scratch.name)
        os.environ["ADVISOR_CACHE_DIR"] = str(folder)
        sys.path.insert(0, self.root)
        from advisor.advice import Advisor  # noqa: PLC0415  needs the path above
        from advisor.models import stored_shapes  # noqa: PLC0415
        from advisor.report.templates import compile_texts  # noqa: PLC0415

        stored_shapes(Advisor.load(engine="reference").knowledge)
        compile_texts()
        for file in sorted(folder.glob("*.json")):
            kind, key, _code = file.stem.split("-")
            build_data["force_include"][str(file)] = f"advisor/data/compiled/{kind}-{key}.json"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind once the wheel is written.

        Args:
            version: As above.
            build_data: As above.
            artifact_path: The wheel.
        """
        del build_data, artifact_path
        if version == "standard":
            self._scratch.cleanup()
