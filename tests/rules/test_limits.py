"""Files made to exhaust memory or time are refused at once, in a process with little of both."""

import subprocess
import sys
from pathlib import Path

import pytest

LAUGHS = "a: &a [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(9)
)
MERGES = "a: &a {x: 1}\n" + "".join(f"k{n}: {{<<: *a}}\n" for n in range(50_000))
DEEP = "[" * 100_000
DEEP_LINES = "".join(f"{' ' * n}- \n" for n in range(2_000))
LONG = "- " + "x" * 9_000_000
QUADRATIC = f"a: &a {'x' * 100_000}\n" + "b: [" + ", ".join(["*a"] * 100_000) + "]\n"

CHILD = """
import resource, sys
limit = 100 * 2**20
from advisor.errors import RuleFileError, UserError
from advisor.yamlfile import parse_yaml
import yaml
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + limit, held + limit))
resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
try:
    parse_yaml(sys.stdin.buffer.read(), "f.yaml", RuleFileError)
except UserError as error:
    print(error)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) * 1024  # ru_maxrss begins with that of the parent
assert peak < limit, peak
"""


def refused(text: str, seconds: int = 1) -> str:
    """Parse in a process of its own that may take 100 MB more and so much processor time."""
    child = CHILD.replace("SECONDS", str(seconds + 1))  # importing takes part of a second
    done = subprocess.run(
        [sys.executable, "-c", child],
        input=text.encode(),
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


@pytest.mark.skipif(sys.platform != "linux", reason="limits a process through /proc and rlimits")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(LAUGHS, "f.yaml:1:4: anchors ('&') and aliases ('*') are not", id="laughs"),
        pytest.param(MERGES, "f.yaml:1:4: anchors ('&') and aliases ('*') are not", id="merges"),
        pytest.param(QUADRATIC, "f.yaml:1:4: anchors ('&') and aliases", id="quadratic"),
        pytest.param(DEEP, "f.yaml:1:25: nested deeper than 24 levels.", id="deep"),
        pytest.param(DEEP_LINES, "f.yaml:25:25: nested deeper than 24", id="deep lines"),
        pytest.param(LONG, "f.yaml: the file is larger than 8 MB.", id="long"),
    ],
)
def test_a_bomb_is_refused_within_a_second_and_100_mb(text: str, said: str) -> None:
    assert refused(text).replace("f.yaml:1:1001:", "f.yaml:1:25:").startswith(said)  # newer parsers


def test_the_fixture_of_a_billion_laughs_is_one() -> None:
    content = (Path(__file__).parent / "broken" / "billion-laughs.yaml").read_text(encoding="utf-8")
    assert content.count("*") == 81
