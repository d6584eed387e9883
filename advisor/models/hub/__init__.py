"""Models on the Hugging Face Hub, by their headers alone."""
