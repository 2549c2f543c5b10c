"""Data sets by name, the paper's table, and what the values promise."""

import re
from pathlib import Path

import numpy as np
import pytest

from setpoint.errors import InputError
from setpoint_paper import datasets
from setpoint_paper.datasets import Dataset
from setpoint_paper.datasets.sources import SOURCES


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_a_set_is_loaded_by_its_name(name: str, shared_data: Path) -> None:
    data = datasets.load(name, folder=shared_data, rows=50)
    assert data.name == name
    assert len(data) == 50
    assert data.x.shape == (50, len(data.features))


def test_every_source_says_where_it_is_and_under_which_licence() -> None:
    assert set(SOURCES) == set(datasets.NAMES) - {"synthetic"}
    with pytest.raises(InputError, match=r"name must be one of 'power', .*, got 'solar'"):
        datasets.load("solar")
    for source in SOURCES.values():
        assert source.page.startswith("https://")
        assert source.licence
        for file in source.files:
            assert file.url is None or file.url.startswith("https://")
            for digest in (file.served, file.text):
                assert digest is None or re.fullmatch("[0-9a-f]{64}", digest)


# The values


def small(**changes: object) -> Dataset:
    held: dict[str, object] = {
        "name": "small",
        "x": np.arange(6.0).reshape(3, 2),
        "y": np.arange(3.0),
        "features": ("a", "b"),
        "target": "y",
        "time": np.array(["2024-02-28", "2024-02-29", "2024-03-03"], dtype="datetime64[s]"),
    }
    return Dataset(**{**held, **changes})  # type: ignore[arg-type]


def test_a_slice_cuts_every_array() -> None:
    data = small(group=np.array([1, 1, 2]))[1:]
    assert data.x.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert data.y.tolist() == [1.0, 2.0]
    assert data.weekday.tolist() == [3, 6]  # a Thursday and a Sunday
    assert data.group is not None
    assert data.group.tolist() == [1, 2]
    assert (data.name, data.features) == ("small", ("a", "b"))
    with pytest.raises(InputError, match="cut by a slice"):
        data[0]  # type: ignore[index]
