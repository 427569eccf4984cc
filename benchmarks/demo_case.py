"""The case of `make demo`: how the captioner beside this file is built and called."""

import torch
from captioner import Captioner, CaptionerConfig, caption, prompt


def build():
    torch.manual_seed(0)
    return Captioner(CaptionerConfig()).eval()


def calls():
    return [prompt(1, 12), prompt(2, 12), caption]  # two batch sizes; a prompt and six words, one by one
