"""Options that name the user's own folders, the same for every command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RulesFolder = Annotated[Path | None, typer.Option(help="Folder of rules, over the built-in ones.")]
TemplatesFolder = Annotated[
    Path | None, typer.Option(help="Folder of templates, over the built-in ones.")
]
KnowledgeFolder = Annotated[
    Path | None, typer.Option(help="Folder of knowledge, over the built-in one.")
]
