"""What an operator that is written out by hand is made of, and why PyTorch's own may not be the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from patcher.facts.operators.terms import Term


@dataclass(frozen=True)
class Shape:
    """``operator`` (of PyTorch), with ``operands`` by name, and ``form``: which of its ways to be written it is.

    ``options``: numbers and words that go with it. ``refused``: why PyTorch's own is not the same; "" when it is.
    """

    operator: str
    operands: Mapping[str, Term]
    form: str = ""
    options: Mapping[str, object] = field(default_factory=dict)
    refused: str = ""


#: Whether a term is a row of weights, which a module keeps.
IsRow = Callable[[Term], bool]
