
import torch


def snapshot(thing):
    return {k: v.clone() for k, v in thing.__dict__.items() if torch.is_tensor(v)}


def restore(thing, saved):
    for name in saved:
        getattr(thing, name).copy_(saved[name])
