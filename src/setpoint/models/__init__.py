"""Online models to calibrate: a linear one, the paper's quantile LSTM, depth, and adapters.

Any object with `predict(x)` and `learn(x, y)` is an `OnlineModel`. Names are imported when they are
first asked for, so that a model costs nothing to those who do not use it; only the models that
stand on another library need it installed.
"""

import importlib as _importlib
import typing as _typing

from setpoint.models.protocol import OnlineModel, run

if _typing.TYPE_CHECKING:
    from setpoint.models._depth_stored import StoredPredictions
    from setpoint.models.depth import (
        DepthSettings,
        OnlineDepth,
        Preprocess,
        ResidualNetwork,
        TorchDepth,
    )
    from setpoint.models.linear import LinearQuantiles, LinearSettings
    from setpoint.models.lstm import LSTMSettings, QuantileLSTM
    from setpoint.models.residual import Fading, Recent, Residuals, ResidualScale

__all__ = [
    "DepthSettings",
    "Fading",
    "LSTMSettings",
    "LinearQuantiles",
    "LinearSettings",
    "OnlineDepth",
    "OnlineModel",
    "Preprocess",
    "QuantileLSTM",
    "Recent",
    "ResidualNetwork",
    "ResidualScale",
    "Residuals",
    "StoredPredictions",
    "TorchDepth",
    "run",
]

_LATER = {
    "DepthSettings": "depth",
    "Fading": "residual",
    "LSTMSettings": "lstm",
    "LinearQuantiles": "linear",
    "LinearSettings": "linear",
    "OnlineDepth": "depth",
    "Preprocess": "depth",
    "QuantileLSTM": "lstm",
    "Recent": "residual",
    "ResidualNetwork": "depth",
    "ResidualScale": "residual",
    "Residuals": "residual",
    "StoredPredictions": "_depth_stored",
    "TorchDepth": "depth",
}


def __getattr__(name: str) -> _typing.Any:
    if name not in _LATER:
        raise AttributeError(f"module 'setpoint.models' has no attribute {name!r}")
    value = getattr(_importlib.import_module(f"setpoint.models.{_LATER[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
