import torch
import torch.nn.functional as F
from torch import nn


class Attend(nn.Module):
    def forward(self, x):
        with torch.backends.cuda.sdp_kernel(enable_flash=False):
            return F.scaled_dot_product_attention(x, x, x)
