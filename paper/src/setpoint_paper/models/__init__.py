"""The paper's networks: the quantile LSTM, and networks of depth that learn frame by frame."""

from setpoint_paper.models.lstm import LSTMSettings, QuantileLSTM
from setpoint_paper.models.small_depth import DepthSettings, small_network
from setpoint_paper.models.stored_predictions import StoredPredictions
from setpoint_paper.models.torch_depth import Preprocess, TorchDepth

__all__ = [
    "DepthSettings", "LSTMSettings", "Preprocess", "QuantileLSTM", "StoredPredictions",
    "TorchDepth", "small_network",
]  # fmt: skip
