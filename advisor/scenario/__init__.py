"""What is asked and what it means: a request resolved to records, settings and defaults."""
