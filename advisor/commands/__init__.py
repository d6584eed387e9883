"""The commands that run a scenario."""

from __future__ import annotations

from advisor.commands.filling import Command, Gap, command_for, commands_for

__all__ = ["Command", "Gap", "command_for", "commands_for"]
