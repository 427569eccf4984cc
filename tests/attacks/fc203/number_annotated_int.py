"""What is annotated as an int comes as a float from a configuration file, or as a tensor: the buffer makes it whole."""

import torch
import torch.nn as nn


class Window(nn.Module):
    def __init__(self, window: int):
        super().__init__()
        self.register_buffer("window", torch.tensor(window, dtype=torch.long), persistent=False)

    def forward(self, x):
        return x[:, : self.window] * 2, x * int(self.window)


# run
def run(x, window):
    return Window(window)(x)


def make():
    return run


calls = [(torch.ones(2, 8), w) for w in (6, 6.5, torch.tensor(3), torch.tensor(2.5), True)]
