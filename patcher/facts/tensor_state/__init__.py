"""Integer state that is held in tensors: what it is, who uses it how, and what it would be as Python integers."""

from __future__ import annotations

from patcher.facts.tensor_state.forms import Change, Form, RefusedError, Step
from patcher.facts.tensor_state.state import TensorState, TensorStates

__all__ = ["Change", "Form", "RefusedError", "Step", "TensorState", "TensorStates"]
