"""Files of predictions for the tests of jobs."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def table() -> Callable[[Path, dict[str, Any]], Path]:
    """Writes a CSV of columns."""

    def write(path: Path, columns: dict[str, Any]) -> Path:
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        return path

    return write


@pytest.fixture
def world() -> Callable[..., dict[str, Any]]:
    """Quantiles of a model that does not know that the noise grows."""

    def make(rows: int, seed: int = 0) -> dict[str, Any]:
        random = np.random.default_rng(seed)
        centre = 10.0 * np.sin(np.arange(rows) / 30.0)
        y = centre + np.linspace(1.0, 3.0, rows) * random.standard_normal(rows)
        numbers = {"low": centre - 1.6, "high": centre + 1.6, "y": y}
        return {name: np.round(held, 3).tolist() for name, held in numbers.items()}

    return make
