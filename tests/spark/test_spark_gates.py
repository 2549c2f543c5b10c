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
