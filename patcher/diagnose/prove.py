"""Which fixes earn their place: try those that a run gives a reason for, keep what helps, take back the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from patcher.analysis import Analysis
from patcher.diagnose.asked_settings import CAPTURING, GOING_ON, RECURRENT, asked_settings
from patcher.diagnose.bench import Bench, State
from patcher.diagnose.better import (
    TIMED,
    Change,
    Standing,
    compiles_less,
    difference,
    eager_difference,
    is_whole,
    standing,
)
from patcher.diagnose.diagnosis import Outcome, Totals, Tried
from patcher.diagnose.events import Seen
from patcher.diagnose.extents import CANDIDATES, distinct, extents, pays, with_known
from patcher.diagnose.groups import Group, groups
from patcher.diagnose.relations import ZONE, Bundle, bundles, evidence, findings, related, traced
from patcher.harness.measured import Tree
from patcher.harness.plan import Options
from patcher.report.diff import file_diff
from patcher.results import FileResult
from patcher.rule import Cost
from patcher.settings import Extent, Settings, TorchSetting, Unit, Varied

_ROUNDS = 5
_TURNS = 3
_FAILED = ("different", "failed", "invalid")

_SETTING = ("FC710", "compile-setting")  # the rule that writes settings of PyTorch, and whose place they take here

#: Rules that take code out of graphs. Where that is safe, it holds something that no setting takes in.
_LEFT_OUT = ("FC104", "FC204", "FC301", "FC603", "FC604")
_CLUSTER = "FC204"  # which takes more along than that

_MARKING, _MAYBE = "FC503", {"dynamic-dim": "maybe"}  # the rule that writes marks, and those that are measured

_ZONES = 2  # functions that are left out of graphs: one of those that are measured each time

# what is fixed, with which strategies, under which settings of PyTorch
_Key = tuple[frozenset[Unit], tuple[tuple[str, str], ...], frozenset[TorchSetting]]
_Compared = Callable[[tuple[State, Tree], tuple[State, Tree]], Change]
_Fates = dict[tuple[str, ...], tuple[Outcome, str, Totals | None]]


@dataclass(frozen=True)
class Ending:
    """What the search has come to: the files with what is kept, how they were measured, and each fix's fate.

    ``unwritten``: settings of PyTorch that are kept, and for which no file has a place.
    """

    files: tuple[FileResult, ...]
    state: State | None
    tried: tuple[Tried, ...]
    chosen: tuple[Bundle, ...] = ()
    unwritten: tuple[TorchSetting, ...] = ()

    @property
    def settings(self) -> tuple[TorchSetting, ...]:
        """Those of PyTorch that are kept."""
        return _in_order(_settings_of(self.chosen))


@dataclass
class _Line:
    """One way to go: fixes and settings that were taken on it, and the fates that it gave to others."""

    chosen: list[Bundle]
    fates: _Fates


@dataclass
class Search:
    """One search. ``costs``: what each rule's findings may show as. ``quick``: how to measure on the way.

    ``strategies``: for each rule with several, its key and their names, when all are to be tried. ``torch``: the
    version that runs. ``fusions``: the rules that make one operator of several, which no cause asks for. ``is_over``:
    whether nothing new is to be tried any more; what was taken is still left out one by one. ``cut``: that it came to
    this.
    """

    analysis: Analysis
    settings: Settings
    bench: Bench
    costs: Mapping[str, tuple[Cost, ...]]
    quick: Options
    strategies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    torch: str = ""
    fusions: tuple[str, ...] = ()
    is_over: Callable[[], bool] = lambda: False
    cut: bool = False
    _states: dict[_Key, State] = field(default_factory=dict)
    _known: dict[tuple[str, ...], Bundle] = field(default_factory=dict)
    _fates: _Fates = field(default_factory=dict)
    _evidence: tuple[Varied, ...] = ()
    _traced: frozenset[tuple[str, str]] = frozenset()
    _extents: tuple[Extent, ...] = ()
    _diffs: dict[Bundle, str] = field(default_factory=dict)
    _writable: dict[tuple[TorchSetting, ...], frozenset[Unit]] = field(default_factory=dict)

    def run(self, causes: Sequence[Group], uncompiled: bool = False) -> Ending:
        """From the causes in the original to the best state that was found.

        ``uncompiled``: the original of a case does not come to its end compiled, so that any fix may be what it needs.
        """
        line = self._best(causes, uncompiled) if self._may_set else self._line([], causes, uncompiled)
        self._fates = line.fates
        return self._ended(self._fused(self._other_strategies(self._zoned(self._pruned(line.chosen), causes))))

    def at_length(self, ending: Ending, options: Options) -> Ending:
        """The end, measured once more with the original beside it; should results differ, without what is to blame.

        Where it was already measured like that, and the clock says nothing, that is the end.
        """
        alike = replace(options, untimed=self.quick.untimed, eager_untimed=self.quick.eager_untimed) == self.quick
        if not ending.chosen or (alike and options.backend not in TIMED):
            return ending
        self.quick, self._states = options, {}
        key = self._key(ending.chosen)
        measured = self.bench.measure(self._patched(ending.chosen), options, fresh=True, settings=_in_order(key[2]))
        self._states[key] = measured
        return self._ended(self._equivalent([], ending.chosen))

    def written_too(self, ending: Ending, settings: Sequence[TorchSetting]) -> Ending:
        """The end with further settings of PyTorch, which were measured elsewhere; marks by the rule for them."""
        names = {setting.name for setting in settings}
        kept = [b for b in ending.chosen if b.setting is None or b.setting.name not in names]
        marks = [setting for setting in settings if setting.kind == "mark"]
        marking = self._marking(marks) if marks else []
        files, unwritten = self._written([*kept, *(_bundle_of(s) for s in settings if s not in marks), *marking])
        return replace(ending, files=files, unwritten=unwritten if marking else (*unwritten, *marks))

    def _marking(self, marks: Sequence[TorchSetting]) -> list[Bundle]:
        """The fixes that mark these dimensions of what the measured model is given, before each call of it."""
        forward = self._forward()
        if forward is None:
            return []
        marked = tuple(Varied(*forward, mark.name, int(mark.value)) for mark in marks)
        self._evidence = tuple(dict.fromkeys((*self._evidence, *marked)))
        self.settings = replace(self.settings, strategies={**self.settings.strategies, **_MAYBE})
        made = bundles(self.analysis.again(replace(self._now(tuple(marks)), select=(_MARKING,))), self.bench.places)
        return [bundle for bundle in made if bundle.key[0] == _MARKING]

    def _forward(self) -> tuple[str, str] | None:
        """Path and qualified name of what a call of the measured model runs; None where it is not the project's."""
        project, models = self.analysis.project, self.settings.models
        classes = [name for name, _ in project.classes() if models and f".{models[0]}".endswith(f".{name}")]
        forwards = project.inherited(classes[0], "forward") if len(classes) == 1 else []
        for path, summary in project.modules.items():
            for function in summary.functions:
                if len(forwards) == 1 and f"{summary.module}.{function.qualname}" == forwards[0]:
                    return path, function.qualname
        return None

    def _ended(self, chosen: Sequence[Bundle]) -> Ending:
        state = self._state(chosen) if chosen else None
        files, unwritten = self._written(chosen)
        return Ending(files, state, self._told(chosen), tuple(chosen), unwritten)

    def _no_more(self) -> bool:
        """Whether the time for new things is over."""
        self.cut = self.cut or self.is_over()
        return self.cut

    # --- ways to go: fixes, settings of PyTorch, or both ------------------------------------------------------------

    @property
    def _may_set(self) -> bool:
        return self.settings.unsafe and self.settings.wants(*_SETTING)

    def _line(self, start: Sequence[Bundle], causes: Sequence[Group], uncompiled: bool) -> _Line:
        """Fixes on top of ``start``."""
        self._fates = {}
        return _Line(self._grown(causes, uncompiled, start), self._fates)

    def _best(self, causes: Sequence[Group], uncompiled: bool) -> _Line:
        """Of all ways the one that comes closest to one graph for each call.

        A fix may be what a setting needs, or be in its way (what is called eagerly is not captured). So settings are
        tried on top of the fixes, and where one of these may be in the way, or a setting fails with them, also without
        what leaves code out of graphs, alone, and below the fixes.
        """
        fixes = self._line([], causes, uncompiled)
        if fixes.chosen and is_whole(*self._at(fixes)):
            return fixes
        lines = [fixes]
        if fixes.chosen:
            state = self._state(fixes.chosen)
            lines.append(self._set(fixes.chosen, self._causes(state.after), not state.figures("patched")))
            if lines[-1].chosen != fixes.chosen and not is_whole(*self._at(lines[-1])):  # some fixes are for a setting
                more = self._causes(self._state(lines[-1].chosen).after)
                lines.append(self._line(lines[-1].chosen, more, False))
        if not fixes.chosen or (not is_whole(*self._at(lines[-1])) and self._in_the_way(*lines[:2])):
            lines += self._without([], causes, uncompiled)
            taking_in = [bundle for bundle in fixes.chosen if not _leaves_out(bundle)]
            if taking_in and len(taking_in) < len(fixes.chosen) and self._states and not self._no_more():
                state = self._state(taking_in)
                lines += self._without(taking_in, self._causes(state.after), not state.figures("patched"))
        if not self._states:  # nothing was tried
            return fixes
        full = [line for line in lines if not any(self._compiles_less(line, other) for other in lines)]
        best = min(full or lines, key=self._standing)
        for line in lines:  # frames that are given up count first, but not those without operators
            added = [bundle for bundle in line.chosen if bundle not in best.chosen]
            same = len(added) == len(line.chosen) - len(best.chosen) and all(b.setting is not None for b in added)
            best = line if added and same and self._as_much(best.chosen, line.chosen) else best
        for line in lines:  # what was tried elsewhere only
            for key, fate in line.fates.items():
                best.fates.setdefault(key, fate)
            for bundle in line.chosen:
                if bundle not in best.chosen:
                    with_it, now = self._standing(line).told, self._standing(best).told
                    why = f"without it, and with what is kept: {now}; with it: {with_it}"
                    best.fates.setdefault(bundle.key, ("not better", why, None))
        return self._going_on(self._each_left_out(best, lines), causes)

    def _without(self, start: Sequence[Bundle], causes: Sequence[Group], uncompiled: bool) -> list[_Line]:
        """Settings with ``start`` alone, and more fixes on top of them."""
        alone = self._set(start, causes, uncompiled)
        added, lines = alone.chosen[len(start) :], [alone]
        if not self._states or not added:
            return lines
        nothing = self._standing(_Line(list(start), {}))
        if len(added) > 1 and self._standing(alone) >= nothing:  # one may be in the way of another
            alone = min([alone, *(_Line([*start, bundle], alone.fates) for bundle in added)], key=self._standing)
            lines.append(alone)
        if not is_whole(*self._at(alone)):
            lines.append(self._line(alone.chosen, self._causes(self._state(alone.chosen).after), False))
        return lines

    def _each_left_out(self, line: _Line, lines: Sequence[_Line]) -> _Line:
        """The line with what leaves code out of graphs where that still helps: they were in the way together."""
        tried = dict.fromkeys(b for other in lines for b in other.chosen if _leaves_out(b))
        if is_whole(*self._at(line)):
            return line
        self._fates = line.fates
        for bundle in (b for b in tried if b not in line.chosen):
            if self._no_more():
                break
            if self._equivalent(line.chosen, [bundle]) and self._helps(line.chosen, [*line.chosen, bundle]):
                line = _Line([*line.chosen, bundle], line.fates)
        return line

    def _in_the_way(self, fixes: _Line, set_too: _Line) -> bool:
        """Whether settings may do more without the fixes, or did not run with them.

        A cluster that is left out safely holds one read that no setting takes in, and beside it what settings would.
        """
        if any(key[0] == _SETTING[0] and fate[0] in _FAILED for key, fate in set_too.fates.items()):
            return True
        patches = [file.patch for file in self._patched(fixes.chosen) if file.patch]
        made = [fixed for patch in patches for fixed in patch.fixed]
        return any(f.code == _CLUSTER or (f.code in _LEFT_OUT and f.applicability == "unsafe") for f in made)

    def _going_on(self, line: _Line, causes: Sequence[Group]) -> _Line:
        """The line with graphs that go on in the function that breaks, where others had called it.

        Without that a break is one in each function on the way to it. It removes no break, so that it comes last.
        """
        left = self._causes(self._state(line.chosen).after) if line.chosen else causes
        if is_whole(*self._at(line)) or not any(e.kind == "break" and e.stack[1:] for g in left for e in g.events):
            return line
        bundle = _bundle_of(GOING_ON)
        self._known.setdefault(bundle.key, bundle)
        self._fates = line.fates
        if not self._equivalent(line.chosen, [bundle]):
            return line
        with_it = [*line.chosen, bundle]
        if not self._helps(line.chosen, with_it):
            line.fates[bundle.key] = ("no-op", "what breaks is called by others, but no count gets better", None)
            return line
        return _Line([*line.chosen, bundle], line.fates)

    def _standing(self, line: _Line) -> Standing:
        return standing(*self._at(line))

    def _compiles_less(self, line: _Line, other: _Line) -> bool:
        return compiles_less(*self._at(line), *self._at(other))

    def _at(self, line: _Line) -> tuple[State, Tree]:
        """Where a way has come to; without anything taken that is the original, which every state has measured."""
        if line.chosen:
            return self._state(line.chosen), "patched"
        return next(iter(self._states.values())), "original"

    def _set(self, start: Sequence[Bundle], causes: Sequence[Group], uncompiled: bool) -> _Line:
        """The settings that causes ask for, on top of ``start``: as many as leave the results what they are.

        Where no cause asks for one and something is broken, those that capture are tried: what they would take in may
        lie behind a break, or in code that is not compiled at all. These, and what is asked for only then, go at once
        if with them it comes to no more.
        """
        chosen, self._fates = list(start), {}
        seen: set[TorchSetting] = set()
        failed: list[Bundle] = []
        for _ in range(_ROUNDS):
            if self._no_more():
                break
            new = [s for s in asked_settings(causes, self.bench.places, self.torch) if s not in seen]
            guessed = not new
            if guessed and (uncompiled or any(group.category == "graph break" for group in causes)):
                new = [s for s in CAPTURING if s not in seen and (s != RECURRENT or self._names_layers)]
            if not new:
                break
            seen.update(new)
            offered = [self._known.setdefault(bundle.key, bundle) for bundle in map(_bundle_of, new)]
            taken = self._equivalent(chosen, offered)
            failed += [bundle for bundle in offered if bundle not in taken]
            late = guessed or len(chosen) > len(start)
            if late and taken and not uncompiled and not self._helps(chosen, [*chosen, *taken]):
                who = "no cause asks for it" if guessed else "a cause asks for it that was behind others"
                why = f"{who}, and with all others of which that is so it comes to no more"
                self._fates.update({bundle.key: ("no-op", why, None) for bundle in taken})
                break
            if taken and failed:  # what failed alone may work beside what was taken after it
                now = self._equivalent([*chosen, *taken], failed)
                taken, failed = [*taken, *now], [bundle for bundle in failed if bundle not in now]
            for bundle in taken:
                self._fates.pop(bundle.key, None)
            if taken:
                chosen += taken
                causes, uncompiled = self._causes(self._state(chosen).after), False
        return _Line(chosen, self._fates)

    def _as_much(self, rest: Sequence[Bundle], chosen: Sequence[Bundle]) -> bool:
        """Whether fewer graphs start, with no operator less in them, of the same code: a frame given up had none."""
        old, tree = self._tree(rest, self._state(chosen))
        was, now = old.totals(tree), self._state(chosen).totals("patched")
        if was is None or now is None:
            return False
        lost = now.operators < was.operators or now.limit_hits > was.limit_hits or now.breaks > was.breaks
        return not lost and now.launches < was.launches

    @property
    def _names_layers(self) -> bool:
        """Whether a given file names a recurrent layer; one that stands elsewhere and breaks is a cause by itself."""
        return any(word in file.before for file in self.analysis.first for word in (b"RNN", b"GRU", b"LSTM"))

    def _helps(self, rest: Sequence[Bundle], chosen: Sequence[Bundle]) -> bool:
        """Whether ``chosen``, ``rest`` and settings, comes closer to one graph for each call, or better in any way."""
        return self._gain(rest, chosen).gain or self._closer(rest, chosen) or self._as_much(rest, chosen)

    def _written(self, chosen: Sequence[Bundle]) -> tuple[tuple[FileResult, ...], tuple[TorchSetting, ...]]:
        """The files with what is chosen, the settings written where the model is compiled; and those with no place."""
        units = frozenset(unit for bundle in chosen for unit in bundle.units)
        wanted = _in_order(_settings_of(chosen))
        files = self._files(units | self._places(wanted), wanted)
        return files, tuple(setting for setting in wanted if not self._places((setting,)))

    def _places(self, settings: tuple[TorchSetting, ...]) -> frozenset[Unit]:
        """Where these would be written."""
        if settings not in self._writable:
            only_those = replace(self._now(settings), select=(_SETTING[0],))
            made = bundles(self.analysis.again(only_those), self.bench.places) if settings else ()
            units = frozenset(unit for bundle in made for unit in bundle.units if unit.code == _SETTING[0])
            self._writable[settings] = units
        return self._writable[settings]

    # --- growing: what the run gives a reason for -------------------------------------------------------------------

    def _grown(self, causes: Sequence[Group], uncompiled: bool, start: Sequence[Bundle] = ()) -> list[Bundle]:
        chosen = list(start)
        for _ in range(_ROUNDS):
            if self._no_more():
                break
            self._evidence = tuple(dict.fromkeys((*self._evidence, *evidence(causes, self.bench.places))))
            self._traced |= traced(causes, self.bench.places)
            offered = self._offered(chosen)
            new = offered if uncompiled and not chosen else self._confirmed(offered, causes, chosen)
            if not new and causes and len(chosen) > len(start):
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
        now = self._now(_in_order(_settings_of(chosen)))
        made = bundles(self.analysis.again(now), self.bench.places)
        late = (_SETTING[0], ZONE, *self.fusions)  # written, or tried, when all is decided
        every = [bundle for bundle in made if bundle.key[0] not in late]
        for bundle in every:
            known = self._known.get(bundle.key)
            self._known[bundle.key] = replace(bundle, units=bundle.units | known.units) if known else bundle
        keys = {bundle.key for bundle in chosen}
        return [self._known[b.key] for b in every if b.key not in keys and b.key not in self._fates]

    def _confirmed(self, offered: Sequence[Bundle], causes: Sequence[Group], chosen: Sequence[Bundle]) -> list[Bundle]:
        """Those with a finding at a place that costs something."""
        found = findings(self.analysis.again(self._now(_in_order(_settings_of(chosen)))))
        guilty = {f.unit for group in causes for f in related(group, found, self.costs, self.bench.places)}
        return [bundle for bundle in offered if bundle.units & guilty]

    def _wrong(self, chosen: Sequence[Bundle]) -> str:
        """Why the results of these are not what they were; "" where they are."""
        wrong = [v for v in self._state(chosen).judgement.verdicts if v.status in _FAILED]
        return next(iter(wrong[0].reasons), wrong[0].status) if wrong else ""

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
            if rest and (needed := self._wrong(rest)):
                why = f"without it, what else is kept is not right: {needed}"
                self._fates[bundle.key] = ("kept", why, self._totals(rest))
                continue
            found = self._gain(rest, chosen)
            if found.by_time:
                found = self._timed(rest, chosen)
            without = self._totals(rest)
            closer = bundle.setting is not None and (self._closer(rest, chosen) or self._as_much(rest, chosen))
            if (found.gain or closer) and self._is_paid(bundle, rest, chosen):
                told = f"{found.told}{self._given_up(bundle, rest, chosen)}"
                self._fates[bundle.key] = ("kept", f"without it and with it: {told}", without)
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

    def _closer(self, rest: Sequence[Bundle], chosen: Sequence[Bundle]) -> bool:
        """Whether ``chosen`` comes closer to one graph for each call, even if something else gets more."""
        old, tree = self._tree(rest, self._state(chosen))
        return standing(self._state(chosen), "patched") < standing(old, tree)

    def _timed(self, rest: Sequence[Bundle], chosen: Sequence[Bundle], compared: _Compared = difference) -> Change:
        """The same where the clock decides: both are measured in turns, and every time has to say the same.

        Two processes that run the same code may differ by more than the passes in either of them do.
        """
        without, with_it = [self._tree(rest, self._state(chosen))], [self._state(chosen)]
        for _ in range(_TURNS - 1):
            with_it.append(self._state(chosen, again=True))
            without.append(self._tree(rest, with_it[-1], again=True))
        found = [compared(one, (other, "patched")) for one in without for other in with_it]
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

    # --- zones: what is better left out of graphs -------------------------------------------------------------------

    def _zoned(self, chosen: list[Bundle], causes: Sequence[Group]) -> list[Bundle]:
        """With functions left out of graphs as a whole, where that makes fewer graphs, for what nothing else mends.

        Of those that a run shows, the first few are tried, one at a time, and the best one stays; then again on top of
        it. What was not better before, beside breaks that are gone now, and settings that failed are tried once more.
        """
        if not self.settings.unsafe or not self.settings.wants(ZONE, "scattered-breaks"):
            return chosen
        if not any(group.category == "graph break" for group in causes) or self._no_more():
            return chosen
        if not self._states:  # nothing was tried
            self._state(chosen)
        start = list(chosen)
        for _ in range(_ZONES):
            tried: list[tuple[Bundle, list[Bundle]]] = []
            for bundle in self._zones(chosen)[:CANDIDATES]:
                if self._no_more():
                    break
                if self._equivalent(chosen, [bundle]):
                    tried.append((bundle, [*chosen, bundle]))
            better = [
                (bundle, now)
                for bundle, now in tried
                if self._gain(chosen, now).gain and self._closer(chosen, now) and self._is_paid(bundle, chosen, now)
            ]
            best = min((now for _, now in better), key=lambda now: standing(self._state(now), "patched"), default=None)
            for bundle, now in tried:
                if now is not best:
                    why = f"{self._gain(chosen, now).told}{self._given_up(bundle, chosen, now)}"
                    self._fates[bundle.key] = ("not better", f"without it and with it: {why}", None)
            if best is None:
                break
            chosen = best
        if len(chosen) == len(start):
            return chosen
        chosen = self._set_again(chosen)
        again = [self._known[k] for k, fate in self._fates.items() if fate[0] == "not better" and k in self._known]
        for bundle in again:
            if bundle.setting is None and bundle.key[0] != ZONE and bundle not in chosen and not self._no_more():
                now = [*chosen, bundle]
                if self._equivalent(chosen, [bundle]) and self._gain(chosen, now).gain:
                    chosen = now
        return self._pruned(chosen)

    def _set_again(self, chosen: list[Bundle]) -> list[Bundle]:
        """With settings that had failed and are asked for still: what they failed in may be left out now."""
        for setting in asked_settings(self._causes(self._state(chosen).after), self.bench.places, self.torch):
            bundle = _bundle_of(setting)
            failed = self._fates.get(bundle.key, ("no-op", "", None))[0] in _FAILED and not self._no_more()
            if failed and self._equivalent(chosen, [bundle]) and self._helps(chosen, [*chosen, bundle]):
                chosen = [*chosen, bundle]
        return chosen

    def _zones(self, chosen: Sequence[Bundle]) -> list[Bundle]:
        """What a run with these fixes shows that is better left out, the one that promises most first.

        Asked without the setting with which graphs go on in what is called: there, they tell not what they hold.
        """
        base = [bundle for bundle in chosen if bundle.setting != GOING_ON]
        if is_whole(*self._at(_Line(list(chosen), {}))):
            return []
        seen = self._state(base).after if base else next(iter(self._states.values())).before
        found = extents(seen, self.bench.places)
        self._extents = with_known(self._extents, found)
        made = bundles(self.analysis.again(self._now(_in_order(_settings_of(chosen)))), self.bench.places)
        fixed = {b.key[1:] for b in made if b.key[0] == ZONE}
        order = [(e.path, e.function) for e in distinct(e for e in found if (e.path, e.function) in fixed)]
        failed = {key for key, fate in self._fates.items() if fate[0] in ("different", "failed")}
        zones = [b for b in made if b.key[0] == ZONE and b.key[1:] in order and b.key not in failed]
        for bundle in zones:
            self._known.setdefault(bundle.key, bundle)
        return sorted(zones, key=lambda bundle: order.index((bundle.key[1], bundle.key[2])))

    def _is_paid(self, bundle: Bundle, rest: Sequence[Bundle], chosen: Sequence[Bundle]) -> bool:
        """Whether what ``bundle`` leaves out of graphs is worth less than the graphs that are not started."""
        before, after = self._totals(rest), self._state(chosen).totals("patched")
        return bundle.key[0] != ZONE or before is None or (after is not None and pays(before, after))

    def _given_up(self, bundle: Bundle, rest: Sequence[Bundle], chosen: Sequence[Bundle]) -> str:
        """What leaving a function out costs."""
        before, after = self._totals(rest), self._state(chosen).totals("patched")
        if bundle.key[0] != ZONE or before is None or after is None:
            return ""
        return f"; operators in graphs {before.operators} -> {after.operators}, the others run eagerly"

    # --- operators that are written by hand -------------------------------------------------------------------------

    def _fused(self, chosen: list[Bundle]) -> list[Bundle]:
        """With the operators that make eager code quicker, or bring it closer to compiled code; each is left out once.

        What compiled code loses by one counts against it.
        """
        made = bundles(self.analysis.again(self._now(_in_order(_settings_of(chosen)))), self.bench.places)
        offered = [bundle for bundle in made if bundle.key[0] in self.fusions and bundle not in chosen]
        for bundle in offered:
            self._known[bundle.key] = bundle
        kept = self._equivalent(chosen, offered) if offered and not self._no_more() else []
        for bundle in reversed(kept):
            rest, now = [*chosen, *(other for other in kept if other is not bundle)], [*chosen, *kept]
            found = eager_difference(self._tree(rest, self._state(now)), (self._state(now), "patched"))
            if found.by_time:
                found = self._timed(rest, now, eager_difference)
            outcome: Outcome = "kept" if found.gain else "not better" if found.worse or found.slower else "no-op"
            why = "neither eager time beyond noise nor the distance from eager to compiled changes with it"
            told = f"without it and with it: {found.told}" if outcome == "kept" else found.told
            self._fates[bundle.key] = (outcome, why if outcome == "no-op" else told, self._totals(rest))
            kept = kept if found.gain else [other for other in kept if other is not bundle]
        return [*chosen, *kept]

    # --- strategies -------------------------------------------------------------------------------------------------

    def _other_strategies(self, chosen: list[Bundle]) -> list[Bundle]:
        """Try the other ways in which the kept rules could fix; the best one stays in the settings.

        The answer is ``chosen`` with what that strategy makes of it. One that makes the same text is not measured.
        """
        for key, names in self.strategies.items() if chosen else ():
            for name in names:
                if self._no_more():
                    return chosen
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
        offered = bundles(self.analysis.again(self._now(_in_order(_settings_of(chosen)))), self.bench.places)
        made = {bundle.key: bundle.units for bundle in offered}
        return [replace(bundle, units=bundle.units | made.get(bundle.key, frozenset())) for bundle in chosen]

    # --- measuring --------------------------------------------------------------------------------------------------

    def _state(self, chosen: Iterable[Bundle], again: bool = False) -> State:
        key = self._key(chosen)
        if again or key not in self._states:
            under = _in_order(key[2])
            files = self._files(key[0], under)
            self._states[key] = self.bench.measure(files, self.quick, settings=under)
        return self._states[key]

    def _key(self, chosen: Iterable[Bundle]) -> _Key:
        chosen = tuple(chosen)
        units = frozenset(unit for bundle in chosen for unit in bundle.units)
        return units, tuple(sorted(self.settings.strategies.items())), _settings_of(chosen)

    def _patched(self, chosen: Sequence[Bundle]) -> tuple[FileResult, ...]:
        units = frozenset(unit for bundle in chosen for unit in bundle.units)
        return self._files(units, _in_order(_settings_of(chosen)))

    def _files(self, units: frozenset[Unit], under: tuple[TorchSetting, ...] = ()) -> tuple[FileResult, ...]:
        return self.analysis.again(replace(self._now(under), only=units))

    def _now(self, under: tuple[TorchSetting, ...]) -> Settings:
        """What the rules are told: what was seen so far, and the settings of PyTorch that are in force."""
        return replace(
            self.settings, evidence=self._evidence, traced=self._traced, extents=self._extents, torch_settings=under
        )

    def _diff(self, bundle: Bundle) -> str:
        if bundle not in self._diffs:
            shown = self.bench.places.shown
            under = () if bundle.setting is None else (bundle.setting,)
            files = [file for file in self._files(bundle.units | self._places(under), under) if file.changed]
            texts = [file_diff(file, shown(file.path)).decode(file.encoding, "replace") for file in files]
            self._diffs[bundle] = "".join(texts)
        return self._diffs[bundle]

    def _causes(self, seen: Sequence[Seen]) -> tuple[Group, ...]:
        return groups(seen, self.bench.places)

    def _told(self, chosen: Sequence[Bundle]) -> tuple[Tried, ...]:
        kept = {bundle.key for bundle in chosen}
        told = []
        for key, bundle in self._known.items():
            why_not = "the time for the search was over" if self.cut else "no run showed a cost there"
            unasked: tuple[Outcome, str, Totals | None] = ("not tried", why_not, None)
            outcome, why, without = self._fates.get(key, unasked)
            assert (key in kept) == (outcome == "kept")
            diff = self._diff(bundle) if outcome != "not tried" else ""
            told.append(Tried((bundle.label,), bundle.where, outcome, why, without, diff))
        told += [Tried(("=".join(key),), (), *fate) for key, fate in self._fates.items() if key not in self._known]
        order = ("kept", "no-op", "not better", "different", "failed", "not tried")
        return tuple(sorted(told, key=lambda tried: order.index(tried.outcome)))


def _bundle_of(setting: TorchSetting) -> Bundle:
    """What is tried as a fix is."""
    return Bundle((*_SETTING, setting.told), f"{_SETTING[0]} {setting.told}", frozenset(), (), setting)


def _leaves_out(bundle: Bundle) -> bool:
    """Whether it takes code out of graphs, of which a setting might take in a part."""
    return any(unit.code in _LEFT_OUT for unit in bundle.units)


def _settings_of(chosen: Iterable[Bundle]) -> frozenset[TorchSetting]:
    return frozenset(bundle.setting for bundle in chosen if bundle.setting is not None)


def _in_order(settings: Iterable[TorchSetting]) -> tuple[TorchSetting, ...]:
    return tuple(sorted(settings, key=lambda setting: (setting.kind, setting.name, str(setting.value))))


def _texts(files: Iterable[FileResult]) -> dict[str, bytes]:
    return {file.path: file.after for file in files if file.changed}
