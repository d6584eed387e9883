"""The rule language and the engines that run it."""
