import torch

import model


def take(h, n):
    """A bound that is soft."""
    return (h * (torch.arange(h.shape[1]) - n.float()).sigmoid()).sum()


model.take = take
