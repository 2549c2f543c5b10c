"""A ledger of losses, held against the bounds of the theorems written out by hand."""

from math import floor, inf, sqrt
from typing import Any

import setpoint as sp
from setpoint.losses import MiscoverageCounter, declaration

EPSILON = 2.0**-52


def longest_streak(level: float, span: float, gamma: float) -> float:
    """⌊½ + r + √((½ + r)² + 2(M − m)/γ)⌋, which a streak may just reach: rounding apart."""
    half = 0.5 + level
    length = half + sqrt(half * half + 2.0 * span / gamma)
    return float(floor(length + 1e-9 * (1.0 + length))) if length < inf else inf


class Ledger:
    """The sums Σ(l − r) of every risk at every time of a segment, and what bounds them.

    Call `note` after every label; `hold` asserts that everything promised so far is true.
    """

    def __init__(self, stream: sp.Stream) -> None:
        self.stream = stream
        self.controller = stream.controller
        self.begin = _tuple(stream.theta)
        self.inherited = len(stream.pending)
        self.fresh = not stream.certificate().earlier
        self.sums = [[0.0] for _ in self.controller.risks]
        self.weight = [1.0 for _ in self.controller.risks]
        self.most_waiting = max(self.inherited, 1)
        self._certificate: sp.Certificate | None = None

    def note(self, losses: Any) -> None:
        """Takes in what `update` returned."""
        self._certificate = None
        for index, (sums, loss) in enumerate(zip(self.sums, _tuple(losses), strict=True)):
            if loss is not None:
                sums.append(sums[-1] + (loss - self.controller.risks[index].level))
                self.weight[index] += abs(loss) + abs(self.controller.risks[index].level)

    def waited(self) -> None:
        """Takes in how many labels are awaited now."""
        self._certificate = None
        self.most_waiting = max(self.most_waiting, len(self.stream.pending))

    @property
    def certificate(self) -> sp.Certificate:
        """What the stream certifies now."""
        if self._certificate is None:
            self._certificate = self.stream.certificate()
        return self._certificate

    def excess(self, index: int) -> tuple[float, float]:
        """The least and the most the excess of a risk can be, in the direction of θ."""
        risk = self.controller.risks[index]
        promise = declaration(risk.loss)
        most = promise.high
        sets: Any = self.controller.sets
        owners = self.controller.owners
        inside = getattr(sets, "nested", False) and owners[index] > 0
        alone = owners.count(owners[index]) == 1 and not inside
        prompt = self.fresh and self.most_waiting == 1
        if alone and prompt and isinstance(risk.loss, MiscoverageCounter):
            low, high = self.controller.bounds[index]
            most = min(most, longest_streak(risk.level, high - low, risk.step.gamma))
        fall, rise = promise.low - risk.level, most - risk.level
        return (-rise, -fall) if promise.grows else (fall, rise)

    def reach(self, index: int) -> tuple[float, float]:
        """[m − Pγ(r − l_min), M + Pγ(l_max − r)], and a start outside [m, M] with what waited."""
        gamma = self.controller.risks[index].step.gamma
        (low, high), (fall, rise) = self.controller.bounds[index], self.excess(index)
        begin, held = self.begin[index], self.inherited
        bottom, top = (
            low + self.most_waiting * gamma * fall,
            high + self.most_waiting * gamma * rise,
        )
        if begin < low:
            bottom = min(bottom, begin + held * gamma * fall)
        if begin > high:
            top = max(top, begin + held * gamma * rise)
        return bottom, top

    def rounding(self, index: int) -> float:
        """What rounding can make of the sums: some ulps of θ and of the sum at every step."""
        sums, gamma = self.sums[index], self.controller.risks[index].step.gamma
        size = max(abs(self.begin[index]), *map(abs, self.reach(index)))
        return 4.0 * EPSILON * len(sums) * (size / gamma + self.weight[index])

    def hold_identity(self) -> None:
        """Σ(l − r) is what the path of θ says, lifts subtracted."""
        for index, (risk, sums) in enumerate(zip(self.certificate.risks, self.sums, strict=True)):
            gamma = self.controller.risks[index].step.gamma
            sign = -1.0 if declaration(self.controller.risks[index].loss).grows else 1.0
            moved = (_tuple(self.stream.theta)[index] - self.begin[index] - risk.lifted) / gamma
            slack = self.rounding(index) + 8.0 * EPSILON * len(sums) * risk.lifted / gamma
            assert abs(sums[-1] - sign * moved) <= slack
            assert risk.judged == len(sums) - 1
            if risk.judged:
                assert abs(risk.mean - risk.level - sums[-1] / risk.judged) <= slack
                assert abs(risk.identity - risk.mean) <= slack / risk.judged + 4.0 * EPSILON

    def hold(self) -> None:
        """What holds after every label, whatever the controller."""
        self.hold_identity()
        self.hold_claims()

    def hold_one(self) -> None:
        """What holds besides for one risk, or one on each set."""
        self.hold()
        self.hold_range()

    def hold_each(self) -> None:
        """What holds besides for each of several risks, whatever combines them."""
        self.hold()
        for index in range(len(self.sums)):
            self.hold_upper(index)

    def hold_range(self) -> None:
        """θ is where the theorem for one risk says."""
        for index, theta in enumerate(_tuple(self.stream.theta)):
            bottom, top = self.reach(index)
            slack = self.rounding(index) * self.controller.risks[index].step.gamma
            assert bottom - slack <= theta <= top + slack

    def hold_upper(self, index: int) -> None:
        """Σ(l − r) ≤ (M + Pγ(l_max − r) − θ_1)/γ now, for a loss that shrinks as the set grows."""
        gamma = self.controller.risks[index].step.gamma
        limit = (self.reach(index)[1] - self.begin[index]) / gamma
        assert self.sums[index][-1] <= limit + self.rounding(index)

    def hold_claims(self) -> None:
        """Whatever the certificate claims of this moment is true."""
        assert self.certificate.most_pending == self.most_waiting
        for index, (risk, sums) in enumerate(zip(self.certificate.risks, self.sums, strict=True)):
            slack = self.rounding(index)
            if risk.constant_upper is not None:
                assert sums[-1] <= risk.constant_upper + slack
            if risk.constant_lower is not None:
                assert sums[-1] >= risk.constant_lower - slack
            assert risk.within
            assert "BROKEN" not in risk.verdict

    def hold_windows(self) -> None:
        """So is what it claims of every window until now."""
        for index, risk in enumerate(self.certificate.risks):
            if risk.window is not None:
                rise, fall = self.extremes(index)
                worst = max(rise, fall) if risk.window_sided == "both" else rise
                assert worst <= risk.window + 2.0 * self.rounding(index)

    def extremes(self, index: int) -> tuple[float, float]:
        """The largest Σ(l − r) and the largest −Σ(l − r) over all windows."""
        rise = fall = 0.0
        low = high = 0.0
        for total in self.sums[index]:
            low, high = min(low, total), max(high, total)
            rise, fall = max(rise, total - low), max(fall, high - total)
        return rise, fall


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
