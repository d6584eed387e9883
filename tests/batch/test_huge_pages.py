"""A worker's memory in huge pages: where Linux can, and never anything else."""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.bulk.batch import huge_pages

SMAPS = Path("/proc/self/smaps_rollup")
HOLDS = """
import sys
from pathlib import Path
from advisor.bulk.batch import huge_pages

def huge():
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("AnonHugePages:"):
            return int(line.split()[1]) * 1024

kept = [[number] for number in range(400_000)]
before = huge()
print(huge_pages.gather(), huge() - before, kept[399_999] == [399_999])
"""


def test_gathered_after_more_and_more_shards() -> None:
    assert [n for n in range(1, 300) if huge_pages.is_time(n)] == [1, 4, 16, 64, 256]


@pytest.mark.skipif(not SMAPS.exists(), reason="Linux says what lies in huge pages")
def test_a_process_gathers_its_own_objects() -> None:
    done = subprocess.run([sys.executable, "-c", HOLDS], capture_output=True, text=True, check=True)
    gathered, more, intact = done.stdout.split()
    assert intact == "True"
    if gathered == "0":
        pytest.skip("this kernel gathers nothing on demand")
    assert int(more) >= 8 * 2**20
    assert int(gathered) >= int(more)


@pytest.mark.parametrize("enabled", ["always madvise [never]\n", None])
def test_nothing_where_they_are_forbidden_or_unknown(tmp_path: Path, enabled: str | None) -> None:
    if enabled:
        (tmp_path / "enabled").write_text(enabled)
        (tmp_path / "hpage_pmd_size").write_text("2097152\n")
    assert huge_pages.gather(tmp_path) == 0


def test_only_what_holds_objects_is_touched(tmp_path: Path) -> None:
    size = 2 * mmap.PAGESIZE
    lines = [
        f"{size:x}-{4 * size:x} rw-p 00000000 00:00 0",
        f"{5 * size + 1:x}-{7 * size + 1:x} rw-p 00000000 00:00 0                  [heap]",
        f"{8 * size:x}-{9 * size:x} rw-p 00000000 00:00 0                  [stack]",
        f"{10 * size:x}-{12 * size:x} r-xp 00000000 08:01 173521     /usr/lib/libpython3.so",
        f"{13 * size:x}-{14 * size:x} rw-p 00000000 08:01 173521     /a file with spaces.bin",
        f"{15 * size:x}-{16 * size:x} rw-s 00000000 00:00 0",
        f"{17 * size + 1:x}-{18 * size + 1:x} rw-p 00000000 00:00 0",
    ]
    (tmp_path / "maps").write_text("\n".join(lines))
    found = list(huge_pages._regions(tmp_path / "maps", size))
    assert found == [(size, 3 * size), (6 * size, size)]


def test_no_regions_no_gathering(tmp_path: Path) -> None:
    assert list(huge_pages._regions(tmp_path / "missing", 2**21)) == []
