"""What a module is called: by its own file, and by the imports of other files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

#: Libraries of which the facts say what a function does. A name that begins so is theirs: an installed package comes
#: before a folder that is none, and a module of a project that is called like one goes by its folder's name as well.
_ELSEWHERE = sys.stdlib_module_names | {
    *("torch", "torchvision", "torchaudio", "torch_xla", "triton", "functorch", "numpy", "np", "scipy", "einops"),
    *("transformers", "diffusers", "accelerate", "timm", "segmentation_models_pytorch", "lightning"),
    *("pytorch_lightning", "tqdm", "rich", "loguru", "absl", "typing_extensions", "pytest", "matplotlib"),
}
_DEFINITION = re.compile(r"^(?:(?:async +)?def +|class +)(\w+)|^(\w+) *[:=](?!=)", re.MULTILINE)


@dataclass(frozen=True)
class Package:
    """Where a module stands: ``name``, the dotted package that relative imports start from, and its file's folder.

    ``brought``: what ``*`` brings, by the dots and the module of the import, as far as that was asked; ``read``: the
    files that were read for it.
    """

    name: str = ""
    folder: Path | None = None
    brought: dict[tuple[int, str], Mapping[str, str] | None] = field(default_factory=dict, compare=False, repr=False)
    read: set[Path] = field(default_factory=set, compare=False, repr=False)
    _found: dict[str, Path | None] = field(default_factory=dict, compare=False, repr=False)
    _defined: dict[Path, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)

    def meant(self, dotted: str) -> str:
        """The dotted thing by the name that `module_name` gives to the module that it is in.

        A folder without ``__init__.py`` is no part of that name, for nothing says where such names begin; but other
        files import the modules in it by its name: ``from models.ops import f``.
        """
        first, *rest = dotted.split(".")
        if not rest or self.folder is None:
            return dotted
        if first in _ELSEWHERE:
            return self._beside(first, rest) or dotted
        if first not in self._found:
            self._found[first] = _folder_without_init(self.folder, first)
        at = self._found[first]
        if at is None:
            return dotted
        for number, part in enumerate(rest, 1):
            at /= part
            file = at.with_name(f"{part}.py")
            if (at / "__init__.py").is_file():
                return dotted if part in _ELSEWHERE else ".".join(rest[number - 1 :])
            if file.is_file():
                return ".".join((module_name(str(file))[0], *rest[number:]))
            if not at.is_dir():
                return dotted
        return dotted

    def relative(self, level: int, dotted: str) -> str:
        """What ``dotted`` is with ``level`` dots in front of it; all of the package for an empty one."""
        parts = self.name.split(".") if self.name else []
        kept = parts[: max(0, len(parts) - (level - 1))]
        if kept or self.folder is None or not dotted:
            return ".".join((*kept, dotted) if dotted else kept)
        first = dotted.split(".", maxsplit=1)[0]
        above = [f / first for f in islice((self.folder, *self.folder.parents), level - 1, level)]
        # a package around a folder without ``__init__.py``, or a module in such a folder
        files = [file for at in above for file in (at / "__init__.py", at.with_name(f"{first}.py")) if file.is_file()]
        return f"{module_name(str(files[0]))[0]}{dotted[len(first) :]}" if files else dotted

    def hides(self, library: str) -> bool:
        """Whether a file beside the module, which is in no package, may be imported by the name of ``library``."""
        if self.name or self.folder is None:
            return False
        return (self.folder / f"{library}.py").is_file() or (self.folder / library / "__init__.py").is_file()

    def _beside(self, library: str, rest: list[str]) -> str | None:
        """A thing of the module beside this one that is called like a library, where it defines such a thing."""
        if library not in self._found:
            file = self.folder / f"{library}.py" if self.folder is not None and not self.name else None
            self._found[library] = file if file is not None and file.is_file() else None
        beside = self._found[library]
        if beside is None or rest[0] not in self._defined_in(beside):
            return None
        return ".".join((module_name(str(beside))[0], *rest))

    def _defined_in(self, file: Path) -> frozenset[str]:
        if file not in self._defined:
            self._defined[file] = _defined(file)
        return self._defined[file]

    def attribute(self, base: str, rest: str) -> str:
        """What ``.rest`` of the imported ``base`` is: of ``import models.ops``, ``models`` alone is bound."""
        if not rest:
            return base
        return f"{base}.{rest}" if "." in base else self.meant(f"{base}.{rest}")


def is_elsewhere(dotted: str) -> bool:
    """Whether ``dotted`` is of Python or of a library of which the facts say what a function does."""
    return dotted.partition(".")[0] in _ELSEWHERE


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


def _defined(file: Path) -> frozenset[str]:
    """What the text of ``file`` calls a function, a class or a variable at its top level; none if it cannot be read."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    return frozenset(m[1] or m[2] for m in _DEFINITION.finditer(text))


def module_name(path: str) -> tuple[str, Package]:
    """The dotted name that ``path`` is imported as, from the ``__init__.py`` files above it, and its package.

    A file in a folder without one that is called like a library, as ``helpers/math.py``, has the folder's name too.
    """
    # a path from inside of a package does not name that; links stay what they are called
    file = Path(os.path.abspath(path))  # noqa: PTH100
    parts = [] if file.name == "__init__.py" else [file.stem]
    folder = file.parent
    while folder.name and (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    package = parts if file.name == "__init__.py" else parts[:-1]
    if len(parts) == 1 and not package:
        above = file
        while parts[0] in _ELSEWHERE and (above := above.parent).name:
            parts.insert(0, above.name)
    return ".".join(parts), Package(".".join(package), file.parent)
