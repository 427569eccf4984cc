"""``_foreach_``, ``__setitem__``, ``.data`` and ``copy_`` of a view."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x):
        a = torch.tensor(x.shape[1])
        b = torch.tensor([x.shape[1]])
        c = torch.tensor(x.shape[1])
        d = torch.tensor(x.shape[1])
        torch._foreach_sub_([a], 1)
        b.__setitem__(0, 2)
        c.data.fill_(3)
        d.view(1)[0] = 4
        return x[:, : a.item()], x[:, : b[0].item()], x[:, : c.item()], x[:, : d.item()]

# run
def make(): return Net()
calls = [(torch.ones(2, 8),)]
