"""Requests drawn from an OpenAPI document, right ones and wrong ones, and what was promised."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct

from tests.published_schemas import problems

Json = Mapping[str, Any]
GOOD: Mapping[str, tuple[object, ...]] = {
    "gpu": ("RTX 4090", "RTX 3060 12GB", "2x RTX 3090", "M4 Pro:48GB", "H100 SXM5 80 GB", "T4"),
    "model": ("llama-3-8b", "phi-3-medium", "qwen3-32b", "gemma-2-27b", "Qwen/Qwen3-8B-AWQ"),
    "precision": ("FP16", "Q4_K_M", "INT4", "AWQ"),
    "framework": ("llama.cpp", "vLLM", "Ollama"),
    "context": (4096, "32k"),
    "batch": (1, 8),
    "ram": ("64GB", "64GB DDR5-6000 x2"),
    "command": ("vllm serve Qwen/Qwen3-32B-AWQ", "llama-server -m x.gguf -c 8192", "ollama run x"),
    "log": ("CUDA out of memory. Tried to allocate 2.00 GiB", "Available KV cache memory: 3 GiB"),
    "purpose": ("code", "chat"),
    "limit": (1, 3),
}
HOSTILE = (
    "", " ", "\0", "local", "../../etc/passwd", "/etc/passwd", "x.gguf", "é" * 300,
    "http://127.0.0.1:1/x", "<script>alert(1)</script>",
    "{{7*7}}", "a" * 5_000, "-1", "1e999", "NaN", "null", "\u202e",
)  # fmt: skip
FREE = {"gpu", "model", "command", "log", "limit", "precision"}
_HEAVY = {"/models-for", "/gpus-for"}


class Drawn(Struct):
    """One request."""

    method: str
    path: str
    route: str
    query: list[tuple[str, str]]
    body: bytes = b""
    headers: dict[str, str] = {}

    def wire(self) -> bytes:
        """Write it as it goes over a connection."""
        lines = [f"{self.method} {self.target()} HTTP/1.1", "host: 127.0.0.1"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.body or self.method != "GET":
            lines.append(f"content-length: {len(self.body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body

    def target(self) -> str:
        """The path with its query."""
        return quote(self.path) + ("?" + urlencode(self.query) if self.query else "")


def draw(spec: Json, random: Random) -> Drawn:
    """Draw a request: three of four keep to the document, the rest break it somewhere."""
    paths = [path for path in spec["paths"] if path not in _HEAVY or random.random() < 0.2]
    path = random.choice(paths)
    method = random.choice(list(spec["paths"][path]))
    operation = spec["paths"][path][method]
    wild = random.random() < 0.25
    query = [
        (one["name"], _text(value))
        for one in operation.get("parameters", ())
        for value in _stated(one["name"], one["schema"], one["required"], random, wild=wild)
    ]
    drawn = Drawn(method.upper(), path, path, query)
    if "requestBody" in operation:
        kind, media = random.choice(list(operation["requestBody"]["content"].items()))
        drawn.headers["content-type"] = kind
        drawn.body = _body(path, kind, media["schema"], random, wild=wild)
    if random.random() < 0.3:
        accepted = (
            "text/html",
            "text/plain;q=0.5, */*;q=0.1",
            "image/png",
            "application/json",
            ";;q=",
        )
        drawn.headers["accept"] = random.choice(accepted)
    return _broken(drawn, random) if wild else drawn


def _broken(drawn: Drawn, random: Random) -> Drawn:
    match random.randrange(8):
        case 0:
            drawn.query.append((random.choice(("gpuu", "format", "length", "gpu")), "x"))
        case 1:
            drawn.body = drawn.body[: len(drawn.body) // 2]
        case 2:
            drawn.body = bytes(random.randrange(256) for _ in range(40))
        case 3:
            drawn.headers["content-type"] = random.choice(("", "text/csv", "application/xml", "x"))
        case 4:
            drawn.method = random.choice(("PUT", "DELETE", "PATCH", "OPTIONS"))
        case 5:
            drawn.path = random.choice(("/advize", "/advise/", "/../etc/passwd", "/%00"))
        case 6:
            drawn.body = random.choice((b"[]", b"null", b"1e999", b"[" * 5_000, b'{"gpu": {}}'))
        case _:
            drawn.query *= 2
    return drawn


def _body(path: str, kind: str, schema: Json, random: Random, *, wild: bool) -> bytes:
    if kind == "application/json":
        stated = {
            name: value
            for name, one in schema["properties"].items()
            for value in _stated(name, one, name in schema["required"], random, wild=wild)
        }
        return json.dumps(stated).encode()
    if path == "/bulk":
        lines = [{"id": n, "gpu": "T4", "model": _good("model", random)} for n in range(3)]
        return "\n".join([*map(json.dumps, lines), *(["nonsense"] if wild else [])]).encode()
    text = random.choice(HOSTILE) if wild else str(_good("command", random))
    return text.encode()


def _stated(name: str, schema: Json, required: bool, random: Random, *, wild: bool) -> list[Any]:  # noqa: FBT001
    likely = 0.5 if name in FREE else 0.04
    if not required and random.random() > likely:
        return []
    if wild and random.random() < 0.4:
        return [random.choice(HOSTILE)]
    return [_good(name, random) if name in GOOD else of_schema(schema, random)]


def _good(name: str, random: Random) -> object:
    return random.choice(GOOD[name])


def of_schema(schema: Json, random: Random) -> Any:
    """Draw a value that a schema allows."""
    if "anyOf" in schema:
        return of_schema(random.choice(schema["anyOf"]), random)
    if "enum" in schema:
        return random.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "string")
    match random.choice(kind) if isinstance(kind, list) else kind:
        case "boolean":
            return random.random() < 0.5
        case "integer":
            least = int(schema.get("minimum", 0))
            return random.randint(
                least, random.choice((least + 8, int(schema.get("maximum", 2**40))))
            )
        case "number":
            return random.uniform(schema.get("minimum", 0), min(schema.get("maximum", 1e6), 1e6))
        case "array":
            return [of_schema(schema["items"], random) for _ in range(random.randint(0, 3))]
        case _:
            return random.choice(
                ("Q4_K_M", "mit", "laptop", "f16", "q8_0", "on", "x", "64GB", "ünï")
            )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def problems_of(spec: Json, drawn: Drawn, status: int, media: str, body: bytes) -> list[str]:
    """What an answer breaks of what the document promises."""
    if status >= 500:
        return [f"a server error {status}: {body[:300]!r}"]
    operation = spec["paths"].get(drawn.path, {}).get(drawn.method.lower())
    if operation is None:
        return [] if status in {404, 405} else [f"{status} for what is not there"]
    if str(status) not in operation["responses"]:
        return [f"{status} is not documented: {body[:200]!r}"]
    told = operation["responses"][str(status)].get("content", {})
    kind = media.partition(";")[0]
    if kind not in told:
        return [f"{kind} is not documented for {status}"]
    schema = told[kind]["schema"]
    if kind != "application/json":
        return []
    return problems(json.loads(body), schema, spec["components"]["schemas"])
