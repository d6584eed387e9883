"""A static site made from a batch: pages, charts and data that need no server."""
