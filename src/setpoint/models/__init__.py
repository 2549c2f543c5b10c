"""Online models to calibrate: a linear one, and models of other libraries.

Any object with `predict(x)` and `learn(x, y)` is an `OnlineModel`. The adapters to River,
scikit-learn and torch are the modules of these names, and so are those to forecasting libraries:
Nixtla's, darts, sktime and skforecast, on the streams of `horizons`.
"""

from setpoint.models.linear import LinearQuantiles, LinearSettings
from setpoint.models.online import OnlineModel, run

__all__ = ["LinearQuantiles", "LinearSettings", "OnlineModel", "run"]
