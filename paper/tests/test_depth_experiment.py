"""The depth experiment: tapes that equal live runs, resumed models, measures, rows."""

import csv
from dataclasses import replace
from math import exp, inf, isnan, log1p, nan
from pathlib import Path

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import DataError, InputError
from setpoint.images import PreviousResiduals, SpreadModel
from setpoint.predictions import PixelSpread
from setpoint_paper.depth import experiment, online
from setpoint_paper.depth import maps as maps_module
from setpoint_paper.depth.choosing import choose
from setpoint_paper.depth.experiment import reproduce
from setpoint_paper.depth.figures import compare
from setpoint_paper.depth.maps import HEURISTICS, Plan, Recipe, clip_of, maps_of
from setpoint_paper.depth.runs import ALONE, METHODS, _extremes, controller, judge
from setpoint_paper.depth.tapes import GEOMETRIES, _one_pixel, make, path_of
from setpoint_paper.models import StoredPredictions, TorchDepth
from setpoint_paper.work import Checkpoints

PLAN = Plan(frames=60, epochs=1, residual_epochs=1)
NAMES = ("region0", "region1", "region2", "lengths")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tapes")


def recipe(seed: int = 0) -> Recipe:
    return Recipe("road", "network", seed, PLAN)


# Files


def test_files_are_named_by_all_that_could_change_them(cache: Path) -> None:
    first = recipe()
    others = [recipe(seed=1), replace(first, plan=Plan(80, 1, 1))]
    assert len({path_of(each, "previous", cache) for each in (first, *others)}) == 3
    assert path_of(first, "constant", cache) != path_of(first, "previous", cache)
    assert recipe(seed=1).maps_path(cache) != first.maps_path(cache)


def test_stored_predictions_come_with_kitti_alone() -> None:
    with pytest.raises(InputError, match="stored predictions come with kitti alone, got road"):
        Recipe("road", "stored")
    with pytest.raises(InputError, match="a clip must be one of"):
        Recipe("mars", "network")
    with pytest.raises(InputError, match="frames must be a whole number of at least 60"):
        Plan(frames=10)


def test_a_model_that_was_stopped_goes_on_to_the_same_maps(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = recipe()
    whole = maps_of(one, cache)
    clip = one.data()
    assert whole.shape == (60 - one.begin, *clip.shape)
    assert one.begin == 18
    monkeypatch.setattr(online, "STRIDE", 5)
    learn, count, path = TorchDepth.learn, [0], one.maps_path(tmp_path)

    def stop(self: TorchDepth, x: np.ndarray, y: np.ndarray) -> None:
        count[0] += 1
        if count[0] == 8:
            raise KeyboardInterrupt
        learn(self, x, y)

    monkeypatch.setattr(TorchDepth, "learn", stop)
    with pytest.raises(KeyboardInterrupt):
        maps_of(one, tmp_path)
    (left,) = Checkpoints(path)
    assert left.name == "000001-000005"
    # A later checkpoint that is damaged costs time and nothing else.
    left.with_name("000001-000006").mkdir()
    left.with_name("000001-000006").joinpath("0.model").write_bytes(b"not a model")
    assert np.array_equal(maps_of(one, tmp_path), whole)
    assert count[0] == 8 + 60 - one.begin - 5
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


# A replayed tape is the live run


@pytest.mark.parametrize("method", ["single", "max"])
def test_a_replay_of_the_frames_is_the_live_run(cache: Path, method: str) -> None:
    one = recipe()
    frames = make(one, "previous", cache)
    held = choose(controller(method, frames.bound, frames.starts), frames, 0, frames.validation)
    trace = sp.replay(frames.controller(held.controller), frames.tape())
    clip, begin = one.data(), one.begin
    model = SpreadModel(StoredPredictions(maps_of(one, cache)), PreviousResiduals(), seed=0)
    stream = sp.Stream(held.controller)
    lengths, thetas = [], []
    for number in range(begin, len(clip)):
        frame = clip[number]
        spread = model.predict(frame.rgb, frame.depth)
        if number >= clip.split().validation.start:
            judged = spread.valid & np.isfinite(frame.depth)
            thetas.append([each.theta for each in stream.state.risks])
            shown = stream.predict(PixelSpread(*spread[:3], judged))
            lengths.append(shown.length)
            stream.update(frame.depth)
        model.learn(frame.rgb, frame.depth)
    # Critical values are kept in float32: a pixel on the very edge may be counted otherwise.
    paths = np.array(trace.theta.T)
    assert paths == pytest.approx(np.array(thetas), abs=2e-3)
    found = [shown.length for shown in trace.shown or ()]
    assert found == pytest.approx(lengths, rel=5e-3)


# Measures


def test_one_risk_is_judged_as_a_plain_loop_judges_it(cache: Path) -> None:
    frames = make(recipe(), "previous", cache)
    row, series = judge(frames, "single", ("road", "network", "previous", 0))
    # The recursion of the paper, written out on the sorted critical values.
    theta, top = min(log1p(frames.starts[0]), log1p(frames.bound)), log1p(frames.bound)
    regions, lengths = frames.tape().prediction[:2], frames.tape().prediction[3]
    coverage, centre, length = [], [], []
    for at in range(len(frames.rows)):
        lam = exp(theta) - 1.0 if theta >= 0.0 else -inf
        lam = inf if theta > top else lam
        image, middle = (np.asarray(region[at]) for region in regions)
        missed = float(np.mean(image > lam)) if lam > -inf else 1.0
        coverage.append(1.0 - missed)
        centre.append(float(np.mean(middle <= lam)) if len(middle) else nan)
        length.append(lengths[at][1] * max(lam, 0.0) if lam < inf else inf)
        theta += row.gamma * (missed - 0.2)
    tested = slice(frames.validation, None)
    assert series.coverage == pytest.approx(coverage, abs=1e-12)
    assert row.coverage == pytest.approx(np.mean(coverage[tested]), abs=1e-12)
    finite = [each for each in length[tested] if each < inf]
    assert row.length == pytest.approx(np.mean(finite), rel=1e-6)
    known = [each for each in centre[tested] if not isnan(each)]
    assert row.centre_coverage == pytest.approx(np.mean(known), abs=1e-12)
    assert row.centre_failure == pytest.approx(np.mean([each <= 0.6 for each in known]))
    assert row.kept


def test_a_tolerance_that_no_step_size_keeps_is_doubled(cache: Path) -> None:
    frames = make(recipe(), "previous", cache)
    # Half of the critical values beyond every bound: no γ covers more than half of the pixels,
    # but for the safeguard, which is as far away as it can be.
    rows = frames.rows
    columns = {
        name: sp.tape.Ragged(
            np.where(np.arange(len(column.values)) % 2, column.values, np.float32(inf))
            if name.startswith("region")
            else column.values,
            column.offsets,
        )
        for name, column in zip(NAMES, rows.prediction, strict=True)
    }
    for name in NAMES[:3]:
        held = columns[name]
        columns[name] = sp.tape.Ragged.from_rows([np.sort(held[at]) for at in range(len(rows))])
    hard = replace(frames, rows=sp.Tape.from_arrays(columns, np.zeros(len(rows))), bound=1e300)
    row, _ = judge(hard, "single", ("road", "network", "previous", 0))
    assert 1.0 - row.coverage >= 0.5


def test_every_method_keeps_what_its_certificate_promises(cache: Path) -> None:
    for heuristic in ("constant", "previous"):
        frames = make(recipe(), heuristic, cache)
        for method in METHODS:
            row, series = judge(frames, method, ("road", "network", heuristic, 0))
            assert row.kept
            assert isnan(row.gamma_centre) == (method in ALONE)
            if method in ("max_bare", "mean_bare"):
                assert isnan(row.bound_image)
                assert isnan(row.window_image)
            elif method != "centre":
                excess = 0.8 - series.coverage
                assert excess.mean() <= row.bound_image + 1e-9
                assert _extremes(excess)[0] <= row.window_image


def test_the_start_is_the_smallest_that_held_the_end_of_the_warm_up(cache: Path) -> None:
    one = recipe()
    frames, clip = make(one, "constant", cache), one.data()
    maps = StoredPredictions(maps_of(one, cache))
    model = SpreadModel(maps, sp.images.Constant(), seed=0, rescale=None)
    shares = []
    for number in range(one.begin, len(clip.split().warm_up)):
        spread = model.predict(clip.rgb[number], clip.depth[number])
        if number >= one.begin + 5:
            gaps = np.abs(spread.centre - clip.depth[number]) / spread.low
            shares.append(gaps[np.isfinite(gaps)])
        model.learn(clip.rgb[number], clip.depth[number])
    lam = frames.starts[0]
    assert np.mean([np.mean(each > 1.0001 * lam) for each in shares]) <= 0.2
    assert np.mean([np.mean(each > 0.99 * lam) for each in shares]) > 0.2


def test_the_centre_is_judged_in_both_geometries(cache: Path) -> None:
    frames = make(recipe(), "previous", cache)
    counts = {}
    for number, geometry in enumerate(GEOMETRIES):
        row, series = judge(frames, "single", ("road", "network", "previous", 0), geometry)
        shares = []
        for at in range(frames.validation, len(frames.rows)):
            pixels = np.asarray(frames.rows.prediction[1 + number][at])
            shares.append(np.mean(pixels <= series.lam[at]))
        assert row.centre_coverage == pytest.approx(np.mean(shares))
        assert row.centre_failure == pytest.approx(np.mean(np.array(shares) <= 0.6))
        # Judged pixel i of frame i of the test part alone
        assert np.isnan(frames.pixel[: frames.validation]).all()
        one = frames.pixel[frames.validation :] * series.lam[frames.validation :]
        assert row.pixel_length == pytest.approx(one.mean())
        counts[geometry] = len(pixels)
    assert counts["authors"] / counts["text"] == pytest.approx(448 / 188, rel=0.1)


def test_the_authors_length_is_that_of_one_judged_pixel() -> None:
    low, judged = np.arange(12.0).reshape(3, 4), np.ones((3, 4), bool)
    judged[0, 1] = False
    spread = sp.predictions.PixelSpread(np.zeros((3, 4)), low, 10.0 * low, judged)
    # Of the judged pixels 0, 2, 3, 4, … the third is number 3; there is no twelfth.
    assert _one_pixel(spread, judged, 2) == 33.0
    assert all(isnan(_one_pixel(spread, judged, number)) for number in (-1, 11))


def test_extremes_are_those_of_all_windows() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        values = rng.normal(size=rng.integers(1, 30))
        sums = [
            values[first:last].sum()
            for first in range(len(values) + 1)
            for last in range(first, len(values) + 1)
        ]
        up, down = _extremes(np.insert(values, 0, nan))
        assert up == pytest.approx(max(sums))
        assert down == pytest.approx(-min(sums))


# Figures


def test_what_depends_on_the_centre_is_drawn_for_both_windows(cache: Path, tmp_path: Path) -> None:
    frames = make(recipe(), "previous", cache)
    rows = [
        replace(judge(frames, method, ("road", "network", "previous", 0), geometry)[0],
                centre_coverage=share)
        for method in ("single", "max")
        for geometry, share in (("text", 0.5), ("authors", 0.9))
    ]  # fmt: skip
    path = compare(rows, ("previous",), ("single", "max"), tmp_path / "risks.png")
    drawn = path.with_suffix(".svg").read_text("utf-8")
    for words in ("the text's, 50/448 of each side", "50/188 of the height", "centre coverage, %"):
        assert words in drawn
    for share in (50, 90):  # the axis has both, in percent
        assert f">{share}<" in drawn


# All of it


def test_the_whole_experiment_leaves_its_rows_and_goes_fast_the_second_time(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("constant", "registered")
    options = {"clips": ("road",), "heuristics": asked, "quick": True, "frames": 60}
    rows = reproduce(**options, out=tmp_path, cache=cache)  # type: ignore[arg-type]
    assert len(rows) == len(asked) * len(METHODS) * len(GEOMETRIES)
    assert all(row.kept for row in rows)
    names = {each.name for each in tmp_path.iterdir() if each.suffix != ".svg"}
    assert names == {"depth-quick.csv"} | {
        f"depth-quick-{name}.png"
        for name in ("heuristics", "max-mean", "risks", "road-network", "road-network-time")
    }
    with (tmp_path / "depth-quick.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [float(line["coverage"]) for line in table] == pytest.approx(
        [row.coverage for row in rows], rel=1e-5
    )
    before = {each: each.stat().st_mtime_ns for each in cache.iterdir()}
    again = reproduce(**options, out=tmp_path, cache=cache)  # type: ignore[arg-type]
    assert repr(again) == repr(rows)
    assert {each: each.stat().st_mtime_ns for each in cache.iterdir()} == before
    assert "`setpoint-paper summary` judges them" in capsys.readouterr().out
    # Where the tapes are elsewhere, rows and figures are kept.
    table, empty = (tmp_path / "depth-quick.csv").read_bytes(), tmp_path / "empty"
    reproduce(**options, out=tmp_path, cache=empty)  # type: ignore[arg-type]
    assert not empty.exists()
    assert (tmp_path / "depth-quick.csv").read_bytes() == table


def test_questions_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="heuristics must be some of"):
        reproduce(heuristics=(), out=tmp_path)
    with pytest.raises(InputError, match="ask for kitti or the network"):
        reproduce(clips=("road",), models=("stored",), out=tmp_path)


def test_stored_predictions_that_are_not_there_are_left_out(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = maps_module.clip_of
    other = lambda name, frames: real("road", frames)  # noqa: E731 - has none, as a clip made anew
    monkeypatch.setattr(maps_module, "clip_of", other)
    monkeypatch.setattr(experiment, "clip_of", other)
    with pytest.raises(DataError, match="the kitti clip at hand holds no stored predictions"):
        reproduce(clips=("kitti",), models=("stored",), out=tmp_path / "out", cache=cache)
    with pytest.raises(DataError, match="holds no stored predictions"):
        maps_of(Recipe("kitti", "stored", 0, PLAN), cache)
    reproduce(
        clips=("kitti",), heuristics=("constant",), quick=True, frames=60, out=tmp_path, cache=cache
    )
    assert "Left out: kitti, stored; the kitti clip at hand" in capsys.readouterr().out


def test_the_stored_predictions_of_kitti_are_reduced(shared_data: Path, tmp_path: Path) -> None:
    one = Recipe("kitti", "stored", 0, PLAN)
    frames = make(one, "registered", tmp_path)
    row, _ = judge(frames, "single", ("kitti", "stored", "registered", 0))
    assert row.kept
    assert one.begin == 0
    assert clip_of("kitti", 60).stored is not None
    assert set(HEURISTICS) >= {"constant", "magnitude", "previous", "registered"}
