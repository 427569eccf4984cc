"""The program of `make demo`: draws samples with a compiled sampler."""

import torch
from sampler import Sampler

torch.manual_seed(0)
sampler = torch.compile(Sampler().eval())
with torch.no_grad():
    for _ in range(3):
        samples = sampler(torch.randn(4096, 64))
print(samples.mean().item(), samples.std().item())
