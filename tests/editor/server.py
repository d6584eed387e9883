"""The YAML language server that editors use, driven over the Language Server Protocol."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

OLDEST_NODE = 18
_PATIENCE_S = 300
_HERE = Path(__file__).parent
_PINNED = ("package.json", "package-lock.json")


def missing() -> str:
    """Say what keeps the server from running here; empty when nothing does."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "node and npm are not installed"
    asked = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)  # noqa: S607
    if int(asked.stdout.strip().lstrip("v").split(".")[0]) < OLDEST_NODE:
        return f"node {asked.stdout.strip()} is older than {OLDEST_NODE}"
    return ""


def installed() -> Path:
    """Install the pinned server once for all runs; several processes may ask at a time."""
    pinned = b"".join((_HERE / name).read_bytes() for name in _PINNED)
    name = f"advisor-editor-{os.getuid()}-{hashlib.sha256(pinned).hexdigest()[:16]}"
    home = Path(tempfile.gettempdir()) / name
    program = home / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"
    if not program.is_file():
        with tempfile.TemporaryDirectory(dir=home.parent) as part:
            for pin in _PINNED:
                shutil.copy(_HERE / pin, part)
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = subprocess.run(command, cwd=part, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            try:
                Path(part).rename(home)
            except OSError:  # another process was first
                assert program.is_file()
            else:
                Path(part).mkdir()
    return program


class Server:
    """One running server with a folder of files open."""

    def __init__(self, program: Path, folder: Path, schema: Path) -> None:
        self.folder = folder
        self.settings = {
            "schemas": {schema.as_uri(): ["*.yaml"]},
            "schemaStore": {"enable": False},
            "completion": True,
            "hover": True,
            "validate": True,
        }
        self.asked = 0
        self.diagnostics: dict[str, list[dict[str, Any]]] = {}
        command = ["node", str(program), "--stdio"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.patience = threading.Timer(_PATIENCE_S, self.process.kill)
        """Ends a server that no longer answers, so that reading ends too."""
        self.patience.start()
        self._begin()

    def _begin(self) -> None:
        item = {"documentationFormat": ["markdown"], "snippetSupport": True}
        document = {
            "completion": {"completionItem": item},
            "hover": {"contentFormat": ["markdown"]},
        }
        self.ask(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": self.folder.as_uri(),
                "capabilities": {
                    "textDocument": document,
                    "workspace": {"configuration": True},
                },
            },
        )
        self._tell("initialized", {})
        settings = {"settings": {"yaml": self.settings}}
        self._tell("workspace/didChangeConfiguration", settings)

    def open(self, name: str, text: str) -> Sequence[Mapping[str, Any]]:
        """Open a file, and give what the server finds wrong with it."""
        document = {"uri": self._uri(name), "languageId": "yaml", "version": 1, "text": text}
        self._tell("textDocument/didOpen", {"textDocument": document})
        while self._uri(name) not in self.diagnostics:
            self._take(self._read())
        return self.diagnostics[self._uri(name)]

    def hover(self, name: str, line: int, character: int) -> str:
        """Give what is shown over a place, counted from 0."""
        shown = self.ask("textDocument/hover", self._place(name, line, character))
        return str(shown["contents"]["value"]) if shown else ""

    def complete(self, name: str, line: int, character: int) -> Mapping[str, Mapping[str, Any]]:
        """Give what is offered at a place, by label."""
        found = self.ask("textDocument/completion", self._place(name, line, character))
        return {item["label"]: item for item in found["items"]}

    def close(self) -> None:
        """End the server."""
        self.ask("shutdown", None)
        self._tell("exit", None)
        self.process.communicate(timeout=20)
        self.patience.cancel()

    def ask(self, method: str, params: object) -> Any:
        """Send a request and give its result, taking everything that comes before."""
        self.asked += 1
        self._send({"id": self.asked, "method": method, "params": params})
        while True:
            message = self._read()
            if message.get("id") == self.asked and "method" not in message:
                assert "error" not in message, message
                return message["result"]
            self._take(message)

    def _uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def _place(self, name: str, line: int, character: int) -> Mapping[str, object]:
        position = {"line": line, "character": character}
        return {"textDocument": {"uri": self._uri(name)}, "position": position}

    def _tell(self, method: str, params: object) -> None:
        self._send({"method": method, "params": params})

    def _take(self, message: Mapping[str, Any]) -> None:
        if message.get("method") == "textDocument/publishDiagnostics":
            found = message["params"]
            self.diagnostics[found["uri"]] = found["diagnostics"]
        elif "id" in message:
            self._send({"id": message["id"], "result": self._answer(message)})

    def _answer(self, message: Mapping[str, Any]) -> object:
        if message["method"] != "workspace/configuration":
            return None
        sections = [item.get("section") for item in message["params"]["items"]]
        return [self.settings if section == "yaml" else None for section in sections]

    def _send(self, message: Mapping[str, object]) -> None:
        assert self.process.stdin is not None
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(content) + content)
        self.process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = self.process.stdout.read(1)
            assert byte, "the server ended"
            head += byte
        length = int(head.split(b"Content-Length:")[1].split(b"\r\n")[0])
        message: dict[str, Any] = json.loads(self.process.stdout.read(length))
        return message
