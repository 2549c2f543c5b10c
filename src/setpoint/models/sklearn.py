"""scikit-learn estimators whose intervals and label sets hold a risk (extra `sklearn`).

`IntervalRegressor` and `SetClassifier` wrap any estimator, a pipeline included. `fit` and
`partial_fit` predict each row before they learn it, so that what is judged was never seen;
`predict`, `predict_interval` and `predict_set` change nothing.
"""

# mypy: allow-subclassing-any, allow-untyped-calls

from collections.abc import Iterator
from math import isfinite
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.models.adapters import handover, interval_controller, label_count, set_controller
from setpoint.models.residual import Fading, Recent, Residuals
from setpoint.models.sklearn_rows import Online, has_partial_fit
from setpoint.predictions import Probabilities

# After the import above, which says in words what is missing.
# isort: split
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

__all__ = ["IntervalRegressor", "SetClassifier"]

Floats = npt.NDArray[np.float64]
Masks = npt.NDArray[np.bool_]


class IntervalRegressor(RegressorMixin, Online):
    """Any regressor, with intervals whose risk is held online.

    The width is measured in units of the estimator's own recent residuals, or of its quantile
    forecasts, and steered by the labels: after T of them the mean loss is within a known
    constant over T of its level, whatever the data. Where nothing is known (no residual yet, or a
    forecast that is not finite) the whole line is shown and not judged.

    Parameters
    ----------
    estimator
        The regressor whose forecast is the centre. A pipeline learns row by row if its last
        step does. `FrozenEstimator(fitted)` keeps a model as it is.
    lower, upper
        Regressors of a lower and an upper quantile, if there are any: together or not at all.
        Without them the scale is that of the residuals.
    controller
        What to hold, and how: its family reads spreads (`sets.Scale`), quantiles or points
        (`sets.Widen`, `sets.TwoSided`) or one end (`sets.Lower`, `sets.Upper`), alone or in
        `sets.Nested` or `sets.ScoreWindow`. By default miscoverage at 1 − confidence_level.
    confidence_level
        The coverage of the default controller.
    memory
        Over what residuals are averaged: `Fading(half_life)` or `Recent(size)`.
    initial
        The rows of `fit` that the estimator is fitted to before the others are predicted and
        learnt one by one: a share, or a whole number.
    chunk
        For estimators with `partial_fit`: how many rows are predicted before they are learnt
        together. The labels steer the width one by one all the same; scikit-learn's own checks
        of its input take most of the time of a row, so that larger chunks are much faster.
    refit, window
        For estimators without `partial_fit`: after every `refit` labels they are fitted anew to
        the last `window` rows. By default they stay as `fit` left them, fitted to all its rows.

    Attributes
    ----------
    stream_
        The `setpoint.Stream`, for labels that come late and for its state.
    estimator_
        The fitted estimator.
    residuals_
        The tracked scale.
    shown_
        The intervals of the last rows of the last `fit` or `partial_fit`, as they were before
        each label: (m, 2), or (m, 2, k) for k nested sets.
    unjudged_
        How many rows were shown in full because nothing was known, and so were not judged.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(2000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + random.normal(size=2000)
    >>> model = IntervalRegressor(Ridge(), confidence_level=0.9).fit(X, y)
    >>> model.predict_interval(X[:2]).shape
    (2, 2)
    >>> lower, upper = model.shown_.T
    >>> round(float(np.mean((lower <= y[1000:]) & (y[1000:] <= upper))), 2)
    0.9
    """

    def __init__(
        self,
        estimator: Any,
        *,
        lower: Any = None,
        upper: Any = None,
        controller: Controller | None = None,
        confidence_level: float = 0.9,
        memory: Fading | Recent | None = None,
        initial: float | int = 0.5,
        chunk: int = 1,
        refit: int | None = None,
        window: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.lower = lower
        self.upper = upper
        self.controller = controller
        self.confidence_level = confidence_level
        self.memory = memory
        self.initial = initial
        self.chunk = chunk
        self.refit = refit
        self.window = window

    def fit(self, X: Any, y: Any) -> Self:
        """Begins anew: fits the first rows, then predicts and learns the others one by one."""
        X, y = self._numbers(X, y, reset=True)
        self._begin()
        self._fit(X, y, self._first(len(y)))
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Predicts and learns rows one by one.

        The first call of all begins as `fit` does, with the share `initial` of its rows.
        """
        if not hasattr(self, "stream_"):
            if not all(map(has_partial_fit, self._templates())):
                return self.fit(X, y)
            X, y = self._numbers(X, y, reset=True)
            self._begin()
            self._start(X, y, self._first(len(y)))
        else:
            X, y = self._numbers(X, y, reset=False)
            self._follow(X, y)
        return self

    def predict(self, X: Any) -> Floats:
        """The estimator's own forecast."""
        X = self._asked(X)
        return np.asarray(self.estimator_.predict(X), dtype=np.float64)

    def predict_interval(self, X: Any) -> Floats:
        """The intervals as they are now: (n, 2), lower and upper; (inf, −inf) is empty.

        k nested sets give (n, 2, k), the smallest first.
        """
        X = self._asked(X)
        intervals: Floats = self._peek(self._outputs(X))
        return intervals

    def _numbers(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Floats]:
        X = self._input(X, y, reset=reset)
        y = column_or_1d(y, warn=True)
        return X, check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")

    def _made(self) -> Controller:
        if (self.lower is None) != (self.upper is None):
            raise InputError("lower and upper must be given together, got only one of them")
        self.residuals_ = Residuals(self.memory)
        if self.controller is not None:
            return self.controller
        return interval_controller(self.confidence_level, None if self.lower is None else 1.0)

    def _begin(self) -> None:
        super()._begin()
        self._handover = handover(self.stream_.controller)

    def _templates(self) -> tuple[Any, ...]:
        estimators = (self.estimator, self.lower, self.upper)
        return estimators[:1] if self.lower is None else estimators

    def _outputs(self, X: Any) -> Iterator[tuple[float, ...]]:
        columns = [np.asarray(each.predict(X), dtype=np.float64) for each in self._fitted]
        return zip(*(each.ravel().tolist() for each in columns), strict=True)

    def _prediction(self, output: tuple[float, ...]) -> Any:
        point, *ends = output
        if not all(map(isfinite, output)):
            return None
        return self._handover.prediction(point, tuple(ends), self.residuals_)

    def _told(self, shown: Any) -> tuple[Any, Any]:
        return self._handover.ends(shown)

    def _everything(self) -> tuple[Any, Any]:
        return self._handover.everything

    def _stacked(self, shown: list[Any]) -> Floats:
        return np.array(shown, dtype=np.float64).reshape(-1, *self._handover.shape)

    def _weigh(self, output: tuple[float, ...], y: float) -> None:
        if isfinite(output[0]):
            self.residuals_.add(float(y) - output[0])


class SetClassifier(ClassifierMixin, Online):
    """Any classifier with probabilities, with label sets whose risk is held online.

    Parameters
    ----------
    estimator
        The classifier; it must have `predict_proba`. A pipeline learns row by row if its last
        step does. `FrozenEstimator(fitted)` keeps a model as it is.
    controller
        What to hold, and how, with a family of label sets, alone or in `sets.Nested` or
        `sets.ScoreWindow`. By default `sets.Threshold` and miscoverage at 1 − confidence_level.
    confidence_level
        The coverage of the default controller.
    initial, chunk, refit, window
        See `IntervalRegressor`. The first rows go on until they hold two classes.

    Attributes
    ----------
    classes_
        The labels, in the order of the columns of `predict_proba` and `predict_set`.
    stream_, estimator_, unjudged_
        See `IntervalRegressor`.
    shown_
        The sets of the last rows of the last `fit` or `partial_fit`, as they were before each
        label: booleans, (m, K), or (m, K, k) for k nested sets.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(2000, 2))
    >>> y = np.array(["calm", "wind", "storm"])[
    ...     np.digitize(X[:, 0] + random.normal(size=2000), [0, 2])
    ... ]
    >>> model = SetClassifier(LogisticRegression(), confidence_level=0.9).fit(X, y)
    >>> model.predict_set(X[:2]).shape
    (2, 3)
    >>> truth = y[1000:, None] == model.classes_
    >>> round(float(model.shown_[truth].mean()), 2)
    0.9
    """

    def __init__(
        self,
        estimator: Any,
        *,
        controller: Controller | None = None,
        confidence_level: float = 0.9,
        initial: float | int = 0.5,
        chunk: int = 1,
        refit: int | None = None,
        window: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.controller = controller
        self.confidence_level = confidence_level
        self.initial = initial
        self.chunk = chunk
        self.refit = refit
        self.window = window

    def fit(self, X: Any, y: Any) -> Self:
        """Begins anew: fits the first rows, then predicts and learns the others one by one."""
        X, y = self._labels(X, y, reset=True)
        self.classes_ = np.unique(y)
        self._begin()
        first = self._first_with_two(y)
        if first and self._learns and len(np.unique(y[:first])) < len(self.classes_):
            # `fit` would not hear of the classes still to come; `partial_fit` is told.
            self._start(X, y, first)
        else:
            self._fit(X, y, first)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Predicts and learns rows one by one.

        The first call of all needs `classes`, and begins as `fit` does, with the share `initial`
        of its rows.
        """
        if not hasattr(self, "stream_"):
            if not has_partial_fit(self.estimator) and classes is None:
                return self.fit(X, y)
            if classes is None:
                raise InputError("classes must be passed on the first call to partial_fit.")
            X, y = self._labels(X, y, reset=True)
            self.classes_ = np.unique(classes)
            self._known(y)
            self._begin()
            first = self._first_with_two(y)
            if self._learns:
                self._start(X, y, first)
            else:
                self._fit(X, y, first)
        else:
            if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise InputError(
                    f"classes must be those of the first call, {self.classes_.tolist()}, "
                    f"got {np.unique(classes).tolist()}"
                )
            X, y = self._labels(X, y, reset=False)
            self._known(y)
            self._follow(X, y)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The estimator's own label."""
        X = self._asked(X)
        return np.asarray(self.estimator_.predict(X))

    def predict_proba(self, X: Any) -> Floats:
        """The estimator's own probabilities: (n, K), in the order of `classes_`."""
        X = self._asked(X)
        return self._probabilities(X)

    def predict_set(self, X: Any) -> Masks:
        """The sets as they are now: booleans, (n, K), in the order of `classes_`.

        k nested sets give (n, K, k), the smallest first. Where the family draws chances, each row
        has its own, the same whenever it is asked at this place.
        """
        X = self._asked(X)
        label_sets: Masks = self._peek(self._outputs(X))
        return label_sets

    def _labels(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, npt.NDArray[Any]]:
        X = self._input(X, y, reset=reset)
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f":
            check_array(y, ensure_2d=False, input_name="y")
        check_classification_targets(y)
        return X, y

    def _first_with_two(self, y: npt.NDArray[Any]) -> int:
        """The first rows; without two classes among them most estimators cannot be fitted."""
        first = self._first(len(y))
        others = np.flatnonzero(y != y[0])
        return max(first, int(others[0]) + 1) if first and len(others) else first

    def _known(self, y: npt.NDArray[Any]) -> None:
        strange = np.setdiff1d(y, self.classes_)
        if len(strange):
            raise InputError(
                f"y must hold the classes {self.classes_.tolist()}, got {strange.tolist()}"
            )

    def _made(self) -> Controller:
        if self.controller is not None:
            return self.controller
        return set_controller(self.confidence_level)

    def _begin(self) -> None:
        super()._begin()
        if not hasattr(self.estimator_, "predict_proba"):
            raise InputError(
                f"SetClassifier needs an estimator with predict_proba, got {self.estimator!r}"
            )
        self._names = tuple(self.classes_.tolist())
        self._count = label_count(self.stream_.controller)

    def _options(self) -> dict[str, Any]:
        return {"classes": self.classes_}

    def _probabilities(self, X: Any) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):  # a class without a row yet: log 0
            probabilities = np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)
        known = getattr(self.estimator_, "classes_", self.classes_)
        if np.array_equal(known, self.classes_):
            return probabilities
        ordered = np.zeros((len(probabilities), len(self.classes_)))
        ordered[:, np.searchsorted(self.classes_, known)] = probabilities
        return ordered

    def _outputs(self, X: Any) -> Floats:
        return self._probabilities(X)

    def _prediction(self, output: Floats) -> Probabilities | None:
        if not np.isfinite(output).all():
            return None
        return Probabilities(output.tolist(), self._names)

    def _told(self, shown: Any) -> Masks:
        if self._count is None:
            return np.asarray(shown.mask)
        return np.stack([part.mask for part in shown], axis=-1)

    def _everything(self) -> Masks:
        return np.ones(self._shape, dtype=np.bool_)

    def _stacked(self, shown: list[Any]) -> Masks:
        return np.array(shown, dtype=np.bool_).reshape(-1, *self._shape)

    @property
    def _shape(self) -> tuple[int, ...]:
        """The shape of a row of `shown_`."""
        classes = len(self.classes_)
        return (classes,) if self._count is None else (classes, self._count)
