"""A mask on the host indexes a tensor of any device; as an operand beside that one it is an error."""

import torch
from torch import nn


class Blank(nn.Module):
    def forward(self, ids):
        h = (ids * 1).float()
        row = h.mean()
        dropped = torch.ones_like(ids, dtype=torch.bool, device="cpu")
        dropped[:, 0] = False
        h[dropped] = row
        late = torch.zeros_like(ids, device=torch.device("cpu")) < 1
        h[late] += 1.0
        places = ids.argsort(-1)
        first = torch.rand_like(h, device="cpu").to(device="cpu") > 0.5
        places[first] += 1
        return h, places


# run
def make():
    return Blank()


def shapes(f, ids, device):
    torch.manual_seed(0)
    return [t.shape if t.is_meta else t for t in f(torch.tensor(ids, device=device))]


calls = [lambda f: shapes(f, [[1, 2, 3]], "meta"), lambda f: shapes(f, [[5, 2, 3]], "cpu")]
