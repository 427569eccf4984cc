"""The names of parameters are read in another file, which imports all of it."""

import torch

from trained import *


def script(x):
    return net(x), list(net.state_dict())


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
