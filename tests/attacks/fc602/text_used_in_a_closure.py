"""A function that was made above the message reads its text."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        def told():
            return len(text)

        y = x * 2
        text = f"rows {x.shape[0]}"
        print(text)
        return y + told()


# run
def make():
    return Net()


calls = [(torch.ones(2),)]
