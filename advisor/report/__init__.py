"""The result document as text, Markdown, HTML and JSON; each view is made from it alone."""
