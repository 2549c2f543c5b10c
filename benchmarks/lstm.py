"""One online step of the quantile LSTM, beside a straightforward implementation of its maths.

The rival is what one writes first: `torch.nn` modules, every window through the whole network, one
pass for each quantile level, automatic differentiation, `torch.optim.Adam`. Both must end at the
same parameters (float64, no dropout), or the benchmark stops.
"""

import json
import platform
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import setpoint as sp
from setpoint.models import run
from setpoint_paper.models.lstm import LSTMSettings, QuantileLSTM

FEATURES = 11
BATCHES = (512, 256)
REPEATS = 15
STEPS = 4
"""Steps timed at once; a repeat of each implementation follows one of the other."""

CHECKED_STEPS = 50
TOLERANCE = 1e-7


class Straightforward(nn.Module):
    """A network that begins where a `QuantileLSTM` is, in place of its own.

    Dropout draws from torch's global generator, anew for every window and every level.
    """

    def __init__(self, model: QuantileLSTM) -> None:
        super().__init__()
        held, features = model.settings, model.features
        self.window, self.dtype = held.window, torch.float64 if held.double else torch.float32

        def stack(*sizes: int) -> nn.Sequential:
            layers: list[nn.Module] = []
            for inputs, outputs in pairwise(sizes):
                layers += [nn.Linear(inputs, outputs), nn.LeakyReLU(0.2), nn.Dropout(held.dropout)]
            return nn.Sequential(*layers[:-2])

        self.f1 = stack(features + 1, *held.before, held.hidden)
        self.f2 = nn.LSTM(held.hidden, held.hidden, batch_first=True)
        self.f3 = stack(held.hidden + features, *held.after)
        self.f4 = stack(1 + held.after[-1], 32, 1)
        self.to(self.dtype)
        theirs = model._network.parameters
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.copy_(theirs[_name(name)])
        self.generator = torch.Generator()
        self.generator.set_state(model._network.generator.get_state())
        self.optimizer = torch.optim.Adam(self.parameters(), lr=held.learning_rate)

    def forward(self, windows: Tensor, x: Tensor, level: Tensor) -> Tensor:
        outputs, _ = self.f2(self.f1(windows))
        summary = self.f3(torch.cat((outputs[:, -1], x), dim=1))
        return self.f4(torch.cat((level[:, None], summary), dim=1))[:, 0]

    def learn(self, rows: Tensor, levels: Tensor) -> None:
        """One Adam step on the pinball loss of a batch."""
        self.train()
        windows = rows[:-1].unfold(0, self.window, 1).transpose(1, 2)
        x, y = rows[self.window :, :-1], rows[self.window :, -1]
        losses = []
        for level in levels.expand(-1, len(y)):
            over = self(windows, x, level) - y
            losses.append(torch.where(over >= 0, (1.0 - level) * over, -level * over).mean())
        self.optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        self.optimizer.step()

    def quantiles(self, rows: Tensor, x: Tensor, levels: Tensor) -> Tensor:
        """The quantiles after a window."""
        self.eval()
        with torch.no_grad():
            return torch.cat([self(rows[None], x[None], level[None]) for level in levels])

    def distance(self, model: QuantileLSTM) -> float:
        """The largest difference of a parameter."""
        theirs = model._network.parameters
        return max(
            float((parameter.detach() - theirs[_name(name)]).abs().max())
            for name, parameter in self.named_parameters()
        )


def _name(name: str) -> str:
    """A parameter's name in setpoint: f1.3.weight is f1.1.weight, f2.bias_hh_l0 is f2.bias_hh."""
    part, number, *rest = name.split(".")
    return f"{part}.{int(number) // 3}.{rest[0]}" if rest else name.removesuffix("_l0")


def twin(model: QuantileLSTM) -> QuantileLSTM:
    """A model that goes on where `model` is, save Adam's moments, in the straightforward way."""
    found = QuantileLSTM(model.features, model.settings)
    found._network = Straightforward(model)
    found.scaling, found.steps, found._end = model.scaling, model.steps, model._end
    found._rows[:] = model._rows
    return found


def stream(rows: int, features: int = FEATURES, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose y depends on x, on its own past and on chance."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((rows, features))
    y = np.zeros(rows)
    for t in range(rows):
        y[t] = 0.6 * y[t - 1] + np.tanh(x[t].sum() / 2.0) + random.standard_normal()
    return x, y


def check_equal() -> float:
    """The largest difference of a parameter after some steps; stops if it is too large."""
    x, y = stream(CHECKED_STEPS)
    model = QuantileLSTM(FEATURES, LSTMSettings(dropout=0.0, double=True, batch=32))
    other = twin(model)
    for row, label in zip(x, y, strict=True):
        model.learn(row, label)
        other.learn(row, label)
    found = other._network.distance(model)
    if not found < TOLERANCE:
        raise SystemExit(f"the two implementations differ by {found} in a parameter")
    return float(found)


def measure(batch: int) -> dict[str, list[float]]:
    """Milliseconds of CPU time a step: learn, and predict, of both implementations."""
    x, y = stream(batch + 2 * STEPS * (REPEATS + 1))
    model = QuantileLSTM(FEATURES, LSTMSettings(batch=batch))
    model.fit_scale(x, y)
    run(model, x[:batch], y[:batch])  # from here on batches are full
    other = twin(model)
    times: dict[str, list[float]] = {}

    def timed(name: str, task: Callable[[Any], Any], rows: range) -> None:
        began = process_time()
        for number in rows:
            task(number)
        times.setdefault(name, []).append(1e3 * (process_time() - began) / len(rows))

    for repeat in range(REPEATS + 1):
        rows = range(batch + repeat * STEPS, batch + (repeat + 1) * STEPS)
        for name, each in (("setpoint", model), ("straightforward", other)):
            timed(f"{name} learn", lambda i, each=each: each.learn(x[i], y[i]), rows)
            timed(f"{name} predict", lambda i, each=each: each.predict(x[i]), rows)
    return {name: found[1:] for name, found in times.items()}  # the first makes room


def main() -> None:
    """Measures, prints the table, and one JSON object at the end."""
    torch.set_num_threads(1)
    distance = check_equal()
    print(
        f"setpoint {sp.__version__}, Python {platform.python_version()}, torch {torch.__version__}"
    )
    print(
        f"\nThe quantile LSTM as in the paper (128 units, {FEATURES} features), float32, dropout"
        f"\n0.1, one thread: ms of CPU time, min (median) of {REPEATS} interleaved repeats of"
        f"\n{STEPS} steps. Beside it the straightforward implementation: in float64, without"
        f"\ndropout, no parameter differs by more than {distance:.0e} after {CHECKED_STEPS} steps."
        f"\nRatios are of the minima.\n"
    )
    print(f"{'batch':<7}{'':<12}{'setpoint':>18}{'straightforward':>20}{'ratio':>9}")
    results: dict[str, Any] = {}
    for batch in BATCHES:
        times = measure(batch)
        for implementation in ("setpoint", "straightforward"):
            pairs = zip(
                times[f"{implementation} learn"], times[f"{implementation} predict"], strict=True
            )
            times[f"{implementation} step"] = [learn + predict for learn, predict in pairs]
        results[str(batch)] = {}
        for what in ("learn", "predict", "step"):
            mine, theirs = times[f"setpoint {what}"], times[f"straightforward {what}"]
            ratio = min(theirs) / min(mine)
            print(f"{batch:<7}{what:<12}{_cell(mine):>18}{_cell(theirs):>20}{ratio:>8.2f}×")
            results[str(batch)][what] = {
                "setpoint": _both(mine),
                "straightforward": _both(theirs),
                "ratio": round(ratio, 3),
            }
    print()
    print(
        json.dumps(
            {
                "benchmark": "lstm",
                "unit": "milliseconds of CPU time a step",
                "repeats": REPEATS,
                "largest_parameter_difference": distance,
                "batch": results,
                "python": platform.python_version(),
                "torch": torch.__version__,
                "setpoint": sp.__version__,
            }
        )
    )


def _cell(found: list[float]) -> str:
    return f"{min(found):.2f} ({median(found):.2f})"


def _both(found: list[float]) -> dict[str, float]:
    return {"min": round(min(found), 4), "median": round(median(found), 4)}
