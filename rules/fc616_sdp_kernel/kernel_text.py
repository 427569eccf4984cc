"""The function that takes the flags of ``sdp_kernel``, as text that is written into the user's code."""

from __future__ import annotations

#: What the function in `FUNCTION` is called.
NAME = "_sdp_kernel"

#: The flags in the order in which ``torch.backends.cuda.sdp_kernel`` lists what they enable, and that.
BACKENDS = (
    ("enable_flash", "FLASH_ATTENTION"),
    ("enable_mem_efficient", "EFFICIENT_ATTENTION"),
    ("enable_math", "MATH"),
    ("enable_cudnn", "CUDNN_ATTENTION"),
)

#: The flags in the order in which it takes them.
FLAGS = ("enable_flash", "enable_math", "enable_mem_efficient", "enable_cudnn")

FUNCTION = '''\
def _sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """Do what `torch.backends.cuda.sdp_kernel`, which is not traced, does with these flags."""
    flags = (
        (SDPBackend.FLASH_ATTENTION, enable_flash),
        (SDPBackend.EFFICIENT_ATTENTION, enable_mem_efficient),
        (SDPBackend.MATH, enable_math),
        (SDPBackend.CUDNN_ATTENTION, enable_cudnn),
    )
    return sdpa_kernel([backend for backend, enabled in flags if enabled])
'''
