"""The rulebook: a page per rule, the facts and pictures, as Markdown or static HTML."""
