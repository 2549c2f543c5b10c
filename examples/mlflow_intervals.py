"""Intervals as an MLflow model: named columns out, actual values in when they are known.

A row with `lower` and `upper` is a forecast and gets an interval; a row with an `id` seen before
and an actual value `y` is learnt from. The model's state travels as an artifact.

Run it with `python examples/mlflow_intervals.py`. It needs `mlflow` and `pandas`.
"""

import tempfile
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd

import setpoint as sp


class Intervals(mlflow.pyfunc.PythonModel):  # type: ignore[misc, name-defined, unused-ignore]
    """A stream behind MLflow's `predict`."""

    def load_context(self, context: Any) -> None:
        self.stream = sp.Stream.load(context.artifacts["state"])

    def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> pd.DataFrame:
        found = []
        for row in model_input.to_dict("records"):
            if pd.notna(row.get("y")):
                self.stream.update(row["y"], id=row["id"])
                found.append({"id": row["id"], "lower": None, "upper": None})
            else:
                shown = self.stream.predict((row["lower"], row["upper"]), id=row["id"])
                found.append({"id": row["id"], "lower": shown.lower, "upper": shown.upper})
        return pd.DataFrame(found, columns=["id", "lower", "upper"])


mlflow.models.set_model(Intervals())  # this file is the model: nothing is pickled


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        state, where = Path(folder, "state.zip"), str(Path(folder, "model"))
        sp.Stream(sp.intervals(coverage=0.9)).save(state)
        mlflow.pyfunc.save_model(where, python_model=__file__, artifacts={"state": str(state)})
        model = mlflow.pyfunc.load_model(where)
        rows = {"id": ["mon", "tue"], "lower": [10.0, 11.0], "upper": [14.0, 15.0]}
        print(model.predict(pd.DataFrame(rows)))
        model.predict(pd.DataFrame({"id": ["mon"], "y": [15.5]}))
        print(model.unwrap_python_model().stream.certificate())


if __name__ == "__main__":
    main()
