"""Whether two commits say the same: thousands of documents of each, compared byte by byte.

    python benchmarks/same_bytes.py make -o now.json                  this checkout as it is
    python benchmarks/same_bytes.py make --commit main -o main.json   a commit
    python benchmarks/same_bytes.py make --tree FOLDER --quick -o FILE.json
    python benchmarks/same_bytes.py compare main.json now.json        files, commits or folders
    python benchmarks/same_bytes.py compare HEAD~1 . --quick --allow 'help/*'

`make` runs every command of `python -m advisor` and writes name and SHA-256 of each document to
FILE.json and the texts to FILE.json.zip. A document is what one command printed, a file that it
wrote, or one line of a JSON Lines file. Commands run in two processes, one after the other in each;
with --fresh each has a process of its own, which must give the same. Inputs are the same for every
commit: requests are drawn from the lists in same_bytes_inputs.py, fixtures come from this checkout.

`compare` exits with 1 when a document differs or is missing on one side. --allow GLOB (repeatable)
declares documents that may; they are counted. --json-order-free ignores the order of keys,
--hash-free the hashes that every report carries of rules, knowledge and templates.

Left out: `--gpu local`, `--hub`, `--watch`, `--dry-run`, `calibrate` (25 s; its --check compares
bytes) and `rules diff` of a git revision. Times, rates, the hash of the code and paths of the
temporary folder are replaced.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import gzip
import hashlib
import io
import itertools
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from same_bytes_inputs import CONFIGS, ROOT, Step, chains

PROCESSES = 2
SHOWN_NAMES = 12
SHOWN_LINES = 24
FIXED = {
    "ADVISOR_NO_MEASUREMENTS": "",
    "COLUMNS": "100", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "LINES": "40", "NO_COLOR": "1",
    "PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "TERM": "dumb", "TZ": "UTC",
}  # fmt: skip
FOLDERS = {
    "ADVISOR_CACHE_DIR": "cache", "ADVISOR_DATA_DIR": "data", "HOME": "home", "TMPDIR": "tmp",
    "PYTHONPYCACHEPREFIX": "compiled",
}  # fmt: skip
VOLATILE = (
    (re.compile(r'("(?:seconds|per_second)": )[0-9.e+-]+'), r"\g<1>0"),
    (re.compile(r'("code_sha256": ")[0-9a-f]+'), r"\g<1>0"),
)
PROGRESS = re.compile(
    r"^(([\w -]+: )?[\d,]+ of [\d,]+( scenarios.*)?|working out the facts of .*; kept)\n",
    re.MULTILINE,
)
"""What standard error says now and then: every ten seconds, or where nothing was kept."""
HASH = re.compile(r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,64}\b")
Texts = dict[str, str]


# ---- in the process that runs commands


def work() -> None:
    """Answer each step on standard input with its documents, on what was standard output."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    home = Path.cwd()
    for line in sys.stdin.buffer:
        step: Step = json.loads(line)
        os.chdir(home / step.get("at", "."))
        for path, text in step.get("write", {}).items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text, encoding="utf-8")
        found = dict(documents(step))
        os.chdir(home)
        answers.write(json.dumps(found) + "\n")
        answers.flush()


def documents(step: Step) -> Iterator[tuple[str, str]]:
    if "argv" in step:
        yield step["name"], said(step["argv"], step.get("stdin", ""))
    for folder in step.get("take", []):
        for path in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
            yield from contents(f"{step['name']}:{path.as_posix()}", path)


def contents(name: str, path: Path) -> Iterator[tuple[str, str]]:
    content = path.read_bytes()
    if path.suffix == ".parquet":
        yield name, f"{len(content)} bytes, {hashlib.sha256(content).hexdigest()}"
    elif path.suffix == ".jsonl":
        for number, line in enumerate(content.decode().splitlines(keepends=True), 1):
            yield f"{name}#{number:05}", line
    else:
        yield name, content.decode("utf-8", "backslashreplace")


def said(argv: Sequence[str], stdin: str) -> str:
    """What a command prints; with its exit code and standard error where there are any."""
    out, err = _stream(), _stream()
    sys.argv, sys.stdin = ["advisor", *argv], _stream(stdin)
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_module("advisor", run_name="__main__")
        except SystemExit as ended:
            code = ended.code
    told = PROGRESS.sub("", _read(err))
    return _read(out) + (f"\n[exit {code or 0}]\n{told}" if code or told else "")


def _stream(text: str = "") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8", write_through=True)


def _read(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8", "backslashreplace")


# ---- making


def make(tree: Path | None, commit: str | None, *, quick: bool, **how: Any) -> Texts:
    """Every document; how: `only` a glob of chains, `fresh` for a process for each command."""
    with tempfile.TemporaryDirectory(prefix="same-bytes-") as made:
        scratch = Path(made).resolve()
        code = _code(scratch, tree, commit)
        _fixtures(scratch / "work")
        todo = [chain for chain in chains(quick=quick) if _asked_for(chain, how.get("only", "*"))]
        named = Counter(step["name"] for chain in todo for step in chain if "name" in step)
        assert not (twice := [name for name, times in named.items() if times > 1]), twice
        texts: Texts = {}
        for found in Runner(scratch, code, fresh=how.get("fresh", False)).all(todo):
            texts.update(found)
        places = {str(code.resolve()): "<tree>", str(code): "<tree>", str(scratch): "<scratch>"}
        return {name: _normal(texts[name], places) for name in sorted(texts)}


def _asked_for(chain: Sequence[Step], only: str) -> bool:
    return any(fnmatchcase(step["name"], only) for step in chain if "name" in step)


def _code(scratch: Path, tree: Path | None, commit: str | None) -> Path:
    code = scratch / "tree"
    if commit is None:
        code.symlink_to((tree or ROOT).resolve())
        return code
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", commit]
    packed = subprocess.run(command, check=False, capture_output=True)
    if packed.returncode:
        raise SystemExit(f"'{commit}' is no file, folder or commit: {packed.stderr.decode()}")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(code, filter="data")
    return code


def _fixtures(folder: Path) -> None:
    shutil.copytree(ROOT / "tests" / "rules" / "broken", folder / "broken")
    shutil.copytree(ROOT / "tests" / "data" / "measurements", folder / "measured")
    with gzip.open(ROOT / "tests" / "data" / "configs.json.gz") as packed:
        configs = json.load(packed)
    for name in CONFIGS.split():
        (folder / "config" / name).mkdir(parents=True)
        (folder / "config" / name / "config.json").write_text(json.dumps(configs[name]))


def _normal(text: str, places: Mapping[str, str]) -> str:
    for place, sign in places.items():
        text = text.replace(place, sign)
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    return text


class Runner:
    """Gives chains to as many processes as there are threads asking."""

    def __init__(self, scratch: Path, code: Path, *, fresh: bool) -> None:
        self.scratch, self.code, self.fresh = scratch, code, fresh
        self.started: list[subprocess.Popen[str]] = []
        self.mine = threading.local()
        (scratch / "tmp").mkdir()

    def all(self, todo: Iterable[Sequence[Step]]) -> Iterator[Texts]:
        pool = ThreadPoolExecutor(PROCESSES)
        try:
            for found in pool.map(self.chain, todo):
                yield from found
        finally:
            for process in self.started:
                process.kill()
                process.communicate()
            pool.shutdown(cancel_futures=True)

    def chain(self, steps: Sequence[Step]) -> list[Texts]:
        return [self.step(step) for step in steps]

    def step(self, step: Step) -> Texts:
        process: subprocess.Popen[str] = getattr(self.mine, "process", None) or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(step) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            raise SystemExit(f"the process ended in {step.get('name', step)}")
        if self.fresh:
            process.communicate()
            self.mine.process = None
        found: Texts = json.loads(answer)
        return found

    def _start(self) -> subprocess.Popen[str]:
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
        made = {name: str(self.scratch / folder) for name, folder in FOLDERS.items()}
        self.mine.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "work"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
            cwd=self.scratch / "work",
            env={**kept, **FIXED, **made, "PYTHONPATH": str(self.code)},
        )  # fmt: skip
        process: subprocess.Popen[str] = self.mine.process
        self.started.append(process)
        return process


def _written(texts: Texts, file: Path) -> None:
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    file.write_text(json.dumps(hashes, indent=0), encoding="utf-8")
    with zipfile.ZipFile(_beside(file), "w", zipfile.ZIP_DEFLATED, compresslevel=4) as packed:
        for name, text in texts.items():
            packed.writestr(name, text)


def _beside(file: Path) -> Path:
    return file.with_name(file.name + ".zip")


# ---- comparing


class Side:
    """The documents of one side: hashes at hand, texts when asked for."""

    def __init__(self, given: str, *, quick: bool, scratch: Path) -> None:
        self.file = Path(given)
        if not self.file.is_file():
            tree, self.file = Path(given), Path(tempfile.mkdtemp(dir=scratch)) / "made.json"
            folder = tree if tree.is_dir() else None
            _written(make(folder, None if folder else given, quick=quick), self.file)
        self.hashes: dict[str, str] = json.loads(self.file.read_text(encoding="utf-8"))
        self.packed = zipfile.ZipFile(_beside(self.file))

    def text(self, name: str) -> str:
        return self.packed.read(name).decode() if name in self.hashes else ""


def compare(one: Side, other: Side, args: argparse.Namespace) -> int:
    names = sorted(one.hashes.keys() | other.hashes.keys())
    differ = [name for name in names if one.hashes.get(name) != other.hashes.get(name)]
    if args.json_order_free or args.hash_free:
        differ = [n for n in differ if _told(one.text(n), args) != _told(other.text(n), args)]
    declared = {name for name in differ if any(fnmatchcase(name, glob) for glob in args.allow)}
    wrong = [name for name in differ if name not in declared]
    _counts(names, wrong, declared)
    _named(wrong, one, other)
    first = {name.partition("/")[0]: name for name in reversed(wrong)}
    for name in sorted(first.values())[: args.show]:
        print("\n" + "\n".join(itertools.islice(_diff(name, one, other), SHOWN_LINES)))
    return 1 if wrong else 0


def _told(text: str, args: argparse.Namespace) -> str:
    """A document without what is not to be compared: hashes, the order of keys in JSON."""
    if args.hash_free:
        text = HASH.sub("#", text)
    if args.json_order_free:
        with contextlib.suppress(ValueError):
            return json.dumps(json.loads(text), sort_keys=True)
    return text


def _counts(names: Iterable[str], wrong: Iterable[str], declared: Iterable[str]) -> None:
    rows = [Counter(name.partition("/")[0] for name in some) for some in (names, wrong, declared)]
    print(f"{'group':<12}{'documents':>10}{'differ':>8}{'declared':>10}")
    for group in sorted(rows[0]):
        print(f"{group:<12}{rows[0][group]:>10}{rows[1][group]:>8}{rows[2][group]:>10}")
    print(f"{'all':<12}{rows[0].total():>10}{rows[1].total():>8}{rows[2].total():>10}")


def _named(wrong: Sequence[str], one: Side, other: Side) -> None:
    for group, of in itertools.groupby(wrong, lambda name: name.partition("/")[0]):
        found = list(of)
        print(f"\n{group}: {len(found)} differ")
        for name in found[:SHOWN_NAMES]:
            missing = [s for s, side in (("A", one), ("B", other)) if name not in side.hashes]
            print(f"  {name}{f'  (not in {missing[0]})' if missing else ''}")
        if len(found) > SHOWN_NAMES:
            print(f"  and {len(found) - SHOWN_NAMES} more")


def _diff(name: str, one: Side, other: Side) -> Iterator[str]:
    old, new = _lines(one.text(name)), _lines(other.text(name))
    for line in difflib.unified_diff(old, new, f"A {name}", f"B {name}", n=1, lineterm=""):
        yield line[:200]


def _lines(text: str) -> list[str]:
    """Lines of a text; a long line of JSON is set out, so that a difference can be seen."""
    if text.count("\n") <= 1:
        with contextlib.suppress(ValueError):
            return json.dumps(json.loads(text), indent=1).splitlines()
    return text.splitlines()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="write the documents of a commit or a folder")
    source = making.add_mutually_exclusive_group()
    source.add_argument("--commit", metavar="REV")
    source.add_argument("--tree", metavar="FOLDER", type=Path)
    making.add_argument("--fresh", action="store_true", help="a new process for every command")
    making.add_argument("--only", default="*", metavar="GLOB", help="chains with such a document")
    making.add_argument("-o", "--output", metavar="FILE.json", type=Path, required=True)
    comparing = commands.add_parser("compare", help="compare files, commits or folders")
    comparing.add_argument("sides", nargs=2, metavar="SIDE")
    comparing.add_argument("--json-order-free", action="store_true")
    comparing.add_argument("--hash-free", action="store_true")
    comparing.add_argument("--allow", action="append", default=[], metavar="GLOB")
    comparing.add_argument(
        "--show", type=int, default=3, metavar="N", help="groups to show a diff of"
    )
    for command in (making, comparing):
        command.add_argument("--quick", action="store_true", help="about a sixth of all")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if args.command == "make":
        how = {"fresh": args.fresh, "only": args.only}
        texts = make(args.tree, args.commit, quick=args.quick, **how)
        _written(texts, args.output)
        print(f"{len(texts)} documents: {args.output}")
        return
    with tempfile.TemporaryDirectory(prefix="same-bytes-") as made:
        one, other = (Side(given, quick=args.quick, scratch=Path(made)) for given in args.sides)
        raise SystemExit(compare(one, other, args))


if __name__ == "__main__":
    if sys.argv[1:] == ["work"]:
        work()
    else:
        main()
