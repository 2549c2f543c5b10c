"""An online model of images with its uncertainty: what a stream with pixel sets is given."""

from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np

from setpoint._check import whole
from setpoint.errors import InputError
from setpoint.images._arrays import copied, image, like, same, space
from setpoint.images.alignment import Fit, Line, Rescale, fit, known_pixels
from setpoint.images.heuristics import Heuristic, floored, sides
from setpoint.predictions import PixelSpread

__all__ = ["Facts", "SpreadModel"]

_LINE = Line()


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one frame besides its prediction.

    Parameters
    ----------
    fit
        The scale and shift of the estimate.
    low, high
        The scale and shift of the uncertainty below and above.
    known
        How many known pixels they come from.
    valid
        How many pixels have a prediction.
    judged
        How many of them have a truth; 0 before it came.
    infinite
        The share of the judged pixels that no finite λ covers, because the truth lies on a side
        without uncertainty; NaN before the truth came and where no pixel is judged.
    """

    fit: Fit
    low: Fit
    high: Fit
    known: int
    valid: int
    judged: int = 0
    infinite: float = nan


class SpreadModel:
    """A model of images and a heuristic of its uncertainty, as one online model.

    Parameters
    ----------
    model
        `predict(x)` gives an image of shape (height, width), NaN where it says nothing;
        `learn(x, y)` takes the truth, NaN where invalid.
    heuristic
        From `setpoint.images.heuristics`.
    known
        How many pixels of each frame are known together with it, 200 in the paper.
    seed
        Which pixels these are, if more are handed over: each frame has its own.
    align
        Whether the estimate is given scale and shift by the known pixels. A model that already
        speaks in the unit of the truth may do without.
    rescale
        What brings the heuristic to the residuals at the known pixels, each side by itself: by
        default `alignment.Line()`; None leaves it as it is.

    Examples
    --------
    >>> from setpoint.images import PreviousResiduals
    >>> class Half:
    ...     def predict(self, x):
    ...         return 0.5 * x
    ...
    ...     def learn(self, x, y): ...
    >>> model = SpreadModel(Half(), PreviousResiduals())
    >>> x = np.linspace(1.0, 9.0, 600).reshape(20, 30)
    >>> spread = model.predict(x, known=x + 3.0)
    >>> model.facts.fit.scale, round(model.facts.fit.shift, 9)
    (2.0, 3.0)
    >>> model.learn(x, x + 3.0)
    """

    def __init__(
        self,
        model: Any,
        heuristic: Heuristic,
        known: int = 200,
        seed: int = 0,
        align: bool = True,
        rescale: Rescale | None = _LINE,
    ) -> None:
        for part, name in ((model, "model"), (heuristic, "heuristic")):
            if not (hasattr(part, "predict") and hasattr(part, "learn")):
                raise InputError(f"{name} must have predict and learn, got {part!r}")
        self.model, self.heuristic = model, heuristic
        self.known, self.seed = whole(known, "known", 0), whole(seed, "seed", 0)
        self.align, self.rescale = bool(align), rescale
        self.frames = 0
        self._fit = Fit(1.0, 0.0)
        self._last: tuple[Any, PixelSpread, Facts] | None = None

    @property
    def facts(self) -> Facts:
        """What is known of the frame that was predicted or learnt last."""
        if self._last is None:
            raise InputError("there are no facts before the first frame: predict one")
        return self._last[2]

    def predict(self, x: Any, known: Any = None) -> PixelSpread:
        """The estimate with its uncertainty.

        Nothing moves, however often it is called: only the last answer is remembered for `learn`.

        Parameters
        ----------
        x
            The input of the model.
        known
            An image of the pixels whose truth is known with x, NaN elsewhere; of more than
            `known` pixels, that many are drawn. Without any, the last frame's scale and shift
            stay.
        """
        self._last = self._predicted(x, known)
        return self._last[1]

    def _predicted(self, x: Any, known: Any) -> tuple[Any, PixelSpread, Facts]:
        """The input, its prediction and the facts."""
        raw = image(self.model.predict(x), "what the model predicts")
        points = None
        if known is not None and self.known:
            drawn = np.random.default_rng((self.seed, self.frames))
            points = like(known_pixels(known, self.known, drawn), raw)
        count = 0 if points is None else int(space(points).isfinite(points).sum())
        found = self._fit
        if self.align and count:
            found = fit(raw, points)
        centre = found(raw) if self.align else raw
        low, high = self.heuristic.predict(x, centre)
        turned = (Fit(1.0, 0.0), Fit(1.0, 0.0))
        if self.rescale is not None and count:
            low, high, turned = self._rescaled(self.rescale, centre, low, high, points)
        xp = space(centre)
        valid = xp.isfinite(centre) & xp.isfinite(low) & xp.isfinite(high)
        spread = PixelSpread(centre, low, high, valid)
        facts = Facts(found, *turned, count, int(valid.sum()))
        return copied(x), spread, facts

    def _rescaled(
        self, rescale: Rescale, centre: Any, low: Any, high: Any, points: Any
    ) -> tuple[Any, Any, tuple[Fit, Fit]]:
        """Both sides brought to the residuals at the known pixels, never below the floor."""
        below, above = sides(centre, points)
        xp = space(centre)
        seen = xp.isfinite(below) & xp.isfinite(low) & xp.isfinite(high)
        down, up = rescale(low[seen], below[seen]), rescale(high[seen], above[seen])
        low, high = down(low), up(high)
        low, high = xp.where(low < 0.0, 0.0, low), xp.where(high < 0.0, 0.0, high)
        low, high = floored(low, high, self.heuristic.floor)
        return low, high, (down, up)

    def learn(self, x: Any, y: Any) -> None:
        """Takes in the truth of a frame, NaN where invalid.

        The heuristic is told the estimate as it was predicted. If x is not the frame predicted
        last, it is predicted now, with known pixels drawn from y.
        """
        truth = image(y, "y")
        last = self._last
        if last is None or not same(last[0], x):
            last = self._predicted(x, truth)
        seen, spread, facts = last
        xp = space(spread.centre)
        estimate = xp.where(spread.valid, spread.centre, nan)
        self._last = (seen, spread, _judged(facts, spread, truth))
        self._fit = facts.fit
        self.heuristic.learn(x, estimate, truth)
        self.model.learn(x, y)
        self.frames += 1

    def __repr__(self) -> str:
        return (
            f"SpreadModel({self.model!r}, {self.heuristic!r}, known={self.known}, "
            f"seed={self.seed}, align={self.align}, rescale={self.rescale!r})"
        )


def _judged(facts: Facts, spread: PixelSpread, truth: Any) -> Facts:
    """The facts, with what the truth adds to them."""
    below, above = sides(spread.centre, truth)
    xp = space(spread.centre)
    judged = xp.isfinite(below) & spread.valid
    lost = judged & (((spread.low <= 0.0) & (below > 0.0)) | ((spread.high <= 0.0) & (above > 0.0)))
    count = int(judged.sum())
    return replace(facts, judged=count, infinite=int(lost.sum()) / count if count else nan)
