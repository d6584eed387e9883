"""Safetensors files: headers, shards and formats."""
