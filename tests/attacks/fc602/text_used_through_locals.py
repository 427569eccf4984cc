"""The text of the message is looked up again by its name."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        text = f"rows {x.shape[0]}"
        print(text)
        return x * 2, "{text}".format(**locals())


# run
def make():
    return Net()


calls = [(torch.ones(2),)]
