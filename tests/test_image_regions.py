"""The centre of frames that are padded, which nobody judges."""

from typing import Any

import pytest

from setpoint.errors import InputError
from setpoint.regions import Centre


@pytest.mark.parametrize(
    ("within", "shape", "wanted"),
    [
        ((0.0, 1.0, 0.0, 1.0), (448, 448), (slice(199, 249), slice(199, 249))),
        ((0.5, 1.0, 0.0, 1.0), (448, 448), (slice(311, 361), slice(199, 249))),
        ((0.0, 1.0, 0.0, 0.5), (448, 448), (slice(199, 249), slice(87, 137))),
        ((0.0, 0.01, 0.0, 1.0), (448, 448), (slice(0, 4), slice(199, 249))),
        ((0.99, 1.0, 0.99, 1.0), (448, 448), (slice(444, 448), slice(444, 448))),
    ],
)
def test_the_middle_of_a_part_of_the_frame(within: Any, shape: Any, wanted: Any) -> None:
    assert Centre(within=within).index(shape) == wanted


def test_a_window_stays_within_its_part() -> None:
    rows, columns = Centre(height=0.5, within=(0.8, 1.0, 0.0, 1.0)).index((100, 100))
    assert (rows, columns) == (slice(80, 100), slice(44, 55))
    assert Centre(within=(0.999, 1.0, 0.0, 1.0)).index((10, 10))[0] == slice(9, 10)


@pytest.mark.parametrize(
    "wrong", [(0.5, 0.5, 0.0, 1.0), (0.0, 1.0, 0.9, 0.1), (0.0, 1.1, 0.0, 1.0), (0.0, 1.0), None, 3]
)
def test_a_part_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="within"):
        Centre(within=wrong)
