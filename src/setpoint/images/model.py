"""An online model of images with its uncertainty: what a stream with pixel sets is given."""

from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np

from setpoint._check import whole
from setpoint.errors import InputError, PendingFull, UnknownReceipt
from setpoint.images.alignment import Fit, Line, Rescale, fit, known_pixels
from setpoint.images.heuristics import Heuristic, floored, sides
from setpoint.predictions import PixelSpread
from setpoint.receipts import Id, checked_id
from setpoint.sets.frames import copied, image, like, mask_like, same, space, true_image

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

    Where labels come late, or several frames are open at once, each prediction is given an id, and
    `learn` the same: the heuristic is then told that very prediction. Without ids only the last
    prediction is remembered.

    Whatever true values it is given, in `predict` and in `learn`, invalid pixels must be NaN, left
    out by a pair (values, valid), or masked. A 0 is taken for a true 0, so that a raw depth map, in
    which it says that there is none, goes through `images.only(depth, images.valid_depth(depth))`
    first.

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

    def __init__(
        self,
        model: Any,
        heuristic: Heuristic,
        known: int = 200,
        seed: int = 0,
        align: bool = True,
        rescale: Rescale | None = _LINE,
        least: int = 20,
        max_pending: int = 1000,
    ) -> None:
        for part, name in ((model, "model"), (heuristic, "heuristic")):
            if not (hasattr(part, "predict") and hasattr(part, "learn")):
                raise InputError(f"{name} must have predict and learn, got {part!r}")
        self.model, self.heuristic = model, heuristic
        self.known, self.seed = whole(known, "known", 0), whole(seed, "seed", 0)
        self.align, self.rescale = bool(align), rescale
        self.least = whole(least, "least", 1)
        self.max_pending = whole(max_pending, "max_pending", 1)
        self.frames = 0
        # Frames begun: a prediction with an id begins one, without an id learning it does.
        self._serial = 0
        self._fit, self._sure = Fit(1.0, 0.0), False
        self._last: tuple[Any, PixelSpread, Facts] | None = None
        self._open: dict[Id, tuple[PixelSpread, Facts]] = {}
        self._facts: Facts | None = None

    @property
    def facts(self) -> Facts:
        """What is known of the frame that was predicted or learnt last."""
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
        """The estimate with its uncertainty.

        Without an id nothing moves, however often it is called: only the last answer is remembered
        for `learn`. With one it stays open until it is learnt or dropped.

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
            A boolean mask of the pixels that can be used: False for padding. They are not valid in
            the prediction, and enter no fit, floor or mean. Without it padding counts as any pixel
            does, also in the mean length of the sets, unless the model says NaN there.
        """
        if id is not None:
            id = checked_id(id)
            self._check_room(id)
        spread, facts = self._predicted(x, known, valid)
        if id is None:
            self._last = copied(x), spread, facts
        else:
            self._open[id] = spread, facts
            self._serial += 1
            self._keep(facts)
        self._facts = facts
        return spread

    def _check_room(self, id: Id) -> None:
        if id in self._open:
            raise InputError(f"a prediction already waits under the id {id!r}")
        if len(self._open) >= self.max_pending:
            raise PendingFull(
                f"{len(self._open):,} predictions wait for their truth, as many as max_pending "
                "allows: learn or drop some"
            )

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
            drawn = np.random.default_rng((self.seed, self._serial))
            points = like(known_pixels(truth, self.known, drawn), raw)
        seen = xp.where(usable, raw, nan)
        count = 0 if points is None else int((usable & xp.isfinite(points)).sum())
        fitted = self._found(seen, points, count)
        centre = fitted(raw) if self.align else copied(raw)
        seen = xp.where(usable, centre, nan)
        low, high = self.heuristic.predict(x, seen)
        turned = (Fit(1.0, 0.0), Fit(1.0, 0.0))
        if self.rescale is not None and count:
            low, high, turned = self._rescaled(self.rescale, seen, low, high, points)
        usable = usable & xp.isfinite(centre) & xp.isfinite(low) & xp.isfinite(high)
        spread = PixelSpread(centre, low, high, usable)
        return spread, Facts(fitted, *turned, count, int(usable.sum()))

    def _found(self, estimate: Any, points: Any, count: int) -> Fit:
        """The scale and shift of a frame: the last ones, if its known pixels are too few."""
        if not self.align or not count or (self._sure and not self._enough(count)):
            return self._fit
        return fit(estimate, points, min(self.least, self.known))

    def _enough(self, count: int) -> bool:
        """Whether so many known pixels tell a scale and a shift."""
        return count > 0 and count >= min(self.least, self.known)

    def _keep(self, facts: Facts) -> None:
        """Remembers a fit for frames that cannot have their own."""
        self._fit, self._sure = facts.fit, self._sure or self._enough(facts.known)

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
        low, high = floored(low, high, self.heuristic.floor, xp.isfinite(centre))
        return low, high, (down, up)

    def learn(self, x: Any, y: Any, *, id: Id | None = None) -> None:
        """Takes in the truth of a frame: NaN where invalid, a pair (values, valid), or masked.

        The heuristic is told the estimate as it was predicted, under the id or last. Without an id,
        if x is not the input predicted last, it is predicted now, by the model as it has become,
        with known pixels drawn from y: where labels come late, give ids. Arrays and tensors are
        the same input if they hold the same numbers, numbers and strings if they are equal,
        anything else only if it is the same object.
        """
        truth = true_image(y, "y")
        spread, facts = self._asked(x, truth) if id is None else self._waiting(id)
        judged = _judged(facts, spread, truth)
        estimate = space(spread.centre).where(spread.valid, spread.centre, nan)
        self.model.learn(x, truth)  # first: it may refuse the truth, and then nothing was learnt
        self.heuristic.learn(x, estimate, truth)
        if id is None:
            self._serial += 1
            self._keep(facts)
        else:
            del self._open[id]
        self._facts = judged
        self.frames += 1

    def _asked(self, x: Any, truth: Any) -> tuple[PixelSpread, Facts]:
        """The prediction of an input without an id: the last one, or one made now."""
        if self._last is None or not same(self._last[0], x):
            self._last = copied(x), *self._predicted(x, truth, None)
        return self._last[1:]

    def _waiting(self, id: Id) -> tuple[PixelSpread, Facts]:
        if id not in self._open:
            raise UnknownReceipt(f"no prediction waits under the id {id!r}")
        return self._open[id]

    def drop(self, id: Id) -> None:
        """Gives up a prediction whose truth will not come."""
        self._waiting(id)
        del self._open[id]

    def __repr__(self) -> str:
        return (
            f"SpreadModel({self.model!r}, {self.heuristic!r}, known={self.known}, "
            f"seed={self.seed}, align={self.align}, rescale={self.rescale!r}, "
            f"least={self.least}, max_pending={self.max_pending})"
        )


def _judged(facts: Facts, spread: PixelSpread, truth: Any) -> Facts:
    """The facts, with what the truth adds to them."""
    below, above = sides(spread.centre, truth)
    xp = space(spread.centre)
    judged = xp.isfinite(below) & spread.valid
    lost = judged & (((spread.low <= 0.0) & (below > 0.0)) | ((spread.high <= 0.0) & (above > 0.0)))
    count = int(judged.sum())
    return replace(facts, judged=count, infinite=int(lost.sum()) / count if count else nan)
