"""The paper's five tabular streams: real files against pandas, small files against the hand."""

import gzip
import zipfile
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from setpoint.errors import DataError
from setpoint_paper import datasets
from setpoint_paper.datasets import Dataset

# Name, rows and features of the paper's table; the stand-in for wind has its own rows.
PAPER = [
    ("power", 52_416, 11),
    ("energy", 19_735, 33),
    ("traffic", 48_204, 12),
    ("wind", 239_587, 6),
    ("prices", 34_895, 61),
]


@pytest.fixture(scope="module")
def loaded(shared_data: Path) -> dict[str, Dataset]:
    return {name: getattr(datasets, name)(folder=shared_data) for name, _, _ in PAPER}


@pytest.mark.parametrize(("name", "rows", "wide"), PAPER)
def test_a_real_set_has_the_size_of_the_papers_table(
    loaded: dict[str, Dataset], name: str, rows: int, wide: int
) -> None:
    data = loaded[name]
    assert data.x.shape == (rows, wide)
    assert len(data) == len(data.y) == rows
    assert len(set(data.features)) == wide
    assert data.x.dtype == data.y.dtype == np.float64
    assert np.isfinite(data.x).all()
    assert np.isfinite(data.y).all()
    assert data.time is not None
    assert (np.diff(data.time) >= np.timedelta64(0, "s")).all()
    assert ("stand-in" in data.note) == (name == "wind")


def frame(shared_data: Path, path: str, time: str, form: str | None = None):
    """A file read by pandas as text, with calendar columns by pandas."""
    got = pd.read_csv(shared_data / path, dtype=str, keep_default_na=False)
    stamps = pd.to_datetime(got[time], format=form)
    for field in ("day", "month", "year", "hour", "minute", "day_of_week"):
        got[field] = getattr(stamps.dt, field)
    return got, stamps


def floats(column) -> np.ndarray:
    return column.to_numpy(object).astype(float)


def check(data: Dataset, got, stamps, coded: tuple[str, ...] = (), lead: int = 0) -> None:
    rows = len(got) - lead
    for place, name in enumerate(data.features):
        if name not in coded:
            assert np.array_equal(data.x[:, place], floats(got[name])[:rows]), name
    assert np.array_equal(data.y, floats(got[data.target])[lead:])
    assert data.time is not None
    assert np.array_equal(data.time, stamps.to_numpy()[:rows])
    assert np.array_equal(data.weekday, stamps.dt.day_of_week.to_numpy()[:rows])


@pytest.mark.parametrize(
    ("name", "path", "time", "form", "lead"),
    [
        ("power", "power/tetuan_power.csv.gz", "DateTime", "%m/%d/%Y %H:%M", 0),
        ("energy", "energy/energydata_complete.csv.gz", "date", None, 0),
        ("prices", "prices/Prices_2016_2019_extract.csv.gz", "Date", None, 1),
        ("wind", "wind/amprion_wind_15min_2011_2017.csv.gz", "dt", None, 1),
    ],
)
def test_a_real_set_is_what_pandas_reads_with_y_so_many_rows_ahead(
    loaded: dict[str, Dataset], shared_data: Path, name: str, path: str, time: str,
    form: str | None, lead: int,
) -> None:  # fmt: skip
    check(loaded[name], *frame(shared_data, path, time, form), lead=lead)
    assert not {"Spot", "MW"} & set(loaded[name].features)
    assert not any("Zone" in feature for feature in loaded[name].features)


def test_the_flags_of_the_weekday_in_prices_agree_with_the_calendar(
    loaded: dict[str, Dataset],
) -> None:
    data = loaded["prices"]
    columns = [data.features.index(f"dow_{day}") for day in range(7)]
    assert np.array_equal(data.x[:, columns].argmax(axis=1), data.weekday)


def test_traffic_is_what_pandas_reads_and_its_words_are_coded(
    loaded: dict[str, Dataset], shared_data: Path
) -> None:
    data = loaded["traffic"]
    got, stamps = frame(shared_data, "traffic/Metro_Interstate_Traffic_Volume.csv.gz", "date_time")
    check(data, got, stamps, coded=("holiday", "weather_main", "weather_description"))
    assert len(got) - got["date_time"].nunique() == 7_629  # repeated hours are kept
    assert (got["minute"] == 0).all()
    for name in ("holiday", "weather_description"):
        codes, words = pd.factorize(got[name])
        assert np.array_equal(data.x[:, data.features.index(name)], codes), name
        assert name != "holiday" or words[0] == "None"
    weather = data.x[:, data.features.index("weather_main")]
    pairs = set(zip(got["weather_main"], weather.astype(int).tolist(), strict=True))
    assert sorted(pairs, key=lambda pair: pair[1]) == [
        ("Clear", 0), ("Haze", 1), ("Mist", 2), ("Fog", 3), ("Clouds", 4), ("Smoke", 5),
        ("Drizzle", 6), ("Rain", 7), ("Squall", 8), ("Thunderstorm", 9), ("Snow", 10),
    ]  # fmt: skip


@pytest.mark.parametrize("name", [name for name, _, _ in PAPER])
def test_the_first_rows_are_those_of_the_whole(
    loaded: dict[str, Dataset], shared_data: Path, name: str
) -> None:
    few = getattr(datasets, name)(folder=shared_data, rows=500)
    cut = loaded[name][:500]
    assert np.array_equal(few.x, cut.x)
    assert np.array_equal(few.y, cut.y)
    assert np.array_equal(few.time, cut.time)
    assert (few.name, few.features, few.note) == (cut.name, cut.features, cut.note)


# Small files of the sources' own form


POWER = """DateTime,Temperature,Humidity,Wind Speed,general diffuse flows,diffuse flows,\
Zone 1 Power Consumption,Zone 2  Power Consumption,Zone 3  Power Consumption
1/1/2017 0:00,6.5,73.8,0.083,0.051,0.119,34055.5,16128.9,20240.9
12/31/2017 23:50,6.4,74.5,0.084,0.07,0.085,29814.25,19375.1,20131.1
"""
WIND = "dt,MW\n2011-01-01 00:00:00,581\n2011-01-01 00:15:00,582.5\n2011-01-01 00:30:00,583\n"
TRAFFIC = """holiday,temp,rain_1h,snow_1h,clouds_all,weather_main,weather_description,\
date_time,traffic_volume
None,288.28,0.0,0.0,40,Clouds,scattered clouds,2012-10-02 09:00:00,5545
Columbus Day,289.36,0.0,0.0,75,Rain,"rain, and more",2012-10-02 09:00:00,4516
None,289.58,0.0,0.5,90,Clouds,scattered clouds,2012-10-03 11:00:00,4767
"""


def test_power_is_read_from_the_container_of_its_source(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "power+consumption+of+tetouan+city.zip", "w") as packed:
        packed.writestr("Tetuan City power consumption.csv", POWER.replace("\n", "\r\n"))
    data = datasets.power(folder=tmp_path, rows=2)
    assert data.x.tolist() == [
        [6.5, 73.8, 0.083, 0.051, 0.119, 1, 1, 2017, 0, 0, 6],
        [6.4, 74.5, 0.084, 0.07, 0.085, 31, 12, 2017, 23, 50, 6],
    ]
    assert data.y.tolist() == [34055.5, 29814.25]
    assert data.weekday.tolist() == [datetime(2017, 1, 1).weekday()] * 2
    assert data.note == "contents differ from the file this was tested with"


def test_traffic_is_read_from_a_gzip_inside_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "metro+interstate+traffic+volume.zip", "w") as packed:
        packed.writestr("Metro_Interstate_Traffic_Volume.csv.gz", gzip.compress(TRAFFIC.encode()))
    data = datasets.traffic(folder=tmp_path, rows=3)
    assert data.x.tolist() == [
        [0, 288.28, 0, 0, 40, 4, 0, 2, 10, 2012, 9, 1],
        [1, 289.36, 0, 0, 75, 7, 1, 2, 10, 2012, 9, 1],
        [0, 289.58, 0, 0.5, 90, 4, 0, 3, 10, 2012, 11, 2],
    ]
    assert data.y.tolist() == [5545, 4516, 4767]


def test_the_papers_own_wind_is_preferred_to_the_stand_in(tmp_path: Path) -> None:
    (tmp_path / "wind").mkdir()
    stand_in = tmp_path / "wind" / "amprion_wind_15min_2011_2017.csv"
    stand_in.write_text(WIND, encoding="utf-8")
    data = datasets.wind(folder=tmp_path, rows=2)
    assert data.note.startswith("a stand-in: Amprion zone")
    assert data.y.tolist() == [582.5, 583.0]
    assert data.x.tolist() == [[1, 1, 2011, 0, 0, 5], [1, 1, 2011, 0, 15, 5]]
    own = tmp_path / "wind" / "wind_power.csv"
    own.write_text(WIND.replace("583", "600"), encoding="utf-8")
    data = datasets.wind(folder=tmp_path, rows=2)
    assert "stand-in" not in data.note
    assert data.y.tolist() == [582.5, 600.0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Humidity", "Wetness", "must have the columns 'DateTime', 'Temperature', 'Humidity'"),
        (",29814.25", "", "row 2 must have 9 values"),
        ("29814.25", "", "column 'Zone 1 Power Consumption' must hold numbers, got '' in row 2"),
        ("74.5", "nan", "column 'Humidity' must hold numbers, got 'nan' in row 2"),
        ("12/31/2017 23:50", "12/31/2017", "column 'DateTime' must hold times"),
        ("12/31/2017", "13/31/2017", "column 'DateTime' must hold times"),
    ],
)
def test_a_damaged_table_is_one_clear_error(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "tetuan_power.csv"
    path.write_text(POWER.replace(old, new), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        datasets.power(folder=tmp_path, rows=2)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_unknown_weather_is_refused(tmp_path: Path) -> None:
    (tmp_path / "traffic.csv").write_text(TRAFFIC.replace("Rain", "Frogs"), encoding="utf-8")
    with pytest.raises(DataError, match=r"'weather_main' must hold one of Clear, .* got 'Frogs'"):
        datasets.traffic(folder=tmp_path, rows=3)


def test_a_file_cut_between_two_lines_is_refused(shared_data: Path, tmp_path: Path) -> None:
    whole = gzip.decompress((shared_data / "power" / "tetuan_power.csv.gz").read_bytes())
    cut = b"".join(whole.splitlines(keepends=True)[:-100])
    with gzip.open(tmp_path / "tetuan_power.csv.gz", "wb", compresslevel=1) as packed:
        packed.write(cut)
    with pytest.raises(DataError, match="must have 52416 rows, got 52316: it is not whole"):
        datasets.power(folder=tmp_path)
    assert len(datasets.power(folder=tmp_path, rows=50_000)) == 50_000
    with pytest.raises(DataError, match="must have the 52400 rows asked for, got 52316"):
        datasets.power(folder=tmp_path, rows=52_400)
