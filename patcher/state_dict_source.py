"""Functions for state dicts of models that torch.compile has wrapped, as text that is written into the user's code.

Seen on torch 2.13: the wrapper adds a part ``_orig_mod`` to the names of all that is below it. That is at the root
where the model is wrapped, in the middle where a block is, both where both are, and behind ``module.`` under
DistributedDataParallel. What is saved that way does not load into the model itself, and the other way round.
"""

from __future__ import annotations

#: What the function in `UNCOMPILE` is called.
UNCOMPILE_NAME = "maybe_uncompile_state_dict"

#: What the function in `MATCH` is called.
MATCH_NAME = "match_state_dict"

#: Takes a state dict, and gives it with the names that the model has without torch.compile: the same object where no
#: name has the part, else a new one of that type, in that order, with the same tensors and with ``_metadata``. Raises
#: ValueError where two names become one. The last part of a name is that of a tensor, and stays.
UNCOMPILE = '''\
def maybe_uncompile_state_dict(state_dict):
    """Take the `_orig_mod` of torch.compile out of the names; the same object if there is none."""
    names = {key: key for key in state_dict} if isinstance(state_dict, dict) else {}
    for key in filter(lambda key: isinstance(key, str), names):
        *path, last = key.split(".")
        names[key] = ".".join([part for part in path if part != "_orig_mod"] + [last])
    if all(key == name for key, name in names.items()):
        return state_dict
    if len(set(names.values())) < len(names):
        raise ValueError("two names of the state dict are the same without `_orig_mod`")
    plain = type(state_dict)()
    for key, value in state_dict.items():
        plain[names[key]] = value
    if hasattr(state_dict, "_metadata"):
        plain._metadata = type(state_dict._metadata)()
        for path, about in state_dict._metadata.items():
            plain._metadata[".".join(part for part in path.split(".") if part != "_orig_mod")] = about
    return plain
'''

#: Takes a state dict and a model, and gives the state dict with the names that the model has for the same, wrapped or
#: not: the same object where no name becomes another one. What the model does not know keeps its name without the
#: part, for ``load_state_dict`` to tell. Calls the function in `UNCOMPILE`.
MATCH = '''\
def match_state_dict(state_dict, model):
    """Give the state dict the names of the model, whichever of them torch.compile has wrapped."""
    own = model.state_dict()
    plain = maybe_uncompile_state_dict(state_dict)
    names = dict(zip(maybe_uncompile_state_dict(own), own))
    matched = type(plain)()
    for key, value in plain.items():
        matched[names.get(key, key)] = value
    if list(matched) == list(state_dict):
        return state_dict
    if hasattr(plain, "_metadata"):
        matched._metadata = type(plain._metadata)(plain._metadata)
        for path in getattr(own, "_metadata", ()):
            inner = ".".join(part for part in path.split(".") if part != "_orig_mod")
            if inner in plain._metadata:
                matched._metadata[path] = plain._metadata[inner]
    return matched
'''
