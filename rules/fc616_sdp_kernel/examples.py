"""What SdpKernel reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss
from rules.fc616_sdp_kernel.kernel_text import FUNCTION

_HEADS = "torch.linspace(-1, 1, 64).reshape(1, 2, 4, 8)"
_TENSOR = "from torch import Tensor\n"
_IMPORT = _TENSOR + "from torch.nn.attention import SDPBackend, sdpa_kernel\n"
_SDPA = "F.scaled_dot_product_attention(x, x, x)"


def _run(make: str, train: bool = False) -> str:
    return f"def make(): return {make}\ncalls = [({_HEADS},)]\n" + ("train = True\n" if train else "")


INVALID: tuple[Example, ...] = (
    Example(
        title="flags by name",
        before=f"""\
{_TENSOR}

class Attention(nn.Module):
    def forward(self, x: Tensor):
        x = x + 1
        with torch.backends.cuda.sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=False):
            out = {_SDPA}  # flash, or by hand
        return out + 1
""",
        after=f"""\
{_IMPORT}

class Attention(nn.Module):
    def forward(self, x: Tensor):
        x = x + 1
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH, SDPBackend.CUDNN_ATTENTION]):
            out = {_SDPA}  # flash, or by hand
        return out + 1
""",
        run=_run("Attention()", train=True),
    ),
    Example(
        title="fields of a named tuple",
        before=f"""\
{_TENSOR}from collections import namedtuple

Config = namedtuple("Config", ["enable_flash", "enable_math", "enable_mem_efficient"])


# The model itself.

class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.cpu_config = Config(True, True, True)
        self.cuda_config = Config(True, False, False)

    def forward(self, x: Tensor):
        config = self.cuda_config if x.is_cuda else self.cpu_config
        with torch.backends.cuda.sdp_kernel(**config._asdict()):
            out = {_SDPA}
        return out + 1
""",
        after=f"""\
{_IMPORT}from collections import namedtuple

Config = namedtuple("Config", ["enable_flash", "enable_math", "enable_mem_efficient"])


{FUNCTION}

# The model itself.

class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.cpu_config = Config(True, True, True)
        self.cuda_config = Config(True, False, False)

    def forward(self, x: Tensor):
        config = self.cuda_config if x.is_cuda else self.cpu_config
        with _sdp_kernel(**config._asdict()):
            out = {_SDPA}
        return out + 1
""",
        run=_run("Attend()"),
    ),
    Example(
        title="flags of the module and of the tensor, in two methods",
        before=f"""\
{_TENSOR}

class Attention(nn.Module):
    def __init__(self, flash=True):
        super().__init__()
        self.flash = flash

    def attend(self, x):
        with torch.backends.cuda.sdp_kernel(
            enable_flash=self.flash,  # as it was asked for
            enable_math=not x.is_cuda,
        ):
            return {_SDPA}

    def forward(self, x: Tensor):
        x = self.attend(x.sin())
        with torch.backends.cuda.sdp_kernel(self.flash), torch.autocast("cpu", enabled=False):
            x = {_SDPA}
        return x * 2
""",
        after=f"""\
{_IMPORT}

{FUNCTION}

class Attention(nn.Module):
    def __init__(self, flash=True):
        super().__init__()
        self.flash = flash

    def attend(self, x):
        with _sdp_kernel(
            enable_flash=self.flash,  # as it was asked for
            enable_math=not x.is_cuda,
        ):
            return {_SDPA}

    def forward(self, x: Tensor):
        x = self.attend(x.sin())
        with _sdp_kernel(self.flash), torch.autocast("cpu", enabled=False):
            x = {_SDPA}
        return x * 2
""",
        run=_run("Attention()"),
    ),
    Example(
        title="through a name of its own",
        before=f"""\
from torch import Tensor
from torch.backends.cuda import SDPBackend, sdp_kernel


class Attention(nn.Module):
    def forward(self, x: Tensor):
        x = x.cos()
        with sdp_kernel(False, True, False, False):
            x = {_SDPA}
        return x, SDPBackend.MATH is not None
""",
        after=f"""\
from torch import Tensor
from torch.backends.cuda import SDPBackend, sdp_kernel
from torch.nn.attention import sdpa_kernel


class Attention(nn.Module):
    def forward(self, x: Tensor):
        x = x.cos()
        with sdpa_kernel([SDPBackend.MATH]):
            x = {_SDPA}
        return x, SDPBackend.MATH is not None
""",
        run=_run("Attention()"),
    ),
    Example(
        title="a decorator",
        before=f"""\
{_TENSOR}

class Attention(nn.Module):
    @torch.backends.cuda.sdp_kernel(enable_flash=False, enable_cudnn=False)
    def attend(self, x):
        return {_SDPA}

    def forward(self, x: Tensor):
        return self.attend(x + 1) + 1
""",
        after=f"""\
{_IMPORT}

class Attention(nn.Module):
    @sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])
    def attend(self, x):
        return {_SDPA}

    def forward(self, x: Tensor):
        return self.attend(x + 1) + 1
""",
        run=_run("Attention()"),
    ),
    Example(
        title="entered where it is wanted",
        before=f"""\
{_TENSOR}import contextlib


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.flags = dict(enable_flash=False)
        self.chosen = True

    def forward(self, x: Tensor):
        kernels = torch.backends.cuda.sdp_kernel(**self.flags) if self.chosen else contextlib.nullcontext()
        with kernels:
            x = {_SDPA}
        return x * 2
""",
        after=f"""\
{_IMPORT}import contextlib


{FUNCTION}

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.flags = dict(enable_flash=False)
        self.chosen = True

    def forward(self, x: Tensor):
        kernels = _sdp_kernel(**self.flags) if self.chosen else contextlib.nullcontext()
        with kernels:
            x = {_SDPA}
        return x * 2
""",
        run=_run("Attention()"),
    ),
    Example(
        title="a file that spells the new names out",
        before=f"""\
{_TENSOR}

class Attention(nn.Module):
    def forward(self, x: Tensor):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            x = {_SDPA}
        with torch.backends.cuda.sdp_kernel(enable_flash=0, enable_mem_efficient=None, enable_cudnn=False):
            x = {_SDPA}
        return x * 2
""",
        after=f"""\
{_TENSOR}

class Attention(nn.Module):
    def forward(self, x: Tensor):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            x = {_SDPA}
        with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):
            x = {_SDPA}
        return x * 2
""",
        run=_run("Attention()"),
    ),
)


def _miss(title: str, forward: str, top: str = "", reported: bool = True) -> NearMiss:
    body = "".join(f"        {line}\n" for line in forward.splitlines())
    return NearMiss(f"{top}class Attention(nn.Module):\n    def forward(self, x):\n{body}", title, reported)


_WITH = f"with torch.backends.cuda.sdp_kernel(enable_math=False):\n    x = {_SDPA}\nreturn x"
_INDENTED = _WITH.replace("\n", "\n    ")
_TAKEN = "def _sdp_kernel():\n    pass\n\n\n"
_NEW = _WITH.replace("backends.cuda.sdp_kernel(enable_math=False)", "nn.attention.sdpa_kernel([])")

VALID: tuple[NearMiss, ...] = (
    _miss(
        "what it hands out has a name",
        f"with torch.backends.cuda.sdp_kernel(enable_math=False) as kernels:\n    x = {_SDPA}\nreturn x, kernels",
    ),
    _miss("it is given back", "return x, torch.backends.cuda.sdp_kernel(enable_math=False)"),
    _miss(
        "its name is handed on",
        f"c = torch.backends.cuda.sdp_kernel(enable_math=False)\nwith c:\n    x = {_SDPA}\nreturn x, c",
    ),
    _miss("a flag that it does not have", _WITH.replace("enable_math", "enable_maths")),
    _miss("too many flags", _WITH.replace("enable_math=False", "True, True, True, True, True")),
    _miss(
        "imported where there is one",
        _WITH,
        "try:\n    from torch.nn.attention import sdpa_kernel\nexcept ImportError:\n    sdpa_kernel = None\n\n\n",
    ),
    _miss(
        "chosen by the version",
        "if torch.__version__ < '2.3':\n    " + _INDENTED + "\nreturn x.sin()",
    ),
    _miss(
        "chosen by what there is",
        f"new = hasattr(torch.nn.attention, 'sdpa_kernel')\n{_WITH}",
    ),
    _miss(
        "an error of it is taken",
        "try:\n    " + _INDENTED + "\nexcept AttributeError:\n    return x",
    ),
    _miss(
        "the name of the function is taken", _WITH.replace("=False", "=x.is_cuda"), "def _sdp_kernel():\n    pass\n\n\n"
    ),
    _miss(
        "eager code",
        "if not torch.compiler.is_compiling():\n    " + _INDENTED + "\nreturn x",
        reported=False,
    ),
    _miss(
        "the new one",
        _NEW,
        reported=False,
    ),
    _miss(
        "one of the same name",
        _WITH.replace("torch.backends.cuda.", ""),
        "import contextlib\n\n\n@contextlib.contextmanager\ndef sdp_kernel(enable_math=True):\n    yield\n\n\n",
        reported=False,
    ),
    _miss(
        "for TorchScript",
        _WITH,
        "@torch.jit.script\ndef twice(x):\n    return x * 2\n\n\n",
    ),
)
