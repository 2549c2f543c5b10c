"""Streams of classes and label sets: real files by an independent reading, small files by hand."""

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from setpoint.errors import DataError
from setpoint_paper import datasets


def lines_of(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


# Gas sensors


def test_gas_drift_is_the_batches_in_time_order(shared_data: Path) -> None:
    data = datasets.gas_drift(folder=shared_data)
    assert data.x.shape == (6_697, 128)
    assert len(data.classes) == 6
    assert sorted(set(data.y.tolist())) == [0, 1, 2, 3, 4, 5]
    assert data.group is not None
    counts = {1: 445, 2: 1244, 3: 1586, 4: 161, 5: 197, 6: 2300, 8: 294, 9: 470}
    expected = [batch for batch, count in counts.items() for _ in range(count)]
    assert data.group.tolist() == expected
    start = 0
    for batch, count in counts.items():
        lines = lines_of(shared_data / "gas_drift" / f"batch{batch}.dat.gz")
        for row in (0, count // 2, count - 1):
            cells = lines[row].replace(";", " ").replace(":", " ").split()
            assert data.y[start + row] == int(cells[0]) - 1
            assert data.x[start + row].tolist() == [float(cell) for cell in cells[3::2]]
        start += count


def batch(count: int, gas: int = 3) -> str:
    values = " ".join(f"{place}:{place / 4}" for place in range(1, 129))
    return f"{gas};50.000000 {values} \n" * count


def test_gas_drift_is_read_from_a_zip_inside_a_zip(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as packed:
        packed.writestr("__MACOSX/Dataset/batch1.dat", "shadow")
        packed.writestr("Dataset/batch10.dat", batch(2, gas=6))
        packed.writestr("Dataset/batch1.dat", batch(5))
    outer = tmp_path / "gas+sensor+array+drift+dataset+at+different+concentrations.zip"
    with zipfile.ZipFile(outer, "w") as packed:
        packed.writestr("readme.txt", "hello")
        packed.writestr("driftdataset.zip", inner.getvalue())
    data = datasets.gas_drift(folder=tmp_path, rows=5)
    assert data.y.tolist() == [2] * 5
    assert data.x[4].tolist() == [place / 4 for place in range(1, 129)]


@pytest.mark.parametrize(
    ("old", "new"),
    [("3;", "7;"), ("3;50", "3,50"), ("128:32.0", ""), ("2:0.5", "2:nan"), ("4:1.0", "5:1.0")],
)
def test_a_damaged_line_of_sensors_is_named(tmp_path: Path, old: str, new: str) -> None:
    lines = batch(3).splitlines()
    lines[1] = lines[1].replace(old, new, 1)
    (tmp_path / "batch1.dat").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match="line 2 must read 'class;concentration 1:v … 128:v'"):
        datasets.gas_drift(folder=tmp_path, rows=3)


# Outdoor objects


def test_outdoor_is_two_files_in_step(shared_data: Path) -> None:
    data = datasets.outdoor(folder=shared_data)
    assert data.x.shape == (4_000, 21)
    lines = lines_of(shared_data / "outdoor" / "outdoorStream.data.gz")
    labels = lines_of(shared_data / "outdoor" / "outdoorStream.labels.gz")
    assert data.x.tolist() == [[float(cell) for cell in line.split()] for line in lines]
    assert data.y.tolist() == [int(label) for label in labels]
    assert np.bincount(data.y).tolist() == [100] * 40
    assert data.note == ""


def test_outdoor_labels_must_be_as_many_and_within_the_classes(tmp_path: Path) -> None:
    colours = " ".join(["0.25"] * 21)
    (tmp_path / "outdoorStream.data").write_text(f"{colours}\n" * 3, encoding="utf-8")
    labels = tmp_path / "outdoorStream.labels"
    labels.write_text("3\n31\n39\n", encoding="utf-8")
    assert datasets.outdoor(folder=tmp_path, rows=3).y.tolist() == [3, 31, 39]
    labels.write_text("3\n31\n40\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"whole number from 0 to 39, got 40\.0 in row 3"):
        datasets.outdoor(folder=tmp_path, rows=3)
    labels.write_text("3\n31\n", encoding="utf-8")
    with pytest.raises(DataError, match="must have the 3 rows asked for, got 2"):
        datasets.outdoor(folder=tmp_path, rows=3)
    labels.write_text("3\n31 2\n4\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"is damaged: .*Expected 1 fields in line 2, saw 2"):
        datasets.outdoor(folder=tmp_path, rows=3)


# Power supply


def test_power_supply_is_the_arff_file(shared_data: Path) -> None:
    data = datasets.power_supply(folder=shared_data)
    assert data.x.shape == (29_928, 2)
    lines = lines_of(shared_data / "power_supply" / "powersupply.arff.gz")
    rows = [line.split(",")[:3] for line in lines if line[:1].isdigit()]
    assert data.x.tolist() == [[float(a), float(b)] for a, b, _ in rows]
    assert data.y.tolist() == [int(hour) for _, _, hour in rows]
    assert len(data.classes) == 24
    # The hours follow one another, save in one row of the file.
    assert (data.y != np.arange(29_928) % 24).sum() == 1


ARFF = """% made by hand
@RELATION power_supply

@attribute attribute0 Numeric
@attribute 'attribute1' Numeric
@attribute class {0,1,2}

@DATA
117.4,127,0
139.1,126,1,
128,120,2
"""


def test_a_small_arff_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "powersupply.arff"
    path.write_text(ARFF, encoding="utf-8")
    data = datasets.power_supply(folder=tmp_path, rows=3)
    assert data.x.tolist() == [[117.4, 127.0], [139.1, 126.0], [128.0, 120.0]]
    assert data.y.tolist() == [0, 1, 2]
    for old, new, message in (
        ("@DATA", "", "must have the 3 rows asked for, got 0"),
        ("attribute0", "other", "must have the columns 'attribute0', 'attribute1', 'class', got"),
        ("128,120,2", "128,120", "row 3 must have 3 values"),
        ("128,120,2", "128,120,24", "whole number from 0 to 23, got 24.0 in row 3"),
        ("128,120,2", "?,120,2", "column 'attribute0' must hold numbers, got '?' in row 3"),
    ):
        path.write_text(ARFF.replace(old, new), encoding="utf-8")
        with pytest.raises(DataError) as caught:
            datasets.power_supply(folder=tmp_path, rows=3)
        assert message in str(caught.value)


# Yeast


def test_yeast_is_label_sets(shared_data: Path) -> None:
    data = datasets.yeast(folder=shared_data)
    assert data.x.shape == (2_417, 103)
    assert data.y.shape == (2_417, 14)
    assert data.y.dtype == np.bool_
    lines = lines_of(shared_data / "yeast" / "yeast.csv.gz")[1:]
    for row in (0, 1_000, 2_416):
        cells = lines[row].split(",")
        assert data.x[row].tolist() == [float(cell) for cell in cells[:103]]
        assert data.y[row].tolist() == [cell == "1" for cell in cells[103:]]
    assert data[:5].y.shape == (5, 14)


def test_yeast_is_read_from_the_arff_file_of_mulan_too(tmp_path: Path) -> None:
    head = [f"@attribute Att{place} numeric" for place in range(1, 104)]
    head += [f"@attribute Class{place} {{0,1}}" for place in range(1, 15)]
    row = ",".join(["0.5"] * 103 + ["0", "1"] * 7)
    path = tmp_path / "yeast.arff"
    path.write_text("\n".join(["@relation yeast", *head, "@data", row, row]), encoding="utf-8")
    data = datasets.yeast(folder=tmp_path, rows=2)
    assert data.y.tolist() == [[False, True] * 7] * 2
    assert data.x.tolist() == [[0.5] * 103] * 2
    path.write_text(path.read_text().replace("0,1,0", "0,2,0", 1).replace("{0,2}", "{0,1}"))
    with pytest.raises(DataError, match="its labels must be 0 or 1"):
        datasets.yeast(folder=tmp_path, rows=2)
