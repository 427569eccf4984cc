
import torch
from torch import nn


class Dropping(nn.Module):
    @property
    def dropped(self) -> torch.Tensor:
        return torch.arange(6) == torch.randint(6, ())
