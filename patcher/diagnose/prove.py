"""Which fixes earn their place: try those that a run gives a reason for, keep what helps, take back the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from patcher.analysis import Analysis
from patcher.diagnose.bench import Bench, State
from patcher.diagnose.better import Change, difference
from patcher.diagnose.diagnosis import Outcome, Totals, Tried
from patcher.diagnose.events import Seen
from patcher.diagnose.groups import Group, groups
from patcher.diagnose.relations import Bundle, bundles, evidence, findings, related
from patcher.harness.measured import Tree
from patcher.harness.plan import Options
from patcher.report.diff import file_diff
from patcher.results import FileResult
from patcher.rule import Cost
from patcher.settings import Settings, Unit, Varied

_ROUNDS = 5
_TURNS = 3
_FAILED = ("different", "failed", "invalid")

_Key = tuple[frozenset[Unit], tuple[tuple[str, str], ...]]  # what is fixed, and with which strategies


@dataclass(frozen=True)
class Ending:
    """What the search has come to: the files with what is kept, how they were measured, and each fix's fate."""

    files: tuple[FileResult, ...]
    state: State | None
    tried: tuple[Tried, ...]
    chosen: tuple[Bundle, ...] = ()


@dataclass
class Search:
    """One search. ``costs``: what each rule's findings may show as. ``quick``: how to measure on the way.

    ``strategies``: for each rule with several, its key and their names, when all are to be tried.
    """

    analysis: Analysis
    settings: Settings
    bench: Bench
    costs: Mapping[str, tuple[Cost, ...]]
    quick: Options
    strategies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    _states: dict[_Key, State] = field(default_factory=dict)
    _known: dict[tuple[str, ...], Bundle] = field(default_factory=dict)
    _fates: dict[tuple[str, ...], tuple[Outcome, str, Totals | None]] = field(default_factory=dict)
    _evidence: tuple[Varied, ...] = ()

    def run(self, causes: Sequence[Group], uncompiled: bool = False) -> Ending:
        """From the causes in the original to the best state that was found.

        ``uncompiled``: the original of a case does not come to its end compiled, so that any fix may be what it needs.
        """
        return self._ended(self._other_strategies(self._pruned(self._grown(causes, uncompiled))))

    def at_length(self, ending: Ending, options: Options) -> Ending:
        """The end, measured once more with the original beside it; should results differ, without what is to blame."""
        if not ending.chosen:
            return ending
        self.quick, self._states = options, {}
        self._states[self._key(ending.chosen)] = self.bench.measure(ending.files, options, fresh=True)
        return self._ended(self._equivalent([], ending.chosen))

    def _ended(self, chosen: Sequence[Bundle]) -> Ending:
        state = self._state(chosen) if chosen else None
        return Ending(self._patched(chosen), state, self._told(chosen), tuple(chosen))

    # --- growing: what the run gives a reason for -------------------------------------------------------------------

    def _grown(self, causes: Sequence[Group], uncompiled: bool) -> list[Bundle]:
        chosen: list[Bundle] = []
        for _ in range(_ROUNDS):
            self._evidence = tuple(dict.fromkeys((*self._evidence, *evidence(causes, self.bench.places))))
            offered = self._offered(chosen)
            new = offered if uncompiled and not chosen else self._confirmed(offered, causes)
            if not new and causes and chosen:
                new = self._behind(chosen, offered)
            if not new:
                break
            taken = self._equivalent(chosen, new)
            if not taken:
                continue
            chosen += taken
            causes = self._causes(self._state(chosen).after)
        return chosen

    def _behind(self, chosen: Sequence[Bundle], offered: Sequence[Bundle]) -> list[Bundle]:
        """What is left, when all of it together makes a difference: something costs, and no finding lies there."""
        loaded = {self.bench.places.path(name) for one in self._state(chosen).after for name in one.figures.loaded}
        near = [bundle for bundle in offered if any(unit.path in loaded for unit in bundle.units)]
        if not near:
            return []
        found = self._gain(chosen, [*chosen, *near])
        if found.better:
            return near
        why = "no cause lies there, and tried with all others of which that is so it changed nothing"
        self._fates.update({bundle.key: ("no-op", why, None) for bundle in near})
        return []

    def _offered(self, chosen: Sequence[Bundle]) -> list[Bundle]:
        """The fixes that could be made now and were not tried yet."""
        every = bundles(self.analysis.again(replace(self.settings, evidence=self._evidence)), self.bench.places)
        for bundle in every:
            known = self._known.get(bundle.key)
            self._known[bundle.key] = replace(bundle, units=bundle.units | known.units) if known else bundle
        keys = {bundle.key for bundle in chosen}
        return [self._known[b.key] for b in every if b.key not in keys and b.key not in self._fates]

    def _confirmed(self, offered: Sequence[Bundle], causes: Sequence[Group]) -> list[Bundle]:
        """Those with a finding at a place that costs something."""
        found = findings(self.analysis.again(replace(self.settings, evidence=self._evidence)))
        guilty = {f.unit for group in causes for f in related(group, found, self.costs, self.bench.places)}
        return [bundle for bundle in offered if bundle.units & guilty]

    def _equivalent(self, chosen: Sequence[Bundle], new: Sequence[Bundle]) -> list[Bundle]:
        """The largest part of ``new``, by halves, with which the results stay as they are."""
        state = self._state([*chosen, *new])
        wrong = [verdict for verdict in state.judgement.verdicts if verdict.status in _FAILED]
        if not wrong:
            return list(new)
        if len(new) == 1:
            first = wrong[0]
            outcome: Outcome = "failed" if first.status != "different" else "different"
            self._fates[new[0].key] = (outcome, next(iter(first.reasons), first.status), None)
            return []
        half = len(new) // 2
        taken = self._equivalent(chosen, new[:half])
        return [*taken, *self._equivalent([*chosen, *taken], new[half:])]

    # --- pruning: what is a no-op goes ------------------------------------------------------------------------------

    def _pruned(self, chosen: list[Bundle]) -> list[Bundle]:
        """Without what makes no difference, or a bad one: each is left out once, with all that are kept in the end."""
        todo = list(reversed(chosen))
        while todo:
            bundle = todo.pop(0)
            rest = [other for other in chosen if other is not bundle]
            found = self._gain(rest, chosen)
            if found.by_time:
                found = self._timed(rest, chosen)
            without = self._totals(rest)
            if found.gain:
                self._fates[bundle.key] = ("kept", f"without it and with it: {found.told}", without)
                continue
            outcome: Outcome = "not better" if found.worse or found.slower else "no-op"
            why = found.told if outcome == "not better" else "no count and no time beyond noise changes with it"
            self._fates[bundle.key] = (outcome, why, without)
            chosen = rest
            seen_before = [other for other in reversed(chosen) if other not in todo]
            todo += seen_before  # they were kept beside one that is gone now
        return chosen

    def _gain(self, rest: Sequence[Bundle], chosen: Sequence[Bundle]) -> Change:
        """What ``chosen`` has over ``rest``."""
        return difference(self._tree(rest, self._state(chosen)), (self._state(chosen), "patched"))

    def _timed(self, rest: Sequence[Bundle], chosen: Sequence[Bundle]) -> Change:
        """The same where the clock decides: both are measured in turns, and every time has to say the same.

        Two processes that run the same code may differ by more than the passes in either of them do.
        """
        without, with_it = [self._tree(rest, self._state(chosen))], [self._state(chosen)]
        for _ in range(_TURNS - 1):
            with_it.append(self._state(chosen, again=True))
            without.append(self._tree(rest, with_it[-1], again=True))
        found = [difference(one, (other, "patched")) for one in without for other in with_it]
        first = found[0]
        faster, slower = all(each.faster for each in found), all(each.slower for each in found)
        return replace(first, faster=first.faster if faster else (), slower=first.slower if slower else ())

    def _tree(self, chosen: Sequence[Bundle], other: State, again: bool = False) -> tuple[State, Tree]:
        """A tree to compare with; without any fix the original, which every state has measured or reused."""
        return (self._state(chosen, again), "patched") if chosen else (other, "original")

    def _totals(self, chosen: Sequence[Bundle]) -> Totals | None:
        if chosen:
            return self._state(chosen).totals("patched")
        state = next(iter(self._states.values()), None)
        return state.totals("original") if state else None

    # --- strategies -------------------------------------------------------------------------------------------------

    def _other_strategies(self, chosen: list[Bundle]) -> list[Bundle]:
        """Try the other ways in which the kept rules could fix; the best one stays in the settings.

        The answer is ``chosen`` with what that strategy makes of it. One that makes the same text is not measured.
        """
        for key, names in self.strategies.items() if chosen else ():
            for name in names:
                now, usual = self._state(chosen), self.settings
                self.settings = replace(usual, strategies={**usual.strategies, key: name})
                other = self._with_strategy(chosen)
                if _texts(self._patched(other)) == _texts(now.files):
                    self.settings = usual
                    continue
                state = self._state(other)
                bad = any(verdict.status in _FAILED for verdict in state.judgement.verdicts)
                found = difference((now, "patched"), (state, "patched"))
                if not bad and found.gain and not found.by_time:
                    for earlier in [fate for fate in self._fates if fate[0] == key]:
                        self._fates[earlier] = ("not better", f"{name} is better", None)
                    self._fates[key, name] = ("kept", found.told, now.totals("patched"))
                    chosen = other
                    continue
                why = "results differ, or it does not run" if bad else found.told
                self._fates[key, name] = ("different" if bad else "not better", why, None)
                self.settings = usual
        return chosen

    def _with_strategy(self, chosen: Sequence[Bundle]) -> list[Bundle]:
        """The chosen fixes, with what the strategy in force makes in the same class or function."""
        offered = bundles(self.analysis.again(replace(self.settings, evidence=self._evidence)), self.bench.places)
        made = {bundle.key: bundle.units for bundle in offered}
        return [replace(bundle, units=bundle.units | made.get(bundle.key, frozenset())) for bundle in chosen]

    # --- measuring --------------------------------------------------------------------------------------------------

    def _state(self, chosen: Iterable[Bundle], again: bool = False) -> State:
        key = self._key(chosen)
        if again or key not in self._states:
            self._states[key] = self.bench.measure(self._files(key[0]), self.quick)
        return self._states[key]

    def _key(self, chosen: Iterable[Bundle]) -> _Key:
        units = frozenset(unit for bundle in chosen for unit in bundle.units)
        return units, tuple(sorted(self.settings.strategies.items()))

    def _patched(self, chosen: Iterable[Bundle]) -> tuple[FileResult, ...]:
        return self._files(frozenset(unit for bundle in chosen for unit in bundle.units))

    def _files(self, units: frozenset[Unit]) -> tuple[FileResult, ...]:
        return self.analysis.again(replace(self.settings, only=units, evidence=self._evidence))

    def _diff(self, bundle: Bundle) -> str:
        shown = self.bench.places.shown
        files = [file for file in self._files(bundle.units) if file.changed]
        return "".join(file_diff(file, shown(file.path)).decode(file.encoding, "replace") for file in files)

    def _causes(self, seen: Sequence[Seen]) -> tuple[Group, ...]:
        return groups(seen, self.bench.places)

    def _told(self, chosen: Sequence[Bundle]) -> tuple[Tried, ...]:
        kept = {bundle.key for bundle in chosen}
        told = []
        for key, bundle in self._known.items():
            unasked: tuple[Outcome, str, Totals | None] = ("not tried", "no run showed a cost there", None)
            outcome, why, without = self._fates.get(key, unasked)
            assert (key in kept) == (outcome == "kept")
            diff = self._diff(bundle) if outcome != "not tried" else ""
            told.append(Tried((bundle.label,), bundle.where, outcome, why, without, diff))
        told += [Tried(("=".join(key),), (), *fate) for key, fate in self._fates.items() if key not in self._known]
        order = ("kept", "no-op", "not better", "different", "failed", "not tried")
        return tuple(sorted(told, key=lambda tried: order.index(tried.outcome)))


def _texts(files: Iterable[FileResult]) -> dict[str, bytes]:
    return {file.path: file.after for file in files if file.changed}
