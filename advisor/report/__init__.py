"""Advice -> the result document -> text, Markdown, HTML and JSON.

Every view is made from the document alone, so views cannot disagree with one another.
"""
