"""Search for the fastest verified configuration: all fixes first, then call arguments and settings, then fewer fixes.

A configuration is a set of fixes with arguments of ``torch.compile``. It is kept only when compiled code ran, computed
what the original computes eagerly, and is faster than what was best so far beyond noise. At any moment the best one is
known, and handed to ``keep``. With the goal "graphs" counts decide in place of times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from patcher.diagnose.asked_settings import GOING_ON
from patcher.diagnose.bench import State, with_faster
from patcher.diagnose.better import is_lost, unrolls_less
from patcher.diagnose.counted import counting
from patcher.diagnose.extents import CANDIDATES, distinct, extents, pays, steps
from patcher.diagnose.relations import STEP, ZONE, Bundle, bundles
from patcher.search.candidates import texts
from patcher.search.judged import (
    NOT_TRIED,
    Configuration,
    Span,
    cold_seconds,
    differs,
    figures_of,
    is_equal,
    is_less,
    is_verified,
    is_wrong,
    unrepeated,
    why_not,
)
from patcher.search.pool import room_of
from patcher.search.reducing import Reducing
from patcher.search.session import RESERVED
from patcher.settings import TorchSetting

_KEPT_FREE = 0.04  # of it, where without the measurement there is no verdict
_SLOW_TO_TRACE = 2.0  # seconds of the first pass without generated code, from which on they are tried at once
_GROWTH = 2  # times that new fixes are looked for where the fixes so far have changed what is compiled
_HOPELESS = 0.5  # eager code takes less than this share of the time of compiled code
_SLOWED = 1.2  # times as long as before: the machine is slower now
_ROUNDS = 3  # of settings: behind one break may be another


@dataclass
class Optimizer(Reducing):
    """One search, from the original to the best verified configuration."""

    def run(self) -> None:
        """Search until nothing is left to try, or the budget is over. What is best is in ``best``."""
        narrow = self.counts_decide
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
                if self.best is None and (self.base is None or not self._is_over(RESERVED + 0.35)):
                    self._round([form], RESERVED)
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

    def _everything(self, forms: list[Configuration]) -> Iterator[tuple[Configuration, State | None]]:
        """Measure concurrently, and count at the same time; yield what was measured as it ends.

        The original, also with CUDA graphs, and all fixes with them begin at once, before the rules have read the
        project; what counting asks for begins when the original was counted, and so do blocks that are compiled one by
        one, which compile sooner than a large model.
        ``forms`` is filled with the sets of fixes, the best first.
        """
        original, begun, uncounted = Configuration(), dict[object, Configuration](), set[Configuration]()

        def begin(some: Sequence[Configuration], reserved: float = RESERVED) -> None:
            for one in some:
                if begun.setdefault((texts(one), one.settings), one) is one:
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
            self._add(original, self._looking(counting(self.options)), counts=True, reserved=RESERVED)
            begin(self._graphed([original]), _KEPT_FREE)
            self._pool.start(self._told_of)
            guessed = self._fixes(self.settings.unsafe, self._first_strategies)
            begin(self._graphed([guessed]) if guessed.changed and "fixes" in self.parts else [])
        for (one, counted), state in self._pool.results(
            lambda: self.base is not None and self._is_over(RESERVED), self._told_of, self._is_too_slow
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

    def _is_too_slow(self, asked: tuple[Configuration, bool], seconds: float) -> bool:
        """Whether something is not waited for any more: another was verified, in far less time."""
        one, counted = asked
        slow = not counted and one != Configuration() and seconds > self._pool.patience
        if slow:
            self._drop(one, f"stopped: not compiled and measured in {seconds:.0f} s")
        return slow

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
            self._round([self._of([bundle for bundle in every.bundles if bundle in kept], every)], RESERVED)

    def _grow(self, forms: Sequence[Configuration]) -> None:
        """Fixes that only show where the fixes so far have changed what is compiled."""
        plain = [bundle for one in forms if not one.settings for bundle in one.bundles]
        self._tried |= {unit for bundle in plain for unit in bundle.units}
        for _ in range(_GROWTH if forms else 0):
            if self._is_over(RESERVED + 0.1):
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
            self._round([self._with_fixes(new, start)], RESERVED)
            for bundle in new if self.best is before and new[1:] else ():
                self._round([self._with_fixes([bundle], start)], RESERVED)

    def _try_arguments(self) -> None:
        """Arguments of ``torch.compile`` and settings, each on top of what is best."""
        tried: set[TorchSetting] = set()
        for _ in range(_ROUNDS):
            new = [setting for setting in self._offered() if setting not in tried]
            tried.update(new)
            if self._is_wide:
                made = [self._with(setting) for setting in new]
                self._round([one for one in made if one not in self.cold], RESERVED + 0.25)
            for setting in new if not self._is_wide else ():
                self._round([self._with(setting)], RESERVED + 0.1)

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
            after = None if self._is_over(RESERVED + 0.1) else self._count(one).totals("patched")
            if before is None or after is None or not pays(before, after):
                self._drop_bundle(zone, "the graphs that it saves are worth less than what then runs eagerly")
            elif any(now > was for now, was in zip(self._standing(one), self._standing(start), strict=True)):
                self._drop_bundle(zone, f"something gets more: {self._standing(one).told}")
            else:
                self._round([one], RESERVED + 0.1)

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
            state = None if self._is_over(RESERVED + 0.1) else self._time(one)
            if state is None or not is_verified(state):
                self._drop_bundle(step, NOT_TRIED if state is None else why_not(state))
            elif self._consider(one, state):
                start = one
            elif (wrong or unrolls_less(state, *self._now())) and self._settles(state):
                self._keep(one, state, self._span(state, "patched") or Span(0, 0, 0))
                start, wrong = one, False
            else:
                self._drop_bundle(step, self._not_faster(state))

    def _try_fusions(self) -> None:
        """Operators written by hand: kept where eager code gets faster, and compiled code no slower."""
        start = self.best.configuration if self.best else Configuration()
        if self.counts_decide or "fixes" not in self.parts:
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

    def _confirm(self) -> None:
        """The best once more, with the original beside it: a machine is not as fast at one time as at another."""
        assert self.base is not None
        if self._is_over(0.05) or (self.best is None and not self._is_wide and self._is_hopeless):
            return
        if self.counts_decide and self.options.quick:
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
        return self.counts_decide or wrong or is_less(eager, compiled, _HOPELESS)
