"""The commands that run a scenario."""

from __future__ import annotations

from advisor.commands.filling import Command, Gap, can_tell, command_for, commands_for

__all__ = ["Command", "Gap", "can_tell", "command_for", "commands_for"]
