"""HTML as values: what is plain text is escaped when it is put into an element, so that nobody can forget to."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

_VOID = frozenset({"input", "meta", "wbr"})
_CODE = re.compile(r"(``?)([^`\n]+)\1")
_SHORT = 32  # characters of a path that stays on one line


class Markup(str):
    """Text that is HTML already. Only this module makes it from a plain string."""

    __slots__ = ()


Child = str | Iterable[str]  # a plain string is text, ``Markup`` is taken as it is
Attribute = str | int | bool


def element(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    """An element; ``class_`` is ``class``, ``aria_label`` is ``aria-label``, True has no value, False is left out."""
    told = "".join(_attribute(name, value) for name, value in attributes.items() if value is not False)
    if tag in _VOID:
        return Markup(f"<{tag}{told}>")
    return Markup(f"<{tag}{told}>{join(*children)}</{tag}>")


def join(*children: Child) -> Markup:
    """The children one after the other, each escaped where it is plain."""
    parts: list[str] = []
    for child in children:
        parts += [_text(child)] if isinstance(child, str) else [_text(item) for item in child]
    return Markup("".join(parts))


def style(text: str) -> Markup:
    """A style sheet of our own; nothing from outside may get into it."""
    assert "<" not in text
    return Markup(f"<style>{text}</style>")


def document(root: Markup) -> str:
    """The whole file."""
    return f"<!DOCTYPE html>\n{root}\n"


def prose(text: str) -> Markup:
    """A sentence in which names stand between backticks, one or two."""
    parts = _CODE.split(text)  # text, backticks, name, text, ...
    return join(element("code", part) if i % 3 == 2 else part for i, part in enumerate(parts) if i % 3 != 1)


def paragraphs(text: str) -> Markup:
    """Paragraphs that blank lines divide."""
    return join(element("p", prose(" ".join(part.split()))) for part in re.split(r"\n\s*\n", text) if part.strip())


def place(where: str) -> Markup:
    """``file:line``, or a dash where that is not known."""
    if not where:
        return Markup("-")
    if len(where) <= _SHORT:
        return element("code", where, class_="place whole")
    parts = [part for step in where.split("/") for part in ("/", element("wbr"), step)]
    return element("code", parts[2:], class_="place")


def _text(child: str) -> str:
    return child if isinstance(child, Markup) else html.escape(_visible(child))


def _attribute(name: str, value: Attribute) -> str:
    spelled = name.rstrip("_").replace("_", "-")
    return f" {spelled}" if value is True else f' {spelled}="{html.escape(_visible(str(value)))}"'


def _visible(text: str) -> str:
    """With what cannot be seen spelled out: control characters, marks that turn the reading direction, surrogates."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode("ascii") for c in text)
