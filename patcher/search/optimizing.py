"""Search for the fastest verified configuration: all fixes first, then call arguments and settings, then fewer fixes.

A configuration is a set of fixes with arguments of ``torch.compile``. It is kept only when compiled code ran, computed
what the original computes eagerly, and is faster than what was best so far beyond noise. At any moment the best one is
known, and handed to ``keep``. With the goal "graphs" counts decide in place of times.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from patcher.analysis import Analysis
from patcher.diagnose.asked_settings import CAPTURING, GOING_ON, RECURRENT, asked_settings, is_unbounded
from patcher.diagnose.bench import Bench, State, with_faster
from patcher.diagnose.better import TIMED, Standing, is_lost, standing, unrolls_less
from patcher.diagnose.counted import counting
from patcher.diagnose.events import Seen
from patcher.diagnose.extents import CANDIDATES, distinct, extents, pays, steps
from patcher.diagnose.groups import Group, groups
from patcher.diagnose.relations import STEP, ZONE, Bundle, bundles, evidence, findings, related, traced
from patcher.harness import plan
from patcher.harness.compare import TREES
from patcher.harness.measured import Replayed, Tree
from patcher.observed import observations
from patcher.options import strategies_of, strategy_key
from patcher.search.judged import (
    FIRST_STRATEGIES,
    NOT_TRIED,
    Best,
    Configuration,
    Reason,
    Span,
    cold_seconds,
    differs,
    figures_of,
    is_equal,
    is_less,
    is_verified,
    is_wrong,
    settles,
    span_of,
    told,
    told_settings,
    unrepeated,
    why_not,
)
from patcher.search.pool import Pool, Trial, room_of
from patcher.search.remedies import for_errors
from patcher.search.verdict import GRAPHS, Dropped
from patcher.settings import Settings, TorchSetting, Unit

_PRUNED = 0.15  # of the time, where all counts are the same: less is the machine's doing
_TURNS = 2  # until something is taken for slower although all its counts are the same
_COLD = 0.15  # of the seconds of compiling, which are measured once too
_RESERVED = 0.15  # of the budget: for measuring the end once more, beside the original
_KEPT_FREE = 0.04  # of it, where without the measurement there is no verdict
_MOST_PRUNED = 16  # fixes that are left out one by one
_CLOSE = 1.3  # times the fastest of a concurrent round: it may be as fast alone
_MOST_ALONE = 3  # configurations that are measured alone after each round
_SLOW = 60.0  # seconds of the first pass, from which on blocks are tried one by one
_SLOW_TO_TRACE = 2.0  # seconds of the first pass without generated code, from which on they are tried at once
_GROWTH = 2  # times that new fixes are looked for where the fixes so far have changed what is compiled
_COUNTED = 0.2  # of the time left: for counting several sets of fixes
_HOPELESS = 0.5  # eager code takes less than this share of the time of compiled code
_SLOWED = 1.2  # times as long as before: the machine is slower now
_ROUNDS = 3  # of settings: behind one break may be another
SETTING = ("FC710", "compile-setting")  # the rule that writes settings of PyTorch into the source
_PATIENCE = 1.5  # times the seconds until the first configuration was verified: for the others
_FEWEST_SECONDS = 20.0  # that each has
_REPLAYED, _MOST_REPLAYED = 0.05, 20.0  # of the budget, and seconds: for changed inputs
_UNSETTLED = "still recompiles in the last pass, or fell back to eager"
_CUDA_GRAPHS = TorchSetting("argument", "mode", "reduce-overhead")
_KERNELS = TorchSetting("argument", "mode", "max-autotune-no-cudagraphs")
_NOT_COMPARED = Reason("not compared with changed inputs, for want of time", "not tried")


@dataclass
class Optimizer:
    """One search. ``options``: how to measure, with the backend that the user will use.

    ``budget``: seconds, since ``began``, a time of ``time.monotonic``.
    ``keep``: is told each new best. ``say``: what is being tried. ``strategies``: for each rule's key its names.
    ``at_once``: how many configurations can be measured concurrently, where that is known; else counting shows it.
    ``parts``: what is searched: "fixes" in the source, the "call" that compiles. ``against_eager``: whether what eager
    does as fast is not worth compiling.
    """

    analysis: Analysis
    settings: Settings
    bench: Bench
    options: plan.Options
    budget: float
    goal: str = "latency"
    strategies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parts: frozenset[str] = frozenset({"fixes", "call"})
    against_eager: bool = True
    keep: Callable[[Best], None] = lambda best: None
    say: Callable[[str], None] = lambda line: None
    at_once: int = 1
    best: Best | None = None
    base: State | None = None
    counted: State | None = None
    dropped: list[Dropped] = field(default_factory=list)
    replayed: Replayed | None = None
    seconds_to_first: float | None = None
    began: float = field(default_factory=time.monotonic)
    _replayed_with: Configuration | None = None
    _counts: dict[Configuration, State] = field(default_factory=dict)
    cold: dict[Configuration, float | None] = field(default_factory=dict)  # of what was compiled for the first time
    _contended: list[tuple[Configuration, Span]] = field(default_factory=list)  # measured concurrently
    _failed_together: list[tuple[Configuration, Reason]] = field(default_factory=list)  # in a concurrent round
    _counting: float = 0.0  # seconds that the last count took
    _patience: float = math.inf  # seconds that a configuration of the first round has
    _together: set[TorchSetting] = field(default_factory=set)  # settings that were tried together
    _tried: set[Unit] = field(default_factory=set)  # fixes that were tried without settings, or grown
    _pool: Pool[tuple[Configuration, bool]] = field(init=False)

    def __post_init__(self) -> None:
        self._pool = Pool(self.bench)
        counted = self.options.backend not in TIMED
        self.goal = GRAPHS if counted else self.goal
        warm = not counted and self.goal != "startup"
        self.options = replace(self.options, warm_cache=warm, untimed=counted, eager_untimed=counted)

    def run(self) -> None:
        """Search until nothing is left to try, or the budget is over. What is best is in ``best``."""
        narrow = bool(self.bench.elsewhere) or self._counts_decide
        self._pool.at_once = 1 if narrow else self.at_once
        if not self._is_wide:
            self._see(counted := self._count(Configuration()))
            if unrepeated(counted):
                return
            self._pool.at_once = 1 if narrow else room_of(self._count(Configuration()))
        if self._is_wide:
            forms = list[Configuration]()
            self._weigh_each(self._everything(forms))
            self._time_finalists(None)
        else:
            forms = self._ranked(self._forms())
            for form in forms[:3] or [Configuration()]:
                if self.best is None and (self.base is None or not self._is_over(_RESERVED + 0.35)):
                    self._round([form], _RESERVED)
        if self.base is None or unrepeated(self.base) or self._span(self.base, "original", eager=True) is None:
            return
        if self.best is None and forms and not self._is_over(0.4):
            self._those_that_verify(min(forms, key=lambda one: len(one.settings)))
        self._grow(forms)
        self._try_arguments()
        self._grow(forms)
        self._try_zones()
        self._prune()
        self._try_steps()
        self._replay()
        self._confirm()
        self._try_fusions()
        self._replay()

    @property
    def _counts_decide(self) -> bool:
        return self.goal == GRAPHS

    @property
    def _is_wide(self) -> bool:
        """Whether several things are measured at the same time."""
        return self._pool.at_once > 1

    # --- what there is to try ---------------------------------------------------------------------------------------

    def _looking(self, options: plan.Options) -> plan.Options:
        """The same, with a look at what the expressions of the project hold, where rules may take that for granted."""
        return replace(options, observed=self.analysis.files if self.settings.unsafe or self.settings.measured else ())

    def _see(self, counted: State) -> None:
        """Take what counting the original has shown as evidence for the rules."""
        self.counted = counted
        seen = [case.observations for case in counted.results.cases if case.observations]
        self.settings = replace(self.settings, observed=observations(*seen))
        self._learn(counted, counted.before)

    def _learn(self, state: State, seen: Sequence[Seen]) -> None:
        """Take what a run has shown as evidence, beside what was known before."""
        found, known = groups(seen, self.bench.places), self.settings
        models = tuple(dict.fromkeys(name for case in state.results.cases for name in case.classes))
        varied = tuple(dict.fromkeys((*known.evidence, *evidence(found, self.bench.places))))
        ran = known.traced | traced(found, self.bench.places)
        self.settings = replace(known, evidence=varied, traced=ran, models=models)

    def _fixes(
        self,
        unsafe: bool,
        strategies: tuple[tuple[str, str], ...] = (),
        under: tuple[TorchSetting, ...] = (),
        select: tuple[str, ...] = (),
    ) -> Configuration:
        """All fixes of these grades. ``under``: settings of PyTorch that are in force with them. ``select``: codes."""
        given = {**self.settings.strategies, **dict(strategies)}
        asked = replace(self.settings, unsafe=unsafe, strategies=given, torch_settings=under)
        asked = replace(asked, select=select) if select else asked
        files = self.analysis.again(asked)
        every, late = bundles(files, self.bench.places), {SETTING[0], ZONE, *self._fusions, *self._costless}
        made = tuple(bundle for bundle in every if bundle.units and bundle.key[0] not in late)
        whole = Configuration(made, under, strategies, tuple(files))
        return whole if len(made) == len(every) else self._of(made, whole)

    @property
    def _fusions(self) -> frozenset[str]:
        """The rules that make one operator of several, which no cause asks for."""
        return frozenset(rule.code for rule in self.analysis.rules if rule.switch)

    @property
    def _costless(self) -> frozenset[str]:
        """The rules for what no run shows, as the names of a checkpoint; the first call gets shorter with some."""
        return frozenset(rule.code for rule in self.analysis.rules if not rule.costs and self.goal != "startup")

    def _of(self, kept: Sequence[Bundle], like: Configuration) -> Configuration:
        """The same with these fixes only."""
        units = frozenset(unit for bundle in kept for unit in bundle.units)
        files = tuple(self.analysis.again(replace(self.settings_of(like), only=units))) if units else ()
        return Configuration(tuple(kept), like.settings, like.strategies, files)

    def settings_of(self, one: Configuration) -> Settings:
        """Return the rules' settings for a configuration: its strategies, and the PyTorch settings in force."""
        given = {**self.settings.strategies, **dict(one.strategies)}
        under = tuple(setting for setting in one.settings if setting.kind in ("config", "member"))
        return replace(self.settings, strategies=given, torch_settings=under)

    def _forms(self) -> list[Configuration]:
        """Sets of all fixes, one for each strategy that makes a difference."""
        if "fixes" not in self.parts:
            return []
        first = self._first_strategies
        found = [self._fixes(self.settings.unsafe, first)]
        known = {_texts(found[0])}
        for strategies in self._telling_strategies(first):
            other = self._fixes(self.settings.unsafe, strategies)
            if _texts(other) not in known:
                known.add(_texts(other))
                found.append(other)
        asked = self._asked(self.counted) if self.counted is not None and self._may_set else ()
        self._together |= set(asked)
        found += [self._fixes(self.settings.unsafe, first, asked)] if asked else []
        return [one for one in found if one.changed or one.settings]

    def _telling_strategies(self, first: tuple[tuple[str, str], ...]) -> Iterator[tuple[tuple[str, str], ...]]:
        """Yield the strategies with which the rules that have them fix otherwise; ``first``: the usual ones."""
        for key, names in self.strategies.items():
            rules = (rule for rule in self.analysis.rules if strategies_of(rule) and strategy_key(rule) == key)
            codes = tuple(rule.code for rule in rules if self.settings.wants(rule.code, rule.name, rule.switch))
            known = [self._fixes(self.settings.unsafe, first, select=codes)] if codes else []
            for name in names if codes else ():
                strategies = (*(pair for pair in first if pair[0] != key), (key, name))
                alone = self._fixes(self.settings.unsafe, strategies, select=codes)
                if all(_texts(alone) != _texts(other) for other in known):
                    known.append(alone)
                    yield strategies

    @property
    def _first_strategies(self) -> tuple[tuple[str, str], ...]:
        return tuple((key, name) for key, name in FIRST_STRATEGIES if name in self.strategies.get(key, ()))

    def _ranked(self, forms: Sequence[Configuration]) -> list[Configuration]:
        """The best sets of fixes by what counting says, and the proven part of the first."""
        found = list(forms)
        if len(found) > 1 and self._counting * len(found) < _COUNTED * self._left(0.0):
            if self._is_wide:
                found = [one for one in found if one in self._counts] or found[:1]
            found.sort(key=self._standing)
            least, plain = self._standing(found[0]), [one for one in found if not one.settings][:1]
            found = [one for one in found if self._standing(one).is_near(least)]
            found += [one for one in plain if one not in found]
        proven = self._fixes(unsafe=False)
        if found and proven.changed and _texts(proven) not in {_texts(one) for one in found[:1]}:
            found.insert(1, proven)
        return found

    def _everything(self, forms: list[Configuration]) -> Iterator[tuple[Configuration, State | None]]:
        """Measure concurrently, and count at the same time; yield what was measured as it ends.

        The original, also with CUDA graphs, and all fixes with them begin at once, before the rules have read the
        project; what counting asks for begins when the original was counted, and so do blocks that are compiled one by
        one, which compile sooner than a large model.
        ``forms`` is filled with the sets of fixes, the best first.
        """
        original, begun, uncounted = Configuration(), dict[object, Configuration](), set[Configuration]()

        def begin(some: Sequence[Configuration], reserved: float = _RESERVED) -> None:
            for one in some:
                if begun.setdefault((_texts(one), one.settings), one) is one:
                    self._add(one, self.options, reserved=reserved)

        def count_forms() -> None:
            forms[:] = self._forms()
            uncounted.update(forms)
            for form in forms:
                self._add(form, counting(self.options), counts=True, reserved=0.3)
            if not forms:
                begin(self._graphed([original]))

        begin([original], _KEPT_FREE)
        if self.counted is not None:
            count_forms()
        else:
            self._add(original, self._looking(counting(self.options)), counts=True, reserved=_RESERVED)
            begin(self._graphed([original]), _KEPT_FREE)
            self._pool.start(self._told_of)
            guessed = self._fixes(self.settings.unsafe, self._first_strategies)
            begin(self._graphed([guessed]) if guessed.changed and "fixes" in self.parts else [])
        for (one, counted), state in self._pool.results(
            lambda: self.base is not None and self._is_over(_RESERVED), self._told_of, self._is_too_slow
        ):
            if not counted:
                yield one, state
                continue
            if state is not None:
                self._counts[one] = state
            uncounted.discard(one)
            if one == original and state is not None:
                self._see(state)
                count_forms()
                slow = (cold_seconds(figures_of(state, "original")) or 0.0) > _SLOW_TO_TRACE
                blocks = self._blocks(state) if slow and "call" in self.parts else ()
                begin(self._graphed([replace(original, settings=blocks)] if blocks else []))
            elif not uncounted:
                forms[:] = self._ranked(forms)
                begin([*self._graphed([*forms, original]), *forms[:1]])

    def _graphed(self, some: Sequence[Configuration]) -> list[Configuration]:
        """The same with CUDA graphs, where the call is searched."""
        graphs = (_CUDA_GRAPHS,) if "call" in self.parts else ()
        return [replace(one, settings=(*one.settings, *graphs)) for one in some]

    def _is_too_slow(self, asked: tuple[Configuration, bool], seconds: float) -> bool:
        """Whether something is not waited for any more: another was verified, in far less time."""
        one, counted = asked
        slow = not counted and one != Configuration() and seconds > self._patience
        if slow:
            self._drop(one, f"stopped: not compiled and measured in {seconds:.0f} s")
        return slow

    def _standing(self, one: Configuration) -> Standing:
        return standing(*self._count_of(one))

    def _count_of(self, one: Configuration) -> tuple[State, Tree]:
        return self._count(one), "patched" if one.changed or one.settings else "original"

    # --- stages -----------------------------------------------------------------------------------------------------

    def _asked(self, state: State) -> tuple[TorchSetting, ...]:
        """Return the settings of the whole process that the causes in the original call for."""
        torch = state.results.environment.torch
        asked = asked_settings(groups(state.before, self.bench.places), self.bench.places, torch)
        return tuple(setting for setting in asked if setting.kind in ("config", "member"))

    def _add(self, one: Configuration, options: plan.Options, counts: bool = False, reserved: float = 0.0) -> None:
        limit = min(options.seconds, max(20.0, self._left(reserved)))
        limited = replace(
            options, quick=True, repeat=False, seconds=limit, until=self.began + self.budget * (1 - reserved)
        )
        self._pool.add(Trial((one, counts), one.changed, one.settings, limited))

    def _round(self, batch: Sequence[Configuration], reserved: float) -> None:
        """Measure configurations and keep the best. Those measured concurrently are measured again alone."""
        incumbent = self.best
        for one in batch:
            self._add(one, self.options, reserved=reserved)
        results = self._pool.results(lambda: self.base is not None and self._is_over(reserved), self._told_of)
        self._weigh_each((one, state) for (one, _), state in results)
        if self._is_wide:
            self._time_finalists(incumbent)

    def _weigh_each(self, results: Iterable[tuple[Configuration, State | None]]) -> None:
        """Keep or drop what was measured, as soon as the original was."""
        ended: list[tuple[Configuration, State]] = []
        incumbent = self.best
        for one, state in results:
            if state is None:
                self._drop(one, NOT_TRIED)
                continue
            ended.append((one, state))
            if self.base is None and (not self._is_wide or one == Configuration()):
                self._set_base(state)
            for each in ended if self.base is not None else ():
                self._weigh(*each, incumbent)
            ended = [] if self.base is not None else ended
            runs_graphs = any(one.launches for tree in TREES for one in figures_of(state, tree))
            whole = not any(setting.kind == "blocks" for setting in one.settings)
            if self._contended and self._patience == math.inf and runs_graphs and whole:
                self._patience = max(_FEWEST_SECONDS, _PATIENCE * self._pool.took)

    def _set_base(self, state: State) -> None:
        self.base = state
        self.cold.setdefault(Configuration(), cold_seconds(figures_of(state, "original")))

    def _count_all(self, some: Sequence[Configuration], reserved: float) -> None:
        """Count configurations, concurrently where there is room."""
        for one in some if self._is_wide else ():
            self._add(one, counting(self.options), counts=True, reserved=reserved)
        for (one, _), state in self._pool.results(lambda: self._is_over(reserved), self._told_of):
            if state is not None:
                self._counts[one] = state

    def _told_of(self, asked: tuple[Configuration, bool]) -> None:
        self.say(f"{'counting' if asked[1] else 'measuring'} {asked[0].told}")

    def _weigh(self, one: Configuration, state: State, incumbent: Best | None) -> None:
        """Keep the candidate or record why not. ``incumbent``: the best that was measured alone."""
        if one == Configuration():
            return
        self.cold.setdefault(one, cold_seconds(figures_of(state, "patched")))
        now = self._span(state, "patched")
        if not is_verified(state) and self._is_wide and not differs(state):
            self._failed_together.append((one, why_not(state)))
        elif not is_verified(state):
            self._drop(one, why_not(state))
        elif self._is_wide and now is not None and self._settles(state):
            self._contended.append((one, now))
            if incumbent is None:
                self._consider(one, state)
        elif not self._consider(one, state) and (one.settings or self.best is not None):
            self._drop(one, self._not_faster(state))

    def _not_faster(self, state: State) -> str:
        if not self._settles(state):
            return _UNSETTLED
        skips = dict.fromkeys(site.reason for one in figures_of(state, "patched") for site in one.cudagraph_skips)
        skipped = f"; CUDA graphs skipped: {', '.join(skips)}" if skips else ""
        return f"{self._no_gain}: {told(self._span(state, 'patched'), self.goal)}{skipped}"

    @property
    def _no_gain(self) -> str:
        return "not fewer graphs" if self._counts_decide else "not faster"

    def _settles(self, state: State) -> bool:
        """Whether it stops compiling; where counts decide, whether it compiles no more often than the original."""
        if settles(state, "patched"):
            return True
        assert self.base is not None
        was, now = standing(self.base, "original"), standing(state, "patched")
        if not self._counts_decide or was.failing == 0:
            return self._counts_decide and now.recompiles <= was.recompiles
        return not any(is_unbounded(group, self.bench.places) for group in groups(state.after, self.bench.places))

    def _time_finalists(self, incumbent: Best | None) -> None:
        """Measure the fastest of a concurrent round again alone. ``incumbent``: the best measured alone before."""
        found = sorted(self._contended, key=lambda pair: pair[1].median)
        self._contended = []
        before, cut = self.best, False
        finalists = [one for one, span in found if span.median <= _CLOSE * found[0][1].median][:_MOST_ALONE]
        for one, span in found:
            if one not in finalists:
                self._drop(one, f"not faster: {told(span, self.goal)} (with others running)")
        self.best = incumbent
        for one in finalists or [one for one, _ in self._failed_together[:_MOST_ALONE]]:
            if self._is_over(_RESERVED + (0.2 if self.best is not None else 0.0)):
                self._drop(one, NOT_TRIED)
                cut = True
                continue
            state = self._time(one)
            cut = cut or (self._span(state, "patched") is None and self._is_over(0.0))
            if not is_verified(state):
                self._drop(one, why_not(state))
            elif not self._consider(one, state):
                self._drop(one, self._not_faster(state))
        for one, why in self._failed_together if finalists else self._failed_together[_MOST_ALONE:]:
            self._drop(one, why)
        self._failed_together = []
        if self.best is None and cut:
            self.best = before

    def _those_that_verify(self, every: Configuration) -> None:
        """Find the fixes that give equal results, each by itself, with the backend ``eager``; measure them together."""
        untimed = replace(self.options, backend="eager", untimed=True)
        alone = {self._of([bundle], every): bundle for bundle in every.bundles}
        for one in alone:
            self._add(one, untimed, reserved=0.4)
        kept: list[Bundle] = []
        for (one, _), state in self._pool.results(lambda: self._is_over(0.5), self._told_of):
            if state is not None and is_verified(state):
                kept.append(alone[one])
            elif state is not None:
                self._drop_for(alone[one], why_not(state))
        if kept:
            self._round([self._of([bundle for bundle in every.bundles if bundle in kept], every)], _RESERVED)

    def _grow(self, forms: Sequence[Configuration]) -> None:
        """Fixes that only show where the fixes so far have changed what is compiled."""
        plain = [bundle for one in forms if not one.settings for bundle in one.bundles]
        self._tried |= {unit for bundle in plain for unit in bundle.units}
        for _ in range(_GROWTH if forms else 0):
            if self._is_over(_RESERVED + 0.1):
                break
            start = self.best.configuration if self.best else forms[0]
            state = self.best.state if self.best else self._count(start)
            self._learn(state, state.after)
            every = self._fixes(self.settings.unsafe, start.strategies, self.settings_of(start).torch_settings)
            new = [bundle for bundle in every.bundles if not bundle.units <= self._tried]
            if not new:
                break
            self._tried |= {unit for bundle in new for unit in bundle.units}
            before = self.best
            self._round([self._with_fixes(new, start)], _RESERVED)
            for bundle in new if self.best is before and new[1:] else ():
                self._round([self._with_fixes([bundle], start)], _RESERVED)

    def _try_arguments(self) -> None:
        """Arguments of ``torch.compile`` and settings, each on top of what is best."""
        tried: set[TorchSetting] = set()
        for _ in range(_ROUNDS):
            new = [setting for setting in self._offered() if setting not in tried]
            tried.update(new)
            if self._is_wide:
                made = [self._with(setting) for setting in new]
                self._round([one for one in made if one not in self.cold], _RESERVED + 0.25)
            for setting in new if not self._is_wide else ():
                self._round([self._with(setting)], _RESERVED + 0.1)

    def _with_fixes(self, more: Sequence[Bundle], like: Configuration) -> Configuration:
        """Return the best configuration, or ``like`` where there is none, with more fixes."""
        start = self.best.configuration if self.best else like
        return self._of((*start.bundles, *more), start)

    def _with(self, setting: TorchSetting) -> Configuration:
        """Return the best configuration with one more setting."""
        start = self.best.configuration if self.best else Configuration()
        same = ("name", "value") if setting.kind == "member" else ("name",)
        others = (o for o in start.settings if any(getattr(o, key) != getattr(setting, key) for key in same))
        return self._of(start.bundles, replace(start, settings=(*others, setting)))

    def _offered(self) -> Iterator[TorchSetting]:
        """What suits this case: modes on a GPU, dynamic shapes after recompiles, what causes ask for.

        Where no cause asks for a setting and the graph still breaks, those that capture more: behind one break may be
        another. Last, graphs that go on in the caller of what breaks.
        """
        assert self.base is not None
        state, tree = self._now()
        calls = "call" in self.parts and not self._counts_decide
        figures = next(iter(state.figures(tree).values()), None)
        if self.base.results.environment.cuda and calls:
            yield from (_CUDA_GRAPHS, _KERNELS)
        if self.best is None and "call" in self.parts:
            yield from for_errors(self.base)
        if self._may_set:
            causes = self._causes()
            found = asked_settings(causes, self.bench.places, self.base.results.environment.torch)
            asked = [setting for setting in found if calls or setting.kind != "argument"]
            broken = [group for group in causes if group.category == "graph break"]
            if broken and not asked:
                asked += [setting for setting in CAPTURING if setting != RECURRENT or self._names_layers]
            if any(event.kind == "break" and event.stack[1:] for group in broken for event in group.events):
                asked.append(GOING_ON)
            yield from asked
        if calls and (figures is None or figures.counts.recompiles):
            yield TorchSetting("argument", "dynamic", True)
        if calls and ((self.cold.get(Configuration()) or 0.0) > _SLOW or self.goal == "startup"):
            yield from self._blocks(self.base)

    def _blocks(self, state: State) -> tuple[TorchSetting, ...]:
        """Return its lists of modules that may be compiled one by one, where all cases have the same."""
        lists = {case.blocks for case in state.results.cases}
        return tuple(TorchSetting("blocks", path, cls) for path, cls in next(iter(lists))) if len(lists) == 1 else ()

    @property
    def _may_set(self) -> bool:
        """Whether settings of the whole process are tried: that all else is right with them is an assumption."""
        return self.settings.unsafe and self.settings.wants(*SETTING)

    @property
    def _names_layers(self) -> bool:
        """Whether a file names a recurrent layer; one that stands elsewhere and breaks is a cause by itself."""
        files = [file for path in self.analysis.files if (file := self.bench.places.file(path))]
        return any(word in file.text for file in files for word in ("RNN", "GRU", "LSTM"))

    def _try_zones(self) -> None:
        """Functions that are left out of graphs as a whole, where that pays, for what nothing else has mended."""
        if not self.settings.unsafe or "fixes" not in self.parts or not self.settings.wants(ZONE, "scattered-breaks"):
            return
        start = self.best.configuration if self.best else Configuration()
        others = tuple(setting for setting in start.settings if setting != GOING_ON)  # it hides what is where
        state, tree = self._now() if others == start.settings else self._count_of(replace(start, settings=others))
        found = extents(state.after if tree == "patched" else state.before, self.bench.places)
        self.settings = replace(self.settings, extents=found[:CANDIDATES])
        order = [(extent.path, extent.function) for extent in distinct(found[:CANDIDATES])]
        made = bundles(self.analysis.again(self.settings_of(start)), self.bench.places) if order else ()
        before = self._count(start).totals("patched" if self.best else "original") if made else None
        zones = [bundle for bundle in made if bundle.key[0] == ZONE and bundle.key[1:] in order]
        for zone in sorted(zones, key=lambda bundle: order.index((bundle.key[1], bundle.key[2]))):
            one = self._of((*start.bundles, zone), start)
            after = None if self._is_over(_RESERVED + 0.1) else self._count(one).totals("patched")
            if before is None or after is None or not pays(before, after):
                self._drop_bundle(zone, "the graphs that it saves are worth less than what then runs eagerly")
            elif any(now > was for now, was in zip(self._standing(one), self._standing(start), strict=True)):
                self._drop_bundle(zone, f"something gets more: {self._standing(one).told}")
            else:
                self._round([one], _RESERVED + 0.1)

    def _try_steps(self) -> None:
        """What is compiled: the tensor statements of a function alone, where it never settles or unrolls its loops."""
        wanted = self.settings.unsafe and "fixes" in self.parts and self.settings.wants(STEP, "compiled-step")
        wrong = is_wrong(*self._now())
        if not wanted or not (wrong or is_lost(*self._now())):
            return
        found = steps(self.analysis.files, self.bench.places, self.settings.observed)
        self.settings = replace(self.settings, extents=(*self.settings.extents, *found))
        start = self.best.configuration if self.best else Configuration()
        made = bundles(self.analysis.again(replace(self.settings_of(start), select=(STEP,))), self.bench.places)
        for step in made[:CANDIDATES]:
            one = self._of((*start.bundles, step), start)
            state = None if self._is_over(_RESERVED + 0.1) else self._time(one)
            if state is None or not is_verified(state):
                self._drop_bundle(step, NOT_TRIED if state is None else why_not(state))
            elif self._consider(one, state):
                start = one
            elif (wrong or unrolls_less(state, *self._now())) and self._settles(state):
                self._keep(one, state, self._span(state, "patched") or Span(0, 0, 0))
                start, wrong = one, False
            else:
                self._drop_bundle(step, self._not_faster(state))

    def _causes(self) -> tuple[Group, ...]:
        state, tree = self._now()
        return groups(state.after if tree == "patched" else state.before, self.bench.places)

    def _try_fusions(self) -> None:
        """Operators written by hand: kept where eager code gets faster, and compiled code no slower."""
        start = self.best.configuration if self.best else Configuration()
        if self._counts_decide or "fixes" not in self.parts:
            return
        every = bundles(self.analysis.again(self.settings_of(start)), self.bench.places) if self._fusions else ()
        made = [bundle for bundle in every if bundle.key[0] in self._fusions]
        for some in (made, *([one] for one in made if made[1:])) if made else ():
            if self._is_over(0.05):
                break
            one = self._of((*start.bundles, *some), start)
            state, now = self._time(one), self._now()
            after = self._span(state, "patched")
            faster = is_less(self._span(state, "patched", eager=True), self._span(*now, eager=True))
            if is_verified(state) and after is not None and faster and not is_less(self._span(*now), after):
                self._keep(one, state, after)
                start = one
            elif len(some) == 1:
                self._drop_bundle(some[0], "eager code is not faster" if is_verified(state) else why_not(state))
            if some is made and start is one:
                break

    def _prune(self) -> None:
        """Without the fixes that change no count: one that does not help is not kept."""
        if self.best is None or self.counted is None:
            return
        whole = self._without_settings(self.best.configuration)
        kept = self._needed(whole) if len(whole.bundles) > 1 else whole.bundles
        one = whole if len(kept) == len(whole.bundles) else self._of(kept, whole)
        if one == self.best.configuration or self._is_over(_RESERVED):
            return
        for _ in range(_TURNS):
            state = self._time(one)
            now = self._span(state, "patched")
            if is_verified(state) and now is not None and not is_less(self.best.span, now, _PRUNED):
                self._keep(one, state, now)
                return

    def _needed(self, whole: Configuration) -> Sequence[Bundle]:
        """Return the fixes that a cause explains, without those whose removal changes no count."""
        kept = self._with_reason(whole)
        usual = self._standing(whole)
        if len(kept) == len(whole.bundles) or self._standing(self._of(kept, whole)) > usual:
            kept = list(whole.bundles)
        for bundle in whole.bundles:
            if bundle not in kept:
                self._drop_bundle(bundle, "no run showed a cost there")
        return self._without_unneeded(kept, whole, usual)

    def _without_settings(self, whole: Configuration) -> Configuration:
        """Return the configuration without settings that were tried together, where no count changes without one."""
        usual = self._standing(whole)
        for setting in [one for one in whole.settings if one in self._together]:
            others = tuple(other for other in whole.settings if other != setting)
            rest = self._of(whole.bundles, replace(whole, settings=others))
            if self._is_over(_RESERVED + 0.1):
                self._note("each setting alone", NOT_TRIED)
            elif self._standing(rest) <= usual:
                whole = rest
                self._note(setting.told, "no count changes without it")
        return whole

    def _without_unneeded(self, kept: list[Bundle], whole: Configuration, usual: Standing) -> list[Bundle]:
        """Return the fixes without those whose removal changes no count; what is not proven is left out first."""
        kept = sorted(kept, key=lambda bundle: bundle.proven)
        if self._is_wide and len(kept) > 1:
            rests = [self._of(_other_than(bundle, kept), whole) for bundle in kept[:_MOST_PRUNED]]
            self._count_all(rests, _RESERVED + 0.1)
        for bundle in kept[:_MOST_PRUNED]:
            if len(kept) < 2:
                break
            if self._is_over(_RESERVED + (0.1 if self._is_wide else 0.25)):
                self._note("each fix alone", NOT_TRIED)
                break
            rest = self._of(_other_than(bundle, kept), whole)
            if self._standing(rest) <= usual:
                kept = list(rest.bundles)
                self._drop_bundle(bundle, "no count changes without it")
        return kept

    def _with_reason(self, whole: Configuration) -> list[Bundle]:
        """The fixes that a cause in the original explains."""
        assert self.counted is not None
        places, costs = self.bench.places, {rule.code: rule.costs for rule in self.analysis.rules}
        found = findings(whole.files)
        causes = groups(self.counted.before, places)
        units = {one.unit for group in causes for one in related(group, found, costs, places)}
        return [bundle for bundle in whole.bundles if bundle.units & units]

    def _replay(self) -> None:
        """Drop fixes and settings with which changed inputs give other results; others that raise are told."""
        if self.best is None or self.best.configuration == self._replayed_with:
            return
        whole = self.best.configuration
        own = tuple(each for each in whole.settings if each.kind in ("config", "member"))
        if not whole.bundles and not own:
            return  # how it is compiled is no matter of inputs
        told = None if (over := self._is_over(_RESERVED)) else self._replayed(whole)
        one = self.leave_out_uncompared(over) if told is None else whole
        if told is None or not told.different:
            self.replayed, self._replayed_with = told, whole
        else:
            self.best = None
            own = self._wrong_settings(whole, own, Reason(told.different[0], "different"))
            rest = replace(whole, settings=tuple(each for each in whole.settings if each not in own))
            one = self._of([bundle for bundle in whole.bundles if self._is_right(bundle, rest)], rest)
        if one is not whole and (one.changed or one.settings) and not over:
            state = self._time(one)
            if is_verified(state) and self._consider(one, state):
                self.replayed, self._replayed_with = self._replayed(one), one
        if self.replayed is not None and self.replayed.different:
            self._drop_fixes(one, Reason(self.replayed.different[0], "different"))
            self.best = self.replayed = None

    def leave_out_uncompared(self, over: bool = True) -> Configuration:
        """Return the best configuration without fixes that only changed inputs can show to be right.

        Where it has some and was not compared with changed inputs, it is no longer the best. ``over``: nothing else
        is measured.
        """
        one = self.best.configuration if self.best else Configuration()
        right = [bundle for bundle in one.bundles if not bundle.compared]
        if one == self._replayed_with or len(right) == len(one.bundles):
            return one
        self.best = None
        for bundle in one.bundles:
            if bundle.compared:
                self._drop_for(bundle, _NOT_COMPARED)
        rest = self._of(right, one)
        if over and (rest.bundles or rest.settings):
            self._drop(rest, Reason("not measured by itself, for want of time", "not tried"))
        return rest

    def _wrong_settings(
        self, whole: Configuration, own: tuple[TorchSetting, ...], why: Reason
    ) -> tuple[TorchSetting, ...]:
        """Those of the whole process, where changed inputs give other results with them alone."""
        plain = replace(whole, bundles=(), files=(), strategies=())
        told = None if not own or self._is_over(_RESERVED) else self._replayed(plain)
        if not own or (told is not None and not told.different):
            return ()
        for setting in own:
            self._note(setting.told, why if told is None else Reason(told.different[0], "different"))
        return own

    def _is_right(self, bundle: Bundle, whole: Configuration) -> bool:
        """Whether changed inputs give the same with this fix alone; one that is not is dropped."""
        told = None if self._is_over(_RESERVED) else self._replayed(self._of([bundle], whole))
        if told is None or told.different:
            self._drop_for(bundle, _NOT_COMPARED if told is None else Reason(told.different[0], "different"))
        return told is not None and not told.different

    def _replayed(self, one: Configuration) -> Replayed | None:
        """What changed inputs give, over all cases; None where that could not be had."""
        self.say(f"comparing {one.told} on changed inputs")
        seconds = min(_MOST_REPLAYED, _REPLAYED * self.budget)
        until, limit = self.began + self.budget * (1 - _RESERVED), max(1.0, self._left(_RESERVED))
        options = replace(self.options, quick=True, alone=True, replay=seconds, until=until)
        options = replace(options, seconds=min(options.seconds, limit))
        state = self.bench.measure(one.changed, options, settings=one.settings)
        found = [case.replayed for case in state.results.cases]
        known = [each for each in found if each is not None and not each.message]
        if not known or len(known) < len(found):
            return None
        raising, failing, different = (
            tuple(name for each in known for name in getattr(each, part))
            for part in ("raising", "failing", "different")
        )
        inputs = sum(each.inputs for each in known)
        return Replayed(inputs, raising, failing, different) if inputs or different else None

    def _confirm(self) -> None:
        """The best once more, with the original beside it: a machine is not as fast at one time as at another."""
        assert self.base is not None
        if self._is_over(0.05) or (self.best is None and not self._is_wide and self._is_hopeless):
            return
        if self._counts_decide and self.options.quick:
            return  # it would be measured in the same way
        one = self.best.configuration if self.best else Configuration()
        state = self._measured(one, self.options, fresh=True)
        now = self._span(state, "patched" if one != Configuration() else "original")
        uncompared = any(case.compare_error for case in state.results.cases)
        if not is_verified(state) and not differs(state) and (now is None or uncompared):
            return  # the time was over: what was measured stands
        if one != Configuration() and (now is None or not is_verified(state)):
            self._drop_fixes(one, why_not(state))
            self.best = None
            return
        eager, was = (self._span(each, "original", eager=True) for each in (state, self.base))
        if self.best and eager is not None and was is not None and eager.median > _SLOWED * was.median:
            state = with_faster(state, self.best.state, "patched")
        state = with_faster(state, self.base, "original")
        self.base, self.best = state, None
        if one != Configuration() and not self._consider(one, state):
            self._drop(one, self._not_faster(state))

    @property
    def _is_hopeless(self) -> bool:
        """Whether the original compiled is wrong, or so much slower than eager that no other measurement turns it."""
        assert self.base is not None
        eager, compiled = (self._span(self.base, "original", eager) for eager in (True, False))
        wrong = not is_equal(self.base, "original")
        return self._counts_decide or wrong or is_less(eager, compiled, _HOPELESS)

    # --- measuring --------------------------------------------------------------------------------------------------

    def _time(self, one: Configuration) -> State:
        self.say(f"measuring {one.told}")
        state = self._measured(one, replace(self.options, quick=True))
        self.cold.setdefault(one, cold_seconds(figures_of(state, "patched")))
        return state

    def _count(self, one: Configuration) -> State:
        if one not in self._counts:
            self.say(f"counting {one.told}")
            how, since = self.options if self._counts_decide else counting(self.options), time.monotonic()
            how = self._looking(how) if one == Configuration() else how
            self._counts[one] = self._measured(one, replace(how, repeat=False, quick=True))
            self._counting = time.monotonic() - since
        return self._counts[one]

    def _measured(self, one: Configuration, options: plan.Options, fresh: bool = False) -> State:
        limited = replace(
            options, seconds=min(options.seconds, max(20.0, self._left(0.0))), until=self.began + self.budget
        )
        return self.bench.measure(one.changed, limited, fresh=fresh, settings=one.settings)

    def _consider(self, one: Configuration, state: State) -> bool:
        """Keep it when it is faster than what was best, and than the original compiled, beyond noise."""
        now = self._span(state, "patched")
        if now is None:
            return False
        assert self.base is not None
        was = self.best.span if self.best else self._span(self.base, "original")
        why = f"not better than the original compiled: {told(now, self.goal)}"
        if not self._settles(state):
            why = _UNSETTLED
        elif self.goal == "startup" and is_less(
            span_of(self.base, "original", "latency", True), span_of(state, "patched", "latency")
        ):
            why = "it starts quickly, but each call is slower than eager"
        elif is_less(now, was) or (not is_less(was, now) and self._compiles_faster(one)):
            self._keep(one, state, now)
            return True
        if self.best is None and one.bundles and not self._is_wide:
            self._drop_fixes(one, why)
        return False

    def _compiles_faster(self, one: Configuration) -> bool:
        """Whether the first pass takes less time than that of what was best: what counts where the times are equal."""
        if self._is_wide or self._counts_decide:
            return False  # first passes of a concurrent round are not comparable
        was = self.cold.get(self.best.configuration if self.best else Configuration())
        now = self.cold.get(one)
        return was is not None and now is not None and now < (1 - _COLD) * was

    def _keep(self, one: Configuration, state: State, now: Span) -> None:
        self.best = Best(one, state, now)
        if one != self._replayed_with:
            self.replayed = None  # it is of other code
        if self.seconds_to_first is None:
            self.seconds_to_first = round(time.monotonic() - self.began, 1)
        self.keep(self.best)

    def _now(self) -> tuple[State, Tree]:
        assert self.base is not None
        return (self.best.state, "patched") if self.best else (self.base, "original")

    def _drop(self, one: Configuration, why: str | Reason) -> None:
        """Record why a configuration is not kept, under what distinguishes it from the best one."""
        best = self.best.configuration if self.best else Configuration()
        own = [setting for setting in one.settings if setting not in best.settings]
        if one.bundles and not own and set(one.strategies) <= set(FIRST_STRATEGIES) and self.best is None:
            self._drop_fixes(one, why)
            return
        more = [bundle for bundle in one.bundles if bundle not in best.bundles]
        if len(more) == 1 and not own:
            self._drop_bundle(more[0], why)
            return
        alone = own and one.bundles == best.bundles and (self.best or not self._is_wide)
        self._note(", ".join(told_settings(own)) if alone else one.told, why)

    def _drop_fixes(self, one: Configuration, why: str | Reason) -> None:
        for bundle in one.bundles:
            self._drop_bundle(bundle, why)

    def _drop_bundle(self, bundle: Bundle, why: str | Reason) -> None:
        self._note(bundle.label, why)

    def _drop_for(self, bundle: Bundle, why: Reason) -> None:
        """Record why a fix is not kept by itself, in the place of what was said of it with others."""
        self.dropped = [other for other in self.dropped if other.what != bundle.label]
        self._drop_bundle(bundle, why)

    def _note(self, what: str, why: str | Reason) -> None:
        reason = Reason(why) if isinstance(why, str) else why
        if all(other.what != what for other in self.dropped):
            self.dropped.append(Dropped(what, *reason))

    def _span(self, state: State, tree: Tree, eager: bool = False) -> Span | None:
        return span_of(state, tree, self.goal, eager)

    def _left(self, reserved: float) -> float:
        return self.budget * (1 - reserved) - (time.monotonic() - self.began)

    def _is_over(self, reserved: float) -> bool:
        """Whether only a reserved share of the budget is left."""
        return self._left(reserved) <= 0


def _other_than(bundle: Bundle, kept: Sequence[Bundle]) -> list[Bundle]:
    return [other for other in kept if other is not bundle]


def _texts(one: Configuration) -> tuple[tuple[str, bytes], ...]:
    return tuple((file.path, file.after) for file in one.changed)
