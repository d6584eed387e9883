from __future__ import annotations

from pathlib import Path

from advisor.files import data_dir, digest, read_tree


def test_the_built_in_folders_are_found() -> None:
    assert (data_dir("knowledge") / "facts.yaml").is_file()


def test_a_tree_is_read_by_sorted_relative_path(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.yaml").write_text("1")
    (tmp_path / "a.yaml").write_text("2")
    (tmp_path / "note.txt").write_text("3")
    assert list(read_tree(tmp_path, [".yaml"]).items()) == [("a.yaml", b"2"), ("b/x.yaml", b"1")]


def test_the_digest_depends_on_names_and_contents() -> None:
    one = digest({"a": b"1", "b": b"2"})
    assert one == digest({"a": b"1", "b": b"2"})
    assert len({one, digest({"a": b"12", "b": b""}), digest({"a": b"1", "c": b"2"})}) == 3
