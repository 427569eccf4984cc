import functools

import torch


def trainable(fn):
    """Whatever the caller's mode is, the frequencies are learnt."""

    @functools.wraps(fn)
    def inner(*args, **kwargs):
        with torch.enable_grad():
            return fn(*args, **kwargs)

    return inner
