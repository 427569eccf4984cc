"""The helper is called with arrays while the features are made, and with tensors later."""

import numpy as np
import torch
import torch.nn as nn


def centred(x):
    return x - x.max().item()


class Net(nn.Module):
    def forward(self, x):
        wave = centred(np.arange(4.0))
        return centred(x) + torch.as_tensor(wave, dtype=x.dtype)

# run
def make(): return Net()
calls = [(torch.arange(4.0),)]
