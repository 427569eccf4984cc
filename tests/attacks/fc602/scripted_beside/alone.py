import math
from typing import Optional

import torch

from model import Base


def more(x: torch.Tensor, by: float):
    return torch.stack([x * max(1.0, by) for _ in range(2)])


@torch.jit.script
def scaled(x: torch.Tensor, by: Optional[float] = None) -> torch.Tensor:
    return more(x, 2.0 if by is None else by) * math.pi


class Net(Base):
    def forward(self, x):
        return scaled(super().forward(x))
