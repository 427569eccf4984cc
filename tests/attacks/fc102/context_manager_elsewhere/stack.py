import torch.nn as nn


class Guard:
    def __init__(self):
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None and issubclass(kind, OverflowError):
            self.count += 1
            return True
        return False


class Stack(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.guard = Guard()

    def forward(self, x):
        for _ in range(2):
            with self.guard:
                x = self.layer(x)
        return x
