"""GGUF files: headers, shapes and formats."""
