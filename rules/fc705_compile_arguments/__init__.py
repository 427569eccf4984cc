"""FC705: arguments of torch.compile, and settings, that are rejected or mean something else."""
