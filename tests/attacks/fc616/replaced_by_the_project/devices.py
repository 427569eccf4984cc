import contextlib

import torch

ENTERED = []


@contextlib.contextmanager
def sdp_kernel(**flags):
    ENTERED.append(flags)
    yield


@contextlib.contextmanager
def prepared():
    saved, torch.backends.cuda.sdp_kernel = torch.backends.cuda.sdp_kernel, sdp_kernel
    try:
        yield
    finally:
        torch.backends.cuda.sdp_kernel = saved
