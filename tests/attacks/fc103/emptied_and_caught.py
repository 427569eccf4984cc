"""What is collected may be empty: the error, its type and its words stay, and somebody takes it."""

import torch
from torch import nn


class Net(nn.Module):
    def joined(self, *parts, **weights):
        assert parts, "no parts"
        try:
            assert weights, "no weights"
        except AssertionError as error:
            return torch.cat(parts) + len(str(error))
        return torch.cat(parts) * weights["scale"]

    def forward(self, weights, parts):
        kept = [p for p in parts if p.shape[0] > 1]
        rest = dict(weights)
        rest.pop("bias", None)
        return self.joined(*kept, **rest)


# run
unsafe = True


def make():
    return Net()


calls = [({}, [torch.ones(2)]), ({"scale": 2.0, "bias": 1.0}, [torch.ones(2), torch.ones(1)]), ({}, [])]
