"""The errors of a script are caught, and those of the model while it is traced: compiled code is in neither."""

import torch
import torch.nn as nn


class Normalise(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        low, high = x.amin(), x.amax()
        if (high <= low).any():
            raise ValueError("a picture of one colour")
        return self.lin((x - low) / (high - low))

# run
from saving import frozen
def make():
    torch.manual_seed(0)
    model = Normalise()
    def call(example, x):
        with torch.no_grad():
            return frozen(model, example)(x)
    return call
calls = [(torch.arange(4.0), torch.arange(4.0)), (torch.ones(4), torch.arange(4.0)), (torch.ones(4), torch.ones(4))]
