"""Command line and configuration, checked against the rules and merged; the command line wins."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from patcher.config import FUNCTION, Config, ConfigError, nearest
from patcher.rule import Rule, removed
from patcher.selftest.executing import Measured
from patcher.settings import LATEST_TORCH, SEVERITIES, IgnoredIn, Settings

_CONFIGURED = "[tool.fix-compile]"


def settings_from(
    rules: Sequence[Rule],
    config: Config,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    unsafe: bool = False,
    strategy: Sequence[str] = (),
    target_torch: str | None = None,
    measured: Measured | None = None,
    device_asserts: bool | None = None,
    compiled: Sequence[str] = (),
    capacity: int | None = None,
) -> Settings:
    """The settings for the engine; raises ``ConfigError`` for a code, strategy or version that does not exist.

    ``measured``: what selftest has shown on the torch that is installed, which is the target when none is named.
    """
    named = target_torch or config.target_torch
    target = _version(named, "--target-torch" if target_torch else f"target-torch in {_CONFIGURED}:")
    measured = measured or Measured()
    wanted, only = _in_force(rules, select, config.select, "select")
    unwanted, without = _in_force(rules, ignore, config.ignore, "ignore")
    return Settings(
        select=wanted,
        ignore=unwanted,
        severities=frozenset(only or SEVERITIES) - frozenset(without),
        per_file_ignores=tuple(
            IgnoredIn(pattern, str(config.root or "."), _codes(rules, codes, f"per-file-ignores in {_CONFIGURED}")[0])
            for pattern, codes in config.per_file_ignores.items()
        ),
        unsafe=unsafe or config.unsafe,
        device_asserts=config.device_asserts if device_asserts is None else device_asserts,
        strategies={
            **_strategies(rules, config.strategy, f"strategy in {_CONFIGURED}:"),
            **_strategies(rules, strategy, "--strategy"),
        },
        target_torch=target,
        compiled=(*_compiled(compiled), *config.compiled),
        line_length=config.line_length,
        switches=_switches(rules, config.fusions),
        capacity=config.capacity if capacity is None else capacity,
        distrusted=measured.distrusted(target if named else measured.minor),
    )


def chosen_rules(rules: Sequence[Rule], codes: Sequence[str]) -> tuple[Rule, ...]:
    """The rules of these codes, prefixes or names, all without any; raises ``ConfigError`` for one that is unknown."""
    settings = Settings(select=_codes(rules, codes, "CODES")[0])
    return tuple(rule for rule in rules if settings.wants(rule.code, rule.name))


def find_rule(rules: Sequence[Rule], word: str) -> Rule:
    """The rule with this code or name; raises ``ConfigError``."""
    for rule in rules:
        if word.upper() == rule.code or word.lower() == rule.name:
            return rule
    raise ConfigError(f"there is no rule {word!r}{_meant(rules, word)}")


def strategy_key(rule: Rule) -> str:
    """What stands before the ``=`` in ``--strategy``."""
    return str(getattr(rule, "strategy_key", rule.name))


def strategies_of(rule: Rule) -> tuple[str, ...]:
    """The rule's strategies by name; none for most rules."""
    return tuple(getattr(rule, "strategies", ()))


def strategies_by_key(rules: Sequence[Rule]) -> dict[str, tuple[str, ...]]:
    """What stands before the ``=``, and all that may stand behind it: several rules may go by one key."""
    found: dict[str, tuple[str, ...]] = {}
    for rule in rules:
        if names := strategies_of(rule):
            found[strategy_key(rule)] = tuple(dict.fromkeys((*found.get(strategy_key(rule), ()), *names)))
    return found


def _compiled(given: Sequence[str]) -> Sequence[str]:
    for name in given:
        if not FUNCTION.fullmatch(name):
            raise ConfigError(f"--compiled {name}: write it as MODULE:FUNCTION, for example package.model:Decoder.step")
    return given


def _names(rules: Sequence[Rule]) -> list[str]:
    return [rule.code for rule in rules] + [rule.name for rule in rules]


def _in_force(
    rules: Sequence[Rule], given: Sequence[str], configured: Sequence[str], option: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Codes and severities: those that were given, and of a kind of which none was, those of the configuration."""
    codes, severities = _codes(rules, given, f"--{option}")
    others, standing = _codes(rules, configured, f"{option} in {_CONFIGURED}")
    return codes or others, severities or standing


def _codes(rules: Sequence[Rule], given: Sequence[str], option: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words that stand for rules, and those that are severities."""
    words = tuple(word.strip() for item in given for word in item.split(",") if word.strip())
    codes = tuple(word for word in words if word not in SEVERITIES)
    for word in codes:
        if not any(rule.code.startswith(word.upper()) or rule.name == word for rule in rules):
            raise ConfigError(f"{option}: no rule is called {word!r}{_meant(rules, word)}")
    return codes, tuple(word for word in words if word in SEVERITIES)


def _meant(rules: Sequence[Rule], word: str) -> str:
    told = nearest(word, _names(rules))
    return removed(word) or (told if "did you mean" in told else " (fix-compile rules lists them)")


def _strategies(rules: Sequence[Rule], given: Sequence[str], option: str) -> Mapping[str, str]:
    having = [rule for rule in rules if strategies_of(rule)]
    chosen = {}
    for item in given:
        key, equals, name = item.partition("=")
        if not equals:
            raise ConfigError(f"{option} {item}: write it as RULE=NAME, for example kv-cache=eager-zone")
        match = [rule for rule in having if key.strip() in (strategy_key(rule), rule.name, rule.code)]
        if not match:
            known = [strategy_key(rule) for rule in having]
            raise ConfigError(f"{option} {item}: no rule with strategies is called {key!r}{nearest(key, known)}")
        names = strategies_by_key(match)[strategy_key(match[0])]
        if name.strip() not in names:
            raise ConfigError(f"{option} {item}: no strategy {name!r}{nearest(name, names)}")
        chosen[strategy_key(match[0])] = name.strip()
    return chosen


def _switches(rules: Sequence[Rule], given: Mapping[str, bool]) -> frozenset[str]:
    """Those that are on."""
    known = [rule.switch for rule in rules if rule.switch]
    for name in given:
        if name not in known:
            raise ConfigError(f"unknown key {name!r} in [tool.fix-compile.fusions]{nearest(name, known)}")
    return frozenset(name for name, on in given.items() if on)


def _version(text: str | None, option: str) -> tuple[int, int]:
    if text is None:
        return LATEST_TORCH
    match = re.fullmatch(r"(\d+)\.(\d+)(?:\.\d+)?(?:[+a-z].*)?", text.strip())
    if not match or int(match.group(1)) < 2:
        raise ConfigError(f"{option} {text}: give a PyTorch version from 2.0 such as 2.13")
    return int(match.group(1)), int(match.group(2))
