"""Shadow mode: run setpoint beside the interval you have, compare the two, then switch.

A service shows an interval that was right when it was built. setpoint gets the same forecasts and
the same actual values, and nobody sees what it says. After each thousand rows a table compares the
two on the same rows, and the script switches once setpoint was better in what was agreed before.

Run it with `python examples/shadow.py`.
"""

import numpy as np

import setpoint as sp

ROWS, REVIEW, LATE = 4000, 1000, 12
Row = tuple[float, float, float, float, float]


def world(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Point forecasts and actual values; halfway the forecasts become too low, and less sure."""
    rng = np.random.default_rng(seed)
    row = np.arange(ROWS)
    forecast = 100.0 + 20.0 * np.sin(row / 24.0)
    worse = row >= ROWS // 2
    return forecast, forecast + np.where(worse, 4.0, 0.0) + rng.normal(0.0, 5.0 + 3.0 * worse)


def compare(log: list[Row]) -> dict[str, sp.metrics.Summary]:
    """Both intervals on the same rows, by the same measures."""
    y, low, high, shadow_low, shadow_high = np.transpose(log)
    return {
        "today": sp.metrics.summary(low, high, y, level=0.1),
        "setpoint": sp.metrics.summary(shadow_low, shadow_high, y, level=0.1),
    }


def better(found: dict[str, sp.metrics.Summary]) -> bool:
    """What was agreed before the trial: a better score, and no worse weeks."""
    today, ours = found["today"], found["setpoint"]
    return ours.winkler < today.winkler and ours.worst_window <= today.worst_window


def main() -> None:
    """Runs the trial and prints a table after each thousand rows."""
    forecast, y = world()
    shadow, switched = sp.Stream(sp.intervals(coverage=0.9)), False
    log: list[Row] = []
    open_rows: dict[int, tuple[float, float, float, float]] = {}
    for row in range(ROWS + LATE):
        if row >= LATE:  # the actual value of a row is known twelve rows later
            known = row - LATE
            shadow.update(y[known], id=known)
            log.append((y[known], *open_rows.pop(known)))
        if row < ROWS:
            low, high = forecast[row] - 8.3, forecast[row] + 8.3  # what the service has today
            ours = shadow.predict((low, high), id=row)  # never shown before the switch
            open_rows[row] = (low, high, ours.lower, ours.upper)
        if log and len(log) % REVIEW == 0:
            found = compare(log[-REVIEW:])
            print(f"rows {len(log) - REVIEW + 1:,} to {len(log):,}")
            for name, one in found.items():
                print(
                    f"  {name:9} {one.coverage:6.1%} inside, mean width {one.mean_length:5.1f}, "
                    f"Winkler {one.winkler:5.1f}, worst 250 rows off by {one.worst_window:.1%}"
                )
            if not switched and better(found):
                switched = True
                print(f"  → show setpoint from row {row + 1:,} on")


if __name__ == "__main__":
    main()
