"""Two keys of a dict that are equal, for they are tensors: then the values decide, and must go on to."""

import torch.nn as nn


class Net(nn.Module):
    def forward(self, x, keys):
        held = {key: x * (len(keys) - n) for n, key in enumerate(keys)}
        given = {"a": x}
        for key in keys:
            given[key] = x.sum() - len(given)
        return [v for _, v in sorted(held.items())], self.last(**{"a": x}, keys=keys)

    def last(self, keys, **named):
        del named["a"]
        named[keys[0]] = 2
        named[keys[1]] = 1
        return [v for _, v in sorted(named.items())]


# run
import torch


def make():
    return Net()


calls = [(torch.ones(()), [torch.ones(()), torch.ones(())])]
