"""What no reading of a text finds: the reports of a few situations, written with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import get_args

from advisor.advice.document import Advice
from advisor.advice.pipeline import Advisor
from advisor.errors import RequestError, TemplateError
from advisor.knowledge.layers import Stack
from advisor.report.assembly import document
from advisor.report.pages import render_html, render_markdown
from advisor.report.prose import Length
from advisor.report.text import render_text
from advisor.scenario.settings import Request

_CARD = "RTX 4090"
_ASKED: Sequence[Request] = (
    Request(gpu=_CARD, model="phi-3-medium", precision="FP16"),
    Request(gpu=_CARD, model="llama-3-8b", precision="Q4_K_M"),
    Request(gpu="M4 Pro:48GB", model="qwen2.5-32b", precision="Q4_K_M", context=32_768),
    Request(gpu="2x RTX 3090 + RTX 3060:12GB", model="llama-3.1-70b", precision="Q4_K_M"),
    Request(gpu="RTX 3060:12GB", model="mixtral-8x22b", batch=8),
    Request(gpu=_CARD, model="qwen2.5-vl-7b", precision="INT4"),
)
"""What fits and what does not, one card and several, machines, experts and images."""


def render_problems(folder: Stack, *, rules: Stack, knowledge: Stack) -> Iterator[TemplateError]:
    """Write reports of every kind with a folder's texts and give what refuses them, each once."""
    advisor = Advisor.load(rules=rules, templates=folder, knowledge=knowledge)
    told = set[str]()
    for asked in _ASKED:
        for write in _views(advisor, asked, folder):
            try:
                write()
            except RequestError:
                break  # the user's knowledge may lack what is asked about
            except TemplateError as bad:
                if str(bad) not in told:
                    told.add(str(bad))
                    yield bad


def _views(advisor: Advisor, asked: Request, folder: Stack) -> Iterator[Callable[[], object]]:
    """Give what writes each report of a request; the first works the request out."""
    made: list[Advice] = []
    yield lambda: made.append(document(advisor.advise(asked), templates=folder))
    for doc in made:
        for length in get_args(Length):
            yield partial(render_markdown, doc, length=length, templates=folder)
        yield partial(render_html, doc, templates=folder)
        yield partial(render_text, doc, templates=folder)
