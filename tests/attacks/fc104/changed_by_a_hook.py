"""A forward hook of a layer, registered in the constructor, holds the tensor of the last call."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Identity()
        self.now = {}
        self.scale.register_forward_hook(self.narrow)

    def narrow(self, module, args, out):
        self.now["sizes"].clamp_(max=2)

    def forward(self, x, sizes: torch.Tensor):
        self.now["sizes"] = sizes
        out = torch.zeros(x.shape[0], 12)
        for i in range(sizes.shape[0]):
            height, width = sizes[i].tolist()
            out[i, : height * width] = self.scale(x[i]).mean()
        return out.sin()

# run
def make(): return Net()
calls = [(torch.ones(2, 3), torch.tensor([[2, 3], [3, 4]]))]
