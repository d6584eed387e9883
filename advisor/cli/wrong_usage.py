"""Flags as other programs call them, names without quotes, flags given twice: what to write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field
from typer.core import TyperCommand

from advisor.cli.own_settings import naming
from advisor.scenario.settings import FLAGS
from advisor.units import plain, shortened

_VRAM = ("vram", "gpu-memory", "vram-gb", "gpu-ram")
_CALLED = {other: one.typed_name.replace("_", "-") for one in FLAGS for other in one.called}
_SAID = {
    **{other: f"Write --{name}." for other, name in _CALLED.items()},
    **dict.fromkeys(_VRAM, 'Write the memory behind the name: --gpu "NAME:24GB".'),
}


class Hinting(TyperCommand):
    """A command that says what to write where flags are wrong; everything that is, at once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments of the command line.

        Raises:
            UsageError: A flag is called otherwise here, stands twice, or a name lacks its quotes.
        """
        flags: dict[str, Any] = {name: one for one in self.params for name in one.opts}
        takes = any(one.param_type_name == "argument" for one in self.params)
        said = _mistakes(args, flags, takes_words=takes)
        if said:
            ctx.fail(" ".join(said))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; where it refuses its input, settings that stand for flags are named."""
        with naming(ctx):
            return super().invoke(ctx)


class _Reading(Struct):
    """What was read of a command line so far."""

    flags: dict[str, Any]
    said: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    last: str = ""
    words: list[str] = field(default_factory=list)

    def unquoted(self) -> None:
        """Say how a value of several words is written, once it is complete."""
        if len(self.words) > 1:
            shown = shortened(plain(f'{self.last} "{" ".join(self.words)}"'))
            self.said.append(f"A name with spaces needs quotes: {shown}.")
        self.last, self.words = "", []

    def flag(self, name: str, value: str | None) -> None:
        """Take a flag of the command, with its value where it has one."""
        known = self.flags[name]
        if name in self.seen and not known.multiple and not known.is_flag:
            more = ' Several cards go into one: --gpu "RTX 3090 + RTX 4090".'
            self.said.append(f"{name} is given twice.{more if name == '--gpu' else ''}")
        self.seen.add(name)
        if value is not None:
            self.last, self.words = name, [value]

    def unknown(self, name: str) -> bool:
        """Say what a flag of other programs is called here; False where nothing is known of it."""
        hint = _SAID.get(name[2:], "")
        if not hint or not any(known in hint for known in self.flags):
            return False
        self.said.append(f"No such option: {plain(name)}. {hint}")
        return True


def _mistakes(args: Sequence[str], flags: dict[str, Any], *, takes_words: bool) -> Sequence[str]:
    reading, at = _Reading(flags), 0
    while at < len(args) and args[at] != "--":
        name, equals, stated = args[at].partition("=")
        at += 1
        if not name.startswith("-"):
            if reading.last and not takes_words:
                reading.words.append(args[at - 1])
            continue
        reading.unquoted()
        follows = not equals and at < len(args)
        if name in flags:
            takes = not flags[name].is_flag
            value = stated if equals else "".join(args[at : at + 1])
            reading.flag(name, value if takes else None)
            at += takes and follows
        elif reading.unknown(name):
            at += follows and not args[at].startswith("-")
    reading.unquoted()
    return list(dict.fromkeys(reading.said))
