"""Checks of rule files: what is wrong, how it is reported and how it is put right."""
