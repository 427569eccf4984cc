"""Writing rows of the wrong number is an error even through an empty mask; nothing is set, nothing is written."""

import torch
import torch.nn as nn


class Images(nn.Module):
    def forward(self, embeds, ids, pictures):
        embeds = embeds.clone()
        places = ids == 9
        if places.any():
            embeds[places] = pictures
        return embeds

# run
def make(): return Images()
calls = [
    (torch.zeros(3, 2), torch.tensor([1, 9, 9]), torch.ones(2, 2)),
    (torch.zeros(3, 2), torch.tensor([1, 2, 3]), torch.ones(2, 2)),
    (torch.zeros(3, 2), torch.tensor([1, 2, 3]), None),
]
