"""What the project knows about hardware, models, formats and frameworks."""

from advisor.knowledge.load import load_knowledge

__all__ = ["load_knowledge"]
