import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, tokenizer):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.tokenizer = tokenizer

    def forward(self, x, ids):
        mask = ids == self.tokenizer.image_token_id
        return self.lin(x) * mask.unsqueeze(-1)
