"""What a module is called: by its own file, and by the imports of other files."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

#: What these names stand for is in no folder of a project: an installed package comes before a folder that is none.
_ELSEWHERE = sys.stdlib_module_names | {"torch"}


@dataclass(frozen=True)
class Package:
    """Where a module stands: ``name``, the dotted package that relative imports start from, and its file's folder."""

    name: str = ""
    folder: Path | None = None
    _found: dict[str, Path | None] = field(default_factory=dict, compare=False, repr=False)

    def meant(self, dotted: str) -> str:
        """The dotted thing by the name that `module_name` gives to the module that it is in.

        A folder without ``__init__.py`` is no part of that name, for nothing says where such names begin; but other
        files import the modules in it by its name: ``from models.ops import f``.
        """
        first, *rest = dotted.split(".")
        if not rest or self.folder is None or first in _ELSEWHERE:
            return dotted
        if first not in self._found:
            self._found[first] = _folder_without_init(self.folder, first)
        at = self._found[first]
        if at is None:
            return dotted
        for number, part in enumerate(rest, 1):
            inner = at / part
            if (inner / "__init__.py").is_file() or inner.with_name(f"{part}.py").is_file():
                return ".".join(dotted.split(".")[number:])
            if not inner.is_dir():
                return dotted
            at = inner
        return dotted

    def attribute(self, base: str, rest: str) -> str:
        """What ``.rest`` of the imported ``base`` is: of ``import models.ops``, ``models`` alone is bound."""
        if not rest:
            return base
        return f"{base}.{rest}" if "." in base else self.meant(f"{base}.{rest}")


#: Of a module whose file is not known: imports mean what they say.
NOWHERE = Package()


def _folder_without_init(folder: Path, name: str) -> Path | None:
    """The folder ``name`` beside ``folder``'s files or further up that is no package, if no module comes before it."""
    for above in (folder, *folder.parents):
        found = above / name
        if (found / "__init__.py").is_file() or found.with_name(f"{name}.py").is_file():
            return None
        if found.is_dir():
            return found
    return None


def module_name(path: str) -> tuple[str, Package]:
    """The dotted name that ``path`` is imported as, from the ``__init__.py`` files above it, and its package."""
    file = Path(path)
    parts = [] if file.name == "__init__.py" else [file.stem]
    folder = file.parent
    while folder.name and (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    package = parts if file.name == "__init__.py" else parts[:-1]
    return ".".join(parts), Package(".".join(package), file.parent.absolute())
