"""What is handed to Variable: an alias, a view, a parameter, a list, a number."""
import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 2))
        self.register_buffer("b", torch.zeros(2, 2))

    def forward(self, x):
        a = Variable(torch.as_tensor(x))
        a.unsqueeze_(0)
        b = Variable(torch.Tensor(x))
        c = Variable(self.w.data)
        c.t_()
        d = Variable(torch.stack([self.w, x]))
        e = Variable(torch.zeros(2, requires_grad=True))
        f = Variable(x.view(-1))
        f.add_(1)
        g = Variable(torch.from_numpy(np.ones(2)))
        h = Variable(torch.zeros_like(self.w))
        i = Variable(x[0])
        i.mul_(2)
        j = Variable(self.w)
        k = Variable(torch.empty(2).uniform_())
        l = Variable(x.clone())
        l.requires_grad_()
        m = Variable(torch.atleast_1d(x))
        m.squeeze_()
        n = Variable(torch.tensor(x.shape[0]))
        o = Variable(x.contiguous())
        o.resize_(4)
        p = Variable(torch.ones(2).to(x))
        q = Variable(torch.zeros(2) + self.w)
        r = Variable(torch.full_like(x, 2.0))
        return [x.shape, a, b, c, self.w.shape, d, e.requires_grad, f, g, h, i, j.requires_grad, type(j).__name__, k, l, m, n, o, x.shape, p, q.requires_grad, r, isinstance(self.w, Variable), isinstance(x, (Variable, int))]

# run
compiled = True
def make(): return Net()
calls = [(torch.ones(2, 2),), (torch.ones(2, 2, requires_grad=True).double().detach(),), (torch.ones(2, 4)[:, ::2],)]
