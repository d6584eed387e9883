"""Measurements and what is fitted to them."""
