"""The rolling window: what a sorted list of the last n numbers would say, however it is kept."""

from bisect import bisect_left
from math import ceil, fsum, inf, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint._window import Sum, Window
from setpoint.errors import InputError


class SortedList:
    """The same window, sorted again whenever it is asked."""

    def __init__(self, size: int, values: list[float]) -> None:
        self.size, self.values = size, values[-size:]

    def add(self, value: float) -> None:
        self.values = [*self.values, value][-self.size :]

    def smallest(self, rank: int) -> float:
        order = sorted(self.values)
        return -inf if rank < 1 else order[rank - 1] if rank <= len(order) else inf

    def below(self, value: float) -> int:
        return sum(held < value for held in self.values)


NUMBERS = (
    st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.0, 0.5, inf, -inf, 5e-324])
    | st.integers(-3, 3).map(float)
    | st.floats(allow_nan=False)
)


def hold(window: Window, reference: SortedList) -> None:
    """Every question has the same answer."""
    values = reference.values
    assert len(window) == len(values)
    assert window.values == values
    for rank in range(-1, len(values) + 3):
        assert window.smallest(rank) == reference.smallest(rank)
    for value in {*values, -inf, inf, 0.0, *(nextafter(held, inf) for held in values[:3])}:
        assert window.below(value) == reference.below(value)


@given(
    st.integers(1, 9),
    st.lists(NUMBERS, max_size=14),
    st.lists(NUMBERS, max_size=40),
)
def test_a_window_answers_as_a_sorted_list_would(
    size: int, begin: list[float], added: list[float]
) -> None:
    window, reference = Window(size, begin), SortedList(size, begin)
    hold(window, reference)
    for value in added:
        window.add(value)
        reference.add(value)
        hold(window, reference)


def test_a_long_window_of_many_equal_numbers_answers_as_a_sorted_list_would() -> None:
    rng = np.random.default_rng(0)
    window, order = Window(500), []
    values = rng.integers(0, 20, 3000).astype(float).tolist()
    for step, value in enumerate(values):
        window.add(value)
        if step % 97 == 0:
            order = sorted(values[max(0, step - 499) : step + 1])
            assert [window.smallest(rank) for rank in range(1, len(order) + 1)] == order
            assert [window.below(float(k)) for k in range(22)] == [
                bisect_left(order, float(k)) for k in range(22)
            ]


def test_a_window_that_rises_and_one_that_falls_keep_their_order() -> None:
    for sign in (1.0, -1.0):
        window = Window(7)
        for step in range(100):
            window.add(sign * step)
            held = sorted(sign * k for k in range(max(0, step - 6), step + 1))
            assert [window.smallest(rank) for rank in range(1, len(held) + 1)] == held


def test_ranks_beyond_the_ends_are_infinite() -> None:
    window = Window(3, [5.0, 1.0, 4.0])
    assert window.smallest(0) == window.smallest(-7) == -inf
    assert window.smallest(4) == window.smallest(1000) == inf
    assert Window(3).smallest(1) == inf
    assert Window(3).below(inf) == 0


def test_the_same_quantile_as_numpys_higher_one() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=400)
    window = Window(299)
    for step, value in enumerate(values.tolist()):
        window.add(value)
        held = values[max(0, step - 298) : step + 1]
        n = len(held)
        for share in (0.1, 0.5, 0.9):
            rank = ceil(share * (n + 1))
            wanted = np.sort(held)[rank - 1] if rank <= n else inf
            assert window.smallest(rank) == wanted


@pytest.mark.parametrize("size", [0, -1, 2.0, True, None])
def test_a_window_holds_a_whole_number_of_numbers(size: Any) -> None:
    with pytest.raises(InputError, match="size must be a whole number of at least 1"):
        Window(size)


@given(st.lists(st.floats(-1e3, 1e3)), st.integers(1, 9), st.integers(0, 40))
def test_a_sum_is_that_of_the_last_numbers_and_comes_back_to_the_bit(
    values: list[float], size: int, saved: int
) -> None:
    total = Sum(size)
    for place, value in enumerate(values):
        if place == saved:
            total = Sum(size, total.values)
        last = values[max(place + 1 - size, 0) : place + 1]
        assert total.add(value) == pytest.approx(fsum(last), abs=1e-9)
        assert len(total) == len(last)
    whole = Sum(size)
    assert [whole.add(value) for value in values][-1:] == [
        Sum(size, values[:-1]).add(value) for value in values[-1:]
    ]


def test_a_sum_does_not_drift() -> None:
    random = np.random.default_rng(0)
    values = (random.random(10_000) * random.choice([1e-9, 1.0, 1e9], 10_000)).tolist()
    values += [1e-9] * 14
    assert [Sum(7, values[:-1]).add(value) for value in values[-1:]] == [pytest.approx(7e-9)]
