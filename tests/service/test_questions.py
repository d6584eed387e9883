"""Every question over HTTP: the answers of the API, in the form that is asked for."""

from __future__ import annotations

import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from advisor.api import Session
from advisor.api.service import FORMS, QUESTIONS
from advisor.api.service.answers import Asked, answer
from advisor.api.service.app import Limits
from advisor.api.service.openapi import body_schema, document
from advisor.api.service.watch import form_wanted
from advisor.scenario.settings import SETTINGS, WITH_UNITS
from tests.models.gguf_files import tiny
from tests.models.hub_server import serving
from tests.models.safetensors_files import CONFIG
from tests.published_schemas import schema
from tests.service.asking import Here, Service, session, slowly
from tests.service.contract import draw, problems_of

ASKED: dict[str, dict[str, Any]] = {
    "advise": {"gpu": "RTX 4090", "model": "phi-3-medium", "precision": "fp16", "ram": "64GB"},
    "estimate": {"gpu": "RTX 4090", "model": "phi-3-medium", "context": "8k", "eager": False},
    "models-for": {"gpu": "RTX 4070", "limit": 2, "licences": ["mit", "apache-2.0"]},
    "gpus-for": {"model": "qwen3-8b", "limit": 2, "forms": ["laptop"], "sort": "memory"},
    "check-command": {"command": "vllm serve Qwen/Qwen3-32B-AWQ", "gpu": "RTX 3090"},
    "diagnose": {"log": "CUDA out of memory. Tried to allocate 2.00 GiB", "gpu": "RTX 3090"},
}
LLAMA = {"gpu": "RTX 4090", "model": "llama-3-8b"}


@pytest.fixture(scope="module")
def service() -> Service:
    return Service()


@pytest.mark.parametrize("name", ASKED)
def test_query_and_body_give_the_answer_of_the_api_in_every_form(
    service: Service, name: str
) -> None:
    asked = ASKED[name]
    query = {key: str(one).lower() if isinstance(one, bool) else one for key, one in asked.items()}
    forms = QUESTIONS[name].forms
    for form in forms[-1:] if QUESTIONS[name].slow else forms:
        expected = answer(session(), Asked(name, asked, form)).body
        got = service.get(f"/{name}", format=form, **query)
        assert (got.status_code, got.content) == (200, expected), got.text
        assert got.headers["content-type"].startswith(FORMS[form])
    posted = service.post(f"/{name}", asked, headers={"accept": FORMS[forms[-1]]})
    assert posted.content == expected


def test_a_page_comes_as_long_as_it_is_asked_for(service: Service) -> None:
    short, full = (
        service.get("/advise", format="text", length=how, **LLAMA).text for how in ("short", "full")
    )
    assert len(short) < len(full)
    assert service.get("/estimate", length="short", **LLAMA).status_code == 422


def test_a_pasted_log_or_command_may_be_the_body(service: Service) -> None:
    for name, setting in (("check-command", "command"), ("diagnose", "log")):
        asked = dict(ASKED[name])
        text = asked.pop(setting)
        sent = {"content": text.encode(), "headers": {"content-type": "text/plain"}}
        got = service.ask("POST", f"/{name}", params=asked, **sent)
        assert got.content == service.post(f"/{name}", ASKED[name]).content


def test_no_markup_of_strangers_reaches_a_page(service: Service) -> None:
    log = "CUDA out of memory. Tried to allocate 2.00 GiB <script>alert(1)</script>"
    page = service.post("/diagnose?format=html", {"log": log})
    assert page.status_code == 200
    assert "<script" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("question", "given", "status", "said"),
    [
        ("advise", {"gpu": "RTX 4091", "model": "phi-3-mediunn"}, 422, "GeForce RTX 4090"),
        ("advise", {"gpu": "RTX 4091", "model": "phi-3-mediunn"}, 422, "phi-3-medium"),
        ("advise", {"model": "phi-3-mini"}, 422, "gpu must be stated"),
        ("advise", {**LLAMA, "gpuu": "x"}, 422, "Did you mean 'gpu'"),
        ("advise", {**LLAMA, "config": "/etc/passwd"}, 403, "files of this machine"),
        ("advise", {"gpu": "local", "model": "llama-3-8b"}, 403, "'local'"),
        ("models-for", {"gpu": "local"}, 403, "'local'"),
        ("estimate", {"model": "/etc/passwd"}, 403, "files of this machine"),
        ("estimate", {"model": "./x.gguf"}, 403, "files of this machine"),
        ("gpus-for", {"model": "~/x"}, 403, "files of this machine"),
        ("advise", {**LLAMA, "draft_model": "../x"}, 403, "files of this machine"),
        ("check-command", {"command": "llama-server -m /tmp/x.gguf", "gpu": "T4"}, 403, "x.gguf"),
        ("estimate", {"model": "tests"}, 422, "unknown model"),
        ("estimate", {**LLAMA, "ram_gib": 64, "ram_type": "fast"}, 422, "no type of system RAM"),
        ("models-for", {"gpu": "T4", "limit": "x"}, 422, "not a number"),
        ("gpus-for", {"model": "llama-3-8b", "vendor": 3}, 422, "not a name"),
        ("diagnose", {"log": "hello"}, 422, "no line of the log"),
    ],
)
def test_what_is_wrong_is_told_and_never_a_traceback(
    service: Service, question: str, given: dict[str, Any], status: int, said: str
) -> None:
    got = service.post(f"/{question}", given)
    told = got.json()
    assert got.status_code == status
    assert said in json.dumps(told)
    assert told["errors"]
    assert told.keys() == {"message", "hint", "errors"}


@pytest.mark.loopback
def test_the_hub_is_asked_where_it_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADVISOR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "published").mkdir()
    tiny(tmp_path / "published")
    own, closed = Service(Here(Session(files=False, hub=True))), Service()
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        hub.add("tiny/model", tmp_path / "published")
        assert closed.get("/estimate", model="tiny/model").status_code == 422
        assert hub.seen == []
        got = own.get("/estimate", model="tiny/model")
        assert got.status_code == 200, got.text
        assert own.get("/estimate", model=str(tmp_path)).status_code == 403


def test_files_are_read_where_they_are_allowed(tmp_path: Path) -> None:
    model = tiny(tmp_path)
    own = Service(Here(session(files=True)))
    assert own.get("/estimate", model=str(model)).status_code == 200
    assert Service().get("/estimate", model=str(model)).status_code == 403


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"content": b"{", "headers": {"content-type": "application/json"}}, 422),
        ({"content": b"[]", "headers": {"content-type": "application/json"}}, 422),
        ({"content": b"[" * 9_000, "headers": {"content-type": "application/json"}}, 422),
        ({"content": b"gpu=x", "headers": {"content-type": "text/csv"}}, 415),
        ({"content": b"x" * 2_000, "headers": {"content-type": "application/json"}}, 413),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(sent: dict[str, Any], status: int) -> None:
    small = Service(limits=Limits(body_bytes=1_000 if status == 413 else 10_000))
    assert small.ask("POST", "/advise", **sent).status_code == status


def test_a_body_that_comes_too_slowly_is_not_waited_for() -> None:
    hasty = Service(limits=Limits(body_s=0.05))
    assert hasty.ask("POST", "/advise", content=slowly(b"{")).status_code == 408
    assert "nothing came" in hasty.ask("POST", "/bulk", content=slowly(b"{")).text


def test_the_form_follows_the_header() -> None:
    forms = ("json", "html", "markdown", "text")
    for accept, form in (
        (None, "json"),
        ("*/*", "json"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "html"),
        ("text/*;q=0.5, text/markdown", "markdown"),
        ("application/json;q=0.1, text/plain;q=x, text/plain;q=0.2", "text"),
    ):
        assert form_wanted(forms, None, accept) == form


def test_a_form_that_there_is_not_is_refused_with_those_there_are(service: Service) -> None:
    for how in ({"accept": "image/png"}, {"format": "pdf"}):
        got = service.get("/advise", **LLAMA, **how)
        assert got.status_code == 406
        assert "text/markdown" in got.json()["hint"]


# ---- kept by whoever asked


def test_a_known_answer_is_not_sent_again(service: Service) -> None:
    first = service.get("/estimate", **LLAMA)
    tag = first.headers["etag"]
    before = len(service.workers.asked)
    same = {"params": LLAMA, "headers": {"if-none-match": f'"x", W/{tag}'}}
    again = service.ask("GET", "/estimate", **same)
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert len(service.workers.asked) == before
    other = service.ask("GET", "/estimate", params={**LLAMA, "batch": 2}, headers=same["headers"])
    assert other.status_code == 200


def test_the_name_of_an_answer_follows_all_that_it_rests_on(service: Service) -> None:
    def tag(own: Service, **more: Any) -> str:
        return own.get("/advise", **LLAMA, **more).headers["etag"]

    tags = {tag(service), tag(service, format="text"), tag(service, context=8192)}
    for key in ("rules_sha256", "knowledge_sha256", "templates_sha256", "engine"):
        other = Here()
        other.versions[key] = "another"
        tags.add(tag(Service(other)))
    assert len(tags) == 7
    assert tag(Service()) in tags


def test_what_was_asked_lately_is_answered_without_a_worker(service: Service) -> None:
    for form in ("json", "html", "text"):
        first = service.get("/advise", **LLAMA, batch=3, format=form)
        before = len(service.workers.asked)
        again = service.get("/advise", **LLAMA, batch=3, format=form)
        assert (again.content, again.headers) == (first.content, first.headers)
        assert len(service.workers.asked) == before
    assert service.get("/advise", gpu="RTX 4090", model="nope").status_code == 422
    assert service.get("/advise", gpu="RTX 4090", model="nope").status_code == 422
    assert len(service.workers.asked) == before + 2


def test_an_answer_from_a_file_is_never_kept(tmp_path: Path) -> None:
    own = Service(Here(session(files=True)), lasting=False)
    config = tmp_path / "config.json"
    told = []
    for layers in (16, 32):
        config.write_text(json.dumps({**CONFIG, "num_hidden_layers": layers}))
        got = own.get("/estimate", model=str(config))
        assert "etag" not in got.headers
        told.append(got.json()["parameters"]["total"])
    assert told[0] < told[1]


# ---- many at once


def test_every_line_has_its_answer_and_a_wrong_one_fails_alone(service: Service) -> None:
    lines = [
        b'{"id": 1, "gpu": "RTX 4090", "model": "llama-3-8b"}',
        b"",
        b"nonsense",
        b'{"id": "b", "model": "nope"}',
        b"\xff\xfe",
        b'{"id": "long", "model": "' + b"x" * 70_000 + b'"}',
        b'{"id": 2, "model": "/etc/passwd"}',
        b'{"id": {}, "model": "llama-3-8b"}',
        b'{"id": 3, "model": "qwen3-32b"}',
    ]
    found = [json.loads(line) for line in service.bulk(b"\n".join(lines))]
    assert [one["id"] for one in found] == [1, None, "b", None, None, 2, None, 3]
    assert [one["error"] is None for one in found] == [True, *[False] * 6, True]
    alone = service.get("/estimate", **LLAMA).json()
    assert found[0]["memory"] == alone["memory"]
    assert found[0].keys() == alone.keys()
    assert "unknown model" in found[2]["error"]["message"]


def test_lines_may_ask_every_question(service: Service) -> None:
    for name, asked in ASKED.items():
        (line,) = service.bulk(json.dumps({"id": name, **asked}).encode(), question=name)
        got = json.loads(line)
        assert got.pop("error") is None, name
        assert got.pop("id") == name
        alone = service.post(f"/{name}", asked).json()
        assert got == {key: one for key, one in alone.items() if key not in {"id", "error"}}
    assert service.ask("POST", "/bulk?question=advize", content=b"").status_code == 422


# ---- about itself


def test_it_is_watched_and_says_how_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Service()
    own.get("/estimate", **LLAMA)
    own.get("/nothing")
    monkeypatch.setattr(own.workers.session, "advise", lambda **_: 1 / 0, raising=False)
    broken = own.get("/advise", **LLAMA)
    assert (broken.status_code, "ZeroDivision" in broken.text) == (500, False)
    events = [json.loads(line) for line in own.log]
    assert [one["event"] for one in events] == ["request", "request", "bug", "request"]
    assert "ZeroDivisionError" in events[2]["traceback"]
    assert (events[0]["path"], events[0]["status"], events[1]["status"]) == ("/estimate", 200, 404)
    assert own.get("/health").json()["status"] == "ok"
    counts = own.get("/metrics").text.splitlines()
    assert 'advisor_requests_total{route="/estimate",method="GET",status="200"} 1' in counts
    assert 'advisor_request_seconds_bucket{route="other",le="+Inf"} 1' in counts


def test_a_foreign_host_name_is_refused() -> None:
    own = Service(hosts=("127.0.0.1", "localhost", "::1"))
    for host, status in (("evil.example", 421), ("localhost:80", 200), ("[::1]:9", 200)):
        assert own.ask("GET", "/health", headers={"host": host}).status_code == status
    for page, status in (
        ("https://evil.example", 421), ("null", 421), ("http://localhost:8765", 200),
    ):  # fmt: skip
        assert own.ask("GET", "/health", headers={"origin": page}).status_code == status


def test_what_there_is_not_is_told_with_the_nearest(service: Service) -> None:
    assert "Did you mean '/advise'" in service.get("/advize").json()["hint"]
    wrong = service.ask("DELETE", "/advise")
    assert (wrong.status_code, "GET" in wrong.json()["hint"]) == (405, True)


def test_the_openapi_document_says_all_that_is_taken_and_given(service: Service) -> None:
    spec = service.get("/openapi.json").json()
    assert spec == json.loads(json.dumps(document()))
    assert set(spec["paths"]) >= {f"/{name}" for name in QUESTIONS} | {"/bulk", "/metrics"}
    stated = {one["name"] for one in spec["paths"]["/advise"]["get"]["parameters"]}
    assert stated >= (set(SETTINGS) - {"config"}) | set(WITH_UNITS)
    for question in QUESTIONS.values():
        assert set(body_schema(question)["properties"]) == set(question.settings)
        published = schema(question.document)["$defs"]
        kept = json.loads(
            json.dumps(spec["components"]["schemas"]).replace("components/schemas", "$defs")
        )
        assert {name: kept[name] for name in published} == json.loads(json.dumps(published))
    for reference in set(_references(spec)):
        assert reference.rpartition("/")[2] in spec["components"]["schemas"]


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if "$ref" in value else []
        return own + [one for below in value.values() for one in _references(below)]
    return [one for below in value for one in _references(below)] if isinstance(value, list) else []


PAGE = Path(__file__).resolve().parents[2] / "docs" / "serve.md"


@pytest.mark.parametrize("line", re.findall(r"^curl .*$", PAGE.read_text("utf-8"), re.MULTILINE))
def test_every_command_of_the_page_is_answered(service: Service, line: str) -> None:
    url, *flags = shlex.split(line)[1:]
    stated = dict(zip(flags[::2], flags[1::2], strict=True))
    kind = "application/json" if "--json" in stated else stated.get("-H", ": ").split(": ")[1]
    files = {"@server.log": ASKED["diagnose"]["log"], "@requests.jsonl": json.dumps(LLAMA)}
    body = next((text for flag, text in stated.items() if flag != "-H"), "")
    sent = {"content": files.get(body, body).encode(), "headers": {"content-type": kind}}
    got = service.ask("POST" if body else "GET", url, **sent)
    assert got.status_code == 200, got.text
    assert '"message"' not in got.text


def test_drawn_requests_break_no_promise(service: Service) -> None:
    """A few; ``python -m benchmarks.serve --contract 10000`` asks a server so many."""
    spec, drawn_by = document(), random.Random(7)
    for _ in range(60):
        drawn = draw(spec, drawn_by)
        got = service.ask(drawn.method, drawn.target(), content=drawn.body, headers=drawn.headers)
        media = got.headers.get("content-type", "")
        assert problems_of(spec, drawn, got.status_code, media, got.content) == [], drawn
