"""scikit-learn estimators whose intervals and label sets hold a risk (extra `sklearn`).

`fit` and `partial_fit` predict each row before they learn it, so that what is judged was never
seen; `predict`, `predict_interval` and `predict_set` change nothing.
"""

# mypy: allow-subclassing-any, allow-untyped-calls

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from itertools import repeat
from math import ceil
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from setpoint import presets
from setpoint._check import whole
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.guarantee import Certificate
from setpoint.models.online import handover, judged, known_of, label_count
from setpoint.predictions import Probabilities
from setpoint.sets.family import with_features
from setpoint.stream import Stream

try:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        MetaEstimatorMixin,
        RegressorMixin,
        clone,
    )
    from sklearn.exceptions import NotFittedError
    from sklearn.pipeline import Pipeline
    from sklearn.utils import check_array, check_consistent_length, column_or_1d, get_tags
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "this needs scikit-learn 1.6 or newer: pip install 'setpoint[sklearn]'"
    ) from error

__all__ = ["IntervalRegressor", "SetClassifier"]

Floats = npt.NDArray[np.float64]
Masks = npt.NDArray[np.bool_]


@dataclass(eq=False, repr=False)
class _Online(MetaEstimatorMixin, BaseEstimator):
    """What both estimators share: the first rows are learnt at once, the others one by one.

    A kind of estimator adds `_outputs(X)`, what the estimators say of several rows, an item a row;
    `_prediction(output)`, what the family reads of one row, None where nothing is known of it;
    `_row(shown)`, a set as a row of `shown_`, the full set for None, and its `_shape`.
    """

    estimator: Any
    _: KW_ONLY
    controller: Controller | None = None
    coverage: float = 0.9
    initial: float | int = 0.5
    chunk: int = 1
    refit: int | None = None
    window: int | None = None

    _dtype: ClassVar[type] = np.float64

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.allow_nan = inner.allow_nan
        return tags

    def certificate(self) -> Certificate:
        """What is guaranteed for the rows judged so far, and whether the premises hold."""
        check_is_fitted(self, "stream_")
        return self.stream_.certificate()

    # Sets

    def _known(self, X: Any) -> Iterator[Any]:
        """The features of each row that the controller asks for; None without end for none."""
        names = known_of(self.stream_.controller)
        if not names:
            return repeat(None)
        if hasattr(X, "columns"):
            columns = [X[name] for name in names]
        else:
            there = [f"x{place}" for place in range(X.shape[1])]
            if missing := [name for name in names if name not in there]:
                raise InputError(f"the columns of X are {', '.join(there)}, got {missing}")
            columns = [X[:, there.index(name)] for name in names]
        rows = zip(*columns, strict=True)
        return (dict(zip(names, row, strict=True)) for row in rows)

    def _given(self, output: Any, known: Any) -> Any:
        """What the family reads of a row."""
        prediction = self._prediction(output)
        return prediction if prediction is None or not known else with_features(prediction, known)

    def _show(self, output: Any, y: Any, known: Any) -> Any:
        """The set for one row as a row of `shown_`; the stream learns its label."""
        prediction = self._given(output, known)
        if prediction is None:
            self.unjudged_ += 1
            return self._row(None)
        return self._row(judged(self.stream_, prediction, y))

    def _peek(self, X: Any) -> Any:
        """The sets of several rows as they are now."""
        rows = []
        X = self._asked(X)
        for ahead, row in enumerate(zip(self._outputs(X), self._known(X), strict=False)):
            prediction = self._given(*row)
            shown = None if prediction is None else self.stream_.peek(prediction, ahead)
            rows.append(self._row(shown))
        return self._stacked(rows)

    def _stacked(self, rows: list[Any]) -> Any:
        return np.array(rows, dtype=self._dtype).reshape(-1, *self._shape)

    # The life of the estimators

    def _open(self, controller: Controller, estimators: tuple[Any, ...], **options: Any) -> None:
        """Begins anew; `options` are what `partial_fit` of the estimators takes beside X and y."""
        self.stream_ = Stream(controller)
        self.unjudged_ = self._since = 0
        self._fitted, self._options = tuple(map(clone, estimators)), options
        self.estimator_ = self._fitted[0]
        self._ready = all(map(_is_fitted, self._fitted))
        self._learns = all(hasattr(_last(each), "partial_fit") for each in self._fitted)
        self._past: _Rows | None = None
        for count, name in ((self.chunk, "chunk"), (self.refit, "refit"), (self.window, "window")):
            if count is not None:
                whole(count, name, 1)
        if self.refit is not None and self.window is None:
            raise InputError("refit needs window, the number of rows to fit anew")

    def _first(self, rows: int) -> int:
        """How many rows the estimators are fitted to before the others are predicted."""
        share: Any = self.initial
        if isinstance(share, int | np.integer):
            return min(whole(share, "initial", 0), rows)
        if not isinstance(share, float | np.floating) or not 0.0 <= share <= 1.0:
            raise InputError(f"initial must be a share from 0 to 1, or whole, got {share!r}")
        return ceil(share * rows)

    def _begin(self, rows: "_Rows", first: int, *, by_rows: bool) -> Self:
        """Learns the first rows, at once or by `partial_fit`, then the others one by one."""
        count = len(rows.y)
        if first:
            (self._learn if by_rows else self._fit)(rows.cut(0, first))
        elif not self._ready and not self._learns:
            raise InputError(
                "initial=0 needs estimators with partial_fit, or fitted ones wrapped as "
                f"FrozenEstimator(…), got {self.estimator!r}"
            )
        if not self._learns:
            self._keep(rows.cut(0, first))
        self._follow(rows.cut(first, count))
        if not self._learns and first < count:
            self._fit(rows.cut(max(count - (self.window or count), 0), count))
            self._since = 0
        return self

    def _fit(self, rows: "_Rows") -> None:
        for estimator in self._fitted:
            estimator.fit(rows.X, rows.y)
        self._ready = True

    def _learn(self, rows: "_Rows") -> None:
        for estimator in self._fitted:
            _partial_fit(estimator, rows.X, rows.y, self._options)
        self._ready = True

    def _follow(self, rows: "_Rows") -> Self:
        """Predicts, judges and learns row by row."""
        shown: list[Any] = []
        start = 0
        while start < len(rows.y):
            part = rows.cut(start, start + self._ahead(len(rows.y)))
            if self._ready:
                shown += map(self._show, self._outputs(part.X), part.y, self._known(part.X))
            if self._learns:
                self._learn(part)
            else:
                self._keep(part)
                self._since += len(part.y)
                if self._past is not None and self.refit and self._since >= self.refit:
                    self._fit(self._past)
                    self._since = 0
            start += len(part.y)
        self.shown_ = self._stacked(shown)
        return self

    def _ahead(self, rows: int) -> int:
        """How many rows one state of the estimators predicts: a chunk, or all until a refit."""
        if self._learns:
            return self.chunk
        return rows if self.refit is None else max(self.refit - self._since, 1)

    def _keep(self, rows: "_Rows") -> None:
        """Remembers the last rows, if the estimators are fitted anew to them."""
        if self.refit is None or self.window is None or not len(rows.y):
            return
        past = rows if self._past is None else self._past.joined(rows)
        self._past = past.cut(max(len(past.y) - self.window, 0), len(past.y))

    # Input

    def _input(self, X: Any, y: Any, *, reset: bool) -> "_Rows":
        """X, checked no further than its shape (estimators do the rest), and y as one column."""
        if y is None:
            raise InputError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        X = _sliceable(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        if not len(y):
            raise InputError("X and y must have rows: found array with 0 sample(s)")
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            row = int((~np.isfinite(y)).argmax())
            raise InputError(
                f"y must be finite in every row, got {y[row]} in row {row}; Input y contains "
                f"{'NaN' if np.isnan(y).any() else 'infinity'}"
            )
        return _Rows(X, y)

    def _asked(self, X: Any) -> Any:
        """X for a prediction."""
        check_is_fitted(self, "stream_")
        if not self._ready:
            raise NotFittedError(f"this {type(self).__name__} has learnt no row yet")
        X = _sliceable(X)
        # One row without its column axis is the estimator's to refuse.
        if getattr(X, "ndim", 2) != 1:
            validate_data(self, X, reset=False, skip_check_array=True)
        return X


@dataclass(eq=False, repr=False)
class IntervalRegressor(RegressorMixin, _Online):
    """Any regressor, with intervals whose risk is held online.

    Where the forecast is not finite, the whole line is shown and not judged.

    Parameters
    ----------
    estimator
        The regressor whose forecast is the centre. A pipeline learns row by row if its last
        step does. `FrozenEstimator(fitted)` keeps a model as it is.
    lower, upper
        Regressors of a lower and an upper quantile, if there are any: together or not at all.
    controller
        What to hold, and how: it reads points, quantiles, quantiles beside a point (`sets.Scale`)
        or one end, alone or in `sets.Nested` or `sets.ScoreWindow`. By default
        `setpoint.intervals(coverage)`. The features of `setpoint.intervals(features=[…])` are
        columns of X by their names; those of an array are x0, x1 and so on.
    coverage
        The coverage of the default controller.
    initial
        The rows of `fit` that the estimator is fitted to before the others are predicted and
        learnt one by one: a share, or a whole number.
    chunk
        For estimators with `partial_fit`: how many rows are predicted before they are learnt
        together, which is much faster. The labels steer the width one by one all the same.
    refit, window
        For estimators without `partial_fit`: after every `refit` labels they are fitted anew to
        the last `window` rows. By default they stay as `fit` left them, fitted to all its rows.

    Attributes
    ----------
    stream_
        The `setpoint.Stream`, for labels that come late and for its state.
    estimator_
        The fitted estimator.
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
    >>> model = IntervalRegressor(Ridge(), coverage=0.9).fit(X, y)
    >>> model.predict_interval(X[:2]).shape
    (2, 2)
    >>> lower, upper = model.shown_.T
    >>> round(float(np.mean((lower <= y[1000:]) & (y[1000:] <= upper))), 2)
    0.9
    """

    _: KW_ONLY
    lower: Any = None
    upper: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Begins anew: fits the first rows, then predicts and learns the others one by one."""
        return self._anew(X, y, by_rows=False)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Predicts and learns rows one by one.

        The first call of all begins as `fit` does, with the share `initial` of its rows.
        """
        if not hasattr(self, "stream_"):
            return self._anew(X, y, by_rows=True)
        return self._follow(self._numbers(X, y, reset=False))

    def predict(self, X: Any) -> Floats:
        """The estimator's own forecast."""
        X = self._asked(X)
        return np.asarray(self.estimator_.predict(X), dtype=np.float64)

    def predict_interval(self, X: Any) -> Floats:
        """The intervals as they are now: (n, 2), lower and upper; (inf, −inf) is empty.

        k nested sets give (n, 2, k), the smallest first.
        """
        intervals: Floats = self._peek(X)
        return intervals

    def _numbers(self, X: Any, y: Any, *, reset: bool) -> "_Rows":
        rows = self._input(X, y, reset=reset)
        y = check_array(rows.y, ensure_2d=False, dtype=np.float64, input_name="y")
        return rows._replace(y=y)

    def _anew(self, X: Any, y: Any, *, by_rows: bool) -> Self:
        rows = self._numbers(X, y, reset=True)
        if (self.lower is None) != (self.upper is None):
            raise InputError("lower and upper must be given together, got only one of them")
        ends = () if self.lower is None else (self.lower, self.upper)
        controller = self.controller or presets.intervals(self.coverage)
        self._open(controller, (self.estimator, *ends))
        self._handover = handover(controller, quantiles=bool(ends))
        self._shape = self._handover.shape
        return self._begin(rows, self._first(len(rows.y)), by_rows=by_rows and self._learns)

    def _outputs(self, X: Any) -> Iterator[tuple[float, ...]]:
        columns = [np.asarray(model.predict(X), dtype=np.float64) for model in self._fitted]
        return zip(*(column.ravel().tolist() for column in columns), strict=True)

    def _prediction(self, output: tuple[float, ...]) -> Any:
        return self._handover.prediction(output)

    def _row(self, shown: Any) -> tuple[Any, Any]:
        return self._handover.ends(shown)


class SetClassifier(ClassifierMixin, _Online):
    """Any classifier with probabilities, with label sets whose risk is held online.

    Parameters
    ----------
    estimator
        The classifier, with `predict_proba`; see `IntervalRegressor` about pipelines.
    controller
        What to hold, and how, with a family of label sets, alone or in `sets.Nested` or
        `sets.ScoreWindow`. By default `setpoint.label_sets(coverage)`.
    coverage, initial, chunk, refit, window
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
    >>> model = SetClassifier(LogisticRegression(), coverage=0.9).fit(X, y)
    >>> model.predict_set(X[:2]).shape
    (2, 3)
    >>> truth = y[1000:, None] == model.classes_
    >>> round(float(model.shown_[truth].mean()), 2)
    0.9
    """

    _dtype: ClassVar[type] = np.bool_

    def fit(self, X: Any, y: Any) -> Self:
        """Begins anew: fits the first rows, then predicts and learns the others one by one."""
        rows = self._labels(X, y, reset=True)
        first = self._anew(rows.y, np.unique(rows.y))
        # `fit` would not hear of the classes still to come; `partial_fit` is told.
        to_come = first > 0 and len(np.unique(rows.y[:first])) < len(self.classes_)
        return self._begin(rows, first, by_rows=to_come and self._learns)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Predicts and learns rows one by one.

        The first call of all needs `classes`, and begins as `fit` does, with the share `initial`
        of its rows.
        """
        if not hasattr(self, "stream_"):
            if classes is None:
                if not hasattr(_last(self.estimator), "partial_fit"):
                    return self.fit(X, y)
                raise InputError("classes must be passed on the first call to partial_fit.")
            rows = self._labels(X, y, reset=True)
            first = self._anew(rows.y, np.unique(classes))
            return self._begin(rows, first, by_rows=self._learns)
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise InputError(
                f"classes must be those of the first call, {self.classes_.tolist()}, "
                f"got {np.unique(classes).tolist()}"
            )
        rows = self._labels(X, y, reset=False)
        self._check_known(rows.y)
        return self._follow(rows)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The estimator's own label."""
        X = self._asked(X)
        return np.asarray(self.estimator_.predict(X))

    def predict_proba(self, X: Any) -> Floats:
        """The estimator's own probabilities: (n, K), in the order of `classes_`."""
        return self._outputs(self._asked(X))

    def predict_set(self, X: Any) -> Masks:
        """The sets as they are now: booleans, (n, K), in the order of `classes_`.

        k nested sets give (n, K, k), the smallest first. Where the family draws chances, each row
        has its own, the same whenever it is asked at this place.
        """
        label_sets: Masks = self._peek(X)
        return label_sets

    def _labels(self, X: Any, y: Any, *, reset: bool) -> "_Rows":
        rows = self._input(X, y, reset=reset)
        if rows.y.dtype.kind == "f":
            check_array(rows.y, ensure_2d=False, input_name="y")
        check_classification_targets(rows.y)
        return rows

    def _check_known(self, y: npt.NDArray[Any]) -> None:
        strange = np.setdiff1d(y, self.classes_)
        if len(strange):
            raise InputError(
                f"y must hold the classes {self.classes_.tolist()}, got {strange.tolist()}"
            )

    def _anew(self, y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> int:
        """How many rows come first; without two classes among them most estimators cannot fit."""
        self.classes_ = classes
        self._check_known(y)
        controller = self.controller or presets.label_sets(self.coverage)
        self._open(controller, (self.estimator,), classes=classes)
        if not hasattr(self.estimator_, "predict_proba"):
            raise InputError(
                f"SetClassifier needs an estimator with predict_proba, got {self.estimator!r}"
            )
        count = label_count(controller)
        self._shape = (len(classes),) if count is None else (len(classes), count)
        self._names = tuple(classes.tolist())
        first = self._first(len(y))
        others = np.flatnonzero(y != y[0])
        return max(first, int(others[0]) + 1) if first and len(others) else first

    def _outputs(self, X: Any) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):  # a class without a row yet: log 0
            learnt = np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)
        known = getattr(self.estimator_, "classes_", self.classes_)
        if np.array_equal(known, self.classes_):
            return learnt
        probabilities = np.zeros((len(learnt), len(self.classes_)))
        probabilities[:, np.searchsorted(self.classes_, known)] = learnt
        return probabilities

    def _prediction(self, output: Floats) -> Probabilities | None:
        return Probabilities(output.tolist(), self._names) if np.isfinite(output).all() else None

    def _row(self, shown: Any) -> Masks:
        if shown is None:
            return np.ones(self._shape, dtype=np.bool_)
        if len(self._shape) == 1:
            return np.asarray(shown.mask)
        return np.stack([part.mask for part in shown], axis=-1)


class _Rows(NamedTuple):
    """Rows with their labels."""

    X: Any
    y: Any

    def cut(self, start: int, stop: int) -> "_Rows":
        X = self.X.iloc[start:stop] if hasattr(self.X, "iloc") else self.X[start:stop]
        return _Rows(X, self.y[start:stop])

    def joined(self, more: "_Rows") -> "_Rows":
        """These rows, and then others."""
        return _Rows(_stack(self.X, more.X), np.concatenate([self.y, more.y]))


def _sliceable(X: Any) -> Any:
    """X in a form whose rows can be cut: a frame, a sparse matrix by rows, or an array."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    frame = hasattr(X, "iloc") or (hasattr(X, "slice") and hasattr(X, "columns"))
    return X if frame else np.asarray(X)


def _stack(first: Any, second: Any) -> Any:
    """The rows of the second below those of the first."""
    if hasattr(first, "iloc"):
        return import_module("pandas").concat([first, second])
    if hasattr(first, "tocsr"):
        return import_module("scipy.sparse").vstack([first, second], format="csr")
    arrays = isinstance(first, np.ndarray)
    return np.concatenate([first, second]) if arrays else first.vstack(second)


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _last(estimator: Any) -> Any:
    """What learns: the last step of a pipeline, or the estimator itself."""
    return _last(estimator.steps[-1][1]) if isinstance(estimator, Pipeline) else estimator


def _partial_fit(estimator: Any, X: Any, y: Any, options: dict[str, Any]) -> None:
    """One more row for an estimator, or for every step of a pipeline that can learn it."""
    if not isinstance(estimator, Pipeline):
        estimator.partial_fit(X, y, **options)
        return
    *steps, (_, last) = estimator.steps
    for _, step in steps:
        if step is None or step == "passthrough":
            continue
        if hasattr(step, "partial_fit"):
            step.partial_fit(X, y)
        elif not _is_fitted(step):
            step.fit(X, y)
        X = step.transform(X)
    _partial_fit(last, X, y, options)
