"""``rules`` and ``selftest``: what the rules are, and what they are worth on the PyTorch that is installed."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from patcher.cli.showing import colour, page, progress
from patcher.config import ConfigError, nearest
from patcher.edit.suppress import OF_COMMENTS
from patcher.explain import coloured, explanation, listing
from patcher.options import chosen_rules, find_rule, strategies_of, strategy_key
from patcher.own_rules.examined import examined
from patcher.own_rules.found import OwnRules
from patcher.patching import calls
from patcher.rule import Rule
from patcher.selftest.call import selftest
from patcher.selftest.executing import measured


def rules_of(rules: Sequence[Rule], origins: Mapping[str, str]) -> click.Command:
    """The command that lists and explains rules; ``origins``: the package that a rule comes from, by its code."""
    rules = (*OF_COMMENTS, *rules)

    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("code", required=False, metavar="[CODE]")
    @click.option("--no-color", is_flag=True, help="No colours (also: NO_COLOR in the environment).")
    def explain(code: str | None, no_color: bool) -> calls.Told:
        """List the rules (of a family: FC1), or explain the one with this code or name."""
        if code is None:
            return calls.Told(calls.OK, listing(rules, [strategies_of(rule) for rule in rules], origins))
        family = [rule for rule in rules if rule.code.startswith(code.upper()) and rule.code != code.upper()]
        if family:
            return calls.Told(calls.OK, listing(family, [strategies_of(rule) for rule in family], origins))
        rule = find_rule(rules, code)
        line = measured([rule]).line(rule.code)
        lies = page(f"rules/{rule.code}")
        told = explanation(rule, strategy_key(rule), strategies_of(rule), line, origins.get(rule.code, ""), lies)
        return calls.Told(calls.OK, coloured(told) if colour(no_color) else told)

    return explain


def selftesting(rules: Sequence[Rule], own: OwnRules) -> click.Command:
    """The command that tries the rules' examples; ``own``: those of ``rules`` that come from other packages."""

    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("codes", nargs=-1, metavar="[CODES]...")
    @click.option("--rules", "package", metavar="NAME", help="Only the rules of this installed package.")
    @click.option("--python", metavar="EXE", help="The Python whose PyTorch is tried (default: this one).")
    @click.option("--format", "format_", type=click.Choice(("text", "json")), default="text", help="Of the report.")
    @click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Processes (default: by CPUs, 8 at most).")
    @click.option("--no-cache", is_flag=True, help="Execute again what was executed before with the same PyTorch.")
    @click.option("-q", "--quiet", is_flag=True, help="No progress; only the report and errors.")
    @click.option("--no-color", is_flag=True, help="Nothing is coloured here; for symmetry.")
    def tried(codes: tuple[str, ...], package: str | None, jobs: int | None, **given: Any) -> calls.Told:
        """Run the rules' own examples on your PyTorch: which help there, which are no longer needed, which are wrong.

        CODES: codes, prefixes or names; all rules without any. A rule that is wrong there fixes nothing from then on.
        Rules of other packages are also examined: whether they find and write what their examples say.
        Exit status: 0, 1 when a rule is wrong, 2 when its examples cannot be run.
        """
        chosen = chosen_rules(rules, codes)
        if package is not None:
            chosen = tuple(rule for rule in chosen if rule.code in _of_package(own, package))
        said = {rule.code: examined(rule, rules) for rule in chosen if rule.code in own.origins}
        shows_progress = not given["quiet"] and sys.stderr.isatty()
        show = progress("examples") if shows_progress else None
        try:
            python, again = given["python"] or sys.executable, given["no_cache"]
            return selftest(chosen, python, given["format_"], jobs, not again, show, said)
        finally:
            if shows_progress:
                click.echo("\r\x1b[K", err=True, nl=False)

    return tried


def _of_package(own: OwnRules, name: str) -> tuple[str, ...]:
    """The codes of the rules that the package ``name`` brings; raises ``ConfigError``."""
    if name in own.packages:
        return own.packages[name]
    known = f"{nearest(name, own.packages)}" if own.packages else f" (none has any; {page('own-rules')} says how)"
    raise ConfigError(f"--rules: no installed package with rules is called {name!r}{known}")
