import torch


def with_heads(rotary, heads=2):
    """A row for each head, in double precision."""
    rotary.table = rotary.table.double().expand(heads, -1) * torch.arange(1, heads + 1).unsqueeze(-1)
    return rotary
