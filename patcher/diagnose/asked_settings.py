"""Which settings of PyTorch causes ask for: those that would do away with them, as `advice` knows them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from patcher.diagnose.advice import advice, registry_id
from patcher.diagnose.diagnosis import Advice
from patcher.diagnose.groups import Group
from patcher.diagnose.places import Places
from patcher.settings import TorchSetting, torch_setting

#: For layers that the code names.
RECURRENT = TorchSetting("config", "allow_rnn")
#: What makes most graphs whole, whether or not a message names it: behind one break there may be another.
CAPTURING = (
    TorchSetting("config", "capture_scalar_outputs"),
    TorchSetting("config", "capture_dynamic_output_shape_ops"),
    RECURRENT,
)
#: With it a break in a function that others have called is one break, not one in each of them.
GOING_ON = TorchSetting("config", "nested_graph_breaks")
_LIMIT = 64  # compilations of one function, where more than PyTorch's usual 8 are needed


def advised(group: Group, places: Places, torch_version: str) -> tuple[Advice, ...]:
    """The settings that would do away with a cause on this torch."""
    first, place = group.first, group.place
    file = places.file(place.path) if place else None
    number = file.head(place.line) if place and file else 0
    return advice(
        "; ".join(dict.fromkeys(event.reason for event in group.events)),
        first.explanation,
        first.context,
        first.hints,
        registry_id(first.url),
        torch_version,
        trigger=file.lines[number - 1].strip() if file and 0 < number <= len(file.lines) else "",
        limit_hit=group.impact.limit_hits > 0,
    )


def asked_settings(causes: Iterable[Group], places: Places, torch_version: str) -> tuple[TorchSetting, ...]:
    """Of all causes, each once, but for those that have to be written beside a tensor.

    A limit is raised only where nothing else is known, and where a bound may be reached.

    What is compiled again for another size is what PyTorch is meant to do: only where it comes to the limit, that asks
    for an argument with which all kernels are for all sizes.
    """
    found: dict[TorchSetting, None] = {}
    for group in causes:
        flags = [item.flag.replace(" = N", f" = {_LIMIT}") for item in advised(group, places, torch_version)]
        asked = [
            one for one in map(torch_setting, flags) if one and (one.kind != "argument" or group.impact.limit_hits)
        ]
        limits = [one for one in asked if one.value == _LIMIT]
        if len(limits) < len(asked) or is_unbounded(group, places):
            asked = [one for one in asked if one not in limits]
        found |= dict.fromkeys(asked)
    return tuple(found)


def is_unbounded(group: Group, places: Places) -> bool:
    """Whether each recompilation has met another value of an attribute that the code counts up: no limit is enough."""
    names = "|".join(re.escape(guard.subject.rpartition(".")[2]) for guard in group.guards if guard.about == "value")
    lines = file.lines if (file := places.file(group.place.path) if group.place else None) else ()
    return bool(names) and any(re.search(rf"\.({names}) *[+-]=", line) for line in lines)
