"""Models on a hub: only headers are read, once, and every refusal is one sentence."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from advisor.errors import AdvisorError, RequestError, UserError
from advisor.files import user_cache_dir
from advisor.models import model_from_path
from advisor.models.hub import client, fetch, store
from tests.cli.running import advise
from tests.models import gguf_files
from tests.models.hub_server import COMMIT, FakeHub, Handler, Held, serving
from tests.models.safetensors_files import configure, llama
from tests.models.safetensors_files import write as write_safetensors

pytestmark = pytest.mark.loopback
TINY = "tiny/model"
FAULTS = (401, 403, 404, 429, 500, 503, 418)
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", *PROXIES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("ADVISOR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(client, "_sleep", lambda _seconds: None)
    with serving() as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        yield served


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "published"
    made.mkdir()
    return made


def publish_safetensors(hub: FakeHub, folder: Path, name: str = TINY) -> None:
    configure(folder)
    write_safetensors(folder / "model.safetensors", llama())
    hub.add(name, folder)


def publish_shards(hub: FakeHub, folder: Path, count: int = 3) -> None:
    configure(folder)
    tensors = list(llama().items())
    where: dict[str, str] = {}
    for index in range(count):
        file = f"model-{index + 1:05}-of-{count:05}.safetensors"
        part = dict(tensors[index::count])
        write_safetensors(folder / file, part)
        where |= dict.fromkeys(part, file)
    index_file = folder / "model.safetensors.index.json"
    index_file.write_text(json.dumps({"metadata": {}, "weight_map": where}))
    hub.add(TINY, folder)


def gguf(path: Path, **changes: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = gguf_files.tiny_metadata("llama", **changes)
    return gguf_files.write(path, metadata, gguf_files.tiny_tensors())


def refusal(text: str = TINY, *, offline: bool = False) -> str:
    with pytest.raises(UserError) as caught:
        fetch(text, offline=offline)
    message = str(caught.value)
    assert "\n" not in message
    own = message.replace(str(user_cache_dir()), "CACHE")  # the test's folders have long names
    assert len(own) < 500
    return message


def only_downloads(status: int, **headers: str) -> Callable[[Handler], bool]:
    """Let the listing pass and answer every file with a status."""

    def fault(handler: Handler) -> bool:
        if "/resolve/" not in handler.path:
            return False
        handler.answer(status, {k.replace("_", "-"): v for k, v in headers.items()})
        return True

    return fault


# What is read


def test_a_model_reads_as_if_it_lay_here(hub: FakeHub, folder: Path) -> None:
    publish_safetensors(hub, folder)
    path = fetch(TINY, offline=False)
    there, here = model_from_path(path), model_from_path(folder)
    assert there.name == "model"
    assert there.parameters == here.parameters
    assert there.stored is not None
    assert here.stored is not None
    assert there.stored.tensors == here.stored.tensors


def test_only_headers_travel(hub: FakeHub, folder: Path) -> None:
    configure(folder, hidden_size=4096, vocab_size=500_000)
    data = 500_000 * 4096 * 2
    write_safetensors(folder / "model.safetensors", {"model.embed_tokens.weight": (500_000, 4096)})
    hub.add(TINY, folder)
    path = fetch(TINY, offline=False) / "model.safetensors"
    assert path.stat().st_size > data
    assert path.stat().st_blocks * 512 < 1_000_000
    assert hub.sent < 200_000


def test_all_shards_of_an_index_are_read(hub: FakeHub, folder: Path) -> None:
    publish_shards(hub, folder)
    stored = model_from_path(fetch(TINY, offline=False)).stored
    assert stored is not None
    assert len(stored.files) == 3
    assert len(stored.tensors) == len(llama())


def test_a_long_gguf_header_is_read_piece_by_piece(hub: FakeHub, folder: Path) -> None:
    words = [f"word-{n}" for n in range(300_000)]
    metadata = gguf_files.tiny_metadata() | {"tokenizer.ggml.tokens": words}
    gguf_files.write(folder / "tiny-Q8_0.gguf", metadata, gguf_files.tiny_tensors())
    hub.add("tiny/tiny-GGUF", folder)
    path = fetch("tiny/tiny-GGUF", offline=False)
    assert model_from_path(path).parameters > 0
    ranges = [seen.range for seen in hub.downloads()]
    assert ranges[0] == "bytes=0-1048575"
    assert ranges[1] is not None
    assert ranges[1].startswith("bytes=1048576-")


def test_shards_of_gguf_and_the_tower_beside_are_read(hub: FakeHub, folder: Path) -> None:
    tensors = gguf_files.tiny_tensors()
    base = gguf_files.tiny_metadata() | {"split.count": 2, "split.tensors.count": len(tensors)}
    for n, part in enumerate((tensors[:5], tensors[5:])):
        file = folder / "Q8_0" / f"tiny-Q8_0-0000{n + 1}-of-00002.gguf"
        file.parent.mkdir(exist_ok=True)
        gguf_files.write(file, base | {"split.no": n}, part)
    gguf(folder / "Q8_0" / "mmproj-F16.gguf")
    hub.add(TINY, folder)
    stored = model_from_path(fetch(f"{TINY}:Q8_0", offline=False)).stored
    assert stored is not None
    assert len(stored.files) == 2
    assert any("mmproj-F16.gguf" in note for note in stored.notes)


@pytest.mark.parametrize(
    "text",
    [
        "tiny/model:tiny-Q4_K_M.gguf",
        "tiny/model:q4_k_m",
        "tiny/model@main:tiny-Q4_K_M.gguf",
        "{hub}/tiny/model/blob/main/tiny-Q4_K_M.gguf",
        "{hub}/tiny/model/resolve/main/tiny-Q4_K_M.gguf?download=true",
        "https://huggingface.co/tiny/model/blob/refs%2Fpr%2F3/tiny-Q4_K_M.gguf",
        "https://hf.co/tiny/model/resolve/refs/pr/3/tiny-Q4_K_M.gguf",
    ],
)
def test_a_file_is_named_in_many_ways(hub: FakeHub, folder: Path, text: str) -> None:
    gguf(folder / "tiny-Q4_K_M.gguf")
    gguf(folder / "tiny-Q8_0.gguf")
    hub.add(TINY, folder)
    path = fetch(text.replace("{hub}", hub.address), offline=False)
    assert path.name == "tiny-Q4_K_M.gguf"
    assert not (path.parent / "tiny-Q8_0.gguf").exists()
    if "refs" in text:
        assert "/revision/refs%2Fpr%2F3?" in hub.seen[0].path


@pytest.mark.parametrize("page", ["", "/", "/tree/main"])
def test_pages_of_a_model_are_taken(hub: FakeHub, folder: Path, page: str) -> None:
    publish_safetensors(hub, folder)
    assert fetch(f"{hub.address}/{TINY}{page}", offline=False).is_dir()


def test_a_folder_of_a_model_is_taken(hub: FakeHub, folder: Path) -> None:
    (folder / "part").mkdir()
    publish_safetensors(hub, folder / "part", "other/other")
    hub.add(TINY, folder)
    path = fetch(f"{hub.address}/{TINY}/tree/main/part", offline=False)
    assert model_from_path(path).name == "part"


def test_a_config_alone_is_enough(hub: FakeHub, folder: Path) -> None:
    configure(folder)
    (folder / "pytorch_model.bin").write_bytes(b"x")
    hub.add(TINY, folder)
    assert model_from_path(fetch(TINY, offline=False)).parameters > 0


def test_sizes_that_are_not_listed_come_from_the_file(hub: FakeHub, folder: Path) -> None:
    publish_safetensors(hub, folder)
    hub.sizes = dict.fromkeys(hub.models[TINY])
    assert model_from_path(fetch(TINY, offline=False)).stored is not None


def test_short_pieces_are_put_together(hub: FakeHub, folder: Path) -> None:
    publish_safetensors(hub, folder)

    def fault(handler: Handler) -> bool:
        if handler.headers.get("Range") is None:
            return False
        held = hub.models[TINY]["model.safetensors"]
        start = int(handler.headers["Range"].removeprefix("bytes=").partition("-")[0])
        handler.stream(206, held, start, min(start + 40_000, held.size))
        return True

    hub.fault = fault
    assert model_from_path(fetch(TINY, offline=False)).stored is not None


# The cache


def test_what_was_read_is_not_read_again(hub: FakeHub, folder: Path) -> None:
    publish_shards(hub, folder)
    first = fetch(TINY, offline=False)
    count = len(hub.downloads())
    assert fetch(TINY, offline=False) == first
    assert len(hub.downloads()) == count


def test_offline_uses_what_is_there_and_nothing_else(hub: FakeHub, folder: Path) -> None:
    publish_safetensors(hub, folder)
    assert "was not read from the hub before" in refusal(offline=True)
    first = fetch(TINY, offline=False)
    count = len(hub.seen)
    assert fetch(TINY, offline=True) == first
    assert "was not read" in refusal(f"{TINY}@v2", offline=True)
    assert len(hub.seen) == count


def test_offline_says_which_file_was_never_read(hub: FakeHub, folder: Path) -> None:
    gguf(folder / "tiny-Q4_K_M.gguf")
    gguf(folder / "tiny-Q8_0.gguf")
    hub.add(TINY, folder)
    fetch(f"{TINY}:Q8_0", offline=False)
    assert "tiny/model:tiny-Q4_K_M.gguf was not read" in refusal(f"{TINY}:Q4_K_M", offline=True)


def test_the_environment_can_forbid_the_network(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_safetensors(hub, folder)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "the network is forbidden" in refusal()
    assert not hub.seen


def test_what_one_failing_shard_leaves_is_not_offered_offline(hub: FakeHub, folder: Path) -> None:
    publish_shards(hub, folder, count=12)

    def fault(handler: Handler) -> bool:
        if "00007-of" not in handler.path:
            return False
        handler.answer(404, {})
        return True

    hub.fault = fault
    assert "the hub has no tiny/model:model-00007-of-00012.safetensors" in refusal()
    assert "was not read" in refusal(offline=True)
    hub.fault = lambda _handler: False
    fetch(TINY, offline=False)
    whole = [seen.path for seen in hub.downloads() if seen.path.endswith("config.json")]
    assert len(whole) == 1


def test_a_new_commit_is_read_anew(hub: FakeHub, folder: Path) -> None:
    publish_safetensors(hub, folder)
    first = fetch(TINY, offline=False)
    hub.commit = COMMIT[::-1]
    assert fetch(TINY, offline=False) != first
    assert first.is_dir()


@pytest.mark.parametrize("content", [b"", b"{", b'{"commit": 1}', b"[]"])
def test_a_damaged_note_in_the_cache_is_as_none(
    hub: FakeHub, folder: Path, tmp_path: Path, content: bytes
) -> None:
    publish_safetensors(hub, folder)
    fetch(TINY, offline=False)
    (note,) = (tmp_path / "cache").rglob("refs/*.json")
    note.write_bytes(content)
    assert "was not read" in refusal(offline=True)
    fetch(TINY, offline=False)
    fetch(TINY, offline=True)


def test_a_file_of_another_size_in_the_cache_is_read_again(hub: FakeHub, folder: Path) -> None:
    publish_safetensors(hub, folder)
    file = fetch(TINY, offline=False) / "model.safetensors"
    file.write_bytes(b"cut")
    fetch(TINY, offline=False)
    assert model_from_path(file.parent).stored is not None


def test_a_changed_byte_in_the_cache_is_read_again(
    hub: FakeHub, folder: Path, tmp_path: Path
) -> None:
    """A config.json of fewer layers would be a false \"fits\"."""
    publish_safetensors(hub, folder)
    fetch(TINY, offline=False)
    kept = {path: path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    assert {"config.json", "model.safetensors"} < {path.name for path in kept}
    for path, whole in kept.items():
        for at in {0, 40, len(whole) // 3} & set(range(len(whole))):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            assert "was not read" in refusal(offline=True), path
            fetch(TINY, offline=False)
            assert path.read_bytes() == whole


@pytest.mark.parametrize("shared", ["folder", "config.json"])
def test_what_others_may_write_is_refused(hub: FakeHub, folder: Path, shared: str) -> None:
    publish_safetensors(hub, folder)
    kept = fetch(TINY, offline=False)
    (kept if shared == "folder" else kept / shared).chmod(0o777)
    assert "can be written by others" in refusal(offline=True)


def test_models_that_were_not_used_for_longest_are_dropped(
    hub: FakeHub, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_safetensors(hub, folder)
    fetch(TINY, offline=False)
    others = [tmp_path / "cache" / "hub" / "elsewhere" / "org" / f"m{n}" for n in range(4)]
    for age, other in enumerate(others):
        other.mkdir(parents=True)
        os.utime(other, (1_000 + age, 1_000 + age))
    monkeypatch.setattr("advisor.models.hub.store._KEPT", 3)
    fetch(TINY, offline=False)
    assert [other.exists() for other in others] == [False, False, True, True]
    fetch(TINY, offline=True)


def test_two_hubs_do_not_share_a_cache(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_safetensors(hub, folder)
    fetch(TINY, offline=False)
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example")
    assert "was not read" in refusal(offline=True)


def test_processes_may_read_the_same_model_at_once(hub: FakeHub, folder: Path) -> None:
    publish_shards(hub, folder)
    code = f"from advisor.models.hub import fetch; print(fetch({TINY!r}, offline=False))"
    runs = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    found = {run.communicate()[0].strip() for run in runs}
    assert len(found) == 1
    assert model_from_path(Path(found.pop())).stored is not None


def test_nothing_half_written_stays(hub: FakeHub, folder: Path, tmp_path: Path) -> None:
    publish_safetensors(hub, folder)
    least, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, most))
    try:
        message = refusal()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (least, most))
    assert "cannot be written to the cache folder" in message
    assert "ADVISOR_CACHE_DIR" in message
    assert not list((tmp_path / "cache").rglob("*.tmp"))
    assert not list((tmp_path / "cache").rglob("*.safetensors"))


def test_a_cache_that_is_no_folder_is_said(
    hub: FakeHub, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_safetensors(hub, folder)
    (tmp_path / "file").touch()
    monkeypatch.setenv("ADVISOR_CACHE_DIR", str(tmp_path / "file"))
    assert "cannot be written" in refusal()


# Refusals of the hub


@pytest.mark.parametrize("token", ["", "hf_secretsecret"])
@pytest.mark.parametrize("status", FAULTS)
def test_every_status_is_one_sentence_without_the_token(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch, status: int, token: str
) -> None:
    publish_safetensors(hub, folder)
    monkeypatch.setenv("HF_TOKEN", token)
    hub.fault = only_downloads(status)
    message = refusal()
    assert "tiny/model:config.json" in message
    assert "secret" not in message
    tries = 3 if status in {429, 500, 503} else 1
    assert len(hub.downloads()) == tries


def test_a_gated_model_asks_for_a_token(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_safetensors(hub, folder)
    hub.fault = only_downloads(401, X_Error_Code="GatedRepo")
    assert "is gated" in refusal()
    assert "Set HF_TOKEN" in refusal()
    hub.fault = only_downloads(403, X_Error_Code="GatedRepo")
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    monkeypatch.setattr(client, "_TOKEN_SCHEMES", frozenset({"http"}))
    assert "ask for access" in refusal()


def test_a_model_that_does_not_exist_is_said(hub: FakeHub) -> None:
    assert "there is no public nobody/nothing" in refusal("nobody/nothing")


def test_a_revision_that_does_not_exist_is_said(hub: FakeHub) -> None:
    def fault(handler: Handler) -> bool:
        handler.answer(404, {"X-Error-Code": "RevisionNotFound"})
        return True

    hub.fault = fault
    assert "no such revision: tiny/model@v9" in refusal(f"{TINY}@v9")


def test_a_file_that_does_not_exist_has_a_nearest_name(hub: FakeHub, folder: Path) -> None:
    gguf(folder / "tiny-Q4_K_M.gguf")
    hub.add(TINY, folder)
    assert "Did you mean 'tiny-Q4_K_M.gguf'?" in refusal(f"{TINY}:tiny-Q4_K_N.gguf")
    assert "has no GGUF file in Q5_K_M. It has tiny-Q4_K_M.gguf" in refusal(f"{TINY}:Q5_K_M")


def test_several_gguf_files_must_be_told_apart(hub: FakeHub, folder: Path) -> None:
    for n in range(12):
        gguf(folder / f"tiny-Q{n}_0.gguf")
    hub.add(TINY, folder)
    message = refusal()
    assert "and 4 more" in message
    assert "Name one, for example tiny/model:tiny-Q0_0.gguf." in message


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["README.md"], "holds no model that advisor reads"),
        (["adapter_config.json", "adapter_model.safetensors"], "an adapter (LoRA) has none"),
        (["config.json", "a.safetensors", "b.safetensors"], "holds several models"),
        (["config.json", "model-00001-of-00002.safetensors"], "lacks model-00002-of-00002"),
    ],
)
def test_repositories_without_a_model_are_said(
    hub: FakeHub, folder: Path, names: list[str], said: str
) -> None:
    configure(folder)
    content = (folder / "config.json").read_bytes()
    hub.models[TINY] = {name: Held(content, len(content)) for name in names}
    assert said in refusal()


@pytest.mark.parametrize("seconds", ["1", "99999", "soon"])
def test_a_pause_that_is_asked_for_is_kept_or_refused(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    publish_safetensors(hub, folder)
    waited: list[float] = []
    monkeypatch.setattr(client, "_sleep", waited.append)
    hub.fault = only_downloads(429, Retry_After=seconds)
    assert "too many requests" in refusal()
    assert waited == {"1": [1, 1], "99999": [], "soon": [1, 2]}[seconds]


def test_a_fault_that_passes_is_not_seen(hub: FakeHub, folder: Path) -> None:
    publish_safetensors(hub, folder)
    asked: list[str] = []

    def fault(handler: Handler) -> bool:
        asked.append(handler.path)
        if asked.count(handler.path) > 1:
            return False
        handler.answer(503, {})
        return True

    hub.fault = fault
    assert fetch(TINY, offline=False).is_dir()


# Servers that misbehave


def test_a_server_that_ignores_ranges_is_cut_short(hub: FakeHub, folder: Path) -> None:
    configure(folder)
    write_safetensors(folder / "model.safetensors", llama() | {"model.big": (2**31, 8)})
    hub.add(TINY, folder)

    def fault(handler: Handler) -> bool:
        del handler.headers["Range"]
        return False

    hub.fault = fault
    path = fetch(TINY, offline=False)
    assert (path / "model.safetensors").stat().st_size > 2**34
    assert hub.sent < 2**26


def test_a_long_header_from_a_server_that_ignores_ranges_is_bounded(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    gguf(folder / "tiny.gguf")
    hub.add(TINY, folder)
    monkeypatch.setattr(client, "MAX_TOTAL_BYTES", 1_000)
    assert "more than the headers of any model have" in refusal()


def test_an_endless_answer_is_refused(hub: FakeHub) -> None:
    def fault(handler: Handler) -> bool:
        handler.stream(200, Held(b"{", 2**40), 0, 2**40)
        return True

    hub.fault = fault
    assert "longer than 20,000,000 bytes" in refusal()
    assert hub.sent < 2**26


def test_an_endless_config_is_refused(hub: FakeHub, folder: Path) -> None:
    publish_safetensors(hub, folder)
    hub.models[TINY]["config.json"] = Held(b"{}", 2**40)
    assert "longer than 10,000,000 bytes" in refusal()


def test_a_gguf_header_without_end_is_bounded(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_PREFIX_BYTES", 3 << 20)
    start, _ = gguf_files.header({"a": "b"}, [], counts=(0, 1000))
    endless = start[: 24 + 8 + 1] + b"\x08\0\0\0" + (2**33).to_bytes(8, "little")
    hub.models[TINY] = {"tiny.gguf": Held(endless, 2**36)}
    assert "the header of tiny/model:tiny.gguf is longer than" in refusal()
    assert hub.sent < 2**24


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("bytes 7-20/{size}", "another part"),
        ("lines 0-20/{size}", "another part"),
        ("", "another part"),
        ("bytes 0-20/12345", "has 12,345 bytes, but the hub lists"),
    ],
)
def test_ranges_that_lie_are_refused(hub: FakeHub, folder: Path, stated: str, said: str) -> None:
    publish_safetensors(hub, folder)
    size = hub.models[TINY]["model.safetensors"].size

    def fault(handler: Handler) -> bool:
        if handler.headers.get("Range") is None:
            return False
        handler.answer(206, {"Content-Range": stated.format(size=size)}, bytes(21))
        return True

    hub.fault = fault
    assert said in refusal()


def test_a_listing_with_another_size_is_refused(hub: FakeHub, folder: Path) -> None:
    publish_safetensors(hub, folder)
    hub.sizes["config.json"] = 7
    assert "but the hub lists 7" in refusal()
    hub.sizes = {"model.safetensors": 99}
    assert "but the hub lists 99" in refusal()


def test_an_answer_shorter_than_it_states_is_refused(hub: FakeHub, folder: Path) -> None:
    publish_safetensors(hub, folder)

    def fault(handler: Handler) -> bool:
        if "/resolve/" not in handler.path:
            return False
        handler.close_connection = True
        handler.answer(200, {"Content-Length": "5000"}, b"{}")
        return True

    hub.fault = fault
    assert "broke while tiny/model:config.json was read" in refusal()


def test_an_empty_piece_does_not_loop(hub: FakeHub, folder: Path) -> None:
    publish_safetensors(hub, folder)

    def fault(handler: Handler) -> bool:
        if handler.headers.get("Range") is None:
            return False
        handler.answer(206, {"Content-Range": "bytes 0-0/1"})
        return True

    hub.fault = fault
    assert "sends nothing of" in refusal()


def test_packed_answers_are_refused(hub: FakeHub) -> None:
    def fault(handler: Handler) -> bool:
        handler.answer(200, {"Content-Encoding": "gzip"}, b"x")
        return True

    hub.fault = fault
    assert "packs tiny/model" in refusal()


def test_a_silent_server_is_given_up(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_SILENCE_SECONDS", 0.05)
    waited: list[float] = []
    monkeypatch.setattr(client, "_sleep", waited.append)

    def fault(handler: Handler) -> bool:
        handler.close_connection = True
        handler.rfile.read(1)
        return True

    hub.fault = fault
    assert "did not answer in time" in refusal()
    assert len(waited) == 2


def test_a_server_that_drips_is_given_up(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "READ_SECONDS", -1.0)
    assert "was not complete after" in refusal()


def test_no_server_is_said(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    message = refusal()
    assert "cannot reach 127.0.0.1:1" in message
    assert "--offline" in message


def test_a_store_of_files_that_cannot_be_reached_is_named(hub: FakeHub, folder: Path) -> None:
    publish_safetensors(hub, folder)
    hub.fault = redirecting(lambda _handler: "http://127.0.0.1:1/store?signature=secret")
    message = refusal()
    assert "cannot reach 127.0.0.1:1" in message
    assert "secret" not in message


@pytest.mark.parametrize("content", [b"<html>", b"[]", b"{}", b'{"sha": "../..", "siblings": []}'])
def test_something_else_than_a_hub_is_said(hub: FakeHub, content: bytes) -> None:
    def fault(handler: Handler) -> bool:
        handler.answer(200, {}, content)
        return True

    hub.fault = fault
    assert "is not that of a hub" in refusal()


@pytest.mark.parametrize(
    "name",
    ["../../x.safetensors", "/etc/x.gguf", "a/../b.gguf", "c:x.gguf", "a\\b.gguf", "a\0.gguf"],
)
def test_no_listing_leads_out_of_the_cache(hub: FakeHub, folder: Path, name: str) -> None:
    hub.models[TINY] = {name: Held(b"GGUF", 4)}
    assert "holds no model" in refusal()


def test_damaged_headers_are_refused_and_not_kept(
    hub: FakeHub, folder: Path, tmp_path: Path
) -> None:
    hub.models[TINY] = {"tiny.gguf": Held(b"GGUF\x09\0\0\0", 5000)}
    assert refusal().startswith("tiny/model:tiny.gguf: ")
    assert not list((tmp_path / "cache").rglob("*.gguf"))


# Redirects and the token


def redirecting(target: Callable[[Handler], str]) -> Callable[[Handler], bool]:
    def fault(handler: Handler) -> bool:
        if "/resolve/" not in handler.path:
            return False
        handler.answer(302, {"Location": target(handler)})
        return True

    return fault


def test_files_may_lie_elsewhere_and_the_token_stays_here(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_safetensors(hub, folder)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr(client, "_TOKEN_SCHEMES", frozenset({"http"}))
    with serving() as other:
        other.models = hub.models
        hub.fault = redirecting(lambda handler: other.address + handler.path)
        assert fetch(TINY, offline=False).is_dir()
    assert {seen.authorization for seen in hub.seen} == {"Bearer hf_secret"}
    assert {seen.authorization for seen in other.seen} == {None}
    assert all(seen.range for seen in other.seen if seen.path.endswith(".safetensors"))


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("/tiny/model/resolve/x", "round in circles"),
        ("{path}", "round in circles"),
        ("{path}x", "round in circles"),
        ("", "no usable address"),
        ("http://", "round in circles"),
        ("http://[", "no usable address"),
        ("http://a:b@127.0.0.1/", "no usable address"),
        ("file:///etc/passwd", "no usable address"),
        ("ftp://127.0.0.1/", "away from https"),
    ],
)
def test_redirects_that_lead_nowhere_are_refused(
    hub: FakeHub, folder: Path, target: str, said: str
) -> None:
    publish_safetensors(hub, folder)
    hub.fault = redirecting(lambda handler: target.replace("{path}", handler.path))
    assert said in refusal()


def test_the_token_is_neither_stored_nor_sent_in_the_clear(
    hub: FakeHub, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_safetensors(hub, folder)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    fetch(TINY, offline=False)
    assert {seen.authorization for seen in hub.seen} == {None}
    kept = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert kept
    assert not [p for p in kept if b"hf_secret" in p.read_bytes()]
    hub.fault = only_downloads(401)
    hub.commit = COMMIT[::-1]
    count = len(hub.seen)
    assert "not sent over plain http" in refusal()
    assert {seen.authorization for seen in hub.seen[count:]} == {None}


@pytest.mark.parametrize("token", ["hf_a\r\nHost: x", "hf a", "hf_ü"])
def test_an_unusable_token_is_refused_unseen(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    assert refusal() == "HF_TOKEN holds characters that no token has. Set it again."


@pytest.mark.parametrize(
    "address", ["ftp://x", "huggingface", "https://", "https://u:p@x", "https://x?a=b", "https://ü"]
)
def test_an_unusable_endpoint_is_refused(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    assert "HF_ENDPOINT is not the address of a hub" in refusal()


@pytest.mark.parametrize(
    "text",
    [
        "model",
        "a/b/c",
        "a b/c",
        "a/../b",
        "a/b:../x.gguf",
        "a/b@../..",
        "a/b:x:y",
        "../b",
        "a" * 5000,
        "https://elsewhere.example/a/b",
        "https://user:secret@huggingface.co/a/b",
        "https://huggingface.co",
        "https://huggingface.co/datasets/a/b",
        "https://huggingface.co/spaces/a/b",
        "https://huggingface.co/a/b/blob",
        "https://huggingface.co/a/b/blob/main/..%2F..%2Fx.gguf",
        "https://[",
    ],
)
def test_other_texts_are_no_names(hub: FakeHub, text: str) -> None:
    message = refusal(text)
    assert message.endswith("org/name:file.gguf.")
    assert "secret" not in message
    assert not hub.seen


# The command line


def test_the_report_is_about_the_model_there(
    hub: FakeHub, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish_safetensors(hub, folder)
    outcome = advise(capsys, "--hub", "--format", "json", model=TINY, precision="BF16")
    assert outcome.code == 0, outcome.err
    doc = json.loads(outcome.out)
    assert doc["scenario"]["model"]["name"] == "model"
    again = advise(capsys, "--offline", "--format", "json", model=TINY, precision="BF16")
    assert json.loads(again.out) == doc


def test_nothing_is_asked_without_the_flag(
    hub: FakeHub, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish_safetensors(hub, folder)
    for model in (TINY, f"{hub.address}/{TINY}", f"{TINY}:tiny-Q8_0.gguf"):
        outcome = advise(capsys, model=model)
        assert outcome.code == 1
        assert "--hub" in outcome.err
        assert len(outcome.err.splitlines()) == 1
    assert not hub.seen


@pytest.mark.parametrize(
    "model",
    ["llama-3-8b", "meta-llama/Meta-Llama-3-8B", "https://hf.co/meta-llama/Meta-Llama-3-8B"],
)
def test_nothing_is_asked_about_a_known_model(
    hub: FakeHub, capsys: pytest.CaptureFixture[str], model: str
) -> None:
    outcome = advise(capsys, "--hub", model=model)
    assert outcome.code == 0, outcome.err
    assert not hub.seen


def test_a_folder_here_goes_before_the_hub(
    hub: FakeHub,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "own" / "model").mkdir(parents=True)
    configure(tmp_path / "own" / "model")
    monkeypatch.chdir(tmp_path)
    assert advise(capsys, "--hub", model="own/model").code == 0
    assert not hub.seen


def test_an_unknown_model_has_the_nearest_known_one(
    hub: FakeHub, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = advise(capsys, "--hub", model="someone/Meta-Llama-3-8B")
    assert outcome.code == 1
    assert "there is no public someone/Meta-Llama-3-8B" in outcome.err
    assert "Did you mean 'meta-llama/Meta-Llama-3-8B" in outcome.err


def test_without_the_extra_it_is_named(
    hub: FakeHub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    outcome = advise(capsys, "--hub", model=TINY)
    assert outcome.code == 1
    assert outcome.err == (
        f"error: '{TINY}' is not in the knowledge base. "
        "Reading it from Hugging Face needs an extra. "
        "Install it: pip install 'llm-gpu-advisor[hub]'.\n"
    )


def test_offline_needs_no_extra(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_safetensors(hub, folder)
    fetch(TINY, offline=False)
    monkeypatch.setitem(sys.modules, "httpx", None)
    assert fetch(TINY, offline=True).is_dir()


def test_unusable_proxies_are_said(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "socks9://x")
    monkeypatch.setenv("NO_PROXY", "")
    assert "proxy or certificate settings" in refusal()


def test_the_usual_path_imports_nothing_of_the_hub() -> None:
    code = (
        "import sys; import advisor.cli.advise, advisor.advice; "
        "print([m for m in sys.modules if 'sources.hub' in m or m.startswith('http')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"


def test_refusals_are_the_users_to_mend() -> None:
    assert issubclass(RequestError, UserError)
    assert issubclass(UserError, AdvisorError)
