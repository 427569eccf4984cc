"""What is written into the user's code for buffers in place of what grows, as text. ``torch`` is spelled as it is."""

from __future__ import annotations

#: What is used where an attention reads, by name: `_Kept` is not named there, so that it may stand in another file.
READING = {
    "_join_kept": '''\
def _join_kept(kept, new, dim):
    """`torch.cat([kept, new], dim)`; where `kept` is a `_Kept`, `new` is written into its next places."""
    if isinstance(kept, torch.Tensor):
        return torch.cat([kept, new], dim)
    places = torch.arange(new.shape[dim], device=new.device) + kept.length
    kept.held.index_copy_(dim, places, new)  # an error where there is no such place: the buffer is full
    kept.length.add_(new.shape[dim])
    return kept
''',
    "_whole": '''\
def _whole(kept):
    """All places of a `_Kept`, the empty ones too; anything else as it is."""
    return kept if kept is None or isinstance(kept, torch.Tensor) else kept.held
''',
    "_attention_over": '''\
def _attention_over(kept):
    """`scaled_dot_product_attention`; where `kept` is a `_Kept`, its empty places are not seen."""
    if isinstance(kept, torch.Tensor):
        return torch.nn.functional.scaled_dot_product_attention

    def attend(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **more):
        if key.shape[-2] != kept.room:
            raise RuntimeError("what is attended to is not all that is kept")
        seen = torch.arange(kept.room, device=key.device)[None, :] < kept.length
        if is_causal:
            seen = seen & torch.ones(query.shape[-2], kept.room, dtype=torch.bool, device=key.device).tril()
        if attn_mask is None:
            attn_mask = seen
        else:
            if 1 < attn_mask.shape[-1] < kept.room:
                attn_mask = torch.nn.functional.pad(attn_mask, (0, kept.room - attn_mask.shape[-1]))
            hides = attn_mask.dtype == torch.bool
            attn_mask = attn_mask & seen if hides else attn_mask.masked_fill(~seen, float("-inf"))
        return torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, **more
        )

    return attend
''',
    "_hide_empty": '''\
def _hide_empty(kept, scores):
    """`scores`, whose last dimension is that of the places of `kept`; where it is a `_Kept`, empty ones get -inf."""
    if isinstance(kept, torch.Tensor):
        return scores
    if scores.shape[-1] != kept.room:
        raise RuntimeError("what is attended to is not all that is kept")
    return scores.masked_fill(torch.arange(kept.room, device=scores.device) >= kept.length, float("-inf"))
''',
    "_as_wide": '''\
def _as_wide(kept, mask):
    """`mask`, whose last dimension is that of the places of `kept`, with zeros for places that it does not know."""
    more = 0 if isinstance(kept, torch.Tensor) else kept.room - mask.shape[-1]
    return torch.nn.functional.pad(mask, (0, more)) if more > 0 else mask
''',
}

#: What is used where the cache is handed from call to call.
MAKING = {
    "_Kept": '''\
class _Kept:
    """A tensor with room for more: of the `room` places of `held`, `length` (a tensor) are filled."""

    def __init__(self, grown, dim, room):
        sizes = [room if i == dim % grown.dim() else size for i, size in enumerate(grown.shape)]
        self.room = room
        self.held = grown.new_zeros(sizes)
        self.held.narrow(dim, 0, grown.shape[dim]).copy_(grown)
        self.length = torch.full((), grown.shape[dim], device=grown.device)
        for tensor in (self.held, self.length):
            torch._dynamo.mark_static_address(tensor)
''',
    "_has_room": '''\
def _has_room(kept):
    """Whether a `_Kept` is in `kept`."""
    inner = kept.values() if isinstance(kept, dict) else kept
    return isinstance(kept, _Kept) or (isinstance(kept, (dict, list, tuple)) and any(map(_has_room, inner)))
''',
    "_with_room": '''\
def _with_room(kept, dim, more=0, room=None):
    """`kept` with each tensor in it a `_Kept` with room for `more` along `dim`, or for `room` in all."""
    if torch.is_grad_enabled() or _has_room(kept):  # what is written in place would be needed to go backward
        return kept
    if isinstance(kept, torch.Tensor):
        return _Kept(kept, dim, -(-(kept.shape[dim] + more) // 64) * 64 if room is None else room)
    if not isinstance(kept, (dict, list, tuple)):
        return kept
    items = list(kept.items() if isinstance(kept, dict) else enumerate(kept))
    made = {k: _with_room(v, dim, more, room) for k, v in items}
    if isinstance(kept, dict):
        kept.update(made)
    elif isinstance(kept, list):
        kept[:] = made.values()
    else:
        kept = type(kept)(*made.values()) if hasattr(kept, "_fields") else tuple(made.values())
    return kept
''',
    "_place": '''\
def _place(at, kept):
    """The number `at`; as a tensor, once `kept` holds a `_Kept`."""
    todo = [kept]
    while todo and not isinstance(todo[-1], _Kept):
        last = todo.pop()
        todo += last.values() if isinstance(last, dict) else last if isinstance(last, (list, tuple)) else ()
    return torch.full((), at, device=todo[-1].held.device) if todo and isinstance(at, int) else at
''',
}
