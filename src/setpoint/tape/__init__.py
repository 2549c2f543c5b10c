"""Tapes: a model's predictions with their labels, recorded once and replayed at will."""

from setpoint.tape.columns import Ragged
from setpoint.tape.recorder import Recorder
from setpoint.tape.tape import Matrix, Segments, Tape, TapeNotice

__all__ = ["Matrix", "Ragged", "Recorder", "Segments", "Tape", "TapeNotice"]
