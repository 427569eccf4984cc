"""The generator that gives the pictures notes in the sizes what it has cropped."""

import torch
import torch.nn as nn


class Crops(nn.Module):
    def pictures(self, x, sizes):
        for i in range(len(x)):
            if i:
                sizes[i].clamp_(max=2)
            yield x[i]

    def forward(self, x, sizes: torch.Tensor):
        out = torch.zeros(x.shape[0], 12)
        for i, picture in enumerate(self.pictures(x, sizes)):
            height, width = sizes[i].tolist()
            out[i, : height * width] = picture.mean()
        return out.sin()

# run
def make(): return Crops()
calls = [(torch.ones(2, 3), torch.tensor([[2, 3], [3, 4]]))]
