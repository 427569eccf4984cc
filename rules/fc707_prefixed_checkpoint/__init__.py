"""FC707: checkpoints that carry the names which the wrapper of torch.compile has made."""
