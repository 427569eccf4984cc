import torch

from model import Conv


@torch.no_grad()
def average(first: Conv, second: Conv) -> Conv:
    for a, b in zip(first.buffers(), second.buffers()):
        a.copy_((a + b) // 2)
    return first
