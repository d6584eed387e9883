"""Will this language model run on this GPU, how well, and what should you change?

The public names (docs/python.md); everything else may change. Each is imported when it is first
asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.advice import Advisor
    from advisor.advice.document import Advice
    from advisor.api import (
        CommandCheck,
        LogAnswer,
        Report,
        Session,
        advise,
        check_command,
        diagnose,
        estimate,
        gpus_for,
        models_for,
    )
    from advisor.bulk.reverse.table import Table
    from advisor.errors import AdvisorError, Problems, UserError
    from advisor.files import __version__
    from advisor.knowledge import load_knowledge
    from advisor.rules.language import load_rules
    from advisor.scenario.settings import Request

__all__ = [
    "Advice",
    "Advisor",
    "AdvisorError",
    "CommandCheck",
    "LogAnswer",
    "Problems",
    "Report",
    "Request",
    "Session",
    "Table",
    "UserError",
    "__version__",
    "advise",
    "check_command",
    "diagnose",
    "estimate",
    "gpus_for",
    "load_knowledge",
    "load_rules",
    "models_for",
]
_ELSEWHERE = {
    "Advice": "advice.document",
    "Advisor": "advice",
    "AdvisorError": "errors",
    "Problems": "errors",
    "Request": "scenario.settings",
    "Table": "bulk.reverse.table",
    "UserError": "errors",
    "__version__": "files",
    "load_knowledge": "knowledge",
    "load_rules": "rules.language",
}
"""Where a public name is defined that is not the API's own."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'api')}"), name)
