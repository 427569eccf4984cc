"""A hook for all modules is called for the wrapper as well."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.width = 2
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x).relu()


from torch.nn.modules.module import register_module_forward_hook


def script(x):
    seen = []
    handle = register_module_forward_hook(lambda module, args, out: seen.append(type(module).__name__))
    net = Net()
    net = torch.compile(net, backend="eager")
    y = net(x)
    handle.remove()
    return y, seen

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
