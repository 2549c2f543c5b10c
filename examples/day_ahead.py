"""Day-ahead forecasts: the label of a row is known a day after its interval was shown.

Half-hourly demand with a daily wave and slow weather, wilder in a storm. Every half hour a forecast
is made for the same time tomorrow, so that 47 labels are still unknown when an interval is shown.
The same rows go through setpoint three times: as if every label came at once, which no live system
could do; with the delay; and with the delay and the season of a day. A live stream then shows the
intervals of the second way once more, bit for bit.

Run it with `python examples/day_ahead.py`. It needs nothing but setpoint.
"""

import numpy as np

import setpoint as sp

DAY = 48
DAYS = 120


def demand(seed: int = 0) -> np.ndarray:
    """Labels of each half hour."""
    random = np.random.default_rng(seed)
    step = np.arange(DAY * DAYS)
    wave = np.sin(2.0 * np.pi * step / DAY) + 0.4 * np.sin(4.0 * np.pi * step / DAY)
    storm = np.where((step > 60 * DAY) & (step < 70 * DAY), 2.0, 1.0)
    weather, slow = 0.0, np.empty(len(step))
    for row, shock in enumerate(storm * random.normal(0.0, 0.25, len(step))):
        slow[row] = weather = 0.985 * weather + shock
    return 30.0 + 8.0 * wave + slow + random.normal(0.0, 0.15, len(step))


def main() -> None:
    y = demand()
    forecast, label = y[:-DAY], y[DAY:]  # tomorrow will be as today
    tape = sp.Tape.from_arrays({"prediction": forecast}, label)
    late = DAY - 1
    ways = {
        "labels taken as known at once": (sp.intervals(coverage=0.9), 0),
        "labels a day late": (sp.intervals(coverage=0.9), late),
        "labels a day late, period a day": (sp.intervals(coverage=0.9, period=DAY), late),
    }
    print(f"{'':34}coverage   length   longest streak   worst 250")
    for name, (controller, delay) in ways.items():
        told = sp.replay(controller, tape, delay=delay).summary()
        print(
            f"{name:34}{told.coverage:8.1%}{told.mean_finite_length:9.2f}"
            f"{told.longest_streak:17d}{told.worst_window:12.3f}"
        )

    trace = sp.replay(sp.intervals(coverage=0.9), tape, delay=late)
    stream = sp.Stream(sp.intervals(coverage=0.9))
    same = True
    for row, point in enumerate(forecast):
        if row > late:
            stream.update(label[row - 1 - late], id=row - 1 - late)
        shown = stream.predict(point, id=row)
        same &= tuple(shown) == (trace.lower[row], trace.upper[row])
    print(f"\nthe live stream showed the intervals of the replay, to the bit: {same}\n")
    print(stream.certificate())


if __name__ == "__main__":
    main()
