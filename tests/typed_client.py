"""A program that uses setpoint, for a type checker: it must pass `mypy --strict` as it stands."""

import setpoint as sp
from setpoint.sets import Interval


def shortage(shown: Interval, y: float) -> float:
    return min(max(y - shown.upper, 0.0), 1.0)


def main() -> float:
    stream: sp.Stream = sp.Stream(sp.intervals(coverage=0.9), max_pending=3)
    stream.predict((10.0, 14.0), id="monday")
    stream.update(15.0, id="monday")
    risk = sp.Risk(sp.losses.Custom(shortage), level=0.1, step=sp.steps.Fixed(0.05))
    controller = sp.Controller(sp.sets.Widen(support=(0.0, float("inf"))), risk)
    tape = sp.Tape.from_arrays({"lower": [0.0] * 4, "upper": [1.0] * 4}, [2.0] * 4)
    trace: sp.Trace = sp.replay(controller, tape)
    certificate: sp.Certificate = trace.certificate()
    status: sp.guarantee.Status = certificate.risks[0].status
    assert status in sp.guarantee.Status
    return certificate.risks[0].mean


def mistakes(risk: sp.Risk) -> None:
    """What the checker must find: an ignore that is not needed is an error of its own."""
    sp.intervals(coverage="ninety")  # type: ignore[arg-type]
    risk.level = 0.2  # type: ignore[misc]


if __name__ == "__main__":
    main()
