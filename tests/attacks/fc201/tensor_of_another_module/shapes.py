import torch
import torch.nn.functional


def tensor(n):
    """A multiple of 4."""
    return torch.tensor((n + 3) // 4 * 4)


def F_pad(x, n):
    return torch.nn.functional.pad(x, (0, n - x.shape[1]))
