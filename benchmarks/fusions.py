"""Operators written out by hand against PyTorch's own: how far off float64 both are, how long they take, on this CPU.

    python benchmarks/fusions.py                   a table
    python benchmarks/fusions.py --into patcher/facts/tables/fusions.json
    python benchmarks/fusions.py silu gelu-erf     some of them

The findings of FC801 to FC806 tell what stands in that file. Inputs are normal, of 4 x 256 x 768 elements (attention: 2
x 8 x 256 x 64); an error is the mean absolute difference from the same in float64; a ratio is the time of the form by
hand by that of PyTorch's own, each the lower decile of turns that alternate, on one thread.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = 1e-6
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
TURNS = 25

Inputs = tuple[Tensor, ...]


class Form(NamedTuple):
    """One way to write an operator. ``exact``: in the dtype of what it is given; it is given float64."""

    exact: Callable[..., Tensor]
    hand: Callable[..., Tensor]
    own: Callable[..., Tensor]
    inputs: Callable[[], Inputs]


def _x() -> Inputs:
    return (torch.randn(4, 256, 768),)


def _x_w() -> Inputs:
    return torch.randn(4, 256, 768), 1 + torch.randn(768) / 10


def _x_w_b() -> Inputs:
    return torch.randn(4, 256, 768), 1 + torch.randn(768) / 10, torch.randn(768) / 10


def _q_k_v() -> Inputs:
    return torch.randn(2, 8, 256, 64), torch.randn(2, 8, 256, 64), torch.randn(2, 8, 256, 64)


def _x_row_row() -> Inputs:
    return torch.randn(4, 256, 768), torch.randn(4, 1, 768), torch.randn(4, 1, 768)


def _rms(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS)


def _outside(x: Tensor, w: Tensor) -> Tensor:
    return w * _rms(x.float()).to(x.dtype)


def _inside(x: Tensor, w: Tensor) -> Tensor:
    return (w.float() * _rms(x.float())).to(x.dtype)


def _own_rms(x: Tensor, w: Tensor | None = None) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), w, EPS)


def _layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return w * centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + EPS) + b


def _gelu_tanh(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.pow(3))))


def _gelu_erf(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def _silu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1) @ v


def _modulate(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return x * (1 + scale) + shift


def _x_cos_sin() -> Inputs:
    angles = torch.outer(torch.arange(256), 1e4 ** (-torch.arange(0, 64, 2) / 64))
    return torch.randn(2, 8, 256, 64), angles.cos(), angles.sin()


def _rope_complex(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    wide = torch.float64 if x.dtype is torch.float64 else torch.float32
    turned = torch.view_as_complex(x.to(wide).reshape(*x.shape[:-1], -1, 2)) * torch.complex(cos.to(wide), sin.to(wide))
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


def _rope_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)


FORMS = {
    "silu": Form(_silu, _silu, F.silu, _x),
    "gelu-erf": Form(_gelu_erf, _gelu_erf, F.gelu, _x),
    "gelu-tanh": Form(_gelu_tanh, _gelu_tanh, lambda x: F.gelu(x, approximate="tanh"), _x),
    "layer_norm": Form(_layer_norm, _layer_norm, lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b, EPS), _x_w_b),
    "rms_norm-outside": Form(lambda x, w: w * _rms(x), _outside, _own_rms, _x_w),
    "rms_norm-inside-float32": Form(
        lambda x, w: w * _rms(x), _inside, lambda x, w: _own_rms(x.float(), w.float()).to(x.dtype), _x_w
    ),
    "rms_norm-inside": Form(lambda x, w: w * _rms(x), lambda x, w: w * _rms(x), _own_rms, _x_w),
    "rms_norm-bare-float32": Form(_rms, lambda x: _rms(x.float()), lambda x: _own_rms(x.float()), _x),
    "rms_norm-bare": Form(_rms, _rms, _own_rms, _x),
    "attention": Form(_attention, _attention, F.scaled_dot_product_attention, _q_k_v),
    "modulate": Form(_modulate, _modulate, lambda x, scale, shift: torch.addcmul(shift, x, 1 + scale), _x_row_row),
    "rope-complex": Form(_rope_complex, _rope_complex, _rope_pairs, _x_cos_sin),
}


def measured(form: Form, dtype: torch.dtype) -> dict[str, Any]:
    """Errors, whether the bits are the same, and ratios of time, of one form in one dtype."""
    torch.manual_seed(0)
    given = tuple(t.to(dtype) for t in form.inputs())
    exact = form.exact(*(t.double() for t in given))
    by_hand, by_own = form.hand(*given), form.own(*given)
    told: dict[str, Any] = {"same outputs": torch.equal(by_hand, by_own), "dtype": by_hand.dtype == by_own.dtype}
    told["error by hand"] = _error(by_hand, exact)
    told["error of PyTorch's own"] = _error(by_own, exact)
    told["same gradients"] = all(map(torch.equal, _gradients(form.hand, given), _gradients(form.own, given)))
    with torch.no_grad():
        told["forward"] = _ratio(lambda: form.hand(*given), lambda: form.own(*given))
    told["forward and backward"] = _ratio(
        lambda: _gradients(form.hand, given), lambda: _gradients(form.own, given)
    )  # fmt: skip
    return told


def _error(out: Tensor, exact: Tensor) -> float:
    return float(f"{(out.double() - exact).abs().mean().item():.2g}")


def _gradients(function: Callable[..., Tensor], given: Inputs) -> list[Tensor]:
    leaves = [t.detach().requires_grad_() for t in given]
    out = function(*leaves)
    out.backward(torch.linspace(-1, 1, out.numel()).to(out.dtype).view_as(out))
    return [leaf.grad for leaf in leaves if leaf.grad is not None]


def _ratio(by_hand: Callable[[], object], by_own: Callable[[], object]) -> float:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(TURNS):
        for run, seconds in zip((by_hand, by_own), times, strict=True):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
    low = [sorted(seconds)[TURNS // 10] for seconds in times]
    return float(f"{low[0] / low[1]:.2g}")


def main() -> None:
    """Measure, and print or write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forms", nargs="*", choices=[*FORMS, []], help="only these")
    parser.add_argument("--into", type=Path, help="write all of it there, as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {
        name: {dtype: measured(FORMS[name], DTYPES[dtype]) for dtype in DTYPES} for name in options.forms or FORMS
    }  # fmt: skip
    version = ".".join(torch.__version__.split(".")[:2])
    text = json.dumps({"torch": version, "device": "cpu", "forms": found}, indent=1) + "\n"
    if options.into is not None:
        options.into.write_text(text, encoding="utf-8")
        return
    for name, by_dtype in found.items():
        for dtype, told in by_dtype.items():
            print(f"{name:26} {dtype:9}", *(f"{key}: {value}" for key, value in told.items()), sep="  ")


if __name__ == "__main__":
    main()
