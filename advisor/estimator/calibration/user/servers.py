"""The speed of a model server that runs: a few answers are asked of it, and it is timed.

Ollama and llama-server time themselves (``eval_duration``, ``timings``); of vLLM and SGLang the
tokens of a stream are timed here, from the first to the last. Each prompt is another one from its
first word on, so that no cache of prefixes answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median, stdev
from typing import Any

from msgspec import Struct

from advisor.errors import RequestError, UserError
from advisor.estimator.calibration.user.benchmark import of_gguf, of_hub, one_line
from advisor.estimator.calibration.user.server_http import Address, asked, streamed
from advisor.knowledge.types import Knowledge
from advisor.runtimes import llamacpp, vllm
from advisor.runtimes.server import SGLANG
from advisor.scenario.asked_model import model_named

OLLAMA_HERE = "http://127.0.0.1:11434"
GENERATED = 128
_LEAST_GENERATED = 32
_LEAST_PROMPT = 256
"""Shorter prompts are read in the time of one token and say little of prefill."""
_SECONDS = 600.0
_WORDS = (
    "river", "stone", "lantern", "seven", "quiet", "engine", "market", "winter", "paper", "harbour",
    "copper", "meadow", "signal", "orchard", "thunder", "window",
)  # fmt: skip
_PROMPT_WORDS = 440
_NOT_GENERATING = "embedding"


class Timed(Struct, frozen=True):
    """One answer: its tokens, and the seconds that they took."""

    prompt_tokens: int
    tokens: int
    seconds: float
    prompt_seconds: float | None = None
    """None: the server does not say."""


class Served(Struct, frozen=True):
    """A model that a server has, and how it is asked."""

    framework: str
    version: str
    model: str
    precision: str
    ask: Callable[[str, int], Timed]
    """Prompt and tokens to generate -> what it took."""
    note: str = ""


def served_at(address: Address, wanted: str, knowledge: Knowledge) -> Served:
    """Find out what serves at an address, and which model.

    An empty ``wanted`` is the model that is loaded.

    Raises:
        RequestError: Nothing answers, it is of no known kind, or the model is not settled.
    """
    for probe in (_ollama, _llama_server, _open_ai):
        if found := probe(address, wanted, knowledge):
            return found
    raise RequestError(
        f"what serves at {address} is not known",
        hint="It has to be Ollama, llama-server, vLLM, SGLang or another with /v1/completions.",
    )


def rows_of(served: Served, runs: int, stated: Mapping[str, object]) -> list[dict[str, object]]:
    """Ask for some answers and give the figures as rows of the simple CSV.

    One answer before the ``runs`` that count warms up; ``stated`` is known beside it: the card.

    Raises:
        RequestError: It stops too early to be timed.
    """
    served.ask(prompt_of(0), _LEAST_GENERATED)
    timed = [served.ask(prompt_of(number), GENERATED) for number in range(1, runs + 1)]
    least = min(one.tokens for one in timed)
    if least < _LEAST_GENERATED:
        raise RequestError(
            f"{served.model} stopped after {least} tokens; {_LEAST_GENERATED} are needed",
            hint="A model that goes on writing can be timed.",
        )
    common = {
        **stated,
        "model": served.model,
        "precision": served.precision,
        "framework": served.framework,
        "framework_version": one_line(served.version),
        "batch": 1,
        "date": datetime.now(UTC).date().isoformat(),
        "source": "advisor measure run",
        "note": one_line(served.note),
    }
    kept = {key: value for key, value in common.items() if value not in {"", None}}
    return [{**kept, **figures} for figures in _figures(timed)]


def prompt_of(number: int) -> str:
    """Give a text of some 500 tokens that differs from others in its first word."""
    chosen = (_WORDS[(number * 7 + i * (number + 3)) % len(_WORDS)] for i in range(_PROMPT_WORDS))
    return f"{number} {' '.join(chosen)}. Tell a long story about all of these."


def _figures(timed: Sequence[Timed]) -> Iterator[dict[str, object]]:
    prompt = round(median(one.prompt_tokens for one in timed))
    generated = round(median(one.tokens for one in timed))
    yield {
        "metric": "decode_tok_s",
        "depth_tokens": prompt,
        "gen_tokens": generated,
        **_speed([one.tokens / one.seconds for one in timed if one.seconds > 0]),
    }
    read = [
        one.prompt_tokens / one.prompt_seconds
        for one in timed
        if one.prompt_seconds and one.prompt_tokens >= _LEAST_PROMPT
    ]
    if read:
        yield {"metric": "prefill_tok_s", "prompt_tokens": prompt, **_speed(read)}


def _speed(found: Sequence[float]) -> dict[str, object]:
    spread = {"stdev": round(stdev(found), 3)} if len(found) > 1 else {}
    return {"tok_s": round(median(found), 3) if found else 0, **spread}


# ---- kinds of servers


def _ollama(address: Address, wanted: str, knowledge: Knowledge) -> Served | None:
    version = asked(address, "/api/version")
    if not isinstance(version, dict) or "version" not in version:
        return None
    name = _chosen(wanted, _names(address, "/api/ps"), _names(address, "/api/tags"), address)
    shown = asked(address, "/api/show", {"model": name}) or {}
    if _NOT_GENERATING in (shown.get("capabilities") or ()):
        raise RequestError(f"{name} makes embeddings, which are not timed", hint="Name another.")

    def ask(prompt: str, tokens: int) -> Timed:
        body = {
            "model": name,
            "prompt": prompt,
            "raw": True,
            "stream": False,
            "options": {"num_predict": tokens, "temperature": 0},
        }
        answer = asked(address, "/api/generate", body, _SECONDS) or {}
        _all_on_card(address, name)
        return Timed(
            _count(answer, "prompt_eval_count"),
            _count(answer, "eval_count"),
            _count(answer, "eval_duration") / 1e9,
            _count(answer, "prompt_eval_duration") / 1e9,
        )

    level = (shown.get("details") or {}).get("quantization_level")
    precision = of_gguf(f"weights-{level}")[1] if level else ""
    return Served(
        llamacpp.OLLAMA, str(version["version"]), _known(name, knowledge), precision, ask, name
    )


def _all_on_card(address: Address, name: str) -> None:
    """Refuse a model of which a part lies in system RAM: splits are not stored."""
    loaded = (asked(address, "/api/ps") or {}).get("models") or []
    named = (row for row in loaded if name in {row.get("name"), row.get("model")})
    one: Mapping[str, Any] = next(named, {})
    size, on_card = _count(one, "size"), _count(one, "size_vram")
    if size and on_card < size:
        raise RequestError(
            f"{1 - on_card / size:.0%} of {name} lies in system RAM; splits are not stored",
            hint="Take a smaller model or context.",
        )


def _llama_server(address: Address, _wanted: str, _knowledge: Knowledge) -> Served | None:
    props = asked(address, "/props")
    if not isinstance(props, dict) or "build_info" not in props:
        return None
    spellings, precision = of_gguf(str(props.get("model_path") or ""))

    def ask(prompt: str, tokens: int) -> Timed:
        body = {
            "prompt": prompt,
            "n_predict": tokens,
            "ignore_eos": True,
            "cache_prompt": False,
            "temperature": 0,
        }
        times = (asked(address, "/completion", body, _SECONDS) or {}).get("timings") or {}
        if times.get("draft_n"):
            raise RequestError("a draft model took part; such figures are not kept")
        return Timed(
            _count(times, "prompt_n"),
            _count(times, "predicted_n"),
            float(times.get("predicted_ms") or 0) / 1e3,
            float(times.get("prompt_ms") or 0) / 1e3,
        )

    note = "llama-server does not say how many layers are on the card"
    name = spellings[0] if spellings else ""
    return Served(llamacpp.FRAMEWORK, str(props["build_info"]), name, precision, ask, note)


def _open_ai(address: Address, wanted: str, knowledge: Knowledge) -> Served | None:
    listed = asked(address, "/v1/models")
    rows = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(rows, list) or not rows:
        return None
    names = [str(row.get("id")) for row in rows if isinstance(row, dict)]
    name = _chosen(wanted, [], names, address)
    row = rows[names.index(name)] if name in names else {}
    owners = {one.casefold(): one for one in (vllm.FRAMEWORK, SGLANG)}
    version = asked(address, "/version") or asked(address, "/get_server_info") or {}

    def ask(prompt: str, tokens: int) -> Timed:
        body = {
            "model": name,
            "prompt": prompt,
            "max_tokens": tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return _stream(streamed(address, "/v1/completions", body, _SECONDS))

    spellings, precision = of_hub(str(row.get("root") or name))
    framework = owners.get(str(row.get("owned_by")).casefold(), "")
    model = _known(spellings[0], knowledge)
    return Served(framework, str(version.get("version") or ""), model, precision, ask, name)


def _stream(events: Iterator[tuple[dict[str, Any], float]]) -> Timed:
    """Time a stream from its first token to its last, one token less than it has."""
    times: list[float] = []
    usage: Mapping[str, Any] = {}
    for event, at in events:
        choices = event.get("choices") or [{}]
        if choices[0].get("text"):
            times.append(at)
        usage = event.get("usage") or usage
    tokens = _count(usage, "completion_tokens")
    if not tokens or len(times) < 2:  # noqa: PLR2004  a first and a last
        raise RequestError(
            "the server streams no tokens, or does not count them",
            hint="It has to know stream_options.include_usage on /v1/completions.",
        )
    return Timed(_count(usage, "prompt_tokens"), tokens - 1, times[-1] - times[0])


def _names(address: Address, path: str) -> list[str]:
    found = asked(address, path)
    rows = found.get("models") if isinstance(found, dict) else None
    return [str(row.get("name")) for row in rows or () if isinstance(row, dict)]


def _chosen(wanted: str, loaded: Sequence[str], there: Sequence[str], address: Address) -> str:
    """Settle the model: as stated, else the only one that is loaded, else the only one there."""
    if wanted:
        return wanted
    for names in (loaded, there):
        if len(names) == 1:
            return names[0]
    names = ", ".join(loaded or there)
    message = f"the server at {address} has {'several models' if names else 'no model'}"
    raise RequestError(message, hint=f"Name one with --serves: {names}." if names else "Load one.")


def _known(name: str, knowledge: Knowledge) -> str:
    """Give the model that a tag or id stands for; one that is not known as it is."""
    try:
        return model_named(name, knowledge).model.name
    except UserError:
        return name


def _count(row: Mapping[str, Any], key: str) -> int:
    value = row.get(key)
    return int(value) if isinstance(value, int | float) and value > 0 else 0
