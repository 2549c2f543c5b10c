"""Online classifiers on the streams of classes: what they said of every row before its label.

Each row is predicted, then learnt. The probabilities do not depend on what calibrates them, so they
are recorded once and every method is compared on the same ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import InputError
from setpoint_paper import datasets
from setpoint_paper.datasets import Dataset

__all__ = ["LABEL_STREAMS", "Recorded", "record", "recorded"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """A stream as its classifier saw it.

    Parameters
    ----------
    name, classifier, note
        What it is.
    p
        The probability of each class, rows × classes; of several labels each its own.
    y
        The class of each row as its place, or rows × classes booleans where a row has several.
    warm, begin
        Rows before `warm` only teach the classifier; those from there to before `begin` calibrate;
        those from `begin` on are judged.
    marks
        Rows at which the stream is known to change, with a name for what begins there.
    """

    name: str
    classifier: str
    p: Floats
    y: NDArray[Any]
    warm: int
    begin: int
    marks: tuple[tuple[int, str], ...] = ()
    note: str = ""

    @property
    def several(self) -> bool:
        """Whether a row may have several labels."""
        return self.y.ndim == 2

    @property
    def accuracy(self) -> float:
        """The share of judged rows whose likeliest class is right; NaN for several labels."""
        if self.several:
            return float("nan")
        p, y = self.p[self.begin :], self.y[self.begin :]
        return float(np.mean(p.argmax(axis=1) == y))


@dataclass(frozen=True, slots=True)
class _Plan:
    """A stream's loader, the rows of a quick run, its classifier, and what a reader must know."""

    load: Callable[..., Any]
    quick: int
    classifier: str
    make: Callable[[], Any]
    note: str = ""


def _softmax(rate: float) -> Any:
    from river import linear_model, optim, preprocessing

    return preprocessing.StandardScaler() | linear_model.SoftmaxRegression(optim.SGD(rate))


def _tree() -> Any:
    from river import tree

    return tree.HoeffdingAdaptiveTreeClassifier(seed=0)


def _logistic() -> Any:
    from river import linear_model, optim

    return linear_model.LogisticRegression(optim.SGD(0.01))


_PLANS = {
    "gas_drift": _Plan(
        datasets.gas_drift,
        2_000,
        "River's softmax regression (SGD, rate 0.01) on standardised features",
        lambda: _softmax(0.01),
        "Within a batch a gas comes in long runs, so a model that learns every row at once does "
        "well: labels that come late would make the stream harder.",
    ),
    "outdoor": _Plan(
        datasets.outdoor,
        1_500,
        "River's softmax regression (SGD, rate 0.3) on standardised features",
        lambda: _softmax(0.3),
    ),
    "power_supply": _Plan(
        datasets.power_supply,
        3_000,
        "River's Hoeffding adaptive tree (seed 0)",
        _tree,
        "The class is the hour, which goes round; the classifier is not told the hour before.",
    ),
    "yeast": _Plan(
        datasets.yeast,
        1_200,
        "River's logistic regression (SGD, rate 0.01) on standardised features, one for each label",
        _logistic,
    ),
}

LABEL_STREAMS = tuple(_PLANS)
"""The streams of the experiment."""

_WARM, _BEGIN = 0.1, 0.25
"""Shares of the rows that only teach the classifier, and that are not judged."""


def record(name: str, *, quick: bool = False) -> Recorded:
    """Loads a stream and lets its classifier go through it, row by row."""
    if name not in _PLANS:
        raise InputError(f"streams must be some of {', '.join(_PLANS)}, got {name!r}")
    plan = _PLANS[name]
    data = plan.load(rows=plan.quick if quick else None)
    return recorded(data, plan.make, plan.classifier, plan.note)


def recorded(
    data: Dataset,
    make: Callable[[], Any],
    classifier: str,
    note: str = "",
) -> Recorded:
    """A data set as the classifier that `make` gives saw it, one of them for each label."""
    several = data.several
    p = _each(data, make) if several else _one(data, make())
    rows = len(data)
    warm, begin = int(_WARM * rows), int(_BEGIN * rows)
    marks: tuple[tuple[int, str], ...] = ()
    batches = None if several else getattr(data, "group", None)
    if batches is not None:
        starts = [0, *(np.flatnonzero(np.diff(batches)) + 1).tolist()]
        marks = tuple((start, f"batch {batches[start]}") for start in starts)
        if len(starts) > 2:  # the first batch teaches, the second calibrates
            warm, begin = starts[1], starts[2]
    noted = " ".join(filter(None, (note, f"Of the data: {data.note}." if data.note else "")))
    return Recorded(data.name, classifier, p, data.y, warm, begin, marks, noted)


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
