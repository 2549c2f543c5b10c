"""Filling by colourisation against a dense solution, and views of frames pixel by pixel."""

from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from setpoint_paper.datasets import (
    Augmentation,
    Crop,
    augment,
    fill_depth,
    jittered,
    kitti_clip,
    resized,
    road,
)

# Filling


def dense(rgb: NDArray[np.uint8], depth: NDArray[np.float32]) -> NDArray[np.float64]:
    """The same system, written out pixel by pixel and solved as a full matrix."""
    height, width = depth.shape
    grey = [
        [sum(c * int(v) for c, v in zip((0.299, 0.587, 0.114), pixel, strict=True)) / 255
         for pixel in row]
        for row in rgb
    ]  # fmt: skip
    matrix = np.zeros((height * width, height * width))
    right = np.zeros(height * width)
    for i in range(height):
        for j in range(width):
            beside = [
                (y, x)
                for y in range(max(i - 1, 0), min(i + 2, height))
                for x in range(max(j - 1, 0), min(j + 2, width))
                if (y, x) != (i, j)
            ]
            window = [grey[y][x] for y, x in beside] + [grey[i][j]]
            mean = sum(window) / len(window)
            spread = 0.6 * sum((value - mean) ** 2 for value in window) / len(window)
            squares = [(grey[y][x] - grey[i][j]) ** 2 for y, x in beside]
            spread = max(spread, -min(squares) / log(0.01), 2e-6)
            weights = [exp(-square / spread) for square in squares]
            here = i * width + j
            matrix[here, here] = 1.0
            for (y, x), weight in zip(beside, weights, strict=True):
                matrix[here, y * width + x] = -weight / sum(weights)
            if np.isfinite(depth[i, j]):
                matrix[here, here] += 1.0
                right[here] = float(depth[i, j])
    return np.linalg.solve(matrix, right).reshape(height, width)


@pytest.mark.parametrize(("height", "width"), [(9, 13), (13, 9), (2, 7), (12, 12)])
def test_filling_is_the_solution_of_the_dense_system(height: int, width: int) -> None:
    rng = np.random.default_rng(height)
    rgb = rng.integers(0, 256, (height, width, 3)).astype(np.uint8)
    rgb[: height // 2] = 80  # a flat part, where the floor counts
    depth = rng.uniform(2, 70, (height, width)).astype(np.float32)
    depth[rng.random(depth.shape) < 0.7] = np.nan
    known = np.isfinite(depth)
    want = np.clip(dense(rgb, depth), depth[known].min(), depth[known].max())
    filled = fill_depth(rgb, depth)
    assert filled.dtype == np.float32
    assert np.array_equal(filled[known], depth[known])
    assert np.allclose(filled[~known], want[~known], rtol=1e-5)


def test_filling_a_real_frame_stops_at_edges(shared_data: Path) -> None:
    frame = kitti_clip(frames=1)[0]
    rng = np.random.default_rng(0)
    known = np.isfinite(frame.depth)
    hidden = known & (rng.random(known.shape) < 0.5)
    depth = np.where(hidden, np.nan, frame.depth).astype(np.float32)
    filled = fill_depth(frame.rgb, depth)
    assert np.isfinite(filled).all()
    wrong = np.abs(filled - frame.depth)[hidden]
    constant = np.abs(np.nanmean(depth) - frame.depth)[hidden]
    assert np.median(wrong) < 0.1 * np.median(constant)


# Views


def numbered(height: int, width: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Colours and depth that both tell the row and the column they come from."""
    rows, columns = np.mgrid[:height, :width]
    rgb = np.dstack([rows, columns, np.zeros_like(rows)]).astype(np.uint8)
    return rgb, (1000.0 * rows + columns).astype(np.float32)


@pytest.mark.parametrize("size", [(5, 7), (3, 3), (10, 14), (1, 1), (6, 21)])
def test_depth_is_resized_to_the_nearest_pixel_and_never_mixed(size: tuple[int, int]) -> None:
    rgb, depth = numbered(5, 7)
    depth[2, 3] = np.nan
    colours, got = resized(rgb, depth, *size)
    assert colours.shape == (*size, 3)
    for i in range(size[0]):
        for j in range(size[1]):
            want = depth[i * 5 // size[0], j * 7 // size[1]]
            assert got[i, j] == want or (np.isnan(got[i, j]) and np.isnan(want))


def test_the_crop_of_the_paper_is_made_pixel_by_pixel() -> None:
    rng = np.random.default_rng(1)
    rgb = rng.integers(0, 256, (375, 1242, 3)).astype(np.uint8)
    depth = rng.uniform(1, 80, (375, 1242)).astype(np.float32)
    depth[rng.random(depth.shape) < 0.8] = np.nan
    colours, got = Crop().apply(rgb, depth, rng)
    assert colours.shape == (448, 448, 3)
    assert colours.dtype == np.uint8
    # 375 × 1242 → 188 × 621, the left 448 columns, 260 rows on top.
    assert np.isnan(got[:260]).all()
    assert not colours[:260].any()
    for i in range(0, 188, 7):
        for j in range(448):
            want = depth[i * 375 // 188, 2 * j]
            assert got[260 + i, j] == want or (np.isnan(want) and np.isnan(got[260 + i, j]))
    # Colours are means of the pixels they cover, so their mean stays.
    assert abs(colours[260:].mean() - rgb[:, :896].mean()) < 1


@pytest.mark.parametrize(
    ("height", "width", "side"), [(370, 1226, 448), (10, 12, 8), (6, 40, 16), (40, 6, 16)]
)
def test_a_crop_pads_what_is_short_and_cuts_what_is_long(
    height: int, width: int, side: int
) -> None:
    rgb, depth = np.full((height, width, 3), 9, np.uint8), np.ones((height, width), np.float32)
    colours, got = Crop(side).apply(rgb, depth, np.random.default_rng(0))
    padding = np.ones((side, side), bool)
    padding[side - min(height // 2, side) :, : min(width // 2, side)] = False
    assert np.array_equal(np.isnan(got), padding)
    assert np.array_equal(colours[:, :, 0] == 0, padding)


def test_an_augmented_frame_is_a_window_of_the_frame_flipped_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(augment, "_RATIOS", (1.0,))
    rgb, depth = numbered(16, 30)
    view = Augmentation(8, jitter=False)
    rng = np.random.default_rng(0)
    corners, flips = set(), 0
    for _ in range(200):
        colours, got = view.apply(rgb, depth, rng)
        assert np.array_equal(colours[:, :, 0] * 1000.0 + colours[:, :, 1], got)
        flipped = got[0, 0] > got[0, 1]
        flips += int(flipped)
        plain = got[:, ::-1] if flipped else got
        top, left = divmod(int(plain[0, 0]), 1000)
        corners.add((top, left))
        assert np.array_equal(plain, depth[top : top + 8, left : left + 8])
    assert 70 < flips < 130
    assert {top for top, _ in corners} == set(range(9))
    assert {left for _, left in corners} == set(range(23))


def test_jitter_changes_colours_and_leaves_their_size() -> None:
    rgb = road(1, 48, 72, 1).rgb[0]
    rng = np.random.default_rng(0)
    seen = [jittered(rgb, rng) for _ in range(40)]
    assert all(each.shape == rgb.shape and each.dtype == np.uint8 for each in seen)
    assert len({each.tobytes() for each in seen}) == 40
    lights = [each.mean() / rgb.mean() for each in seen]
    assert min(lights) < 0.75
    assert max(lights) > 1.05
    # Grey is mixed in, by a share between none and all.
    colourful = float(rgb.astype(float).std(axis=2).mean())
    shares = [float(each.astype(float).std(axis=2).mean()) / colourful for each in seen]
    assert min(shares) < 0.3
    assert max(shares) > 0.7


def test_compression_and_blur_keep_the_order_of_colours() -> None:
    image = np.zeros((16, 16, 3), np.float32)
    image[:] = (200, 90, 30)
    rng = np.random.default_rng(0)
    for compression in (0, 35, 70):
        changed = augment._blurred(augment._compressed(image, compression), rng)
        assert np.abs(changed - (200, 90, 30)).max() < 12
