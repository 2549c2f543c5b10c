"""The paper's depth protocol, on a miniature of KITTI's folders with a network like LeReS."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import nn
from typer.testing import CliRunner

from setpoint.errors import AbsentFile, InputError
from setpoint.images import fit
from setpoint.images.model import known_pixels
from setpoint.regions import Centre
from setpoint_paper.claims.page import page
from setpoint_paper.cli import INCOMPLETE, app, main
from setpoint_paper.datasets import KITTI_DRIVES
from setpoint_paper.datasets.clips import Frame
from setpoint_paper.depth import experiment, online
from setpoint_paper.depth import kitti as protocol
from setpoint_paper.depth.kitti import Marks, Trial, reproduce_kitti, work
from setpoint_paper.depth.maps import HEURISTICS
from setpoint_paper.depth.runs import METHODS, Row, judge, read_csv
from setpoint_paper.depth.tapes import GEOMETRIES, make
from setpoint_paper.models import Preprocess, TorchDepth
from setpoint_paper.rows import written

EACH = 10
MARKS = Marks(taught=20, warm=40, tuned=55, frames=80)


class Leres(nn.Module):
    """Encoder and decoder under the names of LeReS, depth up to scale and shift."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder_modules = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.decoder_modules = nn.Sequential(nn.Conv2d(8, 4, 1), nn.Conv2d(4, 1, 3, padding=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder_modules(self.encoder_modules(x))


def small() -> nn.Module:
    """What `--model` names."""
    return Leres()


def loose() -> nn.Module:
    """A network that draws at random when it learns."""
    return nn.Sequential(Leres(), nn.Dropout(0.2))


def whole() -> TorchDepth:
    """A network with an optimiser, a scheduler and a size of its own."""
    module = Leres()
    adam = torch.optim.Adam(module.parameters(), lr=1e-3)
    halved = torch.optim.lr_scheduler.ExponentialLR(adam, 0.5)
    size = Preprocess(size=(32, 64))
    return TorchDepth(module, adam, preprocess=size, scheduler=halved, steps=2)


def wrong() -> str:
    """No network."""
    return "a network"


def frozen() -> TorchDepth:
    """A network that learns nothing."""
    return TorchDepth(Leres())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every drive of the paper with ten annotated frames of 32 × 106, in KITTI's folders."""
    root = tmp_path_factory.mktemp("kitti")
    rng = np.random.default_rng(0)
    rows = np.linspace(30.0, 5.0, 32)[:, None]
    for number, drive in enumerate(KITTI_DRIVES):
        for frame in range(EACH):
            at = number * EACH + frame
            near = 4.0 * np.sin((np.arange(106) + at) / 9.0)
            depth = rows + near + rng.normal(0.0, 0.3, (32, 106))
            bright = np.clip(255.0 - 6.0 * depth, 0, 255).astype(np.uint8)
            colours = np.stack([bright, bright // 2, 255 - bright], axis=-1)
            counts = (256.0 * depth).astype(np.uint16)
            counts[rng.random(counts.shape) < 0.7] = 0
            name = f"{frame + 5:010d}.png"
            write(root / "raw" / drive[:10] / drive / "image_03/data" / name, colours)
            write(root / "train" / drive / "proj_depth/groundtruth/image_03" / name, counts)
    return root


def write(path: Path, array: NDArray[np.generic]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(7)
    source, path = Leres(), tmp_path_factory.mktemp("weights") / "res50.pth"
    state = {f"module.{name}": value for name, value in source.state_dict().items()}
    torch.save({"depth_model": state}, path)
    return path


def trial(folder: Path, weights: Path | None = None, model: str = "small", **options: Any) -> Trial:
    return Trial(
        str(folder), None, f"{__name__}:{model}", None if weights is None else str(weights),
        "depth_model", epochs=2, side=48, marks=MARKS, **options,
    )  # fmt: skip


def test_the_marks_are_those_of_the_paper() -> None:
    parts = Marks().parts
    assert (parts.validation, parts.test) == (range(7_000, 8_000), range(8_000, 10_000))
    with pytest.raises(InputError, match="marks must rise"):
        Marks(taught=8_000)


def test_frames_are_cropped_padded_and_filled_as_in_the_paper(folder: Path, tmp_path: Path) -> None:
    video = trial(folder).video(tmp_path)
    assert len(video) == 80
    frame = video[0]
    # Half of 32 × 106, the left 48 columns, 32 rows of padding on top.
    assert frame.depth.shape == (48, 48)
    assert np.isnan(frame.depth[:32]).all()
    assert np.isfinite(frame.depth[32:]).all()  # no hole is left
    assert protocol._padding(video) == 32
    filled = list((tmp_path / "kitti-filled").rglob("*.png"))
    assert filled  # kept, for a map takes seconds
    with pytest.raises(InputError, match=r"the marks need 10,000 frames, .* has 80"):
        Trial(str(folder), None, "a:b").video(tmp_path)


def test_without_padding_the_authors_centre_is_their_window() -> None:
    padded = Centre(within=(260 / 448, 1.0, 0.0, 1.0)).index((448, 448))
    rows, columns = GEOMETRIES["authors"].index((188, 448))
    assert (slice(rows.start + 260, rows.stop + 260), columns) == padded


def test_weights_of_leres_are_found_in_their_file(folder: Path, weights: Path) -> None:
    model = trial(folder, weights).network()
    torch.manual_seed(7)
    same = Leres().state_dict()
    assert all(torch.equal(value, same[name]) for name, value in model.module.state_dict().items())
    with pytest.raises(InputError, match="must name a function that makes a network"):
        Trial(str(folder), None, "nowhere:net").network()
    with pytest.raises(InputError, match="model must be module:function"):
        Trial(str(folder), None, "net")


def test_a_bare_network_is_taught_as_in_the_authors_code(folder: Path, weights: Path) -> None:
    depth, residual = (trial(folder, weights).network(residual=each) for each in (False, True))
    for model in (depth, residual):
        assert isinstance(model.optimiser, torch.optim.SGD)
        (group,) = model.optimiser.param_groups
        assert (group["momentum"], group["weight_decay"]) == (0.9, 5e-4)
        assert model._clip == 10.0

    def rate(model: TorchDepth) -> float:
        return float(model.optimiser.param_groups[0]["lr"])

    rgb, truth = np.zeros((32, 32, 3), np.uint8), np.linspace(2.0, 9.0, 1024).reshape(32, 32)
    assert rate(depth) == rate(residual) == pytest.approx(1e-3 / 3)
    for _ in range(50):
        depth.learn(rgb, truth)
        residual.learn(rgb, truth)
    assert rate(depth) == pytest.approx(1e-3 * 0.4)
    # Their scheduler of the second network never takes a step.
    assert rate(residual) == pytest.approx(1e-3 / 3)
    steps = (0, 250, 500, 29_999, 30_000, 120_000, 200_000, 360_000)
    wanted = (1 / 3, 2 / 3, 1.0, 1.0, 0.1, 0.01, 0.001, 0.001)
    assert [protocol._factor(step) for step in steps] == pytest.approx(wanted)


def test_a_whole_model_keeps_what_is_its_own_for_residuals_too(folder: Path) -> None:
    rgb = np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)
    for residual in (False, True):
        model = trial(folder, model="whole").network(residual=residual)
        assert isinstance(model.optimiser, torch.optim.Adam)
        assert model.preprocess == Preprocess(size=(32, 64))
        assert model.predict(rgb).shape == (48, 48)
        model.learn(rgb, np.full((48, 48), 3.0))
        assert model.optimiser.param_groups[0]["lr"] == pytest.approx(5e-4)
    model.learn(rgb, np.zeros((48, 48)))
    # Where the network of depth is frozen, that of residuals is taught all the same.
    assert trial(folder, model="frozen").network().optimiser is None
    model = trial(folder, model="frozen").network(residual=True)
    before = model.predict(rgb)
    model.learn(rgb, np.full((48, 48), 3.0))
    assert not np.array_equal(model.predict(rgb), before)
    with pytest.raises(InputError, match=r"must give a torch.nn.Module, got 'a network'"):
        trial(folder, model="wrong").network()


def test_parts_that_are_named_are_random_in_the_network_of_residuals_alone(
    folder: Path, weights: Path
) -> None:
    loaded = trial(folder, weights).network().module.state_dict()
    for seed in (0, 1):
        one = trial(folder, weights, fresh=("decoder_modules.1",), seed=seed)
        same = one.network().module.state_dict()
        assert all(torch.equal(loaded[name], same[name]) for name in loaded)
        other = one.network(residual=True).module.state_dict()
        drawn = {name for name in loaded if not torch.equal(loaded[name], other[name])}
        assert drawn == {"decoder_modules.1.weight", "decoder_modules.1.bias"}
    again = one.network(residual=True).module.state_dict()
    assert all(torch.equal(other[name], again[name]) for name in again)
    with pytest.raises(InputError, match=r"no weights of the network begin with 'decoder'; the"):
        trial(folder, weights, fresh=("decoder",)).network(residual=True)


@pytest.mark.parametrize(
    ("lessons", "again"),
    [
        (MARKS.taught + 7, MARKS.taught + 60),  # in the second epoch
        (2 * MARKS.taught + 23, 40),  # twenty online frames were safe on disk
    ],
)
def test_networks_that_were_stopped_go_on_to_the_same_maps(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lessons: int, again: int
) -> None:
    one = trial(folder, model="loose")
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    expected = one._run(tmp_path / "whole", sizes=True)
    assert expected.shape == (2, 60, 16, 48)
    assert len(list((tmp_path / "whole").glob("*.*"))) == 1
    monkeypatch.setattr(online, "STRIDE", 10)
    learn, count, last = TorchDepth.learn, [0], [2 * lessons + 1]  # between the two networks

    def stop(self: TorchDepth, x: Any, y: Any) -> None:
        count[0] += 1
        if count[0] in last:
            raise KeyboardInterrupt
        learn(self, x, y)

    monkeypatch.setattr(TorchDepth, "learn", stop)
    with pytest.raises(KeyboardInterrupt):
        one._run(tmp_path / "cut", sizes=True)
    count[0] = last[0] = 0
    assert np.array_equal(one._run(tmp_path / "cut", sizes=True), expected)
    assert count[0] == 2 * again
    assert len(list((tmp_path / "cut").glob("*.*"))) == 1


def test_both_networks_learn_the_same_views_in_the_same_steps(
    folder: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trial(folder, weights)
    (tmp_path / "alone").mkdir()
    (tmp_path / "beside").mkdir()
    alone = one._run(tmp_path / "alone", sizes=False)
    learn = TorchDepth.learn
    views: dict[bool, list[Any]] = {False: [], True: []}

    def spy(self: TorchDepth, x: Any, y: Any) -> None:
        views[self._residuals].append((x, np.isnan(y)))
        learn(self, x, y)

    monkeypatch.setattr(TorchDepth, "learn", spy)
    depth, sizes = one._run(tmp_path / "beside", sizes=True)
    assert len(views[False]) == 2 * MARKS.taught + 60
    for view, other in zip(*views.values(), strict=True):
        assert all(map(np.array_equal, view, other))
    # The network of residuals learns, and changes nothing in that of depth.
    assert not np.array_equal(sizes[0], sizes[-1])
    assert np.array_equal(depth, alone[0])
    # Maps of both networks serve where the first alone is asked for.
    assert np.array_equal(one.maps("constant", tmp_path / "beside"), depth)


def test_the_second_network_learns_what_the_first_was_wrong_by_before_the_step(
    folder: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trial(folder, weights)
    networks = [one.network(), one.network(residual=True)]
    view = one.video(tmp_path)[3]
    estimate = networks[0].predict(view.rgb)
    residuals: list[Any] = []
    monkeypatch.setattr(networks[1], "learn", lambda x, y: residuals.append(y))
    protocol._teach(networks, view, (0, 1, 3))
    assert not np.array_equal(networks[0].predict(view.rgb), estimate)
    # 200 of its 768 known pixels give scale and shift.
    rng = np.random.default_rng((0, 1, 3))
    rng.integers(2**63)
    line = fit(estimate, known_pixels(view.depth, 200, rng))
    assert np.array_equal(residuals[0], abs(line(estimate) - view.depth), equal_nan=True)


def ran(folder: Path, weights: Path, place: Path, seeds: int = 1, **more: Any) -> Any:
    heuristics = more.pop("heuristics", ("constant", "magnitude"))
    one = replace(trial(folder, weights, fresh=("decoder_modules.1",)), **more)
    return reproduce_kitti(
        one, heuristics=heuristics, seeds=seeds, out=place / "out", cache=place / "cache"
    )


def test_the_whole_protocol_leaves_its_rows(
    folder: Path, weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ran(folder, weights, tmp_path)
    assert len(rows) == 2 * len(METHODS) * len(GEOMETRIES)
    assert all(row.kept for row in rows)
    assert {row.frames for row in rows} == {25}
    assert "A seed, of 1: 100 steps of each of two networks, " in capsys.readouterr().out
    assert {path.stem for path in (tmp_path / "out").glob("*.png")} == {
        f"depth-kitti-{name}" for name in ("heuristics", "max-mean", "risks", "run", "run-time")
    }
    # What is finished is read, and not made again; the networks ran once for both heuristics.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").iterdir()}
    assert sum(path.suffix == ".npy" for path in before) == 1
    one = trial(folder, weights, fresh=("decoder_modules.1",))
    frames = make(one, "magnitude", tmp_path / "cache")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").iterdir()} == before
    # Both windows are judged, each with its own pixels: 2 × 5 and 4 × 5 of 16 × 48.
    sized = [row for row in rows if row.heuristic == "magnitude"]
    for row, geometry in zip(sized, GEOMETRIES, strict=False):
        names = ("KITTI", f"{__name__}:small", "magnitude", 0)
        again, _ = judge(frames, "single", names, geometry)
        assert repr(replace(again, tape=row.tape)) == repr(row)
    assert {row.tape for row in rows} == {one.name("magnitude"), one.name("constant")}
    assert rows[0].centre_coverage != rows[1].centre_coverage


def test_every_seed_of_kitti_is_written_and_stands_among_the_claims(
    folder: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(one: Trial, heuristic: str, cache: Path) -> Any:
        if one.seed:
            raise KeyboardInterrupt
        return make(one, heuristic, cache)

    monkeypatch.setattr(experiment, "make", stop)
    asked = {"heuristics": ("constant", "registered_paper"), "epochs": 0, "seeds": 2}
    with pytest.raises(KeyboardInterrupt):
        ran(folder, weights, tmp_path, **asked)
    results = tmp_path / "out"
    assert {row.seed for row in read_csv(results / "depth-kitti.csv")} == {0}
    assert f"KITTI ({__name__}:small)" in page(results)[0]
    # Rows of the same trial are kept, wherever their tapes are; of another trial there are none.
    path = results / "depth-kitti.csv"
    next_seed = replace(trial(folder, weights, fresh=("decoder_modules.1",)), epochs=0, seed=1)
    later = [replace(row, seed=1, tape=next_seed.name(row.heuristic)) for row in read_csv(path)]
    path.write_text(written(Row, [*read_csv(path), *later]), "utf-8")
    assert {row.seed for row in ran(folder, weights, tmp_path, **asked)} == {0, 1}
    with pytest.raises(KeyboardInterrupt):
        ran(folder, weights, tmp_path, **asked, learning_rate=2e-3)
    assert {row.seed for row in read_csv(path)} == {0}


def test_the_readme_tells_the_work_of_a_seed() -> None:
    seen = Frame(np.zeros((188, 448, 3), np.uint8), np.zeros((188, 448), np.float32))
    told = work(Trial("", None, "leres:network"), HEURISTICS, seen)
    # Two sets of maps; of each heuristic 3,000 frames of critical values of the image and of both
    # windows, all in float32.
    bytes_ = 2 * 4_000 * 188 * 448 * 4 + 5 * 3_000 * (188 * 448 + 21 * 50 + 50 * 50) * 4
    assert told.startswith(f"{60 * 6_000 + 4_000:,} steps of each of two networks")
    assert f" {bytes_ / 1e9:.1f} GB " in told
    readme = Path(__file__).parents[1] / "README.md"
    assert told in " ".join(readme.read_text("utf-8").split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["nowhere", "--model", "a:b"], "does not exist"), (["."], "Missing option")],
)
def test_what_kitti_lacks_is_named(words: list[str], sentence: str) -> None:
    told = CliRunner().invoke(app, ["kitti", *words])
    assert told.exit_code == 2
    assert sentence in " ".join(told.output.split())


def test_all_goes_on_without_the_data_that_are_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps: list[Any] = []

    def load(name: str) -> None:
        steps.append(name)
        if name in ("wind", "gas_drift", "outdoor", "power_supply", "yeast", "kitchen"):
            raise AbsentFile(f"there is no {name}")

    def ran(name: str) -> Any:
        return lambda **given: steps.append((name, given))

    monkeypatch.setattr("setpoint_paper.datasets.load", load)
    monkeypatch.setattr("setpoint_paper.depth.maps.clip_of", lambda name, frames: load(name))
    for module in ("tabular", "classification", "depth"):
        monkeypatch.setattr(f"setpoint_paper.{module}.reproduce", ran(module))
    monkeypatch.setattr("setpoint_paper.cli.summary", lambda out: steps.append("summary"))
    monkeypatch.setattr("sys.argv", ["setpoint-paper", "all", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == INCOMPLETE
    told = capsys.readouterr().err
    assert "Left out: wind; there is no wind.\n" in told
    assert told.endswith("6 of 12 sources missing: wind, gas_drift, outdoor, power_supply, yeast, "
                         "kitchen.\n")  # fmt: skip
    # All data are looked for before anything runs.
    first = next(place for place, step in enumerate(steps) if isinstance(step, tuple))
    assert {"wind", "yeast", "kitchen", "road"} <= set(steps[:first])
    kept = ("power", "energy", "traffic", "prices")
    assert [step[0] for step in steps[first:-1]] == ["tabular", "tabular", "depth"]
    for step in (steps[first], steps[first + 1]):
        assert (step[1]["datasets"], step[1]["seeds"]) == (kept, 20)
    assert steps[-2][1]["clips"] == ("kitti", "road")
    assert steps[-1] == "summary"
