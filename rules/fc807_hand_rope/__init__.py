"""FC807: rotary position embeddings."""
