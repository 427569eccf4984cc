"""The function that writes a slice whose start stays on its device, as text that is written into the user's code."""

from __future__ import annotations

#: What the function in `WRITE` is called.
WRITE_NAME = "_write_slice"

#: Takes the value, the tensor, the dimension, the start and the length of the slice. For each that Python's own
#: assignment takes, it does the same: bounds that are cut off, a start from the end, sizes that are broadcast, dtypes
#: and devices that differ. A single place that lies outside is an empty slice, and nothing is written; more of them are
#: an error (on CUDA, a device-side assertion). The rest is left to Python: what is no tensor, a value that is broadcast
#: along the slice, and narrow integers, which may wrap round at the slice's end.
WRITE = '''\
def _write_slice(value, target, dim, start, size):
    """Do `target[start : start + size] = value` along `dim`; a start that is a tensor stays on its device."""
    if (
        not (isinstance(value, torch.Tensor) and isinstance(target, torch.Tensor) and isinstance(start, torch.Tensor))
        or not (isinstance(size, int) and value.dim() == target.dim() and value.shape[dim] == size)
        or not (start.numel() == 1 and start.dtype in (torch.int32, torch.int64))
    ):
        part, beside = slice(start, start + size), (slice(None),) * (dim if dim >= 0 else -1 - dim)
        target[part if dim == 0 else (*beside, part) if dim > 0 else (..., part, *beside)] = value
        return
    room = target.shape[dim]
    ends = [end.to(target.device, torch.int64).reshape(()) for end in (start, start + size)]
    first, last = [torch.where(end < 0, end + room, end).clamp(0, room) for end in ends]
    fits = last - first == size
    if size > 1:
        torch._assert_async(fits, "what is written does not fit")
    places = torch.where(fits, first, 0) + torch.arange(min(size, room), device=target.device)
    index = (slice(None),) * (dim % target.dim()) + (places,)
    target[index] = torch.where(fits, value.to(target), target[index])
'''

#: The builtins that it calls.
BUILTINS = ("isinstance", "int", "slice", "min")
