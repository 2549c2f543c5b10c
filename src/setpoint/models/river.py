"""River models whose intervals and label sets hold a risk (extra `river`).

A question waits for its label, so that a late one is judged on the set that was shown. A label
finds its question by `id` where one was given, else by the value of x, first in first out; if x is
never as it was, as behind a transformer that learns, the only row that waits is meant. A label that
finds none is predicted, judged and learnt. A row may be asked for in several ways; asking twice in
the same way is asking for two rows. For a question whose label will never come there is `peek_one`.
"""

# mypy: allow-subclassing-any, allow-untyped-calls

import warnings
from abc import abstractmethod
from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import Any, cast

from setpoint import presets
from setpoint._check import is_missing, whole
from setpoint.controller import Controller
from setpoint.guarantee import Certificate
from setpoint.models.online import handover, judged, known_of, label_count
from setpoint.sets import Levels, Threshold
from setpoint.sets.family import with_features
from setpoint.stream import Stream

try:
    from river import base, conf, metrics
except ImportError as error:
    raise ImportError("this needs River: pip install 'setpoint[river]'") from error

__all__ = ["Coverage", "IntervalRegressor", "SetClassifier"]

Features = dict[Any, Any]

_FEW = 5
"""Behind a transformer that learns, x keeps its value now and then by chance."""


@dataclass(slots=True)
class _Row:
    """A row that was asked for: what the model said, what was shown, its receipt, and how."""

    number: int
    key: Hashable
    output: Any
    shown: Any
    receipt: int | None
    asked: set[str]


class _Waiting:
    """The rows that wait for their label, by id or by the value of x, oldest first."""

    def __init__(self, most: int) -> None:
        self.most = whole(most, "max_pending", 1)
        self._rows: dict[Hashable, deque[_Row]] = {}
        self._count = self._serial = 0
        self._exact = 0  # labels whose x was as in the question, less those whose x was not
        self._warned = False

    def asked(self, key: Hashable, way: str) -> _Row | None:
        """The oldest row under a key that was not yet asked for in this way."""
        row = next((row for row in self._rows.get(key, ()) if way not in row.asked), None)
        if row is not None:
            row.asked.add(way)
        return row

    def oldest_to_go(self) -> _Row | None:
        """The row that has to be given up before one more can wait, if there are too many."""
        if self._count < self.most:
            return None
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{self.most:,} rows wait for their label, as many as max_pending allows, and the "
                "oldest is given up; a label finds its row by id or by the value of x, so put "
                "transformers that learn inside the wrapper, or give an id",
                RuntimeWarning,
                stacklevel=4,
            )
        oldest = min((rows[0] for rows in self._rows.values()), key=lambda row: row.number)
        self._take(oldest)
        return oldest

    def put(self, key: Hashable, output: Any, shown: Any, receipt: int | None, way: str) -> _Row:
        """Lets a row wait."""
        row = _Row(self._serial, key, output, shown, receipt, {way})
        self._rows.setdefault(key, deque()).append(row)
        self._count, self._serial = self._count + 1, self._serial + 1
        return row

    def _take(self, row: _Row) -> None:
        same = self._rows[row.key]
        same.remove(row)
        self._count -= 1
        if not same:
            del self._rows[row.key]

    def find(self, key: Hashable) -> _Row | None:
        """The oldest row under a key, else the only one that waits, if it may be the same row."""
        if key in self._rows:
            return self._rows[key][0]
        if self._count == 1 and self._exact <= _FEW:
            ((row,),) = self._rows.values()
            if _features(key) == _features(row.key) is not None:
                return row
        return None

    def settle(self, key: Hashable, row: _Row | None) -> None:
        """Lets the row go that `find` found, and counts whether its x was as in the question."""
        self._exact += 1 if key in self._rows else -1
        if row is not None:
            self._take(row)


def _by_value(value: Any) -> Hashable:
    """A value that can be looked up: equal for equal values, NaN equal to NaN."""
    if isinstance(value, Mapping):
        return frozenset((name, _by_value(feature)) for name, feature in value.items())
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(map(_by_value, value))
    if isinstance(value, set | frozenset):
        return frozenset(map(_by_value, value))
    if isinstance(value, float) and value != value:
        return "nan"
    return value if value.__hash__ is not None else repr(value)


def _key(x: Any, id: Hashable) -> Hashable:
    return ("x", _by_value(x)) if id is None else ("id", id)


def _features(key: Any) -> frozenset[Any] | None:
    """The names of the features behind a key; None where it has none."""
    kind, value = key
    if kind != "x" or not isinstance(value, frozenset):
        return None
    return frozenset(name for name, _ in value)


def _give_up(row: _Row | None, stream: Stream) -> None:
    """Closes the receipt of a row whose label will not come."""
    if row is not None and row.receipt is not None:
        stream.drop(row.receipt)


class Coverage(metrics.base.Metric):
    """The share of labels that lay in their interval or set, as a metric of River.

    `evaluate.progressive_val_score` asks for intervals where the rows of the dataset say so: a
    row is then (x, y, {"with_interval": True}), or "with_set" for a classifier.

    Examples
    --------
    >>> from river import datasets, evaluate, linear_model, preprocessing
    >>> model = IntervalRegressor(preprocessing.StandardScaler() | linear_model.LinearRegression())
    >>> rows = ((x, y, {"with_interval": True}) for x, y in datasets.TrumpApproval())
    >>> evaluate.progressive_val_score(rows, model, Coverage())
    Coverage: 89.81%
    """

    _fmt = ".2%"
    bigger_is_better = True
    requires_labels = True  # a classifier is asked by `predict_one`

    def __init__(self) -> None:
        self._hits = self._weight = 0.0

    def update(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Takes in a label and its interval or set; of nested ones the largest counts."""
        largest = y_pred[-1] if isinstance(y_pred, tuple) else y_pred
        self._hits += w * (y_true in largest)
        self._weight += w

    def revert(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Takes back what `update` took in."""
        self.update(y_true, y_pred, -w)

    def get(self) -> float:
        """The share; 0 before the first label."""
        return self._hits / self._weight if self._weight else 0.0

    def works_with(self, model: base.Estimator) -> bool:
        """Whether it can judge a model: any with intervals or sets."""
        return isinstance(model, base.Regressor | base.Classifier)


class _Online(base.Wrapper[Any]):
    """What both wrappers share: the life of a row from its question to its label."""

    stream: Stream
    unjudged: int

    def _begin(self, controller: Controller, max_pending: int) -> None:
        self._waiting = _Waiting(max_pending)
        # One more than may wait, for a row that is predicted when its label comes.
        self.stream = Stream(controller, max_pending=self._waiting.most + 1)
        self.unjudged = 0

    def certificate(self) -> Certificate:
        """What is guaranteed for the rows judged so far, and whether the premises hold."""
        return self.stream.certificate()

    @abstractmethod
    def _output(self, x: Features, options: dict[str, Any]) -> Any:
        """What the model says of a row."""

    @abstractmethod
    def _prediction(self, output: Any) -> Any:
        """What the family reads; None where nothing is known, and the full set is shown."""

    @abstractmethod
    def _full(self) -> Any:
        """The full set."""

    def _given(self, x: Features, options: dict[str, Any]) -> tuple[Any, Any]:
        """What the model says of a row, and what the controller reads: NaN for missing features."""
        output = self._output(x, options)
        prediction, names = self._prediction(output), known_of(self.stream.controller)
        if prediction is not None and names:
            prediction = with_features(prediction, {name: x.get(name, nan) for name in names})
        return output, prediction

    def _ask(self, x: Features, way: str, id: Any, options: dict[str, Any]) -> _Row:
        """The row of a question, new or asked for in another way before."""
        key = _key(x, id)
        row = self._waiting.asked(key, way)
        if row is not None:
            return row
        output, prediction = self._given(x, options)
        _give_up(self._waiting.oldest_to_go(), self.stream)
        if prediction is None:
            return self._waiting.put(key, output, self._full(), None, way)
        receipt = self.stream.issue(prediction)
        return self._waiting.put(key, output, receipt.shown, cast(int, receipt.id), way)

    def _peek(self, x: Features, options: dict[str, Any]) -> tuple[Any, Any]:
        """What the model says of a row, and its set; nothing waits."""
        output, prediction = self._given(x, options)
        return output, self._full() if prediction is None else self.stream.peek(prediction)

    def _answer(self, x: Features, y: Any, id: Any) -> bool:
        """Judges a label; False if it is missing. One that is refused leaves its row waiting."""
        key = _key(x, id)
        row = self._waiting.find(key)
        if is_missing(y):
            _give_up(row, self.stream)
        else:
            self.stream.controller.sets.label(y)
            prediction = self._given(x, {})[1] if row is None else row.receipt
            if prediction is None:
                self.unjudged += 1
            elif row is None:
                judged(self.stream, prediction, y)
            else:
                self.stream.update(y, id=row.receipt)
        self._waiting.settle(key, row)
        return not is_missing(y)


@dataclass(eq=False, repr=False)
class IntervalRegressor(_Online, base.Regressor):
    """Any River regressor, with intervals whose risk is held online.

    Where the forecast is not finite, the whole line is shown and not judged.

    Parameters
    ----------
    regressor
        The regressor to wrap. Put transformers that learn inside, as in
        `IntervalRegressor(StandardScaler() | LinearRegression())`, so that x keeps its value
        until its label comes; at the end of a pipeline give rows an `id` if labels come late.
    controller
        What to hold, and how: it reads points, alone or in `sets.Nested` or `sets.ScoreWindow`. By
        default `setpoint.intervals(coverage)`. The features of `setpoint.intervals(features=[…])`
        are taken from x.
    coverage
        The coverage of the default controller.
    max_pending
        How many rows may wait for their label; beyond it the oldest is given up.

    Attributes
    ----------
    stream
        The `setpoint.Stream`.
    unjudged
        How many labels were learnt whose rows were shown in full because nothing was known.

    Examples
    --------
    >>> from river import datasets, linear_model, preprocessing, stats
    >>> regressor = preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)
    >>> model, validity = IntervalRegressor(regressor, coverage=0.9), stats.Mean()
    >>> for x, y in datasets.TrumpApproval():
    ...     validity.update(y in model.predict_one(x, with_interval=True))
    ...     model.learn_one(x, y)
    >>> round(validity.get(), 2)
    0.9
    """

    regressor: Any
    controller: Controller | None = None
    coverage: float = 0.9
    max_pending: int = 10_000

    def __post_init__(self) -> None:
        self._begin(self.controller or presets.intervals(self.coverage), self.max_pending)
        self._handover = handover(self.stream.controller)

    @property
    def _wrapped_model(self) -> Any:
        return self.regressor

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, preprocessing

        yield {"regressor": preprocessing.StandardScaler() | linear_model.LinearRegression()}

    def predict_one(
        self, x: Features, with_interval: bool = False, id: Any = None, **kwargs: Any
    ) -> Any:
        """The regressor's forecast, or River's `Interval` around it; x waits for its label.

        Nested sets give a tuple, the smallest first. `id` tells rows of equal x apart.
        """
        row = self._ask(x, "interval" if with_interval else "point", id, kwargs)
        return self._interval(row.shown) if with_interval else row.output

    def peek_one(self, x: Features, with_interval: bool = False, **kwargs: Any) -> Any:
        """What `predict_one` would give now, for a question whose label will not come."""
        output, shown = self._peek(x, kwargs)
        return self._interval(shown) if with_interval else output

    def learn_one(
        self, x: Features, y: Any, with_interval: bool = False, id: Any = None, **kwargs: Any
    ) -> None:
        """Judges the interval shown for x, then learns; a missing label closes its row unlearnt.

        An x nobody asked for is predicted first. `with_interval` is not used: River's evaluation
        gives the options of a row to `predict_one` and to `learn_one`.
        """
        if self._answer(x, y, id):
            self.regressor.learn_one(x, y, **kwargs)

    def _output(self, x: Features, options: dict[str, Any]) -> Any:
        return self.regressor.predict_one(x, **options)

    def _prediction(self, output: Any) -> Any:
        return self._handover.prediction((output,))

    def _full(self) -> None:
        """The full set, which `_interval` knows by None."""

    def _interval(self, shown: Any) -> Any:
        """A set, or the full one for None, as River has it."""
        lower, upper = self._handover.ends(shown)
        if self._handover.count is None:
            return conf.Interval(lower=lower, upper=upper)
        return tuple(map(conf.Interval, lower, upper))


@dataclass(eq=False, repr=False)
class SetClassifier(_Online, base.Classifier):
    """Any River classifier with probabilities, with label sets whose risk is held online.

    Where the classifier has no opinion, as before its first label, the full set is shown and not
    judged. It names the labels learnt so far; before the first there are none to count, and its
    length is 0 though it is `full`.

    Parameters
    ----------
    classifier
        The classifier to wrap; see `IntervalRegressor` about transformers. One that only names
        labels is taken to be certain of them.
    controller
        What to hold, and how, with a family of label sets, alone or in `sets.Nested` or
        `sets.ScoreWindow`. By default `setpoint.label_sets(coverage)`.
    coverage, max_pending
        See `IntervalRegressor`, also about the attributes `stream` and `unjudged`.

    Examples
    --------
    >>> from river import datasets, naive_bayes, stats
    >>> model, validity = SetClassifier(naive_bayes.GaussianNB(), coverage=0.9), stats.Mean()
    >>> for x, y in datasets.ImageSegments():
    ...     validity.update(y in model.predict_one(x, with_set=True))
    ...     model.learn_one(x, y)
    >>> round(validity.get(), 2)
    0.9
    """

    classifier: Any
    controller: Controller | None = None
    coverage: float = 0.9
    max_pending: int = 10_000

    def __post_init__(self) -> None:
        self._begin(self.controller or presets.label_sets(self.coverage), self.max_pending)
        self._count = label_count(self.stream.controller)
        self._learnt: dict[Any, None] = {}

    @property
    def _wrapped_model(self) -> Any:
        return self.classifier

    @property
    def _multiclass(self) -> bool:
        return bool(self.classifier._multiclass)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, naive_bayes, preprocessing

        yield {"classifier": preprocessing.StandardScaler() | linear_model.LogisticRegression()}
        yield {"classifier": naive_bayes.GaussianNB()}

    def predict_proba_one(self, x: Features, id: Any = None, **kwargs: Any) -> dict[Any, float]:
        """The classifier's probabilities; x waits for its label."""
        return dict(self._ask(x, "probabilities", id, kwargs).output)

    def predict_one(
        self, x: Features, with_set: bool = False, id: Any = None, **kwargs: Any
    ) -> Any:
        """The most likely label, or the `sets.LabelSet`; x waits for its label.

        Nested sets come as `sets.Levels`, the smallest first.
        """
        row = self._ask(x, "set" if with_set else "label", id, kwargs)
        return row.shown if with_set else _most_likely(row.output)

    def peek_one(self, x: Features, with_set: bool = False, **kwargs: Any) -> Any:
        """What `predict_one` would give now, for a question whose label will not come."""
        output, shown = self._peek(x, kwargs)
        return shown if with_set else _most_likely(output)

    def learn_one(
        self, x: Features, y: Any, with_set: bool = False, id: Any = None, **kwargs: Any
    ) -> None:
        """Judges the set shown for x, then learns; a missing label closes its row unlearnt.

        An x nobody asked for is predicted first. `with_set` is not used, as in
        `IntervalRegressor.learn_one`.
        """
        if self._answer(x, y, id):
            self._learnt.setdefault(self.stream.controller.sets.label(y))
            self.classifier.learn_one(x, y, **kwargs)

    def _output(self, x: Features, options: dict[str, Any]) -> dict[Any, float]:
        try:
            return dict(self.classifier.predict_proba_one(x, **options))
        except NotImplementedError:
            label = self.classifier.predict_one(x, **options)
            return {} if label is None else {label: 1.0}

    def _prediction(self, output: dict[Any, float]) -> dict[Any, float] | None:
        total = sum(output.values())
        if not (isfinite(total) and total > 0.0):
            return None
        # River does not ask of a classifier that its probabilities sum to 1.
        return {label: p / total for label, p in output.items()}

    def _full(self) -> Any:
        share = 1.0 / max(len(self._learnt), 1)
        full = Threshold().at(Threshold().read(dict.fromkeys(self._learnt, share)), inf)
        return full if self._count is None else Levels((full,) * self._count)


def _most_likely(output: dict[Any, float]) -> Any:
    return max(output, key=lambda label: output[label]) if output else None
