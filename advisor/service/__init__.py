"""The questions of ``advisor`` for other programs: over HTTP, and as tools of a language model."""
