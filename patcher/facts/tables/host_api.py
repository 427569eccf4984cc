"""What tells a plain object from a module, and what ends a graph wherever it is called: tables only."""

from __future__ import annotations

from collections.abc import Mapping

#: What a configuration of transformers holds unless somebody asks for more (``PretrainedConfig``, 4.x and 5.x).
OF_CONFIGURATIONS: Mapping[str, bool] = {"output_attentions": False, "output_hidden_states": False}

#: What an nn.Module keeps under a name with an underscore (2.13, with those of releases since 2.0).
MODULE_PRIVATE = frozenset(
    "_apply _backward_hooks _backward_pre_hooks _buffers _call_impl _compiled_call_impl _forward_hooks "
    "_forward_hooks_always_called _forward_hooks_with_kwargs _forward_pre_hooks _forward_pre_hooks_with_kwargs "
    "_get_backward_hooks _get_backward_pre_hooks _get_name _is_full_backward_hook _load_from_state_dict "
    "_load_state_dict_post_hooks _load_state_dict_pre_hooks _maybe_warn_non_full_backward_hook _modules _named_members "
    "_non_persistent_buffers_set _parameters _register_load_state_dict_pre_hook _register_state_dict_hook "
    "_replicate_for_data_parallel _save_to_state_dict _slow_forward _state_dict_hooks _state_dict_pre_hooks _version "
    "_wrapped_call_impl".split()
)
#: What only a module or a tensor is asked for.
MODULE_OR_TENSOR = frozenset(
    "apply backward bfloat16 bias buffers children cpu cuda data detach device dtype eval float forward grad half "
    "load_state_dict modules named_buffers named_children named_modules named_parameters parameters requires_grad "
    "requires_grad_ shape state_dict to train training weight zero_grad".split()
)

#: Functions that break the graph wherever they are called (tests/test_untraced_calls.py runs each, on 2.13).
NOT_TRACED = frozenset(
    "open input exec compile globals dir bytes bytearray memoryview "
    "time.time time.time_ns time.perf_counter time.perf_counter_ns time.monotonic time.monotonic_ns time.process_time "
    "time.sleep time.strftime datetime.datetime.now datetime.datetime.utcnow datetime.date.today datetime.timedelta "
    "json.dump json.dumps json.load json.loads pickle.dumps pickle.loads zlib.compress zlib.decompress zlib.crc32 "
    "zlib.adler32 gzip.compress bz2.compress lzma.compress hashlib.md5 hashlib.sha1 hashlib.sha256 base64.b64encode "
    "base64.b64decode binascii.hexlify binascii.crc32 struct.calcsize unicodedata.normalize unicodedata.category "
    "unicodedata.combining io.BytesIO io.StringIO urllib.parse.quote pprint.pformat "
    "copy.copy uuid.uuid4 secrets.token_hex os.getcwd os.getpid os.listdir os.path.exists os.path.isfile os.path.isdir "
    "os.makedirs os.cpu_count os.urandom glob.glob shutil.which subprocess.run socket.gethostname sys.getsizeof "
    "sys.getrefcount gc.collect inspect.stack inspect.currentframe importlib.import_module threading.Thread "
    "threading.current_thread threading.get_ident locale.getpreferredencoding contextvars.copy_context "
    "heapq.heapify heapq.heappush heapq.heappop heapq.nsmallest heapq.nlargest bisect.bisect bisect.bisect_left "
    "bisect.insort statistics.mean decimal.Decimal array.array "
    "torch.save torch.load torch.manual_seed torch.get_rng_state torch.set_rng_state torch.initial_seed "
    "torch.get_num_threads torch.set_num_threads torch.cuda.memory_allocated "
    "torch.cuda.max_memory_allocated torch.cuda.memory_reserved torch.cuda.device_count torch.typename "
    "torch.result_type torch.can_cast torch.autograd.Variable torch.nested.nested_tensor torch.jit.script "
    "torch.nn.utils.rnn.pack_padded_sequence torch.nn.utils.rnn.pack_sequence torch.autograd.functional.jacobian "
    "torch.autograd.grad torch.autograd.backward torch.autograd.functional.hessian torch.autograd.functional.jvp "
    "torch.autograd.functional.vjp torch.autograd.functional.hvp torch.autograd.functional.vhp "
    "torch.cov torch.corrcoef torch.lobpcg torch.Generator torch.quasirandom.SobolEngine torch.nn.init.trunc_normal_ "
    "torch.random.get_rng_state torch.random.initial_seed torch.random.manual_seed torch.random.fork_rng "
    "torch.fx.symbolic_trace torch.jit.trace torch.jit.isinstance torch.utils.data.DataLoader "
    "torch.utils.data.TensorDataset "
    "types.SimpleNamespace queue.Queue cmath.exp cmath.phase cmath.sqrt inspect.getsource tempfile.mkdtemp "
    "torch.compiler.disable torch._dynamo.disable "
    "torch.backends.cuda.flash_sdp_enabled torch.backends.cuda.mem_efficient_sdp_enabled "
    "torch.backends.cuda.math_sdp_enabled torch.backends.cuda.cudnn_sdp_enabled torch.backends.cuda.is_built "
    "torch.backends.cudnn.flags torch.backends.cudnn.is_available torch.backends.mkldnn.flags "
    "torch.backends.mkldnn.is_available torch.backends.mps.is_available torch.backends.openmp.is_available "
    "torch.get_float32_matmul_precision torch.cuda.is_bf16_supported torch.is_inference_mode_enabled "
    "torch.is_inference torch.is_storage torch.is_distributed "
    "torch.is_anomaly_enabled torch.is_warn_always_enabled "
    # measured with torch 2.11 on a GPU, where ``torch.cuda.empty_cache`` is traced, and left out of what runs
    "torch.cuda.synchronize torch.cuda.set_device torch.cuda.memory_stats torch.cuda.nvtx.range_push "
    "torch.cuda.nvtx.range_pop torch.accelerator.empty_cache".split()
)
#: Those of them, of `NOT_TRACED_SIZES` and of Python's own that are traced from that version of PyTorch on.
TRACED_SINCE: Mapping[str, tuple[int, int]] = {
    "torch.backends.mps.is_available": (2, 14),
    "torch.combinations": (2, 14),
    "pow": (2, 14),  # with two arguments, without their names
    "heapq.nlargest": (2, 14),  # where one is asked for; of more, a heap is made
    "heapq.nsmallest": (2, 14),
}
#: From here on ``random.random`` is in the graph as ``random.uniform`` is, and what puts things in an order by chance,
#: or takes some of them, is drawn when the code is compiled: each call has the same.
RANDOM_SINCE = (2, 14)
DRAWN_ONCE = frozenset({"random.shuffle", "random.sample"})


def may_be_traced(name: str, version: tuple[int, int]) -> bool:
    """Whether that version of PyTorch takes calls of ``name`` into a graph, if not all of them."""
    return name in TRACED_SINCE and version >= TRACED_SINCE[name]


#: Functions of NumPy that PyTorch has nothing for, or that ask for a number, whatever they are given.
NOT_TRACED_OF_NUMPY = frozenset(
    f"numpy.{name}"
    for name in "ndindex ndenumerate nditer apply_along_axis apply_over_axes argpartition partition array2string "
    "array_repr array_str asanyarray asfortranarray block compress delete insert digitize ediff1d extract frexp "
    "frombuffer fromfunction fromiter histogram_bin_edges interp intersect1d union1d setdiff1d setxor1d isin iterable "
    "ix_ lexsort nanargmax nanargmin nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile "
    "nanstd nansum nanvar packbits unpackbits piecewise place putmask poly poly1d polyadd polyfit polyval "
    "promote_types ravel_multi_index unravel_index require roots select trim_zeros unwrap vectorize spacing cov "
    "corrcoef isscalar ndim size allclose array_equal array_equiv can_cast result_type isrealobj iscomplexobj errstate "
    "seterr base_repr binary_repr".split()
)
#: The same of other libraries, as runs of docs/results/forecast.md have shown.
NOT_TRACED_ELSEWHERE = frozenset(
    f"tqdm.{name}" for name in ("tqdm", "trange", "auto.tqdm", "auto.trange", "notebook.tqdm", "std.tqdm")
)
#: Libraries that Dynamo does not look into (torch 2.13, ``THIRDPARTY_SKIPLIST``), or whose calls end in compiled code,
#: as runs have shown.
SKIPPED_LIBRARIES = frozenset("sklearn pandas networkx xarray onnxruntime tabulate tensorflow cv2 scipy".split())
#: Those of Python and PyTorch, for the rows of their result, as many as the data says.
NOT_TRACED_SIZES = frozenset("torch.combinations torch.linalg.lstsq torch.nn.functional.ctc_loss".split())
#: Classes whose objects have weights, which a graph cannot make.
WITH_WEIGHTS = frozenset(
    f"torch.nn.{name}"
    for name in "Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d BatchNorm1d BatchNorm2d "
    "LayerNorm GroupNorm RMSNorm Embedding PReLU MultiheadAttention LSTM GRU RNN LSTMCell GRUCell "
    "TransformerEncoderLayer".split()
)
#: Methods of a module that break the graph.
NOT_TRACED_OF_MODULES = frozenset("register_forward_hook register_forward_pre_hook load_state_dict".split())
#: Functions that make a sparse tensor, which no graph can hold.
SPARSE_MAKERS = frozenset(
    "torch.sparse_coo_tensor torch.sparse_csr_tensor torch.sparse_csc_tensor torch.sparse_bsr_tensor "
    "torch.sparse_bsc_tensor torch.sparse_compressed_tensor torch.sparse.FloatTensor torch.sparse.LongTensor".split()
)
#: Methods of a tensor that do.
SPARSE_METHODS = frozenset("to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc".split())
#: Methods of a tensor that break the graph, those aside.
NOT_TRACED_METHODS = frozenset(
    "storage resize_ set_ map_ apply_ backward retain_grad share_memory_ storage_offset".split()
)
#: And those that only ask something of it.
QUESTIONS = frozenset("is_inference is_pinned is_set_to is_conj is_neg is_same_size is_shared _is_view".split())
NOT_TRACED_METHODS |= QUESTIONS
