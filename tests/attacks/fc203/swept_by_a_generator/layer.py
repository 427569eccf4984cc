import torch
import torch.nn as nn
import torch.nn.functional as F


class Pad(nn.Module):
    def __init__(self, hop=2):
        super().__init__()
        self.register_buffer("hop", torch.tensor(hop, dtype=torch.int64), persistent=False)
        self.conv = nn.Conv1d(1, 1, 3)

    def forward(self, x):
        return self.conv(F.pad(x, (0, self.hop)))
