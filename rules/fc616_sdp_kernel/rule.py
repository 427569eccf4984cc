"""FC616: the context manager by which attention chose its kernels before PyTorch 2.3."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from patcher.facts import Facts
from patcher.facts.effects.own_functions import OwnFunctions
from patcher.rule import Code, Edit, Finding, Fix, Insert, Replace, Rule, Where
from rules.fc616_sdp_kernel.examples import INVALID, VALID
from rules.fc616_sdp_kernel.kernel_calls import KernelCall, KernelCalls
from rules.fc616_sdp_kernel.kernel_text import BACKENDS, FUNCTION, NAME


class SdpKernel(Rule):
    """``with torch.backends.cuda.sdp_kernel(enable_math=False):`` around attention.

    What it does:
        Writes the context manager that is traced: ``with sdpa_kernel([SDPBackend.FLASH_ATTENTION, ...]):``, with what
        the flags allow, where they are written out. Where they are not (``enable_flash=self.flash``,
        ``**config._asdict()``), a function ``_sdp_kernel`` that takes the same flags is written into the file once, and
        called in its place. Both names are imported beside the file's own imports of ``torch``.

    Why it breaks compilation:
        Dynamo does not trace ``sdp_kernel``, deprecated since PyTorch 2.3: the graph breaks there, and as it ends in a
        ``with``, the whole function runs eagerly, and so do all that called it up to there. As a decorator it does the
        same. Seen on 2.13, backend ``eager``: ``sdpa_kernel`` is traced with a list, one backend, an attribute of
        either, as a decorator, in an ``ExitStack`` and in ``a if flag else nullcontext()``; so are calls of
        ``torch.backends.cuda.enable_flash_sdp(False)`` and its like, and ``torch.backends.cudnn.benchmark = True``.
        ``torch.backends.cuda.flash_sdp_enabled()`` and its like, ``with torch.backends.cudnn.flags(...)`` and
        ``with torch.backends.mkldnn.flags(...)`` break the graph: FC611 reports them.

        One H200, torch 2.11, twelve layers of width 512 in bfloat16, 4 times 256 places, flags out of a named tuple:
        5.1 ms as it is and 0.81 patched with ``mode="reduce-overhead"``, 5.8 and 3.2 without; 2 graphs and 1. The same
        kernels run, and eager outputs are the same bits.

    Fix safety:
        Safe: ``sdp_kernel`` makes that list and enters ``sdpa_kernel`` with it (the code of 2.4, 2.5, 2.11, 2.13 and
        2.14 is the same), without a priority, so that the order does not matter. A flag that is not given is on,
        cuDNN's too. Flags are evaluated once, in the order of the source, and wrong ones are a TypeError as before.
        With no backend at all attention raises as it did. What goes is the FutureWarning. What was enabled outside of
        it is put back as it was when the graph was made, which is what the list itself does as well.

        Reported, not fixed: what ``as`` names there (a dict in eager code, None in compiled code); a context
        manager that is handed on or returned; TorchScript; a file that chooses by the version of PyTorch, or imports
        ``sdpa_kernel`` where it can; a ``--target-torch`` before 2.4, which had other flags. An import of
        ``sdp_kernel`` stays, also where nothing uses it any more.

    References:
        ``torch.nn.attention.sdpa_kernel``; "torch.* op returned non-Tensor" (graph break GB0208).
    """

    code = "FC616"
    name = "sdp-kernel"
    triggers = (b"sdp_kernel",)
    listens_to = (ast.Module,)
    where = Where.ANYWHERE
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the calls of ``sdp_kernel`` in compiled code, each with a fix of its own where it can be rewritten."""
        calls = facts.ask(KernelCalls)
        found = list(calls.found)
        heard = [c for c in found if not c.reason and not facts.silenced(self.code, facts.syntax.statement_of(c.node))]
        message = (
            "`sdp_kernel` is not traced: graph break, and where it is in a `with`, the whole function runs eagerly"
        )
        for call in found:
            if call not in heard:
                yield Finding(call.node, message, assumption=call.reason)
                continue
            edits = _edits(call, heard, facts)
            why = "" if edits else "there is no place for the imports, or a name is taken"
            yield Finding(call.node, message, Fix(edits) if edits else None, why)

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether ``node`` is a call that this rule reports."""
        return isinstance(node, ast.Call) and any(c.node is node for c in facts.ask(KernelCalls).found)

    invalid = INVALID
    valid = VALID


def _edits(call: KernelCall, heard: Sequence[KernelCall], facts: Facts) -> tuple[Edit, ...]:
    """What rewrites ``call``; nothing where a name that is needed means something else."""
    calls, functions = facts.ask(KernelCalls), facts.ask(OwnFunctions)
    imports, names = calls.imports()
    if not names:
        return ()
    kernel, backend = names
    if call.flags is not None:
        listed = ", ".join(f"{backend}.{name}" for flag, name in BACKENDS if call.flags[flag])
        return (*imports, Replace(call.node, Code(f"{kernel}([{listed}])")))
    text = FUNCTION.replace("sdpa_kernel(", f"{kernel}(").replace("SDPBackend.", f"{backend}.")
    renamed = Replace(call.node.func, Code(NAME))
    if functions.is_here(text):
        return (*imports, renamed)
    if NAME in calls.taken:
        return ()
    anchor, after = functions.anchor([c.node for c in heard if c.flags is None])
    return (*imports, Insert(anchor, (Code(text.rstrip("\n")),), after=after), renamed)
