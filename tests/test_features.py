"""Features of a row, the ends of y, counts, and why an interval is as it is."""

from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import setpoint as sp
from setpoint.errors import InputError, PredictionError
from setpoint.predictions import Row
from setpoint.summary import told

SKY = {"features": ["hour", "sky"], "categories": {"sky": ["sun", "rain"]}}


def learnt(**options: Any) -> tuple[sp.Stream, np.ndarray]:
    """A stream whose errors are larger in the rain, and in the morning."""
    rng, stream, shown = np.random.default_rng(0), sp.Stream(sp.intervals(**SKY, **options)), []
    for t in range(1_500):
        hour, sky = t % 24, "rain" if rng.random() < 0.4 else "sun"
        size = (2.0 if sky == "rain" else 1.0) * (3.0 if hour < 6 else 1.0)
        interval = stream.predict((9.0, 11.0), features={"hour": hour, "sky": sky})
        shown.append((hour, sky == "rain", interval.length))
        stream.update(10.0 + size * rng.normal())
    return stream, np.array(shown)


def test_intervals_are_wide_where_a_feature_says_that_errors_are_large() -> None:
    stream, shown = learnt(period=0)
    late = shown[500:]
    rain, morning = late[:, 1] > 0, late[:, 0] < 6
    width = late[:, 2]
    assert width[rain & morning].mean() > 1.5 * width[rain & ~morning].mean()
    assert width[rain & ~morning].mean() > 1.3 * width[~rain & ~morning].mean()
    forecast, hour, sky = stream.controller.correction.effects(stream.state)  # type: ignore[union-attr]
    assert (forecast.name, sky.values) == ("forecast", ("sun", "rain"))
    assert sky.size[1] > 1.15 > 1.0 > sky.size[0]
    assert str(sky).startswith("errors are ")
    assert str(sky).endswith("% larger where sky is rain")
    assert hour.values[hour.largest] < 8.0
    assert hour.tells
    assert "where sky is rain" in str(stream.summary())
    assert "where sky is rain" in stream.summary().as_dict()["learnt"]["features"][-1]


def test_an_interval_says_why_it_is_as_it_is() -> None:
    stream, _ = learnt()
    interval = stream.predict((9.0, 11.0), id="now", features={"hour": 3, "sky": "rain"})
    why = stream.explain("now")
    assert (why.forecast, why.lower, why.upper) == (10.0, interval.lower, interval.upper)
    assert why.size > 1.5 * why.usual
    widens = {part.name: part.widens for part in why.parts}
    assert widens["sky"] > 1.1
    assert widens["hour"] > 1.2
    # The parts are all there is: they add up to the move, and multiply to the size.
    assert sum(part.moves for part in why.parts) == pytest.approx(why.moved)
    assert why.since == pytest.approx(0.0, abs=1e-9)
    assert np.prod(list(widens.values())) * why.usual == pytest.approx(why.size)
    assert why.account == stream.theta
    assert [name for name, _ in why.lines()][:3] == ["forecast", "moved by", "errors"]
    assert "by sky rain" in str(why)
    assert why.as_dict()["parts"][-1]["widens"] == why.parts[-1].widens
    stream.update(10.0, id="now")
    with pytest.raises(sp.errors.AnsweredReceipt):
        stream.explain("now")
    with pytest.raises(InputError, match="only intervals with a correction"):
        sp.Stream(sp.presets.around()).explain()


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (None, "the features hour, sky are needed: give NaN where one is not known"),
        ({"hour": 3}, "the features are hour, sky, got hour"),
        ({"hour": 3, "sky": "sun", "wind": 1}, "the features are hour, sky, got hour, sky, wind"),
        ([3], "the features are hour, sky, got 1 values"),
        ({"hour": "noon", "sky": "sun"}, "the feature hour must be a number, got 'noon'"),
    ],
    ids=str,
)
def test_features_that_are_not_as_named_are_refused(features: Any, message: str) -> None:
    stream = sp.Stream(sp.intervals(**SKY))
    with pytest.raises(PredictionError, match=message):
        stream.predict((9.0, 11.0), features=features)
    assert not stream.pending
    with pytest.raises(PredictionError, match=r"features need intervals\(features=\[…\]\)"):
        sp.Stream(sp.intervals()).predict((9.0, 11.0), features={"hour": 3})


def test_names_of_features_are_checked() -> None:
    for wrong in ({"features": "hour"}, {"features": ["lower"]}, {"features": ["a", "a"]}):
        with pytest.raises(InputError, match="feature"):
            sp.intervals(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is not among the features"):
        sp.intervals(categories={"sky": ["sun"]})
    with pytest.raises(InputError, match="needs 1 to 17 different values"):
        sp.intervals(features=["sky"], categories={"sky": range(18)})
    with pytest.raises(InputError, match='support must be a pair of numbers, "learnt" or None'):
        sp.intervals(support="no")


def test_features_come_in_any_form_and_a_missing_one_says_nothing() -> None:
    read = sp.intervals(**SKY).correction.read  # type: ignore[arg-type, union-attr]
    row = (9.0, 11.0, 5.0, 3.0, 1.0)
    known = {"hour": 3, "sky": "rain"}
    assert read(Row((9.0, 11.0), 5, known)) == row
    assert read(Row((9.0, 11.0), 5, [3, "rain"])) == row
    assert read({"lower": 9.0, "upper": 11.0, "phase": 5, **known}) == row
    assert read(Row({"lower": 9.0, "upper": 11.0}, 5, known)) == row
    assert np.isnan(read(Row((9.0, 11.0), 5, {"hour": None, "sky": "snow"}))[3:]).all()
    stream = sp.Stream(sp.intervals(features=["x"]))
    for y in (9.0, 12.0, 10.0):
        stream.predict((9.0, 11.0), features=[nan])
        stream.update(y)
    plain = sp.Stream(sp.intervals())
    for y in (9.0, 12.0, 10.0):
        plain.predict((9.0, 11.0))
        plain.update(y)
    assert stream.peek((9.0, 11.0), features=[nan]) == plain.peek((9.0, 11.0))


@pytest.mark.parametrize("kind", ["independent", "random walk"])
def test_features_that_tell_nothing_cost_next_to_nothing(kind: str) -> None:
    """On average over streams of several kinds, 1 % of the Winkler score at most."""
    ratios: dict[int, list[float]] = {1: [], 4: []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows = 1_500
        noise = rng.normal(size=rows) if seed % 2 else rng.standard_t(4, rows)
        noise *= np.exp(0.5 * np.sin(np.arange(rows) / 40.0)) if seed % 3 else 1.0
        middle = np.cumsum(rng.normal(size=rows))
        y = middle + noise
        ends = {"lower": middle - 1.0, "upper": middle + 1.0}
        base = sp.replay(sp.intervals(), sp.Tape.from_arrays(ends, y)).summary().winkler
        for count, found in ratios.items():
            x = rng.normal(size=(count, rows))
            x = x.cumsum(axis=1) if kind == "random walk" else x
            named = {f"x{i}": column for i, column in enumerate(x)}
            tape = sp.Tape.from_arrays(ends, y, extras=named)
            trace = sp.replay(sp.intervals(features=list(named)), tape)
            found.append(trace.summary().winkler / base)
    for found in ratios.values():
        assert np.exp(np.mean(np.log(found))) < 1.01


# The ends of y, and counts


def test_an_end_that_labels_hit_cuts_finite_intervals_and_never_the_full_one() -> None:
    rng = np.random.default_rng(1)
    y = np.maximum(rng.normal(0.5, 1.0, 800), 0.0)
    tape = sp.Tape.from_arrays({"prediction": np.full(800, 0.5)}, y)
    cut, free = (sp.replay(sp.intervals(support=s), tape) for s in ("learnt", None))
    fifth = int(np.flatnonzero(y == 0.0)[4])
    finite = np.isfinite(cut.lower)
    assert (cut.lower[finite][fifth + 1 :] >= 0.0).all()
    assert (free.lower < 0.0).sum() > 400
    assert cut.lower[0] == -inf  # nothing was known: the set is everything
    known = cut.controller.correction.learnt(cut.state)  # type: ignore[union-attr]
    assert (known.least, known.most) == (0.0, None)
    assert "no actual value lies below 0" in " ".join(told(known._asdict()).values())
    assert cut.summary().mean_finite_length < free.summary().mean_finite_length
    assert abs(cut.coverage - 0.9) < 0.01
    # A label beyond the end is an ordinary miss, and the end goes with it.
    stream = sp.Stream(cut.controller, state=cut.state)
    assert stream.predict(0.5).lower == 0.0
    assert stream.update(-5.0) == 1.0
    assert stream.predict(0.5).lower < 0.0


def test_the_full_set_holds_everything_whatever_was_learnt() -> None:
    stream = sp.Stream(sp.intervals(limit=0.5))
    for _ in range(30):
        stream.predict((0.0, 1.0))
        stream.update(0.0)
    far = 1e3
    for _ in range(5):
        interval = stream.predict((0.0, 1.0))
        if interval.length == inf:
            break
        stream.update(far := far * 10.0)
    assert tuple(interval) == (-inf, inf)
    assert stream.update(-far) == 0.0


def test_intervals_of_counts_end_on_whole_numbers_and_hold_the_same_counts() -> None:
    rng = np.random.default_rng(2)
    rate = np.exp(rng.normal(size=600).cumsum() * 0.05 + 1.0)
    y = rng.poisson(rate).astype(float)
    tape = sp.Tape.from_arrays({"prediction": rate}, y)
    counts, plain = (
        sp.replay(sp.intervals(whole_numbers=w, support=(0.0, inf)), tape) for w in (True, False)
    )
    ends = np.concatenate([counts.lower, counts.upper])
    ends = ends[np.isfinite(ends)]
    assert (ends == np.round(ends)).all()
    assert (counts.lower <= counts.upper).all()
    held = plain.lower <= plain.upper
    inner = np.ceil(plain.lower) <= np.floor(plain.upper)
    same = held & inner & (counts.lam == plain.lam)
    assert (counts.covered == plain.covered)[same].all()
    assert np.nanmean(np.where(np.isfinite(counts.upper), counts.upper - counts.lower, nan)) < (
        np.nanmean(np.where(np.isfinite(plain.upper), plain.upper - plain.lower, nan))
    )


# Small, and a season when it is needed


def test_a_stream_without_a_season_keeps_at_most_150_floats() -> None:
    rng, stream = np.random.default_rng(7), sp.Stream(sp.intervals())
    for _ in range(600):
        stream.predict((-1.0, 1.0))
        stream.update(float(rng.normal()))
    state = stream.state
    assert len(state.memory) + len(state.table) + len(state.annex) <= 150
    for t in range(400):
        stream.predict((-1.0, 1.0))
        stream.update(float(rng.normal() + 4.0 * (t % 24 < 8)))
    assert len(stream.state.annex) == 998
    assert stream.controller.correction.learnt(stream.state).period == 24  # type: ignore[union-attr]


def test_stored_streams_and_events_take_features(tmp_path: Path) -> None:
    controller, known = sp.intervals(**SKY), {"hour": 8, "sky": "rain"}  # type: ignore[arg-type]
    live = sp.Stream(controller)
    with sp.Store(tmp_path / "a.sqlite") as store:
        store.stream("a", controller)
        for t, y in enumerate((9.0, 12.0, 10.5, 8.0)):
            event = {"stream": "a", "id": t, "prediction": [9, 11], "features": known}
            (answer,) = store.apply([event])
            assert store.apply([event])[0]["repeated"]
            shown = live.predict((9.0, 11.0), features=known)
            assert (answer["lower"], answer["upper"]) == tuple(shown)
            store.apply([{"stream": "a", "id": t, "y": y}])
            live.update(y)
        (missing,) = store.apply([{"stream": "a", "id": 9, "prediction": [9, 11]}])
        assert "the features hour, sky are needed" in missing["error"]
        (alone,) = store.apply([{"stream": "a", "id": 9, "y": 3, "features": known}])
        assert "groups and features go with a prediction" in alone["error"]
        (listed,) = store.apply([
            {"stream": "a", "id": 9, "prediction": [9, 11], "features": [8, "rain"]}
        ])  # fmt: skip
        assert "features must be named" in listed["error"]
    assert isfinite(shown.length)


# In adapters: columns of the host, on request.


def rainy(rows: int = 700) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(4)
    rain = np.arange(rows) % 3 == 0
    frame = pd.DataFrame({"hour": np.arange(rows) % 24.0, "rain": np.where(rain, "yes", "no")})
    return frame, 10.0 + np.where(rain, 5.0, 1.0) * rng.normal(size=rows)


RAINY = sp.intervals(features=["rain"], categories={"rain": ["no", "yes"]})


def test_the_regressor_of_scikit_learn_takes_features_from_columns_of_x() -> None:
    dummy = pytest.importorskip("sklearn.dummy")
    from setpoint.models.sklearn import IntervalRegressor

    frame, y = rainy()
    model = IntervalRegressor(dummy.DummyRegressor(), controller=RAINY, initial=50).fit(frame, y)
    no, yes = np.diff(model.predict_interval(frame.iloc[[1, 0]]))[:, 0]
    assert yes > 2.5 * no
    numbers = np.column_stack([frame["hour"], frame["rain"] == "yes"])
    of_array = sp.intervals(features=["x1"])
    model = IntervalRegressor(dummy.DummyRegressor(), controller=of_array, initial=50)
    no, yes = np.diff(model.fit(numbers, y).predict_interval(numbers[[1, 0]]))[:, 0]
    assert yes > 2.5 * no
    with pytest.raises(InputError, match=r"the columns of X are x0, x1, got \['x7'\]"):
        IntervalRegressor(
            dummy.DummyRegressor(), controller=sp.intervals(features=["x7"]), initial=50
        ).fit(numbers, y)


def test_the_regressor_of_river_takes_features_from_x() -> None:
    dummy, stats = pytest.importorskip("river.dummy"), pytest.importorskip("river.stats")
    from setpoint.models.river import IntervalRegressor

    frame, y = rainy()
    model = IntervalRegressor(dummy.StatisticRegressor(stats.Mean()), controller=RAINY)
    rows = frame.to_dict("records")
    for x, label in zip(rows, y.tolist(), strict=True):
        model.predict_one(x, with_interval=True)
        model.learn_one(x, label)
    asked = [rows[1], rows[0], {"hour": 3.0}]  # of the last the rain is not known
    ends = [model.predict_one(x, with_interval=True) for x in asked]
    no, yes, unknown = (interval.upper - interval.lower for interval in ends)
    assert yes > 2.5 * no
    assert no < unknown < yes
