"""Rolling RC as a plain loop, written from DESIGN.md without looking at the library's own.

It knows `Widen` and `Scale`, the two losses of the paper, every stretch, several risks; numbers
in, numbers out. It keeps what was shown until the label comes.
"""

import math
from typing import Any


class Loop:
    """The recursion of DESIGN.md, one line for each line there."""

    def __init__(self, controller: Any) -> None:
        self.c = controller
        self.thetas = [risk.start for risk in controller.risks]
        self.offset = 0.0
        self.streaks = [0.0 for _ in controller.risks]
        self.waiting: dict[Any, Any] = {}

    def phi(self, theta: float) -> float:
        stretch = self.c.stretch
        kind = type(stretch).__name__
        inner = kind if kind in ("Identity", "Exponential") else type(stretch.inner).__name__
        lam = theta
        if inner == "Exponential":
            lam = math.copysign(math.exp(min(abs(theta), 709.0)) - 1.0, theta)
        return lam if kind in ("Identity", "Exponential") else lam + self.offset

    def lam(self) -> tuple[float, int]:
        """λ, and the index of the risk that asks for the largest set."""
        bounds = [risk.bounds for risk in self.c.risks]
        if any(theta > high for theta, (_, high) in zip(self.thetas, bounds, strict=True)):
            return math.inf, 0
        below = [theta < low for theta, (low, _) in zip(self.thetas, bounds, strict=True)]
        if all(below) or (any(below) and self.c.combine.empty_if == "some"):
            return -math.inf, 0
        lams = [self.phi(theta) for theta in self.thetas]
        leader = lams.index(max(lams))
        if type(self.c.combine).__name__ == "Max":
            return lams[leader], leader
        total = 0.0
        for lam in lams:
            total = total + lam
        return total / len(lams), leader

    def ends(self, prediction: Any, lam: float) -> tuple[float, float]:
        low, high = self.c.sets.support
        if lam == math.inf:
            return low, high
        if lam == -math.inf:
            return math.inf, -math.inf
        if type(self.c.sets).__name__ == "Widen":
            lower, upper = prediction[0] - lam, prediction[1] + lam
        else:
            centre, below, above = prediction
            lower, upper = centre - lam * below, centre + lam * above
        lower, upper = max(lower, low), min(upper, high)
        return (lower, upper) if lower <= upper else (math.inf, -math.inf)

    def score(self, prediction: Any, y: float) -> float:
        if type(self.c.sets).__name__ == "Widen":
            return max(prediction[0] - y, y - prediction[1])
        centre, below, above = prediction
        sides = ((centre - y, below), (y - centre, above))
        return max(
            away / scale if scale else (math.inf if away > 0.0 else -math.inf)
            for away, scale in sides
        )

    def predict(self, id: Any, prediction: Any) -> tuple[float, float]:
        lam, leader = self.lam()
        shown = self.ends(prediction, lam)
        self.waiting[id] = prediction, lam, leader, shown
        return shown

    def update(self, id: Any, y: float) -> list[float]:
        prediction, lam, leader, (lower, upper) = self.waiting.pop(id)
        missed = not lower <= y <= upper
        losses = []
        for index, risk in enumerate(self.c.risks):
            if type(risk.loss).__name__ == "Miscoverage":
                losses.append(1.0 if missed else 0.0)
            else:
                cap = math.inf if risk.loss.cap is None else risk.loss.cap
                self.streaks[index] = min(self.streaks[index] + 1.0, cap) if missed else 0.0
                losses.append(self.streaks[index])
        for index, risk in enumerate(self.c.risks):
            self.thetas[index] += risk.step.gamma * (losses[index] - risk.level)
        if math.isfinite(lam):
            self.move(losses[leader] - self.c.risks[leader].level, self.score(prediction, y), lam)
        delta = self.c.combine.anti_windup
        if delta is not None and len(losses) > 1:
            floor = max(self.thetas) - delta
            self.thetas = [max(theta, floor) for theta in self.thetas]
        return losses

    def move(self, excess: float, score: float, lam: float) -> None:
        stretch = self.c.stretch
        kind = type(stretch).__name__
        if kind in ("Identity", "Exponential"):
            return
        growth = 1.0
        if kind == "ErrorAdaptive":
            growth = math.exp(min(stretch.loss * abs(excess), 709.0))
        if stretch.reading == "paper":
            step = stretch.score * score * growth
        else:
            growth = growth - 1.0 if stretch.reading == "later" else growth
            step = stretch.score * abs(score - lam) * growth if growth and excess else 0.0
            step = math.copysign(step, excess)
        self.offset = min(max(self.offset + step, stretch.low), stretch.high)
