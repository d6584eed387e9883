"""The user's settings: of the environment, of advisor.toml here, and of their own advisor.toml."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer
from msgspec import Struct, json

from advisor.errors import RequestError, Source, UserError, did_you_mean, nearest, raise_problems
from advisor.files import base_dir, hashed, read_kept, read_whole, user_data_dir
from advisor.knowledge.layers import is_price_list, named_twice
from advisor.knowledge.merit import USES
from advisor.scenario.settings import request_from
from advisor.units import plain

TRUSTED = "trusted folders"


def is_trusted(file: Path, content: bytes) -> bool:
    """Whether the user trusts the folder of this file with this very content.

    Raises:
        UserError: Others can write what is remembered.
    """
    return trusted().get(name_of(file.parent)) == digest_of(content)


def refusal(file: Path, content: bytes) -> str:
    """Say in one line that a file does not count, and what to do; empty where it counts."""
    if is_trusted(file, content):
        return ""
    folder = plain(name_of(file.parent))
    changed = name_of(file.parent) in trusted()
    why = "it was changed since you trusted it" if changed else "you did not say that you trust it"
    return (
        f"note: {file.name} in '{folder}' is left out: {why}. "
        "'advisor trust' makes it count here; an empty ADVISOR_CONFIG= leaves it out silently."
    )


def trusted() -> dict[str, str]:
    """Read folder -> digest of its advisor.toml; a damaged file trusts nothing."""
    content = read_kept(trusted_file(), TRUSTED)
    return {} if content is None else json.decode(content, type=dict[str, str])


def trusted_file() -> Path:
    """Where it is kept which folders the user trusts."""
    return user_data_dir() / "trusted.json"


def name_of(folder: Path) -> str:
    """Give the name that a folder is remembered by."""
    return str(folder.resolve()).encode("utf-8", "backslashreplace").decode()


def digest_of(content: bytes) -> str:
    """Give what its advisor.toml is remembered by."""
    return hashed(content)


FILE = "advisor.toml"
VARIABLE = "ADVISOR_CONFIG"
COMPLETING = "_ADVISOR_COMPLETE"
"""What a shell sets that asks for the words of a line."""
KINDS = ("rules", "templates", "knowledge")
ASKED = (
    "gpu", "ram", "ram_type", "ram_bandwidth", "cpu", "cpu_cores", "framework", "prefer", "use",
    "for",
)  # fmt: skip
"""Settings that stand for a flag of this name; the others are folders."""
LAID = {"prices": "knowledge", "language": "templates"}
"""Setting -> the kind of folders that what it names is laid over."""
LANGUAGES, BUILT_IN_LANGUAGE = "languages", "en"
"""The folder of translations beside the file that states ``language``; what needs none."""
KEYS = (*ASKED, *KINDS, *LAID)
TAKEN = {
    "advise": ASKED,
    "check-command": ASKED,
    "models-for": tuple(key for key in ASKED if key != "prefer"),
    "gpus-for": tuple(key for key in ASKED if key != "prefer"),
}
"""Command -> the settings that stand for its flags; ``prefer`` means another thing in the last."""
OTHER_VARIABLES = {
    VARIABLE: "The advisor.toml that counts in place of the one in this folder; empty: no file.",
    "ADVISOR_CONFIG_DIR": "The folder of your own advisor.toml.",
    "ADVISOR_DATA_DIR": "Where your measurements, trusted folders and lists lie.",
    "ADVISOR_CACHE_DIR": "Where all that can be made again is kept.",
    "ADVISOR_NO_MEASUREMENTS": "1 leaves your own measurements out.",
    "ADVISOR_ENGINE": "The rule engine: durable or reference.",
    "ADVISOR_DEBUG": "1 shows a traceback when something fails.",
}
_NOT_HERE = {
    "model": "The model is said with every question.",
}


class Stated(Struct, frozen=True):
    """A setting, and where it is stated."""

    value: str | tuple[Path, ...]
    at: str
    """For its owner: ``ADVISOR_GPU``, ``advisor.toml:3``, the path of their own file and a line."""
    said: str
    """For reports, which name no place of a machine."""


Settings = Mapping[str, Stated]


def user_settings(*, told: bool = True) -> Settings:
    """Read the settings that count: of the environment, else of a file here, else of one's own.

    An empty variable takes its setting away. The file that lies here counts where the user trusts
    this folder: a downloaded one may hold anything.

    ``told`` prints one line on standard error about what does not count.

    Raises:
        UserError: Files or variables are wrong; every problem at once.
    """
    problems: list[UserError] = []
    found: dict[str, Stated] = {}
    for file, said in files(told=told):
        found |= _settings_of(file, _content(file), said, problems)
    found |= _of_environment(problems, told=told)
    raise_problems(problems)
    return {key: one for key, one in found.items() if one.value}


def files(*, told: bool) -> Iterator[tuple[Path, str]]:
    """Give the files that count and what reports call them, the lowest first.

    Raises:
        RequestError: ``ADVISOR_CONFIG`` names no file.
    """
    stated = os.environ.get(VARIABLE)
    if stated == "":
        return
    user = user_file()
    if user and user.is_file():
        yield user, f"your own {FILE}"
    if stated and not Path(stated).is_file():
        raise RequestError(f"{VARIABLE} names '{stated}', which is no file")
    here = Path(stated or FILE)
    if stated or (here.is_file() and _trusted(here, told=told)):
        yield here, here.name


def user_file() -> Path | None:
    """Where the user's own file lies, or would; None for a user without a home."""
    if stated := os.environ.get("ADVISOR_CONFIG_DIR"):
        return Path(stated) / FILE
    with suppress(RuntimeError):
        mac, linux = "Application Support", "XDG_CONFIG_HOME"
        return Path(base_dir("APPDATA", "Roaming", mac, linux, ".config"), FILE)
    return None


def _trusted(file: Path, *, told: bool) -> bool:
    try:
        content = _content(file)
    except UserError as bad:  # what stands here unasked stops nothing
        line = f"note: {file.name} is left out: {bad.message}"
    else:
        line = refusal(file, content)
    if line and told:
        typer.echo(line, err=True)
    return not line


def _content(file: Path) -> bytes:
    try:
        return read_whole(file)
    except OSError as bad:
        raise RequestError(f"cannot read '{file}': {bad.strerror}.") from None


def house_folders(folder: Path) -> Mapping[str, tuple[Path, ...]]:
    """Read which folders the advisor.toml of a folder names; none where there is no such file.

    Raises:
        UserError: The file is wrong; every problem at once.
    """
    file = folder / FILE
    return folders(settings_in(file, _content(file))) if file.is_file() else {}


def folders(settings: Settings) -> Mapping[str, tuple[Path, ...]]:
    """Give the folders among settings: kind -> its folders, the lowest first.

    Prices lie over all other knowledge, and a translation over all other texts.
    """
    found: dict[str, tuple[Path, ...]] = {}
    for key in (*KINDS, *LAID):
        if key in settings and isinstance(named := settings[key].value, tuple):
            kind = LAID.get(key, key)
            found[kind] = (*found.get(kind, ()), *named)
    return found


def settings_in(file: Path, content: bytes) -> Settings:
    """Take apart what an advisor.toml states.

    Raises:
        UserError: It is wrong; every problem at once.
    """
    problems: list[UserError] = []
    found = _settings_of(file, content, file.name, problems)
    raise_problems(problems)
    return found


_AT_LINE = re.compile(r"at line (\d+)")


def _settings_of(
    file: Path, content: bytes, said: str, problems: list[UserError]
) -> dict[str, Stated]:
    import tomllib  # noqa: PLC0415 - for those who have such a file

    name = file.name if said == file.name else str(file)
    try:
        stated = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as bad:
        line = _AT_LINE.search(str(bad))
        place = Source(name, int(line[1]) if line else 0)
        hint = "Write for example 'rules = \"rules\"' or 'gpu = \"RTX 4090\"', a line for each."
        problems.append(RequestError(f"not TOML: {bad}.", source=place, hint=hint))
        return {}
    keys = (line.partition("=")[0] for line in content.decode("utf-8").splitlines())
    lines = [key.strip(" \t\"'") for key in keys]
    found = {}
    for key, value in stated.items():
        place = Source(name, lines.index(key) + 1 if key in lines else 0)
        if read := _read(key, value, place, file.parent, problems):
            found[key] = Stated(read, str(place), said)
    return found


def _of_environment(problems: list[UserError], *, told: bool) -> dict[str, Stated]:
    found = {}
    for key, name in VARIABLES.items():
        value = os.environ.get(name)
        if value == "":
            found[key] = Stated("", name, name)
        elif value is not None:
            stated = value.split(os.pathsep) if key in (*KINDS, "prices") else value
            if read := _read(key, stated, Source(name), Path(), problems):
                found[key] = Stated(read, name, name)
    for line in mistyped() if told else ():
        typer.echo(f"note: {line}", err=True)
    return found


_OURS = "ADVISOR_"
VARIABLES = {key: f"{_OURS}{key.upper()}" for key in KEYS}
"""Setting -> the variable that states it."""


def mistyped() -> Iterator[str]:
    """Say which variables are none of ours and look like one."""
    known = [name.removeprefix(_OURS) for name in (*VARIABLES.values(), *OTHER_VARIABLES)]
    for name in sorted(os.environ):
        rest = name.removeprefix(_OURS)
        if rest not in {name, *known} and (near := nearest(rest, known, most=1)):
            yield f"{plain(name)} is no variable of advisor. Did you mean '{_OURS}{near[0]}'?"


def _read(
    key: str, value: object, place: Source, folder: Path, problems: list[UserError]
) -> str | tuple[Path, ...]:
    """Read a setting; empty where it is wrong."""
    try:
        if key in KINDS or key == "prices":
            return _layers(key, value, place, folder)
        if key == "language":
            return _language(value, place, folder / LANGUAGES)
        if key in ASKED:
            return _as_typed(key, value, place)
    except UserError as wrong:
        problems.append(wrong)
        return ""
    hint = _NOT_HERE.get(key) or did_you_mean(key, KEYS) or f"It takes {', '.join(KEYS)}."
    problems.append(RequestError(f"unknown key '{key}'.", source=place, hint=hint))
    return ""


def _layers(key: str, value: object, place: Source, folder: Path) -> tuple[Path, ...]:
    table = key == "prices"
    what, name = ("table", f"{key}.csv") if table else ("folder", key)
    right: Callable[[Path], bool] = is_price_list if table else Path.is_dir
    hint = f"Write '{key} = \"{name}\"', a {what} beside this file, or a list of them."
    stated = value if isinstance(value, list) else [value]
    for one in stated or [value]:
        if not isinstance(one, str) or not right(folder / one):
            raise RequestError(f"'{key}' names no {what}: {one!r}.", source=place, hint=hint)
    named = tuple(folder / str(one) for one in stated)
    if twice := named_twice(named):
        problem = f"'{key}' names '{twice.name}' twice."
        raise RequestError(problem, source=place, hint="Keep one of the two.")
    return named


def _language(value: object, place: Source, folder: Path) -> str | tuple[Path, ...]:
    """Give the folder of a translation; the built-in texts need none."""
    there = {path.name: path for path in sorted(folder.glob("*")) if path.is_dir()}
    if value == BUILT_IN_LANGUAGE:
        return BUILT_IN_LANGUAGE
    if value in there:
        return (there[str(value)],)
    hint = (
        f"There is {', '.join([BUILT_IN_LANGUAGE, *there])}; yours lie in '{LANGUAGES}/NAME' here."
    )
    raise RequestError(f"there are no texts in '{value}'.", source=place, hint=hint)


def _as_typed(key: str, value: object, place: Source) -> str:
    """Check a setting as one of a request, and give it as its flag would have it."""
    if key == "for":
        if value not in USES:
            hint = did_you_mean(str(value), USES) or f"Write {', '.join(USES)}."
            raise RequestError(f"for: '{value}' is no use", source=place, hint=hint)
        return str(value)
    request_from({key: value}, source=place)
    return str(value)


# ---- of the command that runs

_stated: ContextVar[Settings] = ContextVar("stated", default={})  # noqa: B039  never changed
_used: ContextVar[dict[str, Stated] | None] = ContextVar("used", default=None)


def stated_here() -> Settings:
    """Give the settings of the user, used by the command that runs or not."""
    return _stated.get()


def standing(names: Iterable[str]) -> dict[str, str]:
    """Give what stands for these parameters; the answer then names it as used."""
    stated, keys = _stated.get(), {name: name.rstrip("_") for name in names}
    found = {name: stated[key] for name, key in keys.items() if key in stated}
    if (used := _used.get()) is not None:
        used |= {keys[name]: one for name, one in found.items()}
    return {name: str(one.value) for name, one in found.items()}


@contextmanager
def naming(context: Any) -> Iterator[None]:
    """Remember which settings stand for flags of the command that runs; on a mistake name them."""
    stated: Settings = context.obj or {}
    flags = {key: "for_" if key == "for" else key for key in stated if key in ASKED}
    source = context.get_parameter_source
    used = {
        k: stated[k]
        for k, flag in flags.items()
        if getattr(source(flag), "name", "") == "DEFAULT_MAP"
    }
    before, all_before = _used.set(used), _stated.set(stated)
    try:
        yield
    except UserError:
        if used:
            said = (f"{k} {plain(str(one.value))} ({one.at})" for k, one in used.items())
            typer.echo(f"note: from your settings: {', '.join(said)}", err=True)
        raise
    finally:
        _used.reset(before)
        _stated.reset(all_before)


def used_settings() -> Sequence[str]:
    """Say in one short sentence which flags the user's settings stand for; nothing where none."""
    by_place: dict[str, list[str]] = {}
    for key, one in (_used.get() or {}).items():
        by_place.setdefault(one.said, []).append(f"--{key.replace('_', '-')}")
    said = (f"{', '.join(flags)} ({place})" for place, flags in by_place.items())
    return [f"From your settings: {', '.join(said)}."] if by_place else []
