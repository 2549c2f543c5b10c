"""Streams on disk: what was acknowledged survives a crash, and nothing is taken in twice.

A ledger is a folder. Every event that changes something is appended to a log and forced to the
disk before it is answered; now and then all streams are written whole, and the log begins anew.
After a crash the streams are read and the rest of the log is applied again, to the bit.
"""

from setpoint.ledger._ledger import Ledger

__all__ = ["Ledger"]
