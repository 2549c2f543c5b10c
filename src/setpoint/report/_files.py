"""Writing a file whole or not at all."""

from setpoint._files import put

__all__ = ["put"]
