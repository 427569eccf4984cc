"""What a user interface lacks so that the options can be set, saved and loaded in it: a remark for each place."""

from __future__ import annotations

from collections.abc import Iterator

from patcher.facts.scripts.interfaces import Interface, components, interfaces
from patcher.facts.scripts.sources import Sources
from patcher.integrate.options import OPTIONS
from patcher.integrate.remarks import Remark, at

NAMES = tuple(option.removeprefix("--") for option in OPTIONS)
_WHAT = {
    "function": "takes every parameter, but not {}: give it those, as the last, as the others alike",
    "components": "lists every component, but not {}: add those, as the last",
    "saved": "is written to a configuration, without {}: add those",
}


def lacking(sources: Sources, around: Sources) -> list[Remark]:
    """A remark for each place that lists the parameters of an interface and lacks one of the options."""
    return [remark for interface in interfaces(sources) for remark in _of(interface, sources, around)]


def has_interface(sources: Sources) -> bool:
    """Whether the first of the files is an interface that lists every parameter."""
    return any(interface.source is sources.all[0] for interface in interfaces(sources))


def _of(interface: Interface, sources: Sources, around: Sources) -> Iterator[Remark]:
    prefix = interface.prefix(NAMES)
    told = list(_listed(interface, prefix or ""))
    if not prefix:
        told += _made(interface, sources, around)
    yield from told
    if told and "dynamo_backend" in interface.shared:
        message = "`dynamo_backend` has accelerate compile: with compile it has to be no, the two exclude each other"
        yield at(interface.source, interface.functions[0], message)


def _listed(interface: Interface, prefix: str) -> Iterator[Remark]:
    for listing in interface.listings:
        own = "" if listing.kind == "saved" else prefix
        missing = [f"{own}{name}" for name in NAMES if f"{own}{name}" not in listing.names]
        if missing:
            what = _WHAT[listing.kind].format(", ".join(missing))
            yield at(listing.source, listing.node, f"`{listing.name}` {what}" if listing.name else f"this {what}")
        conditions = interface.conditions(listing, NAMES, prefix)
        if conditions:
            others = ", ".join(f"`{name}`" for name in sorted(set().union(*conditions.values())))
            message = (
                f"writes {', '.join(conditions)} only where {others} says so: with what else it runs they do nothing"
            )
            yield at(listing.source, listing.node, f"`{listing.name}` {message}")


def _made(interface: Interface, sources: Sources, around: Sources) -> Iterator[Remark]:
    """Where components for the options are to be made, if none of the classes that make the others does."""
    classes = [c for name in interface.makers() if (c := components((*sources.all, *around.all), name)) is not None]
    made = {name for _, _, names in classes for name in names}
    missing = [name for name in NAMES if interface.component(name) not in made]
    if missing and classes:
        source, node, _ = classes[0]
        message = (
            f"`{node.name}` makes most of the components, and none is called {', '.join(missing)}: make those here"
        )
        yield at(source, node, message)
