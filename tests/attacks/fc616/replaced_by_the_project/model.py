"""For a device without such kernels, the project puts its own context manager there."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import devices


class Net(nn.Module):
    def forward(self, x):
        with torch.backends.cuda.sdp_kernel(enable_flash=False):
            x = F.scaled_dot_product_attention(x, x, x)
        return x, len(devices.ENTERED)

# run
def make(): return Net()
def step(net):
    with devices.prepared():
        return net(torch.linspace(-1, 1, 64).reshape(1, 2, 4, 8))
calls = [step]
