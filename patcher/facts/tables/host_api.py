"""Where plain numbers of the host meet tensors, and what tells a plain object from a module: tables only."""

from __future__ import annotations

#: Operator -> arguments (position with the tensor as 0, or keyword) where a plain number stands, or a list of them.
NUMBER_ARGUMENTS: dict[str, frozenset[int | str]] = {
    "eq": frozenset({1, "other"}),
    "ne": frozenset({1, "other"}),
    "not_equal": frozenset({1, "other"}),
    "isin": frozenset({1, "test_elements"}),
    "tensor": frozenset({0, "data"}),
    "as_tensor": frozenset({0, "data"}),
    "new_tensor": frozenset({1, "data"}),
    "full": frozenset({1, "fill_value"}),
    "full_like": frozenset({1, "fill_value"}),
    "new_full": frozenset({2, "fill_value"}),
    "pad": frozenset({3, "value"}),
    "pad_sequence": frozenset({2, "padding_value"}),
    "cross_entropy": frozenset({"ignore_index"}),
    "nll_loss": frozenset({"ignore_index"}),
    "embedding": frozenset({2, "padding_idx"}),
    "one_hot": frozenset({1, "num_classes"}),
}
#: Methods that nothing but a tensor has, of those that take such a number.
NUMBER_METHODS = frozenset("masked_fill masked_fill_ index_fill index_fill_ eq ne not_equal new_full fill_".split())

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

#: Functions that end the graph wherever they are called (measured on 2.13).
NOT_TRACED = frozenset(
    "open input time.time time.time_ns time.perf_counter time.perf_counter_ns time.monotonic time.process_time "
    "time.sleep json.dump json.dumps json.load json.loads os.getpid os.path.exists os.makedirs socket.gethostname "
    "gc.collect datetime.datetime.now torch.save torch.load torch.cuda.empty_cache torch.cuda.memory_allocated "
    "torch.cuda.max_memory_allocated torch.cuda.memory_reserved threading.Thread".split()
)
#: Packages that bring a compiler and tensors of their own, which are no matter of ``torch.compile``.
OTHER_COMPILERS = frozenset({"torch_xla"})
