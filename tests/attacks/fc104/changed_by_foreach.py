"""``_foreach_sub_`` writes to the tensors of a list."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x, sizes: torch.Tensor, budget: torch.Tensor):
        out = torch.zeros(x.shape[0], 12)
        running = [sizes, budget]
        for i in range(sizes.shape[0]):
            height, width = sizes[i].tolist()
            out[i, : height * width] = x[i].mean()
            torch._foreach_sub_(running, 1)
        return out.sin() + budget

# run
def make(): return Net()
calls = [(torch.ones(2, 3), torch.tensor([[2, 3], [3, 4]]), torch.tensor([5]))]
