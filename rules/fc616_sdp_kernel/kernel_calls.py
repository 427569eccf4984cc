"""Calls of ``torch.backends.cuda.sdp_kernel`` in compiled code: what they enable, and what stands in the way."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from patcher.facts.analysis import Analysis
from rules.fc616_sdp_kernel.kernel_text import FLAGS

_CALLED = "torch.backends.cuda.sdp_kernel"
#: From here on ``sdp_kernel`` has the flag for cuDNN.
_SINCE = (2, 4)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class KernelCall:
    """``flags``: what each is, where all are written out. ``reason``: why the call is left as it is."""

    node: ast.Call
    flags: dict[str, bool] | None
    reason: str = ""


class KernelCalls(Analysis):
    """Those of one module."""

    @cached_property
    def found(self) -> tuple[KernelCall, ...]:
        """In the order of the source."""
        calls = [n for n in self.syntax.by_type[ast.Call] if isinstance(n, ast.Call) and self._is_one(n)]
        return tuple(self._of(n) for n in sorted(calls, key=lambda n: (n.lineno, n.col_offset)))

    def _is_one(self, call: ast.Call) -> bool:
        if self.syntax.qualified(call.func) != _CALLED:
            return False
        around = self.syntax.parents[call]
        runs = around.body[0] if isinstance(around, _FUNCTIONS) and call in around.decorator_list else call
        return self.facts.compiled(runs) and not self.facts.eager_only(runs)

    def _of(self, call: ast.Call) -> KernelCall:
        reason = self._why_not(call)
        given = dict(zip(FLAGS, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}
        spread = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
        if spread or any(not isinstance(v, ast.Constant) for v in given.values()):
            return KernelCall(call, None, reason)
        if len(call.args) > len(FLAGS) or given.keys() - set(FLAGS) or len(given) < len(call.args) + len(call.keywords):
            return KernelCall(call, None, reason or "it takes no such flags")
        flags = {f: bool(v.value) for f, v in given.items() if isinstance(v, ast.Constant)}
        return KernelCall(call, dict.fromkeys(FLAGS, True) | flags, reason)

    def _why_not(self, call: ast.Call) -> str:
        if self.facts.settings.target_torch < _SINCE:
            return "before PyTorch 2.4 it has other flags"
        if self.facts.scripted:
            return "this file is for TorchScript"
        match self.syntax.parents[call]:
            case ast.withitem(optional_vars=named):
                return "its result is given a name" if named is not None else ""
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return ""
        return "it stands in no `with`"
