"""What a runtime is: a module for every family, behind one protocol, found by its memory model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.errors import KnowledgeError
from advisor.runtimes.base import Runtime
from advisor.runtimes.libraries import ExLlama, Mlx, Transformers
from advisor.runtimes.llamacpp import LlamaCpp
from advisor.runtimes.server import TensorRt, Tgi
from advisor.runtimes.sglang import Sglang
from advisor.runtimes.vllm import Vllm
from advisor.suggest import did_you_mean

if TYPE_CHECKING:
    from advisor.knowledge.types import Framework

_RUNTIMES: dict[str, Runtime] = {}


def register(runtime: Runtime) -> None:
    """Make a runtime known under its memory model."""
    _RUNTIMES[runtime.memory_model] = runtime


for _runtime in (LlamaCpp, Transformers, Vllm, Sglang, Tgi, TensorRt, ExLlama, Mlx):
    register(_runtime())


def runtime_of(framework: Framework) -> Runtime:
    """Give the runtime that sizes a framework.

    Raises:
        KnowledgeError: No runtime has its memory model.
    """
    kind = framework.memory_model
    found = _RUNTIMES.get(kind)
    if found is None:
        raise KnowledgeError(
            f"framework '{framework.name}': '{kind}' is not a valid 'memory_model'.",
            hint=did_you_mean(kind, _RUNTIMES) or f"It must be one of: {', '.join(_RUNTIMES)}.",
        )
    return found


def is_sized(framework: Framework) -> bool:
    """Whether a runtime sizes the framework; some are known by their speed alone."""
    return framework.memory_model in _RUNTIMES


def runtime_named(memory_model: str) -> Runtime:
    """Give the runtime of a memory model that is known to exist."""
    return _RUNTIMES[memory_model]


def memory_models() -> Sequence[str]:
    """List the memory models there are."""
    return tuple(_RUNTIMES)
