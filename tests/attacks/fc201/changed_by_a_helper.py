"""A function, a method, ``out=``, a list and a closure write to the tensors before they are read."""

import torch
import torch.nn as nn


def clip(t):
    t.clamp_(max=2)


class Net(nn.Module):
    def less(self, t):
        t -= 1

    def forward(self, x):
        a = torch.tensor(x.shape[1])
        b = torch.tensor(x.shape[1])
        c = torch.tensor(x.shape[1])
        d = torch.tensor(x.shape[1])
        e = torch.tensor(x.shape[1])
        clip(a)
        self.less(b)
        torch.sub(c, 2, out=c)
        for t in [d]:
            t.sub_(3)

        def double():
            e.mul_(2)

        double()
        return x[:, : a.item()], x[:, : b.item()], x[:, : c.item()], x[:, : d.item()], e.item()

# run
def make(): return Net()
calls = [(torch.ones(2, 8),)]
