"""Online classifiers on the streams of classes: what they said of every row before its label.

Each row is predicted, then learnt. The probabilities do not depend on what calibrates them, so they
are recorded once and every method is compared on the same ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import InputError
from setpoint_paper import datasets
from setpoint_paper.datasets import Dataset

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """A stream as its classifier saw it.

    Parameters
    ----------
    name
        Of the stream.
    p
        The probability of each class, rows × classes; of several labels each its own.
    y
        The class of each row as its place, or rows × classes booleans where a row has several.
    warm, begin
        Rows before `warm` only teach the classifier; those from there to before `begin` calibrate;
        those from `begin` on are judged.
    marks
        Rows at which the stream is known to change.
    """

    name: str
    p: Floats
    y: NDArray[Any]
    warm: int
    begin: int
    marks: tuple[int, ...] = ()

    @property
    def several(self) -> bool:
        """Whether a row may have several labels."""
        return self.y.ndim == 2


def _classifier(kind: str, rate: float = 0.0) -> Any:
    from river import linear_model, optim, preprocessing, tree

    if kind == "tree":
        return tree.HoeffdingAdaptiveTreeClassifier(seed=0)
    if kind == "logistic":
        return linear_model.LogisticRegression(optim.SGD(rate))
    return preprocessing.StandardScaler() | linear_model.SoftmaxRegression(optim.SGD(rate))


_PLANS: dict[str, tuple[Callable[..., Dataset], int, Callable[[], Any]]] = {
    "gas_drift": (datasets.gas_drift, 2_000, partial(_classifier, "softmax", 0.01)),
    "outdoor": (datasets.outdoor, 1_500, partial(_classifier, "softmax", 0.3)),
    "power_supply": (datasets.power_supply, 3_000, partial(_classifier, "tree")),
    "yeast": (datasets.yeast, 1_200, partial(_classifier, "logistic", 0.01)),
}
"""The loader of a stream, the rows of a quick run, and its classifier by River: for several labels
one for each."""

LABEL_STREAMS = tuple(_PLANS)
"""The streams of the experiment."""

_WARM, _BEGIN = 0.1, 0.25
"""Shares of the rows that only teach the classifier, and that are not judged."""


def record(name: str, *, quick: bool = False) -> Recorded:
    """Loads a stream and lets its classifier go through it, row by row."""
    if name not in _PLANS:
        raise InputError(f"streams must be some of {', '.join(_PLANS)}, got {name!r}")
    load, rows, make = _PLANS[name]
    return recorded(load(rows=rows if quick else None), make)


def recorded(data: Dataset, make: Callable[[], Any]) -> Recorded:
    """A data set as the classifier that `make` gives saw it, one of them for each label."""
    p = _each(data, make) if data.several else _one(data, make())
    warm, begin = int(_WARM * len(data)), int(_BEGIN * len(data))
    marks: tuple[int, ...] = ()
    if data.group is not None:
        marks = (0, *(np.flatnonzero(np.diff(data.group)) + 1).tolist())
        if len(marks) > 2:  # the first batch teaches, the second calibrates
            warm, begin = marks[1], marks[2]
    return Recorded(data.name, p, data.y, warm, begin, marks)


def _one(data: Dataset, model: Any) -> Floats:
    """The probabilities of the classes; all alike where the model has none yet."""
    classes = len(data.classes)
    p = np.zeros((len(data), classes))
    for row, (values, y) in enumerate(zip(data.x.tolist(), data.y.tolist(), strict=True)):
        x = dict(zip(data.features, values, strict=True))
        for place, chance in model.predict_proba_one(x).items():
            p[row, place] = chance
        model.learn_one(x, y)
    total = p.sum(axis=1)
    known = np.isfinite(total) & (total > 0.0)
    p[~known] = 1.0 / classes
    p[known] /= total[known, None]
    return p


def _each(data: Dataset, make: Callable[[], Any]) -> Floats:
    """The probability of each label by a model of its own, on features standardised in common."""
    from river import preprocessing

    scale: Any = preprocessing.StandardScaler()
    models = [make() for _ in data.classes]
    p = np.empty(data.y.shape)
    for row, (values, y) in enumerate(zip(data.x.tolist(), data.y.tolist(), strict=True)):
        given = dict(zip(data.features, values, strict=True))
        x = scale.transform_one(given)
        p[row] = [model.predict_proba_one(x).get(True, 0.5) for model in models]
        scale.learn_one(given)
        x = scale.transform_one(given)
        for model, label in zip(models, y, strict=True):
            model.learn_one(x, label)
    return p
