import torch

from other import called


def two(x: torch.Tensor) -> torch.Tensor:
    return called(x) * 2


@torch.jit.script
def double(x: torch.Tensor) -> torch.Tensor:
    return two(x)


def both(x):
    return two(x)
