"""Gates on a real local Spark: the decisions of `replay`, key by key."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyspark")

from setpoint import spark as keyed
from setpoint.decisions import Terms, replay
from setpoint.errors import InputError
from setpoint.tape import Columns
from tests.spark import queries

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    session = queries.session()
    yield session
    session.stop()


def test_each_key_has_the_gate_of_its_rows(spark: Any) -> None:
    rng, rows = np.random.default_rng(0), 600
    frame = pd.DataFrame({
        "customer": rng.choice(["a", "b"], rows), "t": rng.permutation(rows),
        "score": rng.random(rows), "wrong": rng.integers(0, 2, rows).astype(float),
    })  # fmt: skip
    columns = Columns("wrong", point="score", series="customer", time="t", delay=3)
    table, terms = spark.createDataFrame(frame), Terms(0.1, audits=0.5)
    done = keyed.gate(table, terms, columns, seed=2).toPandas()
    assert set(done["customer"]) == {"a", "b"}
    for name, part in frame.groupby("customer"):
        mine = part.sort_values("t")
        alone = replay(terms, mine["score"].to_numpy(), mine["wrong"].to_numpy(), delay=3, seed=2)
        theirs = done[done["customer"] == name].sort_values("t")
        assert (theirs["act"].to_numpy() == alone.act).all()
        assert (theirs["audit"].to_numpy() == alone.audit).all()
    with pytest.raises(InputError, match="needs series, time and point"):
        keyed.gate(table, terms, Columns("wrong", point="score"))
    with pytest.raises(InputError, match="no column 'unsafe'"):
        keyed.gate(table, Terms({"wrong": 0.1, "unsafe": 0.1}), columns)


def test_each_key_ends_with_the_account_and_the_price_of_its_gate(spark: Any) -> None:
    rng, rows = np.random.default_rng(1), 6000
    score = rng.random(rows)
    turn = np.arange(rows) > 4000
    wrong = rng.random(rows) > np.where(turn, 0.5, score)
    frame = pd.DataFrame({
        "customer": np.repeat(["a", "b"], rows), "t": np.tile(np.arange(rows), 2),
        "score": np.tile(score, 2), "wrong": np.tile(wrong, 2).astype(float),
        "unsafe": np.tile(wrong & (score < 0.3), 2).astype(float),
    })  # fmt: skip
    columns = Columns("wrong", point="score", series="customer", time="t")
    terms = Terms({"wrong": 0.1, "unsafe": 0.05})
    ends = keyed.gate(spark.createDataFrame(frame), terms, columns, keys=True).toPandas()
    assert sorted(zip(ends["customer"], ends["limit"], strict=True)) == [
        ("a", "unsafe"), ("a", "wrong"), ("b", "unsafe"), ("b", "wrong"),
    ]  # fmt: skip
    part = frame[:rows]
    alone = replay(terms, part["score"].to_numpy(), part[["wrong", "unsafe"]].to_dict("list"))
    first = ends[(ends["customer"] == "b") & (ends["limit"] == "unsafe")].iloc[0]
    unsafe = alone.certificate().limits[1]
    assert (first["account"], first["bound"]) == (unsafe.account, unsafe.bound.since_start)
    assert first["price"] == alone.price().times
    assert first["alarms"] == ",".join(alone.alarms()) == "dearer"
