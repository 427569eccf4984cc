"""State that gets longer with every call: joined by torch.cat to what was kept, or one more tensor in a list.

It grows when a join has the whole of a place among its parts, and the whole of the result goes back: into the same
place, or, for a parameter whose name says that it is of an earlier call, out with the results. A part or a result that
is cut has a length of its own, so a rolling window does not grow.
"""

from __future__ import annotations

from patcher.facts.growing.growth import Growing, Growth

__all__ = ["Growing", "Growth"]
