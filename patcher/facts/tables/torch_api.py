"""What PyTorch's names mean, as tables only. Source: the torch 2.13 documentation and operator signatures."""

from __future__ import annotations

# --- element-wise operations: the result has the shape of the (first) tensor --------------------------------------

#: Same dtype as the input, gradient finite wherever the input is finite.
SMOOTH_SAME = frozenset(
    "abs absolute neg negative positive relu relu6 hardtanh leaky_relu clamp clip clamp_min clamp_max clone square "
    "sign sgn floor ceil round trunc nan_to_num dropout_ identity_".split()
)
#: Floating result (an integer input is promoted), gradient finite wherever the input is finite.
SMOOTH_FLOAT = frozenset(
    "tanh sigmoid sin cos erf softplus silu gelu mish elu selu celu hardswish hardsigmoid logsigmoid atan arctan "
    "sinc deg2rad rad2deg".split()
)
#: Floating result, gradient may be infinite or NaN at finite inputs (or overflow): wrong in an arm that is not taken.
STEEP_FLOAT = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal tan asin acos arcsin arccos atanh asinh acosh sinh cosh "
    "lgamma digamma erfinv logit".split()
)
#: Boolean result.
PREDICATES = frozenset("isnan isinf isfinite isposinf isneginf logical_not signbit".split())
#: The result may be the input itself or a view of it.
ALIASING = frozenset(
    "view view_as reshape reshape_as expand expand_as transpose t permute squeeze unsqueeze flatten unflatten narrow "
    "select chunk split unbind diagonal contiguous detach to float double half bfloat16 long int bool type type_as "
    "cpu cuda swapaxes movedim real imag unfold ravel swapdims data T mT requires_grad_".split()
)

# --- dtype ---------------------------------------------------------------------------------------------------------

#: Method -> dtype that it converts to.
CASTS = {
    "float": "torch.float32",
    "double": "torch.float64",
    "half": "torch.float16",
    "bfloat16": "torch.bfloat16",
    "long": "torch.int64",
    "int": "torch.int32",
    "short": "torch.int16",
    "bool": "torch.bool",
}
FLOAT_DTYPES = frozenset(
    f"torch.{n}" for n in "float float16 float32 float64 double half bfloat16 float8_e4m3fn float8_e5m2".split()
)
INT_DTYPES = frozenset(f"torch.{n}" for n in "int int8 int16 int32 int64 long short uint8 uint16 uint32 uint64".split())
COMPLEX_DTYPES = frozenset(f"torch.{n}" for n in "complex32 complex64 complex128 chalf cfloat cdouble".split())
DTYPES = FLOAT_DTYPES | INT_DTYPES | COMPLEX_DTYPES | {"torch.bool"}
#: What gives complex numbers.
COMPLEX_METHODS = frozenset("cfloat cdouble chalf view_as_complex".split())
COMPLEX_MAKERS = frozenset(
    f"torch.{n}" for n in "complex polar view_as_complex fft.fft fft.ifft fft.rfft fft.fftn fft.rfftn fft.fft2".split()
)
#: Constructors of tensors of one dtype.
TYPED_TENSORS = {
    "torch.IntTensor": "torch.int32",
    "torch.LongTensor": "torch.int64",
    "torch.ShortTensor": "torch.int16",
    "torch.ByteTensor": "torch.uint8",
    "torch.CharTensor": "torch.int8",
    "torch.BoolTensor": "torch.bool",
    "torch.FloatTensor": "torch.float32",
    "torch.DoubleTensor": "torch.float64",
    "torch.HalfTensor": "torch.float16",
    "torch.BFloat16Tensor": "torch.bfloat16",
}

# --- reductions: 0-d without ``dim`` -------------------------------------------------------------------------------

REDUCE_SAME = frozenset("max min amax amin median".split())
REDUCE_SUM = frozenset("sum prod nansum".split())
REDUCE_FLOAT = frozenset("mean std var norm nanmean logsumexp".split())
REDUCE_BOOL = frozenset("any all".split())
REDUCE_INT = frozenset("argmax argmin count_nonzero".split())
REDUCTIONS = REDUCE_SAME | REDUCE_SUM | REDUCE_FLOAT | REDUCE_BOOL | REDUCE_INT
#: What gives float32 for a half under autocast, on CUDA all of them, beside ``**``.
AUTOCAST_TO_FLOAT32 = frozenset(
    "acos asin cosh cumprod cumsum dist erfinv exp expm1 log log10 log1p log2 log_softmax norm pow prod reciprocal "
    "renorm rsqrt sinh softmax softmin softplus sum tan".split()
)

# --- what only a tensor has ----------------------------------------------------------------------------------------

#: Attributes and methods that neither a Python number, a container, a string, nor an nn.Module has.
TENSOR_ONLY = (
    REDUCTIONS
    | SMOOTH_SAME
    | SMOOTH_FLOAT
    | STEEP_FLOAT
    | PREDICATES
    | frozenset(
        "clone detach view view_as reshape reshape_as expand expand_as repeat transpose permute squeeze unsqueeze "
        "flatten chunk unbind contiguous size shape dim ndim numel dtype device long item tolist masked_fill "
        "masked_fill_ masked_scatter masked_scatter_ scatter scatter_ gather index_select cumsum cumprod softmax "
        "log_softmax argsort topk matmul bmm mm add sub mul div pow eq ne lt le gt ge new_zeros new_ones new_tensor "
        "new_full new_empty type_as to_dense is_floating_point stride requires_grad repeat_interleave "
        "unique nonzero narrow tril triu flip roll grad_fn data_ptr element_size bool long short".split()
    )
) - frozenset("sign round all any sum max min".split()) | frozenset("all any sum max min".split())

#: Functions that give two tensors; those that give one without a dimension can be taken apart as well, into rows.
PAIRS = frozenset(f"torch.{n}" for n in "topk sort kthvalue mode cummax cummin max min median nanmedian".split())

#: Methods and attributes of a tensor that give a Python value.
HOST_VALUES = {"size": "size", "shape": "size", "dim": "int", "ndim": "int", "numel": "int", "nelement": "int"}
#: Attributes and methods that tell about a tensor and share nothing with it.
ABOUT = frozenset({"shape", "dtype", "device", "layout", "requires_grad", "is_cuda", *HOST_VALUES})
#: Methods that read tensor data on the host.
HOST_READS = frozenset({"item", "tolist", "numpy"})

# --- makers of tensors ---------------------------------------------------------------------------------------------

#: Function -> kind of its dtype without ``dtype=`` ("float": the default dtype; "like": that of the first argument).
CREATORS = {
    "torch.zeros": "float",
    "torch.ones": "float",
    "torch.empty": "float",
    "torch.rand": "float",
    "torch.randn": "float",
    "torch.linspace": "float",
    "torch.logspace": "float",
    "torch.eye": "float",
    "torch.full": "value",
    "torch.arange": "arange",
    "torch.tensor": "value",
    "torch.as_tensor": "value",
    "torch.zeros_like": "like",
    "torch.ones_like": "like",
    "torch.empty_like": "like",
    "torch.full_like": "like",
    "torch.rand_like": "like",
    "torch.randn_like": "like",
}
#: What makes a tensor of something that need not be one.
CONVERTING = frozenset({"torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.asarray"})
#: Top-level packages whose functions take and give tensors.
TENSOR_LIBRARIES = frozenset(
    "torch torchvision torchaudio einops opt_einsum xformers flash_attn timm transformers diffusers "
    "rotary_embedding_torch "
    "math typing functools copy dataclasses warnings collections itertools operator".split()
)
RANDOM = frozenset(
    "torch.rand torch.randn torch.rand_like torch.randn_like torch.randint torch.randint_like torch.randperm "
    "torch.bernoulli torch.multinomial torch.normal torch.poisson torch.binomial torch.dropout torch.alpha_dropout "
    "torch.nn.functional.dropout torch.nn.functional.dropout1d torch.nn.functional.dropout2d "
    "torch.nn.functional.dropout3d torch.nn.functional.alpha_dropout torch.nn.functional.feature_alpha_dropout "
    "torch.nn.functional.gumbel_softmax torch.nn.functional.rrelu".split()
)
#: Methods of tensors that draw, the tensor itself staying as it is; those that fill it end with "_".
_DRAWING_METHODS = frozenset({".bernoulli", ".multinomial"})
_NEVER_TWICE = ("random.", "numpy.random.", "time.", "secrets.", "uuid.")


def is_random(what: str) -> bool:
    """Whether the function ``what``, dotted or ".method", gives another value next time: random numbers, the clock."""
    return what in RANDOM or what in _DRAWING_METHODS or what.startswith(_NEVER_TWICE)


# --- modules -------------------------------------------------------------------------------------------------------

#: nn modules whose output has the shape and the dtype of the input.
SHAPE_KEEPING_MODULES = frozenset(
    f"torch.nn.{n}"
    for n in (
        "Identity Dropout Dropout1d Dropout2d Dropout3d ReLU ReLU6 GELU SiLU Mish Tanh Sigmoid Softplus ELU SELU "
        "LeakyReLU Hardswish Hardsigmoid LayerNorm RMSNorm GroupNorm BatchNorm1d BatchNorm2d BatchNorm3d Softmax "
        "LogSoftmax"
    ).split()
)

#: nn modules that fail when what they are given has no dimension.
NEEDING_A_DIMENSION = frozenset(
    f"torch.nn.{n}" for n in "Linear LayerNorm RMSNorm GroupNorm BatchNorm1d BatchNorm2d Conv1d Conv2d Conv3d".split()
)

# --- operators with a bool argument: qualified name -> (keyword, position or None) ---------------------------------

#: Arguments that take a bool and nothing else: anything but True and False (or None, where it is the default) raises,
#: and a symbolic bool breaks the graph. Those that Python code only tests (``inplace``, ``antialias``) are left out.
BOOL_ARGUMENTS: dict[str, tuple[tuple[str, int | None], ...]] = {
    "torch.nn.functional.scaled_dot_product_attention": (("is_causal", 5), ("enable_gqa", None)),
    "torch._C._nn.scaled_dot_product_attention": (("is_causal", 5), ("enable_gqa", None)),
    "torch.nn.functional.dropout": (("training", 2),),
    "torch.nn.functional.dropout1d": (("training", 2),),
    "torch.nn.functional.dropout2d": (("training", 2),),
    "torch.nn.functional.dropout3d": (("training", 2),),
    "torch.nn.functional.alpha_dropout": (("training", 2),),
    "torch.nn.functional.feature_alpha_dropout": (("training", 2),),
    "torch.nn.functional.batch_norm": (("training", 5),),
    "torch.nn.functional.instance_norm": (("use_input_stats", 5),),
    "torch.nn.functional.interpolate": (("align_corners", 4),),
    "torch.nn.functional.grid_sample": (("align_corners", 4),),
    "torch.nn.functional.affine_grid": (("align_corners", 2),),
    "torch.nn.functional.avg_pool1d": (("ceil_mode", 4), ("count_include_pad", 5)),
    "torch.nn.functional.avg_pool2d": (("ceil_mode", 4), ("count_include_pad", 5)),
    "torch.nn.functional.max_pool1d": (("ceil_mode", 5),),
    "torch.nn.functional.max_pool2d": (("ceil_mode", 5),),
    "torch.sort": (("descending", 2),),
    "torch.argsort": (("descending", 2),),
    "torch.topk": (("largest", 3), ("sorted", 4)),
    "torch.bucketize": (("right", None),),
    "torch.searchsorted": (("right", None),),
}

# --- grad mode and compilation ------------------------------------------------------------------------------------

#: What may switch gradients on.
GRAD_SWITCHES = frozenset(
    "torch.set_grad_enabled torch.enable_grad torch._C._set_grad_enabled torch.inference_mode".split()
)
GRAD_OFF = frozenset({"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad"})
COMPILE = frozenset({"torch.compile", "torch.jit.script"})
DISABLE = frozenset({"torch.compiler.disable", "torch._dynamo.disable", "torch.compiler.skip_frame"})
#: What makes Dynamo run a function as it is, or put it into the graph as one operator, and look at nothing in it.
OPAQUE = DISABLE | {
    f"torch.{part}.{name}"
    for part in ("compiler", "_dynamo")
    for name in ("assume_constant_result", "allow_in_graph", "nonstrict_trace")
}
OPAQUE |= {"torch.library.custom_op"}
EAGER_GUARDS = frozenset(
    {
        "torch.compiler.is_compiling",
        "torch._dynamo.is_compiling",
        "torch.compiler.is_dynamo_compiling",
        "transformers.utils.is_torchdynamo_compiling",
        "transformers.utils.import_utils.is_torchdynamo_compiling",
    }
)
TRACING_GUARDS = frozenset({"torch.jit.is_tracing", "torch.jit.is_scripting"})
GRAPH_BREAK = frozenset(
    {"torch._dynamo.graph_break", "torch.compiler.graph_break", "torch._dynamo.decorators.graph_break"}
)

#: How the dtype of 64-bit integers is spelled.
INT64 = frozenset({"torch.int64", "torch.long"})
#: Layers -> of how many numbers their stride is; and what they keep besides, in tuples as long.
CONVOLUTIONS = {f"torch.nn.Conv{kind}{n}d": n for kind in ("", "Transpose") for n in (1, 2, 3)}
GEOMETRY = frozenset("kernel_size stride dilation output_padding".split())
#: Functions that change how a module keeps its weights, and give it back.
HANDING_BACK = frozenset(
    f"torch.nn.utils.{name}"
    for name in "weight_norm spectral_norm remove_weight_norm remove_spectral_norm parametrizations.weight_norm "
    "parametrizations.spectral_norm parametrizations.orthogonal".split()
)
