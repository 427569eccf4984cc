"""What calls that are known by name do to memory and attributes: tables only, from the documentation."""

from __future__ import annotations

import ast

from patcher.facts.tables import torch_api as api


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Functions and methods of tensors that may give their argument, or a view of it.
VIEWS = api.ALIASING | _set(
    "broadcast_to broadcast_tensors moveaxis adjoint H mH as_strided numpy positive hsplit vsplit dsplit tensor_split "
    "split_with_sizes view_as_real view_as_complex conj resolve_conj resolve_neg alias unsafe_chunk unsafe_split "
    "to_dense to_sparse coalesce refine_names rename align_to as_tensor asarray atleast_1d atleast_2d atleast_3d "
    "meshgrid dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout feature_alpha_dropout "
    "from_numpy pin_memory einsum cartesian_prod short char byte untyped_storage storage __getitem__ share_memory_ "
    "from_dlpack frombuffer grad"
)
#: What gives a tensor another shape (or other memory) in place.
RESIZING = _set(
    "resize_ resize_as_ unsqueeze_ squeeze_ transpose_ t_ swapaxes_ swapdims_ set_ data as_strided_ sparse_resize_ "
    "apply_ swap_tensors"
)
#: Tensor methods that run code which is handed to them, or which hangs on the tensor.
RUNNING_METHODS = _set("apply_ map_ map2_ backward register_hook register_post_accumulate_grad_hook")
#: Methods that hang code on modules, which runs when these are called.
HOOKING = _set(
    "register_forward_hook register_forward_pre_hook register_module_forward_hook register_module_forward_pre_hook"
)
#: Methods of builtin containers, strings and tensors: a call of one on an unknown object reaches nothing of a project.
COMMON_METHODS = (
    frozenset(name for kind in (dict, list, set, str, bytes) for name in dir(kind) if not name.startswith("_"))
    | api.TENSOR_ONLY
    | api.ALIASING
)
#: Special methods of tensors and containers that write.
WRITING_SPECIAL = frozenset(
    f"__{n}__"
    for n in "setitem delitem iadd isub imul imatmul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift".split()
)
#: Operators that change an argument in place when a flag says so; the flag may be given by position.
FLAGGED = (
    api.SMOOTH_SAME
    | api.SMOOTH_FLOAT
    | _set("threshold rrelu dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout nan_to_num")
)
#: Where torch keeps functions of tensors that are documented to give new ones.
NAMESPACES = _set("torch torch.nn.functional torch.special torch.linalg torch.fft torch._C._nn")
#: Functions of ``operator`` that change their first argument.
OPERATOR_WRITES = WRITING_SPECIAL | {n.strip("_") for n in WRITING_SPECIAL} | {"iconcat", "__iconcat__"}
#: Functions of Python that call one that they are given, with what the others hold: its place and name there (-1: it is
#: given by name only). Those that work on what has come out so far hand that on first.
CALLING = {
    "map": (0, "func"),
    "filter": (0, "function"),
    "iter": (0, ""),
    "sorted": (-1, "key"),
    "min": (-1, "key"),
    "max": (-1, "key"),
    ".sort": (-1, "key"),
    "functools.reduce": (0, "function"),
    "itertools.accumulate": (1, "func"),
    "itertools.starmap": (0, "function"),
    "itertools.filterfalse": (0, "function"),
    "itertools.takewhile": (0, "predicate"),
    "itertools.dropwhile": (0, "predicate"),
    "itertools.groupby": (1, "key"),
    "heapq.nlargest": (2, "key"),
    "heapq.nsmallest": (2, "key"),
    "heapq.merge": (-1, "key"),
    "operator.call": (0, ""),
    "torch.utils._pytree.tree_map": (0, "func"),
    "torch.utils._pytree.tree_map_": (0, "func"),
    "torch.utils._pytree.tree_map_only": (1, "func"),
}
FOLDING = _set("functools.reduce itertools.accumulate")
#: Methods of Python's containers that change them; NumPy's array methods that do.
CONTAINER_WRITES = _set(
    "append extend insert pop remove clear update setdefault sort reverse add discard popitem appendleft extendleft "
    "popleft rotate difference_update intersection_update symmetric_difference_update move_to_end subtract"
)
ARRAY_WRITES = _set("fill sort resize put itemset partition setfield setflags byteswap")
#: Those that only look.
ARRAY_LOOKS = _set(
    "all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum "
    "diagonal dot dump dumps flatten getfield item items keys max mean min newbyteorder nonzero prod ptp ravel repeat "
    "reshape round searchsorted squeeze std sum swapaxes take tobytes tofile tolist trace transpose values var view"
)
#: NumPy functions that write to their first argument.
NUMPY_WRITES = _set("copyto put place putmask fill_diagonal shuffle put_along_axis at")
#: Methods of containers and strings that only look.
LOOKING_METHODS = (
    frozenset(name for kind in (dict, list, set, str, bytes, tuple) for name in dir(kind) if not name.startswith("_"))
    - CONTAINER_WRITES
)
#: Builtins that look at what they get and give a new Python value; behind them may stand a special method.
LOOKING_BUILTINS: dict[str, tuple[str, ...]] = {
    "len": ("__len__",),
    "int": ("__int__", "__index__", "__trunc__"),
    "float": ("__float__", "__index__"),
    "bool": ("__bool__", "__len__"),
    "str": ("__str__", "__repr__"),
    "repr": ("__repr__",),
    "print": ("__str__", "__repr__"),
    "format": ("__format__", "__str__"),
    "abs": ("__abs__",),
    "round": ("__round__",),
    "hash": ("__hash__",),
    "divmod": ("__divmod__",),
    "pow": ("__pow__",),
    "sum": ("__add__", "__radd__", "__iter__"),
    "any": ("__bool__", "__iter__"),
    "all": ("__bool__", "__iter__"),
    "range": ("__index__",),
    "slice": (),
    "isinstance": ("__instancecheck__",),
    "issubclass": ("__subclasscheck__",),
    "hasattr": (),
    "callable": (),
    "type": (),
    "id": (),
    "chr": ("__index__",),
    "ord": (),
    "bytes": (),
    "hex": ("__index__",),
    "oct": ("__index__",),
    "bin": ("__index__",),
    "super": (),
    "object": (),
}
#: Builtins whose result holds what they get.
CARRYING_BUILTINS: dict[str, tuple[str, ...]] = {
    "list": ("__iter__", "__next__"),
    "tuple": ("__iter__", "__next__"),
    "dict": ("__iter__", "__next__"),
    "set": ("__iter__", "__next__", "__hash__", "__eq__"),
    "frozenset": ("__iter__", "__next__", "__hash__", "__eq__"),
    "zip": ("__iter__",),
    "enumerate": ("__iter__",),
    "reversed": ("__reversed__",),
    "sorted": ("__iter__", "__next__", "__lt__"),
    "iter": ("__iter__",),
    "min": ("__lt__", "__iter__"),
    "max": ("__gt__", "__lt__", "__iter__"),
    "getattr": (),
}
#: Modules of the standard library and others whose functions write nothing that they are given and keep nothing.
LOOKING_MODULES = _set("math cmath operator typing warnings logging time os re string numbers packaging platform sys")
#: Those whose results hold what they get.
CARRYING_MODULES = _set("itertools copy einops collections dataclasses types enum")
#: Context managers of torch that run no code of others.
QUIET_CONTEXTS = _set(
    "torch.no_grad torch.enable_grad torch.inference_mode torch.set_grad_enabled torch.autocast torch.device "
    "torch.cuda.amp.autocast torch.amp.autocast torch.autograd.set_detect_anomaly torch.autograd.no_grad "
    "torch.profiler.record_function torch.autograd.profiler.record_function torch.nn.attention.sdpa_kernel "
    "torch.backends.cuda.sdp_kernel torch.cuda.device torch.random.fork_rng contextlib.nullcontext contextlib.suppress "
    "torch.autograd.graph.save_on_cpu warnings.catch_warnings torch.cuda.nvtx.range torch.cuda.stream"
)
#: nn modules that change no input and no state of theirs, and give a new tensor.
PURE_MODULES = frozenset(
    f"torch.nn.{n}"
    for n in (
        "Linear Bilinear Embedding LayerNorm RMSNorm GroupNorm Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d "
        "ConvTranspose3d Softmax LogSoftmax Tanh Sigmoid GELU Softplus LogSigmoid AvgPool1d AvgPool2d MaxPool1d "
        "MaxPool2d AdaptiveAvgPool1d AdaptiveAvgPool2d CrossEntropyLoss MSELoss L1Loss NLLLoss PReLU PixelShuffle "
        "MultiheadAttention LSTM GRU"
    ).split()
)
#: nn modules that may give their input (or a view of it), and change nothing.
PASSING_MODULES = frozenset(f"torch.nn.{n}" for n in "Identity Flatten Unflatten Dropout1d Dropout2d Dropout3d".split())
#: nn modules that change their input in place when they were made with ``inplace``.
FLAGGED_MODULES = frozenset(
    f"torch.nn.{n}"
    for n in (
        "ReLU ReLU6 SiLU Mish ELU SELU CELU LeakyReLU Hardswish Hardsigmoid Hardtanh Dropout Dropout2d Dropout3d "
        "AlphaDropout Threshold"
    ).split()
)
#: Special methods that an operator calls, of its left operand or of its right one.
OPERATOR_METHODS = {
    **{
        getattr(ast, op): _set(f"__{name}__ __r{name}__")
        for op, name in {
            "Add": "add",
            "Sub": "sub",
            "Mult": "mul",
            "Div": "truediv",
            "FloorDiv": "floordiv",
            "Mod": "mod",
            "Pow": "pow",
            "MatMult": "matmul",
            "BitAnd": "and",
            "BitOr": "or",
            "BitXor": "xor",
            "LShift": "lshift",
            "RShift": "rshift",
        }.items()
    },
    ast.Eq: _set("__eq__"),
    ast.NotEq: _set("__ne__ __eq__"),
    ast.Lt: _set("__lt__ __gt__"),
    ast.LtE: _set("__le__ __ge__"),
    ast.Gt: _set("__gt__ __lt__"),
    ast.GtE: _set("__ge__ __le__"),
    ast.In: _set("__eq__"),
    ast.NotIn: _set("__eq__"),
    ast.Is: frozenset[str](),
    ast.IsNot: frozenset[str](),
    ast.USub: _set("__neg__"),
    ast.UAdd: _set("__pos__"),
    ast.Invert: _set("__invert__"),
    ast.Not: _set("__bool__ __len__"),
}
#: What ``in`` and ``not in`` call of their right operand: what goes through it, where it cannot say what it contains.
CONTAINING_METHODS = _set("__contains__ __iter__ __next__ __getitem__")
#: Special methods that show a value as text.
SHOWING_METHODS = _set("__format__ __str__ __repr__")
