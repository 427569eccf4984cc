"""Names that are imported, or None where that fails: ``try: from m import f`` and ``except ImportError: f = None``."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator


def imported_or_none(blocks: Iterable[ast.Try], stored: Counter[str]) -> Iterator[str]:
    """The names of ``blocks``, of a module, that nothing else binds: whoever calls one has what was imported.

    ``stored``: how often something in the module, whatever its scope, binds or deletes each name, imports aside.
    """
    for block in blocks:
        imports = (s for s in block.body if isinstance(s, (ast.Import, ast.ImportFrom)))
        names = {alias.asname or alias.name for s in imports for alias in s.names}
        emptied = Counter(t.id for handler in block.handlers for s in handler.body for t in _emptied(s))
        yield from (name for name in names if emptied[name] and emptied[name] == stored[name])


def _emptied(s: ast.stmt) -> list[ast.Name]:
    if not isinstance(s, ast.Assign) or not isinstance(s.value, ast.Constant) or s.value.value is not None:
        return []
    return [t for t in s.targets if isinstance(t, ast.Name)]
