"""The names of parameters are read in another file, which imports all of it."""

import torch

import trained


def script(x):
    return trained.net(x), list(trained.net.state_dict())


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
