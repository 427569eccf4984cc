"""``python -m tests.fuzz --seed 1 --mutants 20000 -o wrong.jsonl``: search for safe fixes that change results."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from tests.fuzz.search import Tally, count, judged, search


@click.command()
@click.option("--seed", default=0, show_default=True, help="The mutants are a function of it and of their number.")
@click.option("--mutants", default=1000, show_default=True, help="How many.")
@click.option("--first", default=0, help="The number of the first one.")
@click.option("--rule", "rules", multiple=True, help="Only examples of this rule (a prefix works; more than once).")
@click.option("--dynamo", default=0.005, show_default=True, help="The share that runs under Dynamo as well.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write what is wrong here, a line of JSON each.")
@click.option("--judge", is_flag=True, hidden=True)
def main(
    seed: int, mutants: int, first: int, rules: tuple[str, ...], dynamo: float, output: Path | None, judge: bool
) -> None:
    """Put hazards into the rules' examples and run original against patched. Exit status 1 when something is wrong."""
    if judge:
        _judge(judged(seed, first, mutants, rules, dynamo))
        return
    tally = Tally()
    shown: set[tuple[object, ...]] = set()
    for number, record in enumerate(search(seed, mutants, rules=rules, dynamo=dynamo, first=first), 1):
        count(tally, record)
        wrong = record.get("wrong")
        if wrong:
            if output:
                with output.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(wrong) + "\n")
            key = (tuple(wrong["codes"]), wrong["kind"], tuple(wrong["hazards"]))
            if key not in shown:
                shown.add(key)
                click.echo(told(wrong))
        if number % 500 == 0:
            click.echo(f"... {tally}", err=True)
    click.echo(str(tally))
    sys.exit(1 if tally.wrong else 0)


def told(wrong: dict[str, Any]) -> str:
    """One wrong fix, to be read."""
    return (
        f"\n== {', '.join(wrong['codes'])}: {wrong['kind']}   ({wrong['way']}; mutant {wrong['seed_number']})\n"
        f"   from {wrong['seed']}\n   hazards: {' + '.join(wrong['hazards']) or 'none'}\n   {wrong['difference']}\n\n"
        f"{wrong['source']}\n\n# run\n{wrong['run']}\n\n{wrong['diff']}\n"
    )


def _judge(records: Any) -> None:
    """Records as lines, on a stream of their own: what mutants print goes nowhere."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        for record in records:
            stream.write(json.dumps(record) + "\n")
            stream.flush()


if __name__ == "__main__":
    main()
