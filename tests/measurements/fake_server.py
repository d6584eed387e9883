"""A model server on this machine: Ollama, llama-server or vLLM as far as they are asked."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

PROMPT, NANO = 512, 1_000_000_000
OLLAMA: Mapping[str, Any] = {
    "/api/version": {"version": "0.12.3"},
    "/api/ps": {"models": [{"name": "llama3.1:8b", "size": 6 << 30, "size_vram": 6 << 30}]},
    "/api/tags": {"models": [{"name": "llama3.1:8b"}, {"name": "qwen3:8b"}]},
    "/api/show": {"details": {"quantization_level": "Q4_K_M"}, "capabilities": ["completion"]},
    "/api/generate": {
        "prompt_eval_count": PROMPT, "prompt_eval_duration": NANO // 10,
        "eval_count": 128, "eval_duration": NANO,
    },
}  # fmt: skip
LLAMA_SERVER: Mapping[str, Any] = {
    "/props": {
        "build_info": "b6500-0c1e5709", "model_path": "/models/Qwen2.5-7B-Instruct-Q4_K_M.gguf",
    },
    "/completion": {
        "timings": {
            "prompt_n": PROMPT, "prompt_ms": 125.0, "predicted_n": 128, "predicted_ms": 1280.0,
        }
    },
}  # fmt: skip
VLLM: Mapping[str, Any] = {
    "/v1/models": {
        "data": [{"id": "chat", "root": "Qwen/Qwen2.5-0.5B-Instruct-AWQ", "owned_by": "vllm"}]
    },
    "/version": {"version": "0.11.0"},
    "/v1/completions": "a stream",
}  # fmt: skip
TOKENS, APART = 40, 0.004


@dataclass
class Fake:
    """What it answers by path, and what it was asked."""

    answers: dict[str, Any]
    address: str = ""
    seen: list[tuple[str, Any]] = field(default_factory=list)


@contextmanager
def serving(answers: Mapping[str, Any]) -> Iterator[Fake]:
    fake = Fake(dict(answers))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(fake))
    fake.address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(fake: Fake) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            self._answer(json.loads(self.rfile.read(length)))

        def _answer(self, body: Any) -> None:
            fake.seen.append((self.path, body))
            found = fake.answers.get(self.path)
            self.send_response(404 if found is None else 200)
            self.end_headers()
            if found == "a stream":
                self._stream()
            else:
                self.wfile.write(json.dumps(found or {"error": "model not found"}).encode())

        def _stream(self) -> None:
            for number in range(TOKENS):
                if number:
                    time.sleep(APART)
                self._event({"choices": [{"text": "word "}]})
            usage = {"prompt_tokens": PROMPT, "completion_tokens": TOKENS}
            self._event({"choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")

        def _event(self, value: Mapping[str, Any]) -> None:
            self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
            self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    return Handler
