"""This machine: what its tools and files say of cards, memory and processor."""
