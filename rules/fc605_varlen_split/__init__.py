"""FC605: attention that is computed chunk by chunk, over chunks whose lengths are read from a tensor."""
