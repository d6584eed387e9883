"""Real model metadata: Hugging Face configs and the headers of model files."""
