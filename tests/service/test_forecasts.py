"""Forecasts over HTTP: rows that came go in, the next rows go out."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("httpx", reason="needs httpx: pip install 'setpoint[service]'")
pytest.importorskip("starlette", reason="needs starlette: pip install 'setpoint[service]'")
pytest.importorskip("pandas")

import httpx
import pandas as pd

import setpoint as sp
from tests.serving import Serving

pytestmark = pytest.mark.service


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_forecast_goes_on_over_http_as_one_run_over_the_whole_file(
    tmp_path: Path, suffix: str
) -> None:
    hours = np.arange(150)
    y = np.sin(hours / 24 * 2 * np.pi) + np.random.default_rng(0).normal(0.0, 0.1, 150)
    times = pd.date_range("2026-01-01", periods=150, freq="h")
    frame = pd.DataFrame({"time": times, "load": y.round(4)})
    asked = {"steps": 3, "coverage": 0.9, "model": "linear"}
    for name, part in (("old", frame[:140]), ("all", frame)):
        path = tmp_path / f"{name}{suffix}"
        part.to_csv(path, index=False) if suffix == ".csv" else part.to_parquet(path)
    folder = tmp_path / "forecasts"
    folder.mkdir()
    sp.forecast(tmp_path / f"old{suffix}", "load", **asked).write(folder / "demand", report=False)
    new = [{"time": str(t), "load": v} for t, v in zip(times[140:], frame["load"][140:].tolist(),
                                                     strict=True)]  # fmt: skip
    served = Serving("--store", str(tmp_path / "store"), "--forecasts", str(folder))
    with served as serving, httpx.Client(base_url=serving.url, timeout=120.0) as client:
        place = "/v1/forecasts/demand"
        before = client.get(place).json()
        assert [row["step"] for row in before["rows"]] == [1, 2, 3]
        after = client.post(place, json=new).json()
        whole = sp.forecast(tmp_path / f"all{suffix}", "load", **asked).table.to_pylist()
        for row, expected in zip(after["rows"], whole, strict=True):
            assert row == {**expected, "time": str(expected["time"])}
        assert client.get(place).json()["rows"] == after["rows"]
        again = client.post(place, json=new)
        assert again.status_code == 422
        assert "give only newer rows" in again.json()["detail"]
        assert client.post(place, json=[]).status_code == 422
        assert client.get("/v1/forecasts/..%2Fdemand").status_code == 404
        assert client.get("/v1/forecasts/none").status_code == 404
