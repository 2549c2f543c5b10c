"""Queries on a real local Spark: the numbers of `replay`, and bad input refused."""

import asyncio
import importlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import setpoint as sp
from setpoint import spark as keyed
from setpoint.bulk.layout import layout_of
from setpoint.errors import InputError, StateError
from setpoint.spark.rows import Rows
from setpoint.spark.stream import _counts
from tests.spark import queries
from tests.spark.queries import (
    COLUMNS,
    CONTROLLER,
    KEYS,
    STEPS,
    source,
    table,
    taken,
    write_batches,
)

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]  # PySpark's own, on pandas 3


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    session = queries.session()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def plain(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished query over all batches."""
    folder = tmp_path_factory.mktemp("plain")
    write_batches(folder / "in", table())
    frame = source(spark, folder / "in")
    out = keyed.calibrate_stream(
        frame, CONTROLLER, COLUMNS, buckets=8, checkpoint=str(folder / "checkpoint")
    )
    queries.run(out, folder)
    return folder


def rows_of(frame: Any, *order: str) -> Any:
    return frame.toPandas().sort_values(list(order), ignore_index=True)


def trace_of(
    columns: dict[str, Any], controller: sp.Controller = CONTROLLER, **more: Any
) -> sp.Trace:
    prediction = {"lower": columns["low"], "upper": columns["high"]}
    tape = sp.Tape.from_arrays(prediction, columns["use"], series=columns["meter"], **more)
    return sp.replay(controller, tape)


def numbers(controller: sp.Controller, state: Any) -> list[float]:
    return layout_of(controller).pack(state)


def assert_same(found: Any, trace: sp.Trace) -> None:
    """Rows in the order of time and key are those of the trace, to the bit."""
    for name in ("lower", "upper", "lam"):
        assert np.array_equal(found[name], getattr(trace, name)), name
    losses = np.asarray(found["loss"], float)
    assert np.array_equal(losses, trace.losses[0], equal_nan=True)


def test_a_query_gives_what_replay_gives_to_the_bit(spark: Any, plain: Path) -> None:
    found = rows_of(spark.read.parquet(str(plain / "out")), "hour", "meter")
    assert list(found.columns) == [
        "meter", "hour", "name", "number", "low", "high", "lower", "upper", "lam", "use",
        "covered", "loss", "made", "status",
    ]  # fmt: skip
    assert (found["number"].to_numpy() == table()["number"]).all()
    trace = trace_of(table())
    assert_same(found, trace)
    assert set(found["status"]) == {"shown"}
    covered = trace.covered[trace.observed]
    assert (found["covered"].dropna().to_numpy(bool) == covered).all()
    assert found["covered"].isna().sum() == (~trace.observed).sum() > 0


def test_the_state_of_a_query_is_a_table_and_states(
    spark: Any, plain: Path, tmp_path: Path
) -> None:
    trace, checkpoint = trace_of(table()), str(plain / "checkpoint")
    found = rows_of(keyed.read_state(spark, checkpoint), "meter")
    assert found["meter"].tolist() == list(range(KEYS))
    certificates = [trace.certificate(key).risks[0] for key in range(KEYS)]
    assert found["judged"].tolist() == [risk.judged for risk in certificates]
    assert found["theta"].tolist() == [risk.theta for risk in certificates]
    assert found["bound"].tolist() == [risk.constant_upper for risk in certificates]
    assert found["certificate"].tolist() == [str(risk.status) for risk in certificates]
    assert np.allclose(found["account"], (found["mean"] - 0.1) * found["judged"])
    assert set(found["last"].astype(str)) == {
        str(np.datetime64("2024-01-02T23", "s")).replace("T", " ")
    }
    controller, states = keyed.states(spark, checkpoint)
    assert controller == CONTROLLER
    expected = {key: numbers(controller, trace.states[key]) for key in range(KEYS)}
    assert {key: numbers(controller, state) for key, state in states.items()} == expected
    fleet = sp.Fleet(controller, 0)
    fleet.add(list(states), list(states.values()))
    assert {key: numbers(controller, fleet.state(key)) for key in fleet.ids} == expected
    with sp.Store(tmp_path / "keys.sqlite", controller) as store:
        for key in range(3):
            store.stream(str(key), state=states[key])
        assert numbers(controller, store.read("2").state) == expected[2]


def test_a_query_goes_on_from_states_and_from_another_number_of_buckets(
    spark: Any, plain: Path, tmp_path: Path
) -> None:
    columns = table()
    early = columns["number"] < STEPS // 2
    queries.write(tmp_path / "in", 0, taken(columns, ~early))
    frame = source(spark, tmp_path / "in")
    first = trace_of(taken(columns, early))
    expected = trace_of(columns)
    fleet = sp.Fleet(CONTROLLER, 0)
    fleet.add(list(first.states), list(first.states.values()))
    out = keyed.calibrate_stream(
        frame, CONTROLLER, COLUMNS, buckets=5, initial=fleet,
        checkpoint=str(tmp_path / "checkpoint"),
    )  # fmt: skip
    queries.run(out, tmp_path)
    _, states = keyed.states(spark, str(tmp_path / "checkpoint"))
    wanted = {key: numbers(CONTROLLER, expected.states[key]) for key in range(KEYS)}
    assert {key: numbers(CONTROLLER, state) for key, state in states.items()} == wanted
    # Over again, with the buckets of one query as the beginning of another.
    late = {**columns, "hour": columns["hour"] + np.timedelta64(30, "D")}
    queries.write(tmp_path / "more", 0, late)
    before = str(tmp_path / "checkpoint")
    out = keyed.calibrate_stream(
        source(spark, tmp_path / "more"), CONTROLLER, COLUMNS, buckets=3, initial=before,
        checkpoint=str(tmp_path / "checkpoint2"),
    )  # fmt: skip
    queries.run(out, tmp_path, "2")
    twice = {name: np.concatenate([columns[name], late[name]]) for name in columns}
    found = rows_of(spark.read.parquet(str(tmp_path / "out2")), "hour", "meter")
    assert np.array_equal(found["lower"], trace_of(twice).lower[KEYS * STEPS :])
    new = str(tmp_path / "new")
    with pytest.raises(StateError, match="another controller"):
        keyed.calibrate_stream(frame, sp.intervals(0.8), COLUMNS, initial=before, checkpoint=new)
    # What waits in a fleet or a stream has no time at which it would expire.
    stream = sp.Stream(CONTROLLER)
    stream.predict((0.0, 1.0))
    fleet.predict((np.zeros(KEYS), np.ones(KEYS)))
    for initial, words in ((fleet, f"fleet awaits {KEYS} labels"), ({3: stream}, "stream 3 await")):
        with pytest.raises(InputError, match=words):
            keyed.calibrate_stream(frame, CONTROLLER, COLUMNS, initial=initial, checkpoint=new)
    stream.update(0.5)
    keyed.calibrate_stream(frame, CONTROLLER, COLUMNS, initial={3: stream}, checkpoint=new)


def test_a_query_holds_groups_as_replay_does(spark: Any, tmp_path: Path) -> None:
    columns = table()
    rng = np.random.default_rng(4)
    count = len(columns["number"])
    columns["rain"] = rng.random(count) < 0.2
    columns["site"] = np.array([["a", "b", None][k] for k in rng.integers(0, 3, count)], object)
    columns["grade"] = np.where(rng.random(count) < 0.3, np.nan, rng.integers(0, 2, count) * 1.5)
    by = ["rain", "site", "grade"]
    write_batches(tmp_path / "in", columns)
    schema = f"{queries.SCHEMA}, rain boolean, site string, grade double"
    held = replace(COLUMNS, groups=by)
    out = keyed.calibrate_stream(
        source(spark, tmp_path / "in", schema), CONTROLLER, held, buckets=4,
        checkpoint=str(tmp_path / "checkpoint"),
    )  # fmt: skip
    queries.run(out, tmp_path)
    found = rows_of(spark.read.parquet(str(tmp_path / "out")), "hour", "meter")
    prediction = {"lower": columns["low"], "upper": columns["high"]}
    tape = sp.Tape.from_arrays(
        prediction,
        columns["use"],
        series=columns["meter"],
        extras={name: columns[name] for name in by},
    )
    trace = sp.replay(CONTROLLER, tape, groups=by)
    assert_same(found, trace)
    _, states = keyed.states(spark, str(tmp_path / "checkpoint"))
    for key in range(KEYS):
        assert states[key].groups == trace.states[key].groups
    assert set(states[0].groups) <= {"rain", "site=a", "site=b", "grade=0", "grade=1.5"}
    read = keyed.read_state(spark, str(tmp_path / "checkpoint")).toPandas()
    assert read["group"].isna().sum() == KEYS
    rain = read[read["group"] == "rain"].set_index("meter")
    (risk,) = trace.certificate(1).groups["rain"]
    assert rain.loc[1, "judged"] == risk.judged
    other = replace(held, groups="rain")
    with pytest.raises(StateError, match="was written for the columns"):
        keyed.calibrate_stream(
            source(spark, tmp_path / "in", schema), CONTROLLER, other, buckets=4,
            checkpoint=str(tmp_path / "checkpoint"),
        )  # fmt: skip


KEY_TYPES = {
    "name": "name",
    "two": ["name", "meter"],
    "day": "cast(date_add(date'2020-02-28', cast(meter as int)) as date)",
    "instant": "timestamp_micros(1700000000000001 + meter)",
    "price": "cast(meter / 8 as decimal(10, 3))",
    "double": "meter / 7",
    "bytes": "cast(name as binary)",
    "small": "cast(meter as smallint)",
}


def test_keys_of_every_type_come_back_as_they_were(spark: Any, plain: Path) -> None:
    """As tables, which go the same way to Python and back, with dates for times."""
    base = spark.read.parquet(str(plain / "in"))
    base = base.selectExpr("*", "date_add(date'2024-01-01', cast(number as int)) as day_of")
    trace = trace_of(table())
    for name, expression in KEY_TYPES.items():
        key: Any = expression if name in ("name", "two") else "k"
        frame = base if key != "k" else base.selectExpr("*", f"{expression} as k")
        columns = replace(COLUMNS, series=key, time="day_of")
        out = keyed.backtest(frame, CONTROLLER, columns, buckets=4)
        names = [key] if isinstance(key, str) else key
        assert dict(out.dtypes).items() >= {n: dict(frame.dtypes)[n] for n in names}.items()
        assert_same(rows_of(out, "number", "meter"), trace)


def test_late_labels_of_another_stream_give_what_replay_gives(spark: Any, tmp_path: Path) -> None:
    columns, delay = table(), 5
    predictions = {**columns, "use": np.full(KEYS * STEPS, np.nan)}
    late = {**columns, "hour": columns["hour"] + np.timedelta64(delay * 3600, "s")}
    write_batches(tmp_path / "in", predictions)
    in_time = late["hour"] <= columns["hour"].max()
    write_batches(tmp_path / "labels", taken(late, in_time))  # some are null: none will come
    frame, answers = source(spark, tmp_path / "in"), source(spark, tmp_path / "labels")
    schema = {"meter": "meter", "hour": "hour", "number": "cast(number as string) as number"}
    frame = frame.withColumn("number", frame["number"].cast("string"))
    out = keyed.calibrate_stream(
        frame, CONTROLLER, replace(COLUMNS, id="number"), buckets=4,
        labels=answers.selectExpr(*schema.values(), "use"), expire=timedelta(hours=40),
        checkpoint=str(tmp_path / "checkpoint"),
    )  # fmt: skip
    queries.run(out, tmp_path)
    found = spark.read.parquet(str(tmp_path / "out"))
    shown = rows_of(found.where("status = 'shown'"), "hour", "meter")
    trace = trace_of(columns, time=columns["hour"], known=late["hour"])
    assert np.array_equal(shown["lower"], trace.lower)
    assert np.array_equal(shown["upper"], trace.upper)
    answered = rows_of(found.where("status = 'answered'"), "made", "meter")
    assert np.array_equal(answered["loss"].astype(float), trace.losses[0][in_time], True)
    before = str(tmp_path / "checkpoint")
    state = rows_of(keyed.read_state(spark, before), "meter")
    waiting = np.bincount(columns["meter"][~in_time], minlength=KEYS)
    assert state["pending"].tolist() == waiting.tolist()
    # States are without what waits; another query takes it over.
    with pytest.raises(StateError, match=f"{waiting.sum()} predictions in .* wait for labels"):
        keyed.states(spark, before)
    _, states = keyed.states(spark, before, drop=True)
    assert [states[key].dropped for key in range(KEYS)] == waiting.tolist()
    queries.write(tmp_path / "rest", 0, taken(late, ~in_time))
    frame = source(spark, tmp_path / "rest").selectExpr(
        "* except (number, low, high)", "double(null) low", "double(null) high",
        "cast(number as string) number",
    )  # fmt: skip
    out = keyed.calibrate_stream(
        frame, CONTROLLER, replace(COLUMNS, id="number"), buckets=7, initial=before,
        expire=timedelta(hours=40), checkpoint=str(tmp_path / "checkpoint2"),
    )  # fmt: skip
    queries.run(out, tmp_path, "2")
    last = rows_of(spark.read.parquet(str(tmp_path / "out2")), "made", "meter")
    assert set(last["status"]) == {"answered"}
    assert np.array_equal(last["loss"].astype(float), trace.losses[0][~in_time], True)
    _, states = keyed.states(spark, str(tmp_path / "checkpoint2"))
    wanted = {key: numbers(CONTROLLER, trace.states[key]) for key in range(KEYS)}
    assert {key: numbers(CONTROLLER, state) for key, state in states.items()} == wanted
    # The same by a table with the times at which labels became known.
    base = spark.read.parquet(str(tmp_path / "in")).drop("use")
    truth = spark.createDataFrame([
        (int(m), int(n), None if np.isnan(u) else float(u))
        for m, n, u in zip(columns["meter"], columns["number"], columns["use"], strict=True)
    ], "meter bigint, number bigint, use double")  # fmt: skip
    rows = base.join(truth, ["meter", "number"])
    rows = rows.selectExpr("*", f"hour + interval {delay} hours as told")
    out = keyed.backtest(rows, CONTROLLER, replace(COLUMNS, known="told"), buckets=4)
    shown = rows_of(out.where("status = 'shown'"), "hour", "meter")
    assert np.array_equal(shown["lower"], trace.lower)
    judged = rows_of(out.where("status = 'answered'"), "made", "meter")
    assert np.array_equal(judged["loss"].astype(float), trace.losses[0], True)


def test_a_table_ends_as_a_query_does(spark: Any, plain: Path) -> None:
    base = spark.read.parquet(str(plain / "in"))
    found = rows_of(keyed.backtest(base, CONTROLLER, COLUMNS, keys=True), "meter")
    expected = rows_of(keyed.read_state(spark, str(plain / "checkpoint")), "meter")
    assert found.equals(expected[found.columns])


def test_the_callers_columns_come_back_as_they_were(
    spark: Any, plain: Path, tmp_path: Path
) -> None:
    extra = [
        "timestamp_micros(1700000000000001 + number) as at", "cast(number / 8 as decimal(9, 3)) d",
        "cast(name as binary) bytes", "named_struct('a', array(number, null), 'b', name) nested",
        "map('k', number / 7) as pairs", "case when number > 3 then name end as gaps",
        "double('NaN') as nothing", "float(number / 3) as single", "interval '1' day as span",
    ]  # fmt: skip
    base = spark.read.parquet(str(plain / "in")).selectExpr("*", *extra)
    out = keyed.backtest(base, CONTROLLER, COLUMNS, buckets=4)
    assert "span" not in out.columns  # the only one that cannot be carried
    kept, types = [name for name in base.columns if name != "span"], dict(base.dtypes)
    assert {name: kind for name, kind in out.dtypes if name in kept} == {n: types[n] for n in kept}
    for name in kept:
        both = base.select("meter", "hour", base[name].alias("before")).join(
            out.select("meter", "hour", out[name].alias("after")), ["meter", "hour"]
        )
        differ = "NOT (to_json(struct(before AS x)) <=> to_json(struct(after AS x)))"
        assert both.where(differ).count() == 0, name
    stream = keyed.calibrate_stream(
        source(spark, plain / "in"), CONTROLLER, COLUMNS, checkpoint=str(tmp_path / "checkpoint")
    )
    assert set(queries.SCHEMA.replace(",", "").split()[::2]) <= set(stream.columns)


def families(registry: Any) -> set[tuple[str, str, str]]:
    """The metrics of a registry: their names, their types and what they are told apart by."""
    return {
        (family.name, family.type, name)
        for family in registry.collect()
        for sample in family.samples
        for name in ("", *sample.labels)
    }


async def of_the_service(folder: Path) -> set[tuple[str, str, str]]:
    """The metrics of a service with a stream that showed many sets and got their labels."""
    from setpoint.service.watch import Metrics
    from setpoint.service.work import Worker

    with sp.Store(folder / "service.sqlite", CONTROLLER) as store:
        stream = store.stream("meter")
        for _ in range(200):
            stream.predict((0.0, 1.0))
            stream.update(0.5)
        rows = [{"name": "meter", **store.overviews("meter")["meter"], "trouble": 0.0}]
        metrics = Metrics(lambda: rows, 1)
        metrics.worker = Worker(store, 1, print)
        found = families(metrics.registry)
        await asyncio.to_thread(metrics.worker.close)
    return found


def test_a_listener_keeps_the_metrics_of_the_service(
    spark: Any, plain: Path, tmp_path: Path
) -> None:
    from prometheus_client import CollectorRegistry

    registry = CollectorRegistry()
    watch = keyed.listener(registry)
    spark.streams.addListener(watch)
    try:
        frame = source(spark, plain / "in")
        columns = replace(COLUMNS, series=["name", "meter"])
        out = keyed.calibrate_stream(
            frame, CONTROLLER, columns, buckets=4, checkpoint=str(tmp_path / "checkpoint")
        )
        query = queries.run(out, tmp_path)
        spark._jsc.sc().listenerBus().waitUntilEmpty()
        trace, stream = trace_of(table()), {"stream": str(query.id)}
        value = registry.get_sample_value
        assert value("setpoint_stream_predictions", stream) == KEYS * STEPS
        assert value("setpoint_stream_labels", stream) == trace.observed.sum()
        mean = value("setpoint_stream_mean_loss", {**stream, "risk": "0"})
        assert mean == pytest.approx(np.nanmean(trace.losses))
        assert value("setpoint_transactions_total") == queries.BATCHES
        assert value("setpoint_events_refused_total") == 0
        assert families(registry) <= asyncio.run(of_the_service(tmp_path))
        _, states = keyed.states(spark, str(tmp_path / "checkpoint"))
        found = {key: numbers(CONTROLLER, state) for key, state in states.items()}
        wanted = {key: numbers(CONTROLLER, trace.states[key]) for key in range(KEYS)}
        assert found == {(f"plant/{key}", key): wanted[key] for key in wanted}
    finally:
        spark.streams.removeListener(watch)


def test_a_label_whose_time_is_null_becomes_known_after_the_last_row(
    spark: Any, plain: Path
) -> None:
    columns = table()
    known = columns["hour"] + np.timedelta64(5 * 3600, "s")
    known[columns["number"] % 7 == 3] = np.datetime64("NaT")
    base = spark.read.parquet(str(plain / "in"))
    told = "case when number % 7 <> 3 then hour + interval 5 hours end as told"
    rows = base.selectExpr("*", told)
    out = keyed.backtest(rows, CONTROLLER, replace(COLUMNS, known="told"), buckets=4)
    trace = trace_of(columns, time=columns["hour"], known=known)
    shown = rows_of(out.where("status = 'shown'"), "made", "meter")
    assert np.array_equal(shown["lower"], trace.lower)
    answered = rows_of(out.where("status = 'answered'"), "made", "meter")
    assert np.array_equal(answered["loss"].astype(float), trace.losses[0], True)
    assert np.array_equal(answered["hour"].isna(), np.isnat(known))


def test_a_full_set_counts_once_when_its_label_comes(spark: Any) -> None:
    rows = Rows((("k", "bigint"),), ("t", "bigint"), "y", None, (), 1)
    shown = [("shown", end * np.inf, None) for end in (1.0, -1.0, 1.0)]
    answered = [("answered", end * np.inf, 0.0) for end in (1.0, -1.0)]
    names = "status string, lam double, loss double"
    frame = spark.createDataFrame(shown + answered, names)
    frame = frame.selectExpr("*", "-lam as lower", "lam as upper", "loss = 0 as covered")
    counts = frame.agg(*_counts(rows)).first()
    assert (counts["shown"], counts["full"], counts["empty"]) == (3, 1, 1)


def changed(column: str, value: Any) -> dict[str, Any]:
    columns = taken(table(), slice(0, 80))
    columns[column] = columns[column].astype(object)
    columns[column][7] = value
    return columns


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("meter", None, "meter must not be null in a key"),
        ("hour", None, "key 7: hour must not be null"),
        ("low", None, "key 7: low, high must not be null"),
        ("low", "NaN", "key 7: low, high must not be NaN"),
        ("use", "Infinity", "key 7: use must be finite"),
    ],
)
def test_a_bad_row_is_one_error_before_any_row_is_written(
    spark: Any, tmp_path: Path, column: str, value: Any, words: str
) -> None:
    from pyspark.errors import StreamingQueryException

    queries.write(tmp_path / "in", 0, changed(column, None))
    frame = source(spark, tmp_path / "in")
    if value is not None:
        frame = frame.selectExpr(
            "* except (" + column + ")", f"coalesce({column}, double('{value}')) as {column}"
        )
    out = keyed.calibrate_stream(
        frame, CONTROLLER, COLUMNS, buckets=4, checkpoint=str(tmp_path / "checkpoint")
    )
    with pytest.raises(StreamingQueryException, match=words):
        queries.run(out, tmp_path)
    assert not list((tmp_path / "out").glob("*.parquet"))


@pytest.mark.parametrize("kind", ["string", "bigint"])
def test_a_row_without_its_id_is_refused(spark: Any, kind: str) -> None:
    from pyspark.errors import PySparkException

    frame = spark.sql(f"select 3L k, 1L t, cast(null as {kind}) i, 0d low, 1d high, 2d y")
    rows = Rows.of(
        frame, CONTROLLER, keyed.Columns("y", "low", "high", series="k", time="t", id="i")
    )
    with pytest.raises(PySparkException, match="key 3: i must not be null"):
        rows.checked(rows.events(frame)).collect()


def test_wrong_columns_and_options_are_refused_before_a_query_starts(
    spark: Any, plain: Path
) -> None:
    frame, new = source(spark, plain / "in"), {"checkpoint": str(plain / "new")}
    frame = frame.selectExpr("*", "meter as level", "hour as Made")
    for columns, options, words in (
        ({"series": "metre"}, {}, "there is no column 'metre'"),
        ({"target": "name"}, {}, "'name' must hold numbers, got string"),
        ({"time": "low"}, {}, "'low' must hold timestamps, dates or whole numbers"),
        ({"lower": None}, {}, "needs the columns lower, upper"),
        ({"id": "number"}, {}, "expire must say how long"),
        ({}, {"late": "accept"}, "late='accept' needs id"),
        ({"known": "hour"}, {}, "known is for tables"),
        ({"series": ()}, {}, "must be different columns"),
        ({"series": "level"}, {}, "a column called 'level' is in the results"),
        ({"time": "Made"}, {}, "a column called 'Made' is in the results"),
        ({}, {"idle": 5}, "idle must be a timedelta"),
        ({}, {"buckets": 0}, "buckets must be"),
        ({}, {"initial": 5}, "initial must be a checkpoint, a Fleet or states by key, got 5"),
    ):
        with pytest.raises(InputError, match=words):
            keyed.calibrate_stream(frame, CONTROLLER, replace(COLUMNS, **columns), **new, **options)
    with pytest.raises(InputError, match="need the names of their classes"):
        keyed.calibrate_stream(frame, sp.label_sets(), COLUMNS, **new)
    with pytest.raises(InputError, match="for tables use backtest"):
        keyed.calibrate_stream(spark.read.parquet(str(plain / "in")), CONTROLLER, COLUMNS, **new)
    with pytest.raises(TypeError, match="checkpoint"):
        keyed.calibrate_stream(frame, CONTROLLER, COLUMNS)
    with pytest.raises(StateError, match="no state in"):
        keyed.read_state(spark, str(plain / "in"))


def test_labels_that_would_not_find_their_predictions_are_refused(spark: Any, plain: Path) -> None:
    frame = source(spark, plain / "in")
    columns, options = replace(COLUMNS, id="number"), {"checkpoint": str(plain / "new")}
    options["expire"] = timedelta(hours=4)
    for labels, words in (
        (frame.selectExpr("* except (number)", "string(number) number"), "'number' of labels must"),
        (frame.selectExpr("* except (meter)", "int(meter) meter"), "type bigint, .* got int"),
        (frame.selectExpr("* except (hour)", "date(hour) hour"), "type timestamp, .* got date"),
        (frame.drop("number"), "'number' of labels must .* got nothing"),
        (frame.selectExpr("* except (use)", "string(use) use"), "'use' must hold numbers"),
        (frame.drop("use"), "'use' must hold numbers, got nothing"),
        (spark.read.parquet(str(plain / "in")), "labels must be a streaming data frame"),
    ):
        with pytest.raises(InputError, match=words):
            keyed.calibrate_stream(frame, CONTROLLER, columns, labels=labels, **options)


def test_times_without_a_zone_are_as_they_are_in_any_zone(spark: Any) -> None:
    times = ["1969-12-31 23:59:59.5", "2024-03-10 01:30:00", "2024-03-10 02:30:00.000001",
             "2024-03-10 03:30:00", "2024-11-03 01:30:00"]  # fmt: skip
    rows = ", ".join(f"(1, timestamp_ntz'{time}', 0d, 1d, 2d)" for time in times)
    columns = keyed.Columns("y", "low", "high", series="k", time="t")
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.sql(f"select * from values {rows} as rows(k, t, low, high, y)")
        out = keyed.backtest(frame, CONTROLLER, columns, buckets=2)
        found = out.selectExpr("string(t)", "status", "upper").orderBy("t").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert [(row.t, row.status) for row in found] == [(time, "shown") for time in times]
    ones = np.ones(len(times))
    trace = trace_of(
        {"low": 0.0 * ones, "high": ones, "use": 2.0 * ones, "meter": ones.astype(int)}
    )
    assert [row.upper for row in found] == trace.upper.tolist()


def test_another_controller_or_number_of_buckets_is_refused(
    spark: Any, plain: Path, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    frame, checkpoint = source(spark, plain / "in"), str(plain / "checkpoint")
    for controller, buckets, words in (
        (sp.intervals(0.8), 8, "another controller"),
        (CONTROLLER, 16, "written with 8 buckets, got 16"),
    ):
        with pytest.raises(StateError, match=words):
            keyed.calibrate_stream(
                frame, controller, COLUMNS, buckets=buckets, checkpoint=checkpoint
            )
    with pytest.raises(StateError, match="written for the columns"):
        keyed.calibrate_stream(
            frame, CONTROLLER, replace(COLUMNS, series="name"), buckets=8, checkpoint=checkpoint
        )
    # Where another checkpoint is named, the first bucket that is met says so: in a batch run again.
    shutil.copytree(plain, tmp_path / "copy")
    for log in ("checkpoint/commits", "out/_spark_metadata"):
        for path in (tmp_path / "copy" / log).glob(f"*{queries.BATCHES - 1}*"):
            path.unlink()
    files = sorted((tmp_path / "copy" / "out").glob("*.parquet"))
    out = keyed.calibrate_stream(
        frame, sp.intervals(0.8), COLUMNS, buckets=8, checkpoint=str(tmp_path / "new")
    )
    with pytest.raises(StreamingQueryException, match="belongs to another controller"):
        queries.run(out, tmp_path / "copy")
    assert sorted((tmp_path / "copy" / "out").glob("*.parquet")) == files


@pytest.mark.parametrize("several", [False, True])
def test_label_sets_of_a_table_are_those_of_replay(spark: Any, several: bool) -> None:
    random, names = np.random.default_rng(0), ("cat", "dog", "owl")
    rows, controller = 240, sp.label_sets(sets=sp.sets.Threshold(classes=names))
    time, key = np.divmod(np.arange(rows), 4)
    p = random.dirichlet(np.ones(3), rows)
    y = random.integers(0, 3, rows).astype(float)
    y[::17] = np.nan
    labels = {"y": y}
    if several:
        controller = sp.label_sets(
            sets=sp.sets.Multilabel(names), risk=sp.Risk(sp.losses.FalseNegatives(), 0.1)
        )
        truth = np.where(np.isnan(y)[:, None], np.nan, random.random(p.shape) < p)
        labels = {f"y_{name}": column for name, column in zip(names, truth.T, strict=True)}
    values = {"key": key, "time": time, "known": time + 2, **labels}
    frame = pd.DataFrame(values | dict(zip(names, p.T, strict=True)))
    late = {"known": "known"} if several else {}
    columns = keyed.Columns("y", series="key", time="time", probabilities=names, **late)
    df = spark.createDataFrame(frame)
    found = keyed.backtest(df, controller, columns, buckets=3).toPandas()
    found = found.sort_values(["made", "key"])
    answers = found if not several else found[found["status"] == "answered"]
    found = found[found["status"] == "shown"].reset_index(drop=True)
    tape = sp.Tape.from_arrays(
        dict(zip(names, p.T, strict=True)), truth.astype(float) if several else y, series=key,
        time=time, known=time + 2 if several else None,
    )  # fmt: skip
    trace = sp.replay(controller, tape)
    order = np.lexsort((trace.tape.series, trace.tape.time))
    assert found["lam"].tolist() == trace.lam[order].tolist()
    shown = [trace.shown[row] for row in order.tolist()]
    assert found["labels"].map(sorted).tolist() == [sorted(labels) for labels in shown]
    assert found["size"].tolist() == [len(labels) for labels in shown]
    told = trace.observed[order]
    covered = answers["covered"].reset_index(drop=True)
    assert covered[told].tolist() == trace.covered[order][told].tolist()
    assert covered[~told].isna().all()


def test_paths_of_many_keys(spark: Any, tmp_path: Path) -> None:
    """A table gives what `replay_paths` gives, and a query what a live stream gives."""
    rng, days, controller = np.random.default_rng(4), 12, sp.paths(3, totals=[3])
    key, day, step = (part.ravel() for part in np.meshgrid([1, 2], np.arange(days), [1, 2, 3],
                                                           indexing="ij"))  # fmt: skip
    y = 10.0 + rng.normal(size=len(key))
    frame = pd.DataFrame({"plant": key, "day": day, "ahead": step, "f": 10.0, "use": y})
    columns = sp.Columns("use", point="f", series="plant", time="day", horizon="ahead")
    table = spark.createDataFrame(frame)
    done = rows_of(keyed.backtest(table, controller, columns, buckets=2), "plant", "day", "ahead")
    tape = sp.Tape.from_arrays({"point": frame["f"]}, y, series=key, horizon=step, time=day)
    trace = sp.replay_paths(controller, tape)
    order = np.lexsort((trace.rows[:, 0], [str(name) for name in trace.series]))
    assert done["upper"].tolist() == trace.upper[order].ravel().tolist()
    assert done["total_3_upper"].tolist()[::3] == trace.numbers[1][0][order].tolist()
    keys = keyed.backtest(table, controller, columns, keys=True, buckets=2).toPandas()
    assert set(keys["judged"]) == {float(days)}
    for number in range(4):  # forecasts of a day, and the labels of the day before
        made, told = frame[frame["day"] // 3 == number], frame[frame["day"] // 3 == number]
        (tmp_path / "in").mkdir(exist_ok=True)
        made.assign(use=np.nan).to_parquet(tmp_path / "in" / f"{number}a.parquet", index=False)
        (tmp_path / "labels").mkdir(exist_ok=True)
        told.drop(columns="f").to_parquet(tmp_path / "labels" / f"{number}b.parquet", index=False)
    kind = "plant bigint, day bigint, ahead bigint, "
    read = spark.readStream.option("maxFilesPerTrigger", 1)
    asked = read.schema(f"{kind}f double, use double").parquet(str(tmp_path / "in"))
    labels = read.schema(f"{kind}use double").parquet(str(tmp_path / "labels"))
    checkpoint = str(tmp_path / "checkpoint")
    out = keyed.calibrate_stream(
        asked, controller, columns, checkpoint=checkpoint, labels=labels, buckets=2
    )
    queries.run(out, tmp_path)
    state = keyed.read_state(spark, checkpoint).toPandas()
    assert set(state["plant"]) == {1, 2}
    assert set(state["judged"]) == {float(days)}
    assert set(state["pending"]) == {0}
    _, states = keyed.states(spark, checkpoint)
    assert sp.Stream(controller, state=states[1]).certificate().risks[0].judged == days
    results = spark.read.parquet(str(tmp_path / "out")).toPandas()
    assert (results["status"] == "shown").sum() == len(key)
    assert results["loss_1"].notna().sum() == 2 * days
    with pytest.raises(InputError, match="horizon"):
        keyed.backtest(table, controller, replace(columns, horizon=None))


def test_the_example_goes_from_a_folder_of_files_to_a_query(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last test: the example stops the session."""
    folder = Path(__file__).resolve().parents[2] / "examples" / "spark"
    monkeypatch.syspath_prepend(str(folder))
    example = importlib.import_module("meters")
    monkeypatch.setattr(example, "METERS", 50)
    monkeypatch.setattr(example, "DAYS", 2)
    example.main(tmp_path)
    assert list((tmp_path / "sets").glob("*.parquet"))
    assert "2400" in capsys.readouterr().out
