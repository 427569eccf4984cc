"""Keywords that are filled and emptied before they are pickled, and keys that are compared with those of elsewhere."""

import pickle

import torch
from torch import nn

_no_keywords = "taken"


class Net(nn.Module):
    def key(self, **kwargs):
        kwargs.pop("scale", None)
        return pickle.dumps(kwargs)

    def other(self, **kwargs):
        kwargs["n"] = 1
        return pickle.dumps(kwargs)

    def forward(self, x):
        same = self.key(scale=2) == pickle.dumps({}) == self.key()
        y = x * 2 if same else x
        return y + len(self.other()) + len(_no_keywords)


# run
def make():
    return Net()


calls = [(torch.ones(2),), (torch.ones(3, 2),)]
