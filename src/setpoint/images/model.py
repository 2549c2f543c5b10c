"""An online model of images with its uncertainty: what a stream with pixel sets is given.

An estimate up to an unknown unit is put into metres by a few known pixels. Pixels without a depth
are NaN and do not count.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import Any, NamedTuple

import numpy as np

from setpoint._check import whole
from setpoint.errors import InputError, PendingFull, UnknownReceipt
from setpoint.images.heuristics import Checks, Heuristic, floored, judged_pair, sides
from setpoint.models import OnlineModel
from setpoint.predictions import PixelSpread
from setpoint.receipts import checked_id
from setpoint.sets.frames import (
    copied,
    host,
    image,
    like,
    mask_like,
    same,
    space,
    true_image,
)
from setpoint.state import Id


class Fit(NamedTuple):
    """A scale and a shift: `Fit(2.0, 1.0)(estimate)` is 2·estimate + 1."""

    scale: float
    shift: float

    def __call__(self, estimate: Any) -> Any:
        return self.scale * estimate + self.shift


def fit(estimate: Any, truth: Any, least: int = 2) -> Fit:
    """The scale and shift that bring an estimate nearest to the truth, by least squares.

    Pixels count where both are finite. An invalid pixel must be NaN, also in a raw depth map, in
    which 0 says that there is none.

    The scale is never negative: where the slope is not above 0, or there are fewer than `least`
    pixels or two different values to tell one, it is the ratio of the means without a shift; where
    that is not above 0 either, the estimate is only shifted. With no pixel at all the estimate
    stays as it is.

    Examples
    --------
    >>> truth = np.array([[5.0, 7.0], [np.nan, 9.0]])
    >>> fit(np.array([[2.0, 3.0], [8.0, 4.0]]), truth)
    Fit(scale=2.0, shift=1.0)
    >>> fit(np.array([[14.0, 10.0], [8.0, 4.0]]), truth)  # falling: the ratio of the means
    Fit(scale=0.75, shift=0.0)

    References
    ----------
    Feldman et al. 2023, appendix C.2.6: scale and shift, whose symbols it exchanges.
    """
    estimate, truth, both = judged_pair(estimate, truth)
    double = space(estimate).float64
    x, y = (
        part.astype(double) if isinstance(part, np.ndarray) else part.to(double)
        for part in (estimate[both], truth[both])
    )
    if not len(x):
        return Fit(1.0, 0.0)
    least = whole(least, "least", 1)
    middle, level, slope = _slope(x, y)
    if len(x) >= least and slope > 0.0 and isfinite(slope):
        return Fit(slope, level - slope * middle)
    ratio = level / middle if middle else 0.0
    return Fit(ratio, 0.0) if ratio > 0.0 and isfinite(ratio) else Fit(1.0, level - middle)


def _slope(x: Any, y: Any) -> tuple[float, float, float]:
    """The means of x and y, and the slope of y in x by least squares; 0 where x is constant."""
    middle, level = float(x.mean()), float(y.mean())
    apart = x - middle
    spread = float((apart * apart).sum())
    return middle, level, float((apart * (y - level)).sum()) / spread if spread > 0.0 else 0.0


def known_pixels(truth: Any, count: int = 200, rng: Any = None) -> Any:
    """The truth at some pixels chosen evenly among the valid ones, NaN at all others.

    Pixels are drawn without putting back; where fewer are valid, all of them are known. `rng` is a
    numpy generator or a seed.

    >>> truth = np.arange(12.0).reshape(3, 4)
    >>> known_pixels(truth, 2, rng=0)
    array([[nan, nan, nan, nan],
           [nan, nan, nan,  7.],
           [nan,  9., nan, nan]])
    """
    truth, count = image(truth, "the truth"), whole(count, "count", 0)
    valid = np.flatnonzero(np.isfinite(host(truth)))
    if len(valid) > count:
        valid = np.sort(np.random.default_rng(rng).choice(valid, count, replace=False))
    known = np.zeros(truth.shape, bool)
    known.flat[valid] = True
    return space(truth).where(like(known, truth), truth, nan)


Rescale = Callable[[Any, Any], Fit]
"""What brings one side of a heuristic to the residuals of the frame it is used for.

It is given the values of the side and the residuals on that side, zeros included, at the known
pixels.
"""

_LEAST, _LIMIT = 20, 1000.0
"""With fewer known pixels a side stays as it is; its factor lies between 1/limit and limit."""


def ratio(side: Any, residual: Any) -> Fit:
    """One factor for a side: the mean residual on that side over the mean of the heuristic.

    Every known pixel counts, also those whose truth lies on the other side and whose residual on
    this one is therefore 0.
    """
    size = float(side.mean()) if len(side) >= _LEAST else 0.0
    return Fit(_clipped(float(residual.mean()) / size) if size > 0.0 else 1.0, 0.0)


def line(side: Any, residual: Any) -> Fit:
    """Scale and shift of a side by least squares; `ratio` where the slope is not above 0."""
    size, level, slope = _slope(side, residual) if len(side) >= _LEAST else (0.0,) * 3
    if not slope > 0.0:
        return ratio(side, residual)
    slope = _clipped(slope)
    return Fit(slope, level - slope * size)


def _clipped(scale: float) -> float:
    return min(max(scale, 1.0 / _LIMIT), _LIMIT)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one frame besides its prediction.

    Parameters
    ----------
    fit, low, high
        The scale and shift of the estimate, and of the uncertainty below and above.
    known, valid, judged
        How many known pixels these come from, how many pixels have a prediction, and how many of
        them a truth; 0 before it came.
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


@dataclass(eq=False)
class SpreadModel:
    """A model of images and a heuristic of its uncertainty, as one online model.

    Where labels come late, give `predict` and `learn` the same id: the heuristic then learns from
    that very prediction. Without ids only the last prediction is remembered.

    In all true values invalid pixels must be NaN, left out by a pair (values, valid), or masked.

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
        default `images.line`, or `images.ratio`; None leaves it as it is.
    least
        With fewer known pixels than this, and than `known`, the last fit of as many stays; before
        there was one, the scale is the ratio of the means, without a shift.
    max_pending
        How many predictions with an id may wait for their truth at once; each keeps four images.

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

    model: OnlineModel
    heuristic: Heuristic
    known: int = 200
    seed: int = 0
    align: bool = True
    rescale: Rescale | None = line
    least: int = 20
    max_pending: int = 1000

    def __post_init__(self) -> None:
        for part, name in ((self.model, "model"), (self.heuristic, "heuristic")):
            if not isinstance(part, OnlineModel):
                raise InputError(f"{name} must have predict and learn, got {part!r}")
        self.known, self.seed = whole(self.known, "known", 0), whole(self.seed, "seed", 0)
        self.least = whole(self.least, "least", 1)
        self.max_pending = whole(self.max_pending, "max_pending", 1)
        self.frames = 0
        # Frames begun: a prediction with an id begins one, without an id learning it does.
        self._serial = 0
        self._fit, self._sure = Fit(1.0, 0.0), False
        self._last: tuple[Any, PixelSpread, Facts] | None = None
        self._open: dict[Id, tuple[PixelSpread, Facts]] = {}
        self._facts: Facts | None = None

    @property
    def facts(self) -> Facts:
        """Facts about the frame that was predicted or learnt last."""
        if self._facts is None:
            raise InputError("there are no facts before the first frame: predict one")
        return self._facts

    @property
    def pending(self) -> tuple[Id, ...]:
        """The ids of the predictions that wait for their truth, oldest first."""
        return tuple(self._open)

    def predict(
        self, x: Any, known: Any = None, *, id: Id | None = None, valid: Any = None
    ) -> PixelSpread:
        """The estimate with its uncertainty; under an id it waits until it is learnt or dropped.

        Parameters
        ----------
        x
            The input of the model.
        known
            The pixels whose truth is known with x: an image that is NaN elsewhere, a pair (values,
            valid) or a masked array; of more than `known` pixels, that many are drawn. Without
            any, the last frame's scale and shift stay.
        id
            A number or a string under which `learn` finds this prediction.
        valid
            A boolean mask of the pixels that can be used. The others, such as padding, are not
            valid in the prediction, and enter no fit, floor or mean.
        """
        if id is not None:
            id = checked_id(id)
            if id in self._open:
                raise InputError(f"a prediction already waits under the id {id!r}")
            if len(self._open) >= self.max_pending:
                raise PendingFull(
                    f"{len(self._open):,} predictions wait for their truth, as many as "
                    "max_pending allows: learn or drop some"
                )
        spread, facts = self._predicted(x, known, valid)
        if id is None:
            self._last = copied(x), spread, facts
        else:
            self._open[id] = spread, facts
            self._serial += 1
            self._keep(facts)
        self._facts = facts
        return spread

    def _predicted(self, x: Any, known: Any, valid: Any) -> tuple[PixelSpread, Facts]:
        """The prediction of an input and the facts."""
        raw = image(self.model.predict(x), "what the model predicts")
        xp = space(raw)
        usable = xp.isfinite(raw)
        if valid is not None:
            usable = usable & mask_like(valid, "valid", raw)
        points = None
        if known is not None and self.known:
            truth = true_image(known, "known")
            if valid is not None:
                truth = space(truth).where(mask_like(valid, "valid", truth), truth, nan)
            rng = np.random.default_rng((self.seed, self._serial))
            points = like(known_pixels(truth, self.known, rng), raw)
        seen = xp.where(usable, raw, nan)
        count = 0 if points is None else int((usable & xp.isfinite(points)).sum())
        aligned = self._fit  # the last one, if the known pixels are too few
        if self.align and count and (self._enough(count) or not self._sure):
            aligned = fit(seen, points, min(self.least, self.known))
        centre = aligned(raw) if self.align else copied(raw)
        seen = xp.where(usable, centre, nan)
        low, high = self.heuristic.predict(x, seen)
        down = up = Fit(1.0, 0.0)
        if self.rescale is not None and count:
            below, above = sides(seen, points)
            near = xp.isfinite(below) & xp.isfinite(low) & xp.isfinite(high)
            down = self.rescale(low[near], below[near])
            up = self.rescale(high[near], above[near])
            low, high = (xp.where(side < 0.0, 0.0, side) for side in (down(low), up(high)))
            low, high = floored(low, high, self.heuristic.floor, xp.isfinite(seen))
        usable = usable & xp.isfinite(centre) & xp.isfinite(low) & xp.isfinite(high)
        spread = PixelSpread(centre, low, high, usable)
        return spread, Facts(aligned, down, up, count, int(usable.sum()))

    def _enough(self, count: int) -> bool:
        """Whether so many known pixels tell a scale and a shift."""
        return count > 0 and count >= min(self.least, self.known)

    def _keep(self, facts: Facts) -> None:
        """Remembers a fit for frames that cannot have their own."""
        self._fit, self._sure = facts.fit, self._sure or self._enough(facts.known)

    def learn(
        self, x: Any, y: Any, *, id: Id | None = None, taught: tuple[Any, Any] | None = None
    ) -> None:
        """Takes in the truth of a frame: NaN where invalid, a pair (values, valid), or masked.

        The model learns x and y, or `taught`, a frame and its truth as they are for training. The
        heuristic learns from the estimate as it was predicted, under the id or last; without an id,
        an x that is not the input predicted last is predicted now, with known pixels drawn from y.
        """
        truth = true_image(y, "y")
        if id is not None:
            spread, facts = self._waiting(id)
        else:
            if self._last is None or not same(self._last[0], x):
                self._last = copied(x), *self._predicted(x, truth, None)
            _, spread, facts = self._last
        judged = _judged(facts, spread, truth)
        estimate = space(spread.centre).where(spread.valid, spread.centre, nan)
        shown, known = (x, truth) if taught is None else (taught[0], true_image(taught[1], "y"))
        if isinstance(self.model, Checks):
            self.model.check(shown, known)
        if isinstance(self.heuristic, Checks):
            self.heuristic.check(x, estimate, truth)
        self.model.learn(shown, known)  # first: it may refuse, and then nothing was learnt
        self.heuristic.learn(x, estimate, truth)
        if id is None:
            self._serial += 1
            self._keep(facts)
        else:
            del self._open[id]
        self._facts = judged
        self.frames += 1

    def _waiting(self, id: Id) -> tuple[PixelSpread, Facts]:
        if id not in self._open:
            raise UnknownReceipt(f"no prediction waits under the id {id!r}")
        return self._open[id]

    def drop(self, id: Id) -> None:
        """Gives up a prediction whose truth will not come."""
        self._waiting(id)
        del self._open[id]


def _judged(facts: Facts, spread: PixelSpread, truth: Any) -> Facts:
    """The facts, with what the truth adds to them."""
    below, above = sides(spread.centre, truth)
    xp = space(spread.centre)
    judged = xp.isfinite(below) & spread.valid
    lost = judged & (((spread.low <= 0.0) & (below > 0.0)) | ((spread.high <= 0.0) & (above > 0.0)))
    count = int(judged.sum())
    return replace(facts, judged=count, infinite=int(lost.sum()) / count if count else nan)
