"""The search: mutants by number, judged in a process of its own that is started again when one kills it."""

from __future__ import annotations

import dataclasses
import faulthandler
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
HARD_LIMIT_S = 150


@dataclass
class Tally:
    """What a search came to. ``by_code``: mutants that each rule rewrote; ``seconds``: of CPU, in the processes."""

    statuses: Counter[str] = field(default_factory=Counter)
    by_code: Counter[str] = field(default_factory=Counter)
    live: int = 0
    deaths: int = 0
    seconds: float = 0.0
    wrong: list[dict[str, Any]] = field(default_factory=list)

    @property
    def rewritten(self) -> int:
        """Mutants in which a safe fix was made."""
        return sum(self.statuses[s] for s in ("same", "wrong", "dead", "hung"))

    def __str__(self) -> str:
        mutants = sum(self.statuses.values())
        speed = mutants / self.seconds if self.seconds else 0
        lines = [
            f"{mutants} mutants, {self.rewritten} rewritten, {self.live} of these return from at least one call; "
            f"{len(self.wrong)} wrong; {self.deaths} ended the process; "
            f"{self.seconds:.0f} CPU seconds, {speed:.0f} mutants a second",
            "  " + ", ".join(f"{status} {count}" for status, count in self.statuses.most_common()),
            "  rewritten by " + ", ".join(f"{code} {count}" for code, count in sorted(self.by_code.items())),
        ]
        grouped = Counter((" ".join(w["codes"]), w["kind"]) for w in self.wrong)
        lines += [f"  wrong: {codes} {kind}: {count}" for (codes, kind), count in grouped.most_common()]
        return "\n".join(lines)


def judged(seed: int, first: int, count: int, rules: Sequence[str], dynamo: float) -> Iterator[dict[str, Any]]:
    """Judge mutants ``first`` ... in this process: a record for each, plain data."""
    from tests.fuzz.judge import judge
    from tests.fuzz.mutate import mutant
    from tests.fuzz.seeds import seeds

    known = [s for s in seeds() if not rules or s.code.startswith(tuple(rules))]
    fixed, others = [s for s in known if s.rewritten], [s for s in known if not s.rewritten]
    for number in range(first, first + count):
        faulthandler.dump_traceback_later(HARD_LIMIT_S, exit=True)
        started = time.process_time()
        rng = random.Random(f"{seed}:{number}")
        chosen = rng.choice(others if others and (not fixed or rng.random() < 0.03) else fixed)
        made = mutant(chosen, rng)
        found = judge(made, rng, dynamo)
        record: dict[str, Any] = {
            "number": number,
            "status": found.status,
            "live": found.live,
            "codes": found.codes,
            "seconds": time.process_time() - started,
        }
        if found.wrong:
            record["wrong"] = {"seed_number": f"{seed}:{number}", **dataclasses.asdict(found.wrong)}
        yield record
    faulthandler.cancel_dump_traceback_later()


def search(
    seed: int, mutants: int, *, rules: Sequence[str] = (), dynamo: float = 0.005, first: int = 0
) -> Iterator[dict[str, Any]]:
    """The records of all mutants, from processes of their own. One that kills its process has the status "died"."""
    at, end = first, first + mutants
    barren = 0
    while at < end:
        command = [sys.executable, "-m", "tests.fuzz", "--seed", str(seed), "--first", str(at)]
        command += ["--mutants", str(end - at), "--dynamo", str(dynamo), "--judge"]
        command += [part for rule in rules for part in ("--rule", rule)]
        barren += 1
        if barren > 3:
            raise RuntimeError(f"the search itself does not run: {' '.join(command)}")
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("{"):
                    record = json.loads(line)
                    at, barren = record["number"] + 1, 0
                    yield record
        if at < end:
            yield {"number": at, "status": "died", "live": False, "codes": [], "seconds": 0.0}
            at += 1


def tallied(records: Iterable[dict[str, Any]]) -> Tally:
    """All records, counted."""
    tally = Tally()
    for record in records:
        count(tally, record)
    return tally


def count(tally: Tally, record: dict[str, Any]) -> None:
    """Add one record to the tally."""
    tally.statuses[record["status"]] += 1
    tally.deaths += record["status"] == "died"
    tally.live += bool(record["live"])
    tally.seconds += record["seconds"]
    tally.by_code.update(record["codes"])
    if "wrong" in record:
        tally.wrong.append(record["wrong"])
