"""The road scene: depth against rays traced one by one, and what drifts in it."""

from math import inf
from typing import Any

import numpy as np
import pytest

from setpoint.errors import InputError
from setpoint_paper.datasets import Clip, road
from setpoint_paper.datasets.canvas import Canvas, colour

GREY = colour(100, 100, 100)
HEIGHT, WIDTH, ABOVE = 24, 40, 1.65
BEND, HEADING, OFFSET, NOD = 0.004, -0.05, 1.5, 0.01


def rays() -> list[tuple[int, int, float, float]]:
    """Row, column, and how far right and down a ray goes for each metre ahead."""
    focal = 0.58 * WIDTH
    centre = 0.46 * HEIGHT + NOD * focal
    return [
        (i, j, (j + 0.5 - WIDTH / 2) / focal, (i + 0.5 - centre) / focal)
        for i in range(HEIGHT)
        for j in range(WIDTH)
    ]


def lateral_of(right: Any, z: Any) -> Any:
    """Metres right of the centre line of the road."""
    return right + OFFSET - HEADING * z - 0.5 * BEND * z * z


def drawn() -> Canvas:
    canvas = Canvas(HEIGHT, WIDTH, ABOVE)
    canvas.begin(BEND, HEADING, OFFSET, NOD)
    canvas.sky(GREY, GREY)
    canvas.ground(0.0, np.ones((64, 64), np.float32), GREY, GREY, GREY, kerb=True)
    return canvas


def same(canvas: Canvas, reference: dict[tuple[int, int], float]) -> None:
    want = np.array([[reference[i, j] for j in range(WIDTH)] for i in range(HEIGHT)])
    assert np.array_equal(np.isinf(canvas.depth), np.isinf(want))
    known = np.isfinite(want)
    assert np.allclose(canvas.depth[known], want[known], rtol=1e-4)


def test_the_ground_is_where_rays_meet_it() -> None:
    same(drawn(), {(i, j): ABOVE / down if down > 1e-3 else inf for i, j, _, down in rays()})


def test_boxes_and_balls_are_where_rays_meet_them() -> None:
    canvas = drawn()
    boxes = [(12.0, 2.0, 3.0, 0.0, 2.5), (6.0, -3.0, 1.0, 0.5, 1.2), (30.0, 0.0, 9.0, 1.0, 8.0)]
    for box in boxes:
        canvas.box(*box, GREY)
    balls = [(9.0, 4.0, 3.0, 1.0, 5.0), (20.0, -4.0, 6.0, 0.0, 6.0)]
    for ball in balls:
        canvas.ball(*ball, GREY)
    reference = {}
    for i, j, right, down in rays():
        nearest = ABOVE / down if down > 1e-3 else inf
        for z, lateral, wide, low, high in boxes:
            x, y = lateral_of(right * z, z) - lateral, ABOVE - down * z
            if -wide / 2 <= x < wide / 2 and low <= y <= high:
                nearest = min(nearest, z)
        for z, lateral, wide, low, high in balls:
            x, y = lateral_of(right * z, z) - lateral, ABOVE - down * z - (low + high) / 2
            if (2 * x / wide) ** 2 + (2 * y / (high - low)) ** 2 < 1:
                nearest = min(nearest, z)
        reference[i, j] = nearest
    same(canvas, reference)
    assert len(set(reference.values()) & {12.0, 6.0, 30.0, 9.0, 20.0}) == 5


def test_walls_are_where_rays_meet_them() -> None:
    along, block, lines = 100.0, 12.0, (7.0, 9.0)
    rng = np.random.default_rng(5)
    tall = np.where(rng.random((2, 16)) < 0.3, 0.0, rng.uniform(4, 9, (2, 16)))
    setback = rng.integers(0, 2, (2, 16))
    canvas = drawn()
    canvas.walls(along, tall, setback, np.full((2, 16, 3), 90, np.float32), lines, block)
    # The rays of a column are followed by small steps until they cross a line where a house stands.
    steps = np.arange(0.5, 400.0, 0.005)
    nearest = {}
    for _, j, right, _ in rays()[:WIDTH]:
        reach = lateral_of(right * steps, steps)
        found = [(inf, 0.0)]
        for side, sign in ((0, -1), (1, 1)):
            for place, line in enumerate(lines):
                crossed = np.flatnonzero(np.diff(np.sign(reach - sign * line)))
                if not len(crossed):
                    continue
                z = float(steps[crossed[0]])
                at, within = int((along + z) // block) % 16, (along + z) % block
                if tall[side, at] > 0 and setback[side, at] == place and 1 < within < block - 1:
                    found.append((z, float(tall[side, at])))
        nearest[j] = min(found)
    reference = {}
    for i, j, _, down in rays():
        z, high = nearest[j]
        ground = ABOVE / down if down > 1e-3 else inf
        stands = z < inf and 0 < ABOVE - down * z < high
        reference[i, j] = min(z, ground) if stands else ground
    want = np.array([[reference[i, j] for j in range(WIDTH)] for i in range(HEIGHT)])
    # A pixel at the very edge of a wall may fall on the other side of a step.
    with np.errstate(invalid="ignore"):
        close = np.isclose(canvas.depth, want, rtol=5e-3) | (canvas.depth == want)
    assert close.mean() > 0.99
    assert (np.isfinite(want) & (want < 60)).mean() > 0.6


def test_equal_seeds_give_equal_clips_and_others_others() -> None:
    first, again, other = (road(12, 32, 48, seed) for seed in (7, 7, 8))
    assert np.array_equal(first.rgb, again.rgb)
    assert np.array_equal(first.depth, again.depth, equal_nan=True)
    assert not np.array_equal(first.depth, other.depth, equal_nan=True)


@pytest.fixture(scope="module")
def clips() -> dict[str, Clip]:
    return {drift: road(100, 32, 48, 2, drift=drift) for drift in ("none", "fog", "night", "jump")}


def test_depth_is_known_below_the_sky_and_ends_at_far() -> None:
    clip = road(30, 40, 60, 4, far=50.0)
    known = np.isfinite(clip.depth)
    assert float(clip.depth[known].max()) <= 50
    assert float(clip.depth[known].min()) >= 2
    assert known[:, -5:].all()
    assert 0.5 < known.mean() < 0.95
    assert not known[:, 0].all()


def test_fog_and_night_change_colours_and_never_the_depth(clips: dict[str, Clip]) -> None:
    for drift in ("fog", "night"):
        assert np.array_equal(clips[drift].depth, clips["none"].depth, equal_nan=True)
    plain, fog, night = (clips[drift].rgb.astype(float) for drift in ("none", "fog", "night"))
    assert np.array_equal(plain[:43], fog[:43])
    assert np.array_equal(plain[:60], night[:60])
    assert night[75].mean() < 0.3 * plain[75].mean()
    assert np.array_equal(plain[86:], night[86:])


@pytest.mark.parametrize(("frame", "thickness"), [(50, 0.6), (90, 1.0)])
def test_fog_veils_each_pixel_by_its_distance(
    clips: dict[str, Clip], frame: int, thickness: float
) -> None:
    plain, fog = clips["none"][frame], clips["fog"].rgb[frame]
    judged = 0
    for i in range(32):
        for j in range(48):
            z = float(plain.depth[i, j])
            clear = 0.0 if np.isnan(z) else np.exp(-0.06 * thickness * z)
            for channel, grey in enumerate((196, 200, 206)):
                bare = float(plain.rgb[i, j, channel])
                # The noise of the camera, of spread 2, is not veiled; black and white are cut;
                # below the horizon, a depth beyond `far` is there but not told.
                if 0 < bare < 255 and not (np.isnan(z) and i > 10):
                    want = bare * clear + grey * (1 - clear)
                    assert abs(float(fog[i, j, channel]) - want) < 12
                    judged += 1
    assert judged > 3000


def test_a_jump_is_another_place_at_once(clips: dict[str, Clip]) -> None:
    def changed(clip: Clip, frame: int) -> float:
        before, after = (np.nan_to_num(clip.depth[f], nan=80.0) for f in (frame - 1, frame))
        return float(np.abs(before - after).mean())

    usual = float(np.median([changed(clips["none"], frame) for frame in range(1, 100)]))
    for frame in (30, 75):
        assert changed(clips["jump"], frame) > 3 * usual
    assert np.array_equal(clips["jump"].depth[:30], clips["none"].depth[:30], equal_nan=True)


def test_neighbouring_frames_are_more_alike_than_frames_a_second_apart() -> None:
    clip = road(40, 48, 72, 1, drift="none", cars=0)
    depth = np.nan_to_num(clip.depth, nan=80.0)
    near = np.abs(depth[1:] - depth[:-1]).mean()
    apart = np.abs(depth[10:] - depth[:-10]).mean()
    assert 0 < near < 0.6 * apart


def test_cars_are_added_in_front_of_the_street() -> None:
    empty, full = (road(20, 48, 72, 1, drift="none", cars=cars) for cars in (0, 8))
    bare, busy = (np.nan_to_num(clip.depth, nan=200.0) for clip in (empty, full))
    # The same street stands behind: wherever depth differs, a car is nearer.
    assert (busy <= bare).all()
    assert 0.001 < (busy < bare).mean() < 0.5


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"frames": 0}, "frames must"),
        ({"height": 8}, "height must"),
        ({"width": 8}, "width must"),
        ({"cars": -1}, "cars must"),
        ({"far": 5.0}, "far must be at least 10 metres, got 5"),
        ({"drift": "rain"}, "drift must be one of 'fog', 'night', 'jump', 'none', got 'rain'"),
        ({"drift": ("none", "fog")}, "drift must be 'none' alone"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        road(**{"frames": 2, "height": 16, "width": 16, **options})  # type: ignore[arg-type]


def test_the_smallest_clip_is_made() -> None:
    clip = road(1, 16, 16, drift=())
    assert clip.rgb.shape == (1, 16, 16, 3)
    assert "no drift" in repr(clip)
