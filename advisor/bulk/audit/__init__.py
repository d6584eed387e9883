"""Checks of what was published: a batch or a site against itself and against a fresh answer."""
