"""The tensor is kept in a dict, under which it is halved when a picture was large."""

import torch
import torch.nn as nn


class Pyramid(nn.Module):
    def forward(self, x, sizes: torch.Tensor):
        state = {"sizes": sizes, "left": 12}
        out = torch.zeros(x.shape[0], 12)
        for i in range(sizes.shape[0]):
            height, width = sizes[i].tolist()
            out[i, : height * width] = x[i].mean()
            state["left"] -= height * width
            if state["left"] < 8:
                state["sizes"] //= 2
        return out.sin()

# run
def make(): return Pyramid()
calls = [(torch.ones(3, 3), torch.tensor([[2, 3], [2, 4], [2, 2]]))]
