import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, lengths):
        try:
            return self.inner(x, lengths)
        except ValueError:
            return x
