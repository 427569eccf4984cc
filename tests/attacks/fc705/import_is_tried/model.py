"""The file is imported in a try of another, which goes on without it."""

import torch

try:
    from fast import net
except Exception:
    net = None


def script(x):
    return x if net is None else net(x)


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
