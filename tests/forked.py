"""The parent of forks for tests: one for all tests of a process, and one that has no torch to import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from patcher.harness import forks
from patcher.harness.forks import USUAL, Forked, Forks, Manner

PARENT = Path(forks.__file__).with_name("parent.py")
OF_EACH_TEST = ("PYTEST_CURRENT_TEST", "PYTEST_XDIST_TESTRUNUID")
_MODULES = (
    "torch",
    "torch._dynamo",
    "torch._dynamo.guards",
    "torch._dynamo.trace_rules",
    "torch._inductor",
    "torch._inductor.compile_fx",
    "torch._inductor.cpu_vec_isa",
    "torch._inductor.cudagraph_trees",
)


def parent_without_torch(folder: Path, more: str = "") -> Path:
    """Write the program with hollow modules in the place of torch's, and with these lines behind them."""
    file = folder / "parent.py"
    hollow = [f"for name in {_MODULES!r}:", "    sys.modules[name] = types.ModuleType(name)"]
    start = ["import sys, types", *hollow, more, f"__file__ = {str(PARENT)!r}"]
    run = "exec(compile(open(__file__).read(), __file__, 'exec'))"
    file.write_text("\n".join([*start, run, ""]), encoding="utf-8")
    return file


class Shared(Forks):
    """Stays open when a run is over, so that the next one finds it with torch imported."""

    def __init__(self) -> None:
        super().__init__(sys.executable, PARENT)

    def start(
        self, program: Path, argument: str, variables: Mapping[str, str], out: int, manner: Manner = USUAL
    ) -> Forked | subprocess.Popen[bytes] | None:
        """As that of all forks; variables that pytest changes from test to test are no reason for another parent."""
        same = {key: value for key, value in variables.items() if key not in OF_EACH_TEST}
        return super().start(program, argument, same, out, manner)

    def __exit__(self, *_: object) -> None:
        pass
