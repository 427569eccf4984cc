"""What compiling a model costs, counted in the process that has it: for tests of the user's own.

It is loaded from where it lies, under another name, so that the tests' process gets none of our plain names; what it
imports lies beside it. What is changed of torch and of logging meanwhile is as it was afterwards, but for what had been
compiled: Dynamo starts anew before and after.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch._dynamo
import torch._logging

from .listener import Json, Listener, attend, described

FEWEST, MOST = 2, 4  # passes over all calls: until nothing is compiled any more
SEED = 20


class NotCountedError(Exception):
    """Dynamo is switched off, or a call is none; the message is one line."""


class _Counting:
    """A backend that counts graphs, and the operators that are launched, on top of one of Dynamo's own."""

    def __init__(self, name: str) -> None:
        self._compile = torch._dynamo.lookup_backend(name)
        self.graphs = self.operators = 0

    def __call__(self, graph: Any, inputs: list[Any]) -> Callable[..., Any]:
        size = sum(node.op.startswith("call_") for node in graph.graph.nodes)
        compiled = self._compile(graph, inputs)
        self.graphs += 1  # only now: a backend may refuse

        def launch(*arguments: Any) -> Any:
            self.operators += size
            return compiled(*arguments)

        return launch


def count(model: Any, calls: Sequence[Any], root: str, train: bool = False, backend: str = "aot_eager") -> Json:
    """Compile ``model`` and make the calls: ``counts``, ``operators`` (of the last pass), ``torch`` and all events.

    ``calls``: as a case has them. ``root``: the folder that places are told relative to. ``train``: each call goes
    backward from the sum of what it returns. Raises what the calls raise, and ``NotCountedError``.
    """
    if torch._dynamo.config.disable or os.environ.get("TORCHDYNAMO_DISABLE") == "1":
        raise NotCountedError("torch.compile is switched off here (TORCHDYNAMO_DISABLE, or torch._dynamo.config)")
    top = f"{os.path.realpath(root)}{os.sep}"
    listener = Listener(lambda path: os.path.realpath(path).removeprefix(top))
    counting = _Counting(backend)
    torch._dynamo.reset()
    torch._dynamo.utils.reset_graph_break_dup_checker()
    try:
        with _listening(listener), torch.random.fork_rng(devices=()), torch.set_grad_enabled(train):
            torch.manual_seed(SEED)
            compiled = torch.compile(getattr(model, "_orig_mod", model), backend=counting)
            for number in range(1, MOST + 1):
                before, counting.operators = (counting.graphs, len(listener.breaks)), 0
                for call in calls:
                    _make(compiled, call, train)
                if number >= FEWEST and before == (counting.graphs, len(listener.breaks)):
                    break
    finally:
        torch._dynamo.reset()
    counts = {key: value for key, value in listener.counts().items() if key not in ("launches", "operators")}
    return {
        "counts": {**counts, "graphs": counting.graphs},
        "operators": counting.operators,
        "torch": torch.__version__,
        "backend": backend,
        **described(listener),
    }


@contextlib.contextmanager
def _listening(listener: Listener) -> Iterator[None]:
    """All that torch logs goes to the listener, and nothing to the terminal."""
    names = [name for name in logging.root.manager.loggerDict if name == "torch" or name.startswith("torch.")]
    saved = [(log, log.handlers, log.propagate, log.disabled) for log in map(logging.getLogger, names)]
    disabled = logging.root.manager.disable
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            attend(listener, verbose=False)
            yield
    finally:
        torch._logging.set_logs()
        for log, handlers, propagate, was_disabled in saved:
            log.handlers, log.propagate, log.disabled = handlers, propagate, was_disabled
        logging.disable(disabled)


def _make(model: Any, call: Any, train: bool) -> None:
    """One call, written as in a case."""
    if callable(call) and not torch.is_tensor(call):
        call(model)
        return
    if not isinstance(call, (tuple, list, dict)):
        raise NotCountedError(
            f"compile_budget: a call is a {type(call).__name__}; "
            "write (args, kwargs), a tuple of arguments, a dict of keywords, or a function of the model"
        )
    if isinstance(call, dict):
        output = model(**call)
    elif len(call) == 2 and isinstance(call[0], (tuple, list)) and isinstance(call[1], dict):
        output = model(*call[0], **call[1])
    else:
        output = model(*call)
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(output) if isinstance(leaf, torch.Tensor)]
    parts = [leaf for leaf in leaves if leaf.requires_grad]
    if train and parts:
        torch.stack([part.sum().double() for part in parts]).sum().backward()
