"""Integer state that is held in tensors: who uses it how, and what it would be as Python integers."""

from __future__ import annotations

from patcher.facts.tensor_state.state import TensorState, TensorStates
from patcher.facts.tensor_state.uses import Change

__all__ = ["Change", "TensorState", "TensorStates"]
