"""GGUF headers: nothing in them is believed unchecked."""

from __future__ import annotations

import io
import os
import struct
import time
import tracemalloc
from pathlib import Path

import pytest

from advisor.models.gguf import read_gguf
from advisor.models.gguf.cursor import Budget
from advisor.models.gguf.header import GgufHeader, read_header
from tests.models.gguf_files import (
    ARRAY,
    STRING,
    Entry,
    Raw,
    header,
    refusal,
    text,
    tiny,
    tiny_metadata,
    tiny_tensors,
    write,
)

HUGE = 2**63


# ---- speed and bounds


class Counting(io.BytesIO):
    """Counts what is read."""

    taken = 0
    calls = 0

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self.taken += len(found)
        self.calls += 1
        return found


def counted(raw: bytes, size: int) -> tuple[GgufHeader, Counting]:
    file = Counting(raw)
    return read_header(file, size, Path("x.gguf"), Budget()), file


def test_a_large_vocabulary_is_stepped_over() -> None:
    words = [f"word{number}" for number in range(150_000)]
    scores = Raw(ARRAY, struct.pack("<IQ", 6, 150_000) + bytes(600_000))
    tokenizer = {
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.merges": words,
        "tokenizer.ggml.scores": scores,
        "tokenizer.huggingface.json": "x" * 5_000_000,
    }
    raw, data = header(tokenizer | tiny_metadata(), tiny_tensors())
    found, file = counted(raw + bytes(data), len(raw) + data)
    assert not any(key.startswith("tokenizer") for key in found.metadata)
    texts = 2 * sum(8 + len(word) for word in words)
    assert file.taken < texts + 3 * 2**18
    assert file.calls < 30
    started = time.process_time()
    read_header(io.BytesIO(raw), len(raw) + data, Path("x.gguf"), Budget())
    assert time.process_time() - started < 1


def test_weights_are_never_read(tmp_path: Path) -> None:
    metadata = tiny_metadata(embedding_length=4096)
    tensors = tiny_tensors()
    tensors[0] = Entry("token_embd.weight", (4096, 128_000), "F32")
    raw, data = header(metadata, tensors)
    file = Counting(raw)
    read_header(file, len(raw) + data, tmp_path / "x.gguf", Budget())
    assert data > 2**30
    assert file.taken <= len(raw)


def test_a_million_tensors_are_refused_or_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    start, _ = header({}, [], counts=(10**6, 0))
    with path.open("wb") as file:
        file.write(start)
        file.truncate(2**40)
    tracemalloc.start()
    message = refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "1000000 tensors, more than any model has" in message
    assert peak < 10 * 2**20


def zeros_behind(folder: Path, start: bytes) -> Path:
    """A file of a tebibyte that is empty text and holes."""
    path = folder / "holes.gguf"
    with path.open("wb") as file:
        file.write(start)
        file.truncate(2**40)
    return path


@pytest.mark.parametrize("kind", [STRING, ARRAY, 4, 99])
@pytest.mark.parametrize("count", [2**32, HUGE, 2**64 - 1, 3_999_999])
def test_endless_lists_are_refused(tmp_path: Path, kind: int, count: int) -> None:
    raw = Raw(ARRAY, struct.pack("<IQ", kind, count))
    start, _ = header({"tokenizer.x": raw}, [])
    started = time.process_time()
    refusal(zeros_behind(tmp_path, start))
    assert time.process_time() - started < 10


def test_lists_of_lists_end(tmp_path: Path) -> None:
    content = struct.pack("<IQ", ARRAY, 1) * 6
    start, _ = header({"a": Raw(ARRAY, content)}, [])
    assert "nested too deeply" in refusal(zeros_behind(tmp_path, start))


@pytest.mark.parametrize("length", [65_536, 2**31, HUGE, 2**64 - 1])
def test_impossible_lengths_are_refused(tmp_path: Path, length: int) -> None:
    start = b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, length)
    assert "at most 65535 are allowed" in refusal(zeros_behind(tmp_path, start))
    start = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("general.name")
    long = struct.pack("<IQ", STRING, length)
    refusal(zeros_behind(tmp_path, start + long))


@pytest.mark.parametrize("counts", [(HUGE, 0), (0, HUGE), (2**64 - 1, 2**64 - 1), (10**9, 10**9)])
def test_impossible_counts_are_refused(tmp_path: Path, counts: tuple[int, int]) -> None:
    start, _ = header({}, [], counts=counts)
    assert "more than any model has" in refusal(zeros_behind(tmp_path, start))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (Entry("token_embd.weight", (HUGE, HUGE, HUGE, HUGE)), "it is cut off"),
        (Entry("token_embd.weight", (0, 4)), "cannot be of type F16"),
        (Entry("token_embd.weight", (100, 4), "Q4_K"), "cannot be of type Q4_K"),
        (Entry("token_embd.weight", ()), "states 0 dimensions"),
        (Entry("token_embd.weight", (1,) * 5), "states 5 dimensions"),
        (Entry("token_embd.weight", (64, 100), 999), "has type 999"),
        (Entry("token_embd.weight", (64, 100), "F16", HUGE), "the header is damaged"),
        (Entry("token_embd.weight", (64, 100), "F16", 32), "the header is damaged"),
        (Entry("x" * 64, (64, 100)), "64 bytes long; at most 63"),
        (Entry("a\x1b[31m\n", (64, 100), 999), r"'a\x1b[31m\n'"),
    ],
)
def test_impossible_tensors_are_named(tmp_path: Path, entry: Entry, said: str) -> None:
    start, _ = header(tiny_metadata(), [entry])
    path = tmp_path / "x.gguf"
    path.write_bytes(start)
    assert said in refusal(path)


def test_tensors_beyond_the_end_are_refused(tmp_path: Path) -> None:
    path = tiny(tmp_path)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size - 64)
    assert f"but the file has {size - 64}: it is cut off. Download it again." in refusal(path)


def test_bytes_behind_the_last_tensor_are_a_note(tmp_path: Path) -> None:
    path = tiny(tmp_path)
    with path.open("ab") as file:
        file.write(b"x" * 100)
    assert read_gguf(path).notes == ("'tiny.gguf' holds 100 bytes behind its last tensor.",)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"block_count": 3}, "no tensor of layer 2"),
        ({"block_count": 10**9}, "block_count is 1000000000"),
        ({"block_count": "two"}, "llama.block_count is 'two'"),
        ({"block_count": None}, "llama.block_count is missing"),
        ({"embedding_length": 128}, "embedding has width 64"),
        ({"attention__head_count": None}, "attention.head_count is missing"),
        ({"attention__head_count_kv": 3}, "does not divide the 4"),
        ({"attention__head_count_kv": [2]}, "lists 1 impossible figures"),
        ({"attention__head_count_kv": [2, 10**6]}, "impossible figures"),
        ({"attention__head_count_kv": [2, -1]}, "it must be a whole number from 0"),
        ({"attention__head_count": 4.5}, "attention.head_count is 4.5"),
        ({"attention__head_count": 128}, "too few for 128 attention heads"),
        ({"context_length": 0}, "context_length is 0"),
    ],
)
def test_impossible_metadata_is_named(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    assert said in refusal(tiny(tmp_path, **changes))


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31m", "x" * 65, 7])
def test_impossible_architectures_are_refused(tmp_path: Path, name: object) -> None:
    metadata = tiny_metadata() | {"general.architecture": name}
    assert "general.architecture" in refusal(write(tmp_path / "x.gguf", metadata, tiny_tensors()))


def test_experts_must_agree_with_their_tensors(tmp_path: Path) -> None:
    experts = [
        Entry("blk.0.ffn_gate_inp.weight", (64, 8), "F32"),
        Entry("blk.0.ffn_up_exps.weight", (64, 32, 8)),
    ]
    cases: tuple[tuple[dict[str, object], str], ...] = (
        ({}, "expert_count is missing"),
        ({"expert_count": 9, "expert_used_count": 2}, "its tensors hold 8 experts"),
        ({"expert_count": 8, "expert_used_count": 9}, "expert_used_count is 9"),
    )
    for changes, said in cases:
        path = write(tmp_path / "x.gguf", tiny_metadata(**changes), tiny_tensors() + experts)
        assert said in refusal(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "does not start with 'GGUF'"),
        (b"GGU", "does not start with 'GGUF'"),
        (b"GGML" + bytes(20), "does not start with 'GGUF'"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(40), "version 1 of 2023; advisor reads 2 and 3"),
        (b"GGUF" + struct.pack("<I", 4) + bytes(40), "version 4"),
        (b"GGUF" + struct.pack(">I", 3) + bytes(40), "big-endian"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    assert said in refusal(path)


def test_names_that_occur_twice_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.gguf", tiny_metadata(), [*tiny_tensors(), tiny_tensors()[0]])
    assert "'token_embd.weight' occurs twice" in refusal(path)
    start, _ = header([("a", 1), ("a", 2)], [])
    path.write_bytes(start)
    assert "'a' occurs twice" in refusal(path)


@pytest.mark.parametrize("alignment", [0, 3, 2**31, "x"])
def test_impossible_alignments_are_refused(tmp_path: Path, alignment: object) -> None:
    metadata = tiny_metadata() | {"general.alignment": alignment}
    assert "power of two" in refusal(write(tmp_path / "x.gguf", metadata, tiny_tensors()))


def test_another_alignment_is_followed(tmp_path: Path) -> None:
    start, data = header(tiny_metadata() | {"general.alignment": 64}, tiny_tensors(), alignment=64)
    path = tmp_path / "x.gguf"
    path.write_bytes(start + bytes(data))
    assert len(read_gguf(path).tensors) == len(tiny_tensors())


def test_version_2_is_read(tmp_path: Path) -> None:
    start, data = header(tiny_metadata(), tiny_tensors(), version=2)
    path = tmp_path / "x.gguf"
    path.write_bytes(start + bytes(data))
    assert read_gguf(path).shape.layers == 2


# ---- files that are no files


def test_links_are_followed_and_cycles_refused(tmp_path: Path) -> None:
    link = tmp_path / "link.gguf"
    link.symlink_to(tiny(tmp_path))
    assert read_gguf(link).name == "link"
    one, two = tmp_path / "one.gguf", tmp_path / "two.gguf"
    one.symlink_to(two)
    two.symlink_to(one)
    assert "cannot be read" in refusal(one)
    (tmp_path / "gone.gguf").symlink_to(tmp_path / "nowhere")
    assert "no such file" in refusal(tmp_path / "gone.gguf")


def test_pipes_folders_and_devices_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    for path in (tmp_path / "pipe.gguf", tmp_path, Path(os.devnull)):
        assert "not a plain file" in refusal(path)
    assert "no such file" in refusal(tmp_path / "gone" / "x.gguf")
    assert "not the name of a file" in refusal(tmp_path / "a\0b.gguf")
    assert "cannot be read" in refusal(tmp_path / ("x" * 5000))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    path = tiny(tmp_path)
    path.chmod(0)
    assert "cannot be read" in refusal(path)


def test_errors_of_the_disk_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny(tmp_path)

    def broken(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", broken)
    assert "cannot be read (Permission denied)" in refusal(path)
