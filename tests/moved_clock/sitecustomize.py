"""A machine whose clock jumps: every look at it is days before or after the last one."""

import random
import time

_true, _jumps = time.time, random.Random(1)


def _moved() -> float:
    return _true() + _jumps.uniform(-30.0, 30.0) * 86_400.0


time.time = _moved
