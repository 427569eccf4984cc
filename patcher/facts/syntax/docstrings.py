"""Which parameters a docstring calls tensors, in the three styles that people write: Google's, NumPy's, Sphinx's."""

from __future__ import annotations

import ast
import re

from patcher.facts.syntax.tree import FunctionNode

#: ``x (Tensor, optional): ...``, several names before it as well; the type may have brackets of its own.
_TYPED = re.compile(r"^\s*[-*]*\s*`*(\w+(?:\s*,\s*\w+)*)`*\s*:?\s*\(((?:[^()]|\([^()]*\))*)\)\s*(?::|--?\s|$)")
#: ``x : torch.Tensor``, and ``x: a tensor of shape ...``.
_TOLD = re.compile(r"^\s*[-*]*\s*`*(\w+(?:\s*,\s*\w+)*)`*\s*:\s*(\S.*)$")
#: ``:param Tensor x: ...``.
_PARAM = re.compile(r":param\s+(\S+)\s+(\w+)\s*:")
#: ``:type x: torch.Tensor``.
_TYPE = re.compile(r":type\s+(\w+)\s*:\s*(.+)")
_TENSOR = re.compile(r"\b(?:[A-Z]\w*)?Tensor\b|\btensor\b")
#: What else it may be, or holds tensors.
_OTHER = re.compile(
    r"\b(?:list|tuple|dict|sequence|iterable|int|float|bool|str|string|number|scalar|callable|function|module|ndarray|"
    r"array|list of|tensors|or)\b",
    re.IGNORECASE,
)
_DTYPE = re.compile(r"\b(?:int|float|bool|long|integer|boolean|scalar)(?=\s+(?:\w+\s+)?tensor\b)", re.IGNORECASE)
#: Words before "tensor" in a sentence that is about something else.
_ABOUT = re.compile(
    r"\b(?:of|whether|if|for|number|size|dimension|shape|name|type|dtype|device|rank|list|tuple|dict|returns?)\b"
)
_PARTS = re.compile(r"^\s*(?:dim|size|shape|parallel|rank|name|type|dtype|network|train|product|core|field|or\b|list)")


def tensors_documented(function: FunctionNode) -> frozenset[str]:
    """Parameters of ``function`` that its docstring says are one tensor each."""
    text = ast.get_docstring(function, clean=False)
    if text is None or "ensor" not in text:
        return frozenset()
    found: set[str] = set()
    for line in text.splitlines():
        if "ensor" in line:
            found.update(_told(line))
    return frozenset(found)


def _told(line: str) -> list[str]:
    if (param := _PARAM.search(line)) is not None:
        return [param[2]] if _is_type(param[1]) else []
    if (kind := _TYPE.search(line)) is not None:
        return [kind[1]] if _is_type(kind[2]) else []
    if (typed := _TYPED.match(line)) is not None:
        return _names(typed[1]) if _is_type(typed[2]) else []
    if (told := _TOLD.match(line)) is not None:
        return _names(told[1]) if _is_sentence(told[2]) else []
    return []


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _is_type(text: str) -> bool:
    """Whether ``text``, which is short, is the type of one tensor."""
    plain = _DTYPE.sub("", text.replace("`", " "))
    found = _TENSOR.search(plain)
    if found is None or len(plain.split()) > 8 or _PARTS.match(plain[found.end() :]) is not None:
        return False
    return _OTHER.search(plain) is None


def _is_sentence(text: str) -> bool:
    """Whether ``text`` begins by calling it a tensor: "a boolean tensor of shape ..."."""
    found = _TENSOR.search(text)
    if found is None or _ABOUT.search(text[: found.start()].lower()) is not None:
        return False
    before, after = _DTYPE.sub("", text[: found.end()]), text[found.end() :]
    return len(before.split()) <= 6 and _OTHER.search(before) is None and _PARTS.match(after) is None
