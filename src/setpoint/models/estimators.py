"""Rows of scikit-learn input with their metadata, and estimators that learn them."""

# mypy: allow-untyped-calls

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


def sliceable(X: Any) -> Any:
    """X in a form whose rows can be cut: a frame, a sparse matrix by rows, or an array."""
    if hasattr(X, "iloc") or isinstance(X, np.ndarray):
        return X
    if hasattr(X, "tocsr"):
        return X.tocsr()
    return X if hasattr(X, "slice") and hasattr(X, "columns") else np.asarray(X)


Metadata = tuple[dict[str, Any], ...]


class Rows(NamedTuple):
    """Rows of X, and the metadata of them for `fit` and `partial_fit` of each estimator."""

    X: Any
    fit: Metadata
    partial_fit: Metadata

    def cut(self, start: int, stop: int) -> "Rows":
        """Some of the rows."""
        fit, partial_fit = (
            tuple([{name: _cut(v, start, stop) for name, v in each.items()} for each in metadata])
            for metadata in (self.fit, self.partial_fit)
        )
        return Rows(_cut(self.X, start, stop), fit, partial_fit)

    def joined(self, more: "Rows") -> "Rows":
        """These rows, and then others; metadata that only some of them have are left out."""
        fit, partial_fit = (
            tuple([
                {name: _stack(old[name], new[name]) for name in old.keys() & new.keys()}
                for old, new in zip(first, second, strict=True)
            ])
            for first, second in ((self.fit, more.fit), (self.partial_fit, more.partial_fit))
        )  # fmt: skip
        return Rows(_stack(self.X, more.X), fit, partial_fit)


def row_metadata(metadata: Any) -> dict[str, Any]:
    """Metadata with one entry a row, which can be cut."""
    return {name: sliceable(values) for name, values in metadata.items() if values is not None}


def _cut(X: Any, start: int, stop: int) -> Any:
    return X.iloc[start:stop] if hasattr(X, "iloc") else X[start:stop]


def _stack(first: Any, second: Any) -> Any:
    """The rows of the second below those of the first."""
    if hasattr(first, "iloc"):
        return import_module("pandas").concat([first, second])
    if hasattr(first, "tocsr"):
        return import_module("scipy.sparse").vstack([first, second], format="csr")
    arrays = isinstance(first, np.ndarray)
    return np.concatenate([first, second]) if arrays else first.vstack(second)


def is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def last(estimator: Any) -> Any:
    """What learns: the last step of a pipeline, or the estimator itself."""
    return last(estimator.steps[-1][1]) if isinstance(estimator, Pipeline) else estimator


def has_partial_fit(estimator: Any) -> bool:
    """Whether it learns row by row; a pipeline does if its last step does."""
    return hasattr(last(estimator), "partial_fit")


def partial_fit(estimator: Any, X: Any, y: Any, options: dict[str, Any]) -> None:
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
        elif not is_fitted(step):
            step.fit(X, y)
        X = step.transform(X)
    partial_fit(last, X, y, options)
