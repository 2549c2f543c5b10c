"""Every error setpoint raises on purpose, in one tree.

    SetpointError
    ├── InputError (ValueError)        an invalid argument
    │   ├── PredictionError            a prediction the family cannot read
    │   ├── LabelError                 a label that is missing, not finite, or outside the support
    │   ├── TapeError                  a tape that cannot be made, read or written
    │   └── DataError                  a data file that is damaged, or not what it should be
    │       └── AbsentFile             a data file that was not found in any known location
    ├── LossError (ValueError)         a loss left the range it declares
    ├── ReceiptError (LookupError)     an outcome that matches no open prediction
    │   ├── UnknownReceipt             no prediction was issued under this id
    │   ├── AnsweredReceipt            the id already has its label
    │   ├── ExpiredReceipt             the id waited too long and was dropped
    │   └── AmbiguousReceipt           several predictions wait, and no id was given
    ├── PendingFull (RuntimeError)     as many predictions wait as the stream allows
    ├── SpecError (ValueError)         a description that does not define a controller
    ├── StateError (RuntimeError)      a saved state that cannot be read, or is of another version
    │   ├── TakenOver                  a stored stream that another process has taken over
    │   └── UnknownStream              a stored stream that does not exist
    └── WriteError (OSError)           a file or folder that cannot be written

A message names the value got and the values allowed. Whatever is raised, the state of a stream
is as it was before the call.
"""

__all__ = [
    "AbsentFile", "AmbiguousReceipt", "AnsweredReceipt", "DataError", "ExpiredReceipt",
    "InputError", "LabelError", "LossError", "PendingFull", "PredictionError", "ReceiptError",
    "SetpointError", "SpecError", "StateError", "TakenOver", "TapeError", "UnknownReceipt",
    "UnknownStream", "WriteError",
]  # fmt: skip


class SetpointError(Exception):
    """The root of the tree: catch it to catch all of setpoint's own errors."""


class InputError(SetpointError, ValueError):
    """An invalid argument."""


class PredictionError(InputError):
    """A prediction the set family cannot read."""


class LabelError(InputError):
    """A label that is missing, not finite, or outside the support of y."""


class TapeError(InputError):
    """A tape that cannot be made, read or written."""


class DataError(InputError):
    """A data file that is damaged, or not what it should be."""


class AbsentFile(DataError):
    """A data file that was not found in any known location."""


class LossError(SetpointError, ValueError):
    """A loss left the range it declares."""


class ReceiptError(SetpointError, LookupError):
    """An outcome that matches no open prediction."""


class UnknownReceipt(ReceiptError):
    """No prediction was issued under this id."""


class AnsweredReceipt(ReceiptError):
    """The prediction under this id already has its label."""


class ExpiredReceipt(ReceiptError):
    """The prediction under this id waited too long and was dropped."""


class AmbiguousReceipt(ReceiptError):
    """Several predictions wait, and the outcome came without an id."""


class PendingFull(SetpointError, RuntimeError):
    """As many predictions wait for a label as the stream allows."""


class SpecError(SetpointError, ValueError):
    """A description that does not define a controller."""


class StateError(SetpointError, RuntimeError):
    """A saved state that cannot be read, or that another version wrote."""


class TakenOver(StateError):
    """A stored stream that another process has taken over; `name` is the stream's name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"another process has taken over {f'the stream {name!r}' if name else 'this stream'}: "
            "nothing of this batch was taken in; open it again to take it back"
        )
        self.name = name


class UnknownStream(StateError):
    """A stored stream that does not exist."""


class WriteError(SetpointError, OSError):
    """A file or folder that cannot be written."""

    def __str__(self) -> str:
        return str(self.strerror)
