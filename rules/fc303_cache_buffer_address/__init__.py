"""FC303: buffers of a key/value cache that CUDA graphs may not write, since their address is not marked as static."""
