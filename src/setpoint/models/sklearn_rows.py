"""What the scikit-learn estimators share: a stream beside estimators that learn row by row."""

# mypy: allow-subclassing-any, allow-untyped-calls

from collections.abc import Iterator
from importlib import import_module
from math import ceil
from typing import Any

import numpy as np

from setpoint._check import whole
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.guarantee import Certificate
from setpoint.models.adapters import judged
from setpoint.stream import Stream

try:
    from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
    from sklearn.exceptions import NotFittedError
    from sklearn.pipeline import Pipeline
    from sklearn.utils import get_tags
    from sklearn.utils.validation import (
        check_consistent_length,
        check_is_fitted,
        validate_data,
    )
except ImportError as error:
    raise ImportError(
        "this needs scikit-learn 1.6 or newer: pip install 'setpoint[sklearn]'"
    ) from error

__all__ = ["Online", "has_partial_fit"]


class Online(MetaEstimatorMixin, BaseEstimator):
    """What both estimators share: the first rows are learnt at once, the others one by one."""

    estimator: Any
    controller: Controller | None
    confidence_level: float
    initial: float | int
    chunk: int
    refit: int | None
    window: int | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.allow_nan = inner.allow_nan
        return tags

    # What the two kinds fill in

    def _made(self) -> Controller:
        """The controller, given or by default."""
        raise NotImplementedError

    def _templates(self) -> tuple[Any, ...]:
        """The estimators to clone."""
        return (self.estimator,)

    def _options(self) -> dict[str, Any]:
        """What `partial_fit` of the estimators takes beside X and y."""
        return {}

    def _outputs(self, X: Any) -> Any:
        """What the estimators say of several rows, one item for each."""
        raise NotImplementedError

    def _prediction(self, output: Any) -> Any:
        """What the family reads of one row; None where nothing is known of it."""
        raise NotImplementedError

    def _told(self, shown: Any) -> Any:
        """A set as a row of `shown_`."""
        raise NotImplementedError

    def _everything(self) -> Any:
        """The full set as a row of `shown_`."""
        raise NotImplementedError

    def _stacked(self, shown: list[Any]) -> Any:
        """The rows of `shown_`."""
        raise NotImplementedError

    def _weigh(self, output: Any, y: Any) -> None:
        """Takes in how far one row was off."""

    # Sets

    def _show(self, output: Any, y: Any) -> Any:
        """The set for one row as a row of `shown_`; the stream and the scale learn its label."""
        prediction = self._prediction(output)
        if prediction is None:
            self.unjudged_ += 1
            row = self._everything()
        else:
            row = self._told(judged(self.stream_, prediction, y))
        self._weigh(output, y)
        return row

    def _peek(self, outputs: Any) -> Any:
        """The sets of several rows as they are now."""
        rows = []
        for ahead, output in enumerate(outputs):
            prediction = self._prediction(output)
            if prediction is None:
                rows.append(self._everything())
            else:
                rows.append(self._told(self.stream_.peek(prediction, ahead)))
        return self._stacked(rows)

    # The life of the estimators

    @property
    def _learns(self) -> bool:
        """Whether every estimator learns row by row."""
        return all(map(has_partial_fit, self._fitted))

    def _begin(self) -> None:
        self.stream_ = Stream(self._made())
        self.unjudged_ = 0
        self._fitted = tuple(clone(each) for each in self._templates())
        self.estimator_ = self._fitted[0]
        self._ready = all(map(_is_fitted, self._fitted))
        self._kept: list[tuple[Any, Any]] = []
        self._since = 0
        whole(self.chunk, "chunk", 1)
        if self.refit is not None:
            whole(self.refit, "refit", 1)
            if self.window is None:
                raise InputError("refit needs window, the number of rows to fit anew")
        if self.window is not None:
            whole(self.window, "window", 1)

    def _first(self, rows: int) -> int:
        """How many rows the estimators are fitted to before the others are predicted."""
        share = self.initial
        if isinstance(share, bool) or not isinstance(share, int | float | np.number):
            raise InputError(f"initial must be a share or a number of rows, got {share!r}")
        if isinstance(share, int | np.integer):
            return min(whole(share, "initial", 0), rows)
        if not 0.0 <= share <= 1.0:
            raise InputError(f"initial must be a share from 0 to 1, or whole, got {share}")
        return ceil(share * rows)

    def _fit(self, X: Any, y: Any, first: int) -> None:
        """From the beginning: the first rows at once, the others one by one."""
        if first:
            self._fit_anew(_rows(X, 0, first), y[:first])
        elif not self._ready and not self._learns:
            raise InputError(
                "initial=0 needs estimators with partial_fit, or fitted ones wrapped as "
                f"FrozenEstimator(…), got {self.estimator!r}"
            )
        self._keep(_rows(X, 0, first), y[:first])
        self._follow(_rows(X, first, len(y)), y[first:])
        if not self._learns and first < len(y):
            start = 0 if self.window is None else max(len(y) - self.window, 0)
            self._fit_anew(_rows(X, start, len(y)), y[start:])
            self._since = 0

    def _start(self, X: Any, y: Any, first: int) -> None:
        """As `_fit`, by `partial_fit` alone."""
        if first:
            self._learn(_rows(X, 0, first), y[:first])
        self._follow(_rows(X, first, len(y)), y[first:])

    def _fit_anew(self, X: Any, y: Any) -> None:
        for each in self._fitted:
            each.fit(X, y)
        self._ready = True

    def _learn(self, X: Any, y: Any) -> None:
        for each in self._fitted:
            _partial_fit(each, X, y, self._options())
        self._ready = True

    def _follow(self, X: Any, y: Any) -> None:
        """Predicts, judges and learns row by row."""
        shown: list[Any] = []
        for start, stop in self._blocks(len(y)):
            rows, labels = _rows(X, start, stop), y[start:stop]
            if self._ready:
                outputs = self._outputs(rows)
                shown += [self._show(*each) for each in zip(outputs, labels, strict=True)]
            if self._learns:
                self._learn(rows, labels)
            else:
                self._keep(rows, labels)
                self._since += stop - start
                if self.refit is not None and self._since >= self.refit:
                    self._refit()
        self.shown_ = self._stacked(shown)

    def _blocks(self, rows: int) -> Iterator[tuple[int, int]]:
        """Rows that one state of the estimators predicts: a chunk, or all until a refit."""
        start = 0
        while start < rows:
            if self._learns:
                size = self.chunk
            else:
                size = rows if self.refit is None else max(self.refit - self._since, 1)
            yield start, min(start + size, rows)
            start += size

    def _keep(self, X: Any, y: Any) -> None:
        """Remembers the last rows, if the estimators are fitted anew to them."""
        if self.refit is None or self.window is None or not len(y):
            return
        self._kept.append((X, y))
        spare = sum(len(labels) for _, labels in self._kept) - self.window
        while spare > 0:
            rows, labels = self._kept.pop(0)
            if len(labels) > spare:
                self._kept.insert(0, (_rows(rows, spare, len(labels)), labels[spare:]))
            spare -= len(labels)

    def _refit(self) -> None:
        self._fit_anew(
            _stack([X for X, _ in self._kept]), np.concatenate([y for _, y in self._kept])
        )
        self._since = 0

    def certificate(self) -> Certificate:
        """What is guaranteed of the rows judged so far, and whether the premises hold."""
        check_is_fitted(self, "stream_")
        return self.stream_.certificate()

    def _input(self, X: Any, y: Any, *, reset: bool) -> Any:
        """X, checked no further than its shape: the estimators do the rest."""
        if y is None:
            raise InputError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        X = _sliceable(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        check_consistent_length(X, y)
        return X

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


def _sliceable(X: Any) -> Any:
    """X in a form whose rows can be cut: a frame, a sparse matrix by rows, or an array."""
    if hasattr(X, "iloc") or isinstance(X, np.ndarray):
        return X
    if hasattr(X, "tocsr"):
        return X.tocsr()
    return X if hasattr(X, "slice") and hasattr(X, "columns") else np.asarray(X)


def _rows(X: Any, start: int, stop: int) -> Any:
    return X.iloc[start:stop] if hasattr(X, "iloc") else X[start:stop]


def _stack(blocks: list[Any]) -> Any:
    """Blocks of rows as one."""
    first = blocks[0]
    if len(blocks) == 1:
        return first
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(blocks)
    if hasattr(first, "tocsr"):
        sparse = import_module("scipy.sparse")
        return sparse.vstack(blocks, format="csr")
    if isinstance(first, np.ndarray):
        return np.concatenate(blocks)
    return first.vstack(_stack(blocks[1:]))


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def has_partial_fit(estimator: Any) -> bool:
    """Whether it learns row by row; a pipeline does if its last step does."""
    if isinstance(estimator, Pipeline):
        return has_partial_fit(estimator.steps[-1][1])
    return hasattr(estimator, "partial_fit")


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
