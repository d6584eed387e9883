"""Will this language model run on this GPU, how well, and what should you change?

The public names; everything else may change. Each is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.advice.document import Advice
    from advisor.advice.pipeline import Advisor
    from advisor.files import __version__
    from advisor.knowledge.load import load_knowledge
    from advisor.report.assembly import advise
    from advisor.rules.language.load import load_rules
    from advisor.scenario.settings import Request

__all__ = [
    "Advice",
    "Advisor",
    "Request",
    "__version__",
    "advise",
    "load_knowledge",
    "load_rules",
]
_HOMES = {
    "Advice": "advice.document",
    "Advisor": "advice.pipeline",
    "Request": "scenario.settings",
    "__version__": "files",
    "advise": "report.assembly",
    "load_knowledge": "knowledge.load",
    "load_rules": "rules.language.load",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
