import contextlib

import torch


@contextlib.contextmanager
def recording():
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    try:
        yield
    finally:
        torch.set_grad_enabled(before)
