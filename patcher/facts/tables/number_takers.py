"""Which arguments have to be numbers of the host, so that a tensor in their place is read there: tables only.

Each row is one that a run has shown: `patcher.facts.tables.captured` has a way for each kind.
"""

from __future__ import annotations

from collections.abc import Mapping

#: What an argument may be called by: its position (after the tensor, for a method), or its keyword; ``...``: all.
Arguments = frozenset[object]
_ALL: Arguments = frozenset({..., "size"})


def _after_the_tensor(which: Arguments) -> Arguments:
    """What is at ``which`` places of a method, as places of the function, whose first argument is the tensor."""
    places = frozenset(at + 1 for at in which if isinstance(at, int))
    return places | {at for at in which if isinstance(at, str)} | ({1, 2} if ... in which else set())


#: Which dimension an operator goes along, as it is called; those that are also named by their place come first.
_ALONG: Mapping[str, Arguments] = {
    **dict.fromkeys(("cumsum", "cumprod", "unbind", "softmax", "log_softmax", "logsumexp"), frozenset({0, "dim"})),
    **dict.fromkeys(("sum", "mean", "var", "std", "max", "min", "argmax", "argmin", "sort"), frozenset({"dim"})),
    **dict.fromkeys(("gather", "index_select", "index_add", "scatter", "scatter_add"), frozenset({0, "dim"})),
    **dict.fromkeys(("transpose", "swapaxes", "movedim"), frozenset({..., "dim0", "dim1", "source", "destination"})),
    **dict.fromkeys(("permute", "flip"), frozenset({..., "dims"})),
    "squeeze": frozenset({0, "dim"}),
}

#: Functions of PyTorch -> the arguments that are sizes, and the way in which they are asked.
FUNCTIONS: Mapping[str, tuple[Arguments, str]] = {
    **{f"torch.{name}": (_ALL, "tensor as size") for name in ("zeros", "ones", "empty", "rand", "randn", "eye")},
    "torch.arange": (frozenset({..., "start", "end", "step"}), "tensor as end of arange"),
    **{f"torch.{name}": (_after_the_tensor(which), "tensor as size of a part") for name, which in _ALONG.items()},
    **dict.fromkeys(("torch.cat", "torch.stack"), (frozenset({1, "dim"}), "tensor as size of a part")),
    "torch.full": (frozenset({0, "size"}), "tensor as size"),
    "torch.linspace": (frozenset({2, "steps"}), "tensor as number of steps"),
    "torch.randint": (frozenset({..., "low", "high", "size"}), "tensor as number of steps"),
    "torch.split": (frozenset({1, "split_size_or_sections"}), "tensor as size of a part"),
    "torch.chunk": (frozenset({1, "chunks"}), "tensor as size of a part"),
    "torch.tensor_split": (frozenset({1, "indices_or_sections"}), "tensor as size of a part"),
    "torch.roll": (frozenset({1, "shifts"}), "tensor as width of padding"),
    "torch.topk": (frozenset({1, "k"}), "tensor as size of a view"),
    "torch.kthvalue": (frozenset({1, "k"}), "tensor as size of a view"),
    "torch.multinomial": (frozenset({1, "num_samples"}), "tensor as size of a view"),
    "torch.as_strided": (frozenset({1, 2, 3, "size", "stride", "storage_offset"}), "tensor as size of a view"),
    "torch.normal": (frozenset({2, "size"}), "tensor as size"),
    "torch.unsqueeze": (frozenset({1, "dim"}), "tensor as size of a view"),
    "torch.nn.functional.dropout": (frozenset({1, "p"}), "tensor as fill value"),
    "torch.nn.functional.unfold": (frozenset({1, "kernel_size"}), "tensor as size of a part"),
    **{
        f"torch.nn.functional.{kind}_pool{n}d": (frozenset({1, "kernel_size"}), "tensor as size of a part")
        for kind in ("avg", "max")
        for n in (1, 2, 3)
    },
    "torch.narrow": (frozenset({2, 3, "start", "length"}), "tensor as size of a view"),
    "torch.full_like": (frozenset({1, "fill_value"}), "tensor as fill value"),
    "torch.broadcast_to": (frozenset({1, "size"}), "tensor as size of a view"),
    "torch.reshape": (frozenset({1, "shape"}), "tensor as size of a view"),
    "torch.tile": (frozenset({1, "dims"}), "tensor as size of a view"),
    "torch.nn.functional.pad": (frozenset({1, 3, "pad", "value"}), "tensor as width of padding"),
    "torch.nn.functional.interpolate": (frozenset({1, "size"}), "tensor as size of a view"),
    "torch.nn.functional.one_hot": (frozenset({1, "num_classes"}), "tensor as size of a part"),
    **{
        f"torch.nn.functional.adaptive_{kind}_pool{n}d": (frozenset({1, "output_size"}), "tensor as size of a part")
        for kind in ("avg", "max")
        for n in (1, 2, 3)
    },
}
#: Methods of tensors -> the same.
METHODS: Mapping[str, tuple[Arguments, str]] = {
    **dict.fromkeys(("view", "reshape", "expand", "repeat", "tile"), (_ALL, "tensor as size of a view")),
    **dict.fromkeys(("new_zeros", "new_ones", "new_empty"), (_ALL, "tensor as size")),
    **{name: (which, "tensor as size of a part") for name, which in _ALONG.items()},
    "new_full": (frozenset({0, 1, "size", "fill_value"}), "tensor as fill value"),
    "unflatten": (frozenset({1, "sizes"}), "tensor as size of a view"),
    "narrow": (frozenset({1, 2, "start", "length"}), "tensor as size of a view"),
    **dict.fromkeys(("topk", "kthvalue"), (frozenset({0, "k"}), "tensor as size of a view")),
    "multinomial": (frozenset({0, "num_samples"}), "tensor as size of a view"),
    "unsqueeze": (frozenset({0, "dim"}), "tensor as size of a view"),
    "split": (frozenset({0, "split_size"}), "tensor as size of a part"),
    "chunk": (frozenset({0, "chunks"}), "tensor as size of a part"),
    "tensor_split": (frozenset({0, "indices_or_sections"}), "tensor as size of a part"),
    "unfold": (frozenset({..., "size", "step"}), "tensor as size of a part"),
    "roll": (frozenset({0, "shifts"}), "tensor as width of padding"),
    "select": (frozenset({1, "index"}), "tensor as index of one row"),
    "tril": (frozenset({0, "diagonal"}), "tensor as width of padding"),
    "triu": (frozenset({0, "diagonal"}), "tensor as width of padding"),
}
#: Functions of Python that ask a tensor they are given -> the way.
BUILTINS: Mapping[str, str] = {
    "range": "range of a tensor",
    "bool": "bool",
    "complex": "complex",
    "any": "any of a tensor",
    "all": "all of a tensor",
    "sorted": "sorted tensor",
    "str": "text of a tensor",
    "repr": "text of a tensor",
}
#: Functions whose answer is a number that the data gives, whatever tensor they are given.
ANSWERING = frozenset({"torch.equal", "torch.allclose", "torch.is_nonzero", "operator.index"})
#: Methods that do so.
ANSWERING_METHODS = frozenset({"is_nonzero", "equal", "allclose", "__index__", "__int__", "__float__", "__bool__"})
#: Functions of ``math`` that take a tensor as it is.
MATH_IN_GRAPH = frozenset({"prod"})
#: Functions, and methods of tensors, whose result has as many rows as the data says; each is its own way.
SIZED_BY_DATA = frozenset("nonzero argwhere unique unique_consecutive masked_select bincount".split())
#: Ways in which the code says what it does: by the name of a type.
NAMED = frozenset({"bool", "int", "int of an array"})
#: Ways after which PyTorch does not resume: it gives up the function, whose rest, or all of it, runs eagerly.
GIVING_UP = frozenset(
    {
        "tensor as end of a slice",
        "array as end of a slice",
        "list as often as a tensor says",
        "number in a tensor",
        "percent of a tensor",
        "not of a tensor",
    }
)
