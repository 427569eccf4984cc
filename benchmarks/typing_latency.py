"""How long a text takes to be looked at while it is typed into: what the language server does for each key.

    python benchmarks/typing_latency.py [--project DIR] FILE...

Each file is opened with its project read (DIR, else the file alone), and a local name in the middle of it gets a
letter more, thirty times. Milliseconds of the processor, medians (and worst), and on the clock, which other work on the
machine makes longer: `look`, until findings are there; `learn`, what the text says of the others, which comes later, in
the background. `index`: seconds for reading the project, once.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from patcher.edit.suppress import OF_COMMENTS
from patcher.editor.folder import Folder
from rules import load_rules

KEYS = 30


def typed(text: str) -> list[str]:
    """The text after each key: a local name that gets longer in the middle of the file."""
    lines = text.split("\n")
    inside = [n for n, line in enumerate(lines) if line.startswith("        return ")]
    at = inside[len(inside) // 2] if inside else len(lines)
    return ["\n".join([*lines[:at], f"        typed_{'x' * n} = {n}", *lines[at:]]) for n in range(KEYS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--project", default="")
    asked = parser.parse_args()
    rules = (*OF_COMMENTS, *load_rules())
    folder = Folder(str(Path(asked.project or Path(asked.files[0]).parent).resolve()), rules)
    if asked.project:
        started = time.perf_counter()
        folder.index()
        print(f"index: {time.perf_counter() - started:.1f} s")
    print("| file | lines | findings | look | look, clock | learn |\n|---|---|---|---|---|---|")
    for file in asked.files:
        path = str(Path(file).resolve())
        text = Path(path).read_text(encoding="utf-8")
        folder.look(path, text)
        looks, clock, learns, found = [], [], [], 0
        for changed in typed(text):
            started, seen = time.process_time(), time.perf_counter()
            found = len(folder.look(path, changed).found)
            looks.append(1000 * (time.process_time() - started))
            clock.append(1000 * (time.perf_counter() - seen))
            started = time.process_time()
            folder.learn(path, changed)
            learns.append(1000 * (time.process_time() - started))
        cells = [f"{statistics.median(times):.0f} ({max(times):.0f})" for times in (looks, clock, learns)]
        print(f"| {Path(file).name} | {len(text.splitlines())} | {found} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
