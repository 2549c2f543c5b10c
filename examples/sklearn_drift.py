"""A scikit-learn pipeline in a world that changes: intervals fixed once, and intervals held.

A factory line: the yield of each batch from five sensor readings. Twice something changes, a worn
tool that makes everything noisier and a new supplier that turns a coefficient round. The same
pipeline, with the same forecasts, is shown with intervals made once from held-out residuals, as
split conformal prediction does, and with intervals held by setpoint.

Run it with `python examples/sklearn_drift.py`. It needs the extra `sklearn`.
"""

import numpy as np
from sklearn.linear_model import SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setpoint.models.sklearn import IntervalRegressor

START, WORN, SUPPLIER, END = 1000, 2000, 3500, 5000
SHIFT = 10
"""Batches after which the pipeline learns."""


def factory(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sensor readings and yields, batch by batch."""
    random = np.random.default_rng(seed)
    X = random.normal(50.0, 10.0, size=(END, 5))
    coefficients = np.tile([0.3, -0.2, 0.1, 0.0, 0.4], (END, 1))
    coefficients[SUPPLIER:, 4] = -0.4
    noise = np.where(np.arange(END) < WORN, 1.0, 3.0) * random.normal(size=END)
    return X, 60.0 + np.sum(coefficients * (X - 50.0), axis=1) + noise


def main() -> None:
    X, y = factory()
    model = IntervalRegressor(
        make_pipeline(StandardScaler(), SGDRegressor(random_state=0)),
        coverage=0.9,
        chunk=SHIFT,
    )
    model.fit(X[:START], y[:START])

    # Half of the first rows were not learnt when the rule of split conformal was fixed.
    half = START // 2
    first = make_pipeline(StandardScaler(), SGDRegressor(random_state=0)).fit(X[:half], y[:half])
    residuals = np.abs(y[half:START] - first.predict(X[half:START]))
    width = np.quantile(residuals, np.ceil(0.9 * (half + 1)) / half)

    held, fixed = [], []
    for start in range(START, END, SHIFT):
        rows = slice(start, start + SHIFT)
        fixed.append(model.predict(X[rows])[:, None] + [-width, width])
        model.partial_fit(X[rows], y[rows])  # predicts, judges, learns
        held.append(model.shown_)

    print("coverage, asked for: 90 %          fixed once          held by setpoint")
    shown = {"fixed": np.concatenate(fixed), "held": np.concatenate(held)}
    phases = {
        "as before": (START, WORN),
        "tool worn": (WORN, SUPPLIER),
        "supplier": (SUPPLIER, END),
    }
    for phase, (start, stop) in {**phases, "all": (START, END)}.items():
        cells = []
        for intervals in shown.values():
            lower, upper = intervals[start - START : stop - START].T
            hits = (lower <= y[start:stop]) & (y[start:stop] <= upper)
            cells.append(f"{hits.mean():8.1%}, length {np.median(upper - lower):4.1f}")
        print(f"{phase:12s} rows {start:5d}–{stop:<5d} {cells[0]:>20s} {cells[1]:>22s}")
    print()
    print(model.certificate())


if __name__ == "__main__":
    main()
