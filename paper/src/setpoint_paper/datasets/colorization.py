"""Filling holes of a depth map by colourisation: near pixels of like grey have like depth."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import InputError

Depths = NDArray[np.float32]
_STEPS = tuple((y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0))
# With the image in [0, 1]: the share of the variance of a window that a difference is judged by,
# the least weight of the likest neighbour, and the floor where a window is flat.
_SHARE, _LEAST_WEIGHT, _FLOOR = 0.6, 0.01, 2e-6
_LEAF = 64  # pixels that are eliminated in the order they come


def grey(rgb: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Brightness between 0 and 1 by the weights of ITU-R BT.601."""
    made: NDArray[np.float64] = rgb @ (np.array([0.299, 0.587, 0.114]) / 255)
    return made


def fill_depth(rgb: NDArray[np.uint8], depth: Depths) -> Depths:
    """A depth map without holes, by the colourisation of Levin, Lischinski and Weiss.

    Every pixel is asked to be the weighted mean of its neighbours in its 3 × 3 window, those of
    like grey weighing most, and every known pixel to be near its depth as well: with weights
    w_rs that sum to one over the neighbours s of r,

        x_r − Σ_s w_rs x_s + 1{r known} (x_r − depth_r) = 0,

    one sparse system for the whole image, solved at once. w_rs falls with the square of the
    difference of grey over 0.6 times the variance of the window. Depths stay between the least
    and the largest known one, and the known depths stay as they are: the authors' code takes the
    solution there too, which smooths them. A map with no known pixel stays as it is.

    Parameters
    ----------
    rgb
        Colours, uint8 (height, width, 3).
    depth
        Depth with NaN for holes, (height, width).

    Examples
    --------
    >>> rgb = np.zeros((1, 4, 3), np.uint8)
    >>> rgb[:, 2:] = 200
    >>> fill_depth(rgb, np.array([[2.0, np.nan, np.nan, 8.0]], np.float32))
    array([[2. , 2.0..., 7.9..., 8. ]], dtype=float32)

    References
    ----------
    Levin, Lischinski and Weiss, Colorization using optimization, ACM Transactions on Graphics
    2004; as a filler of depth, Silberman et al., Indoor segmentation and support inference from
    RGBD images, ECCV 2012.
    """
    if rgb.shape != (*depth.shape, 3) or depth.ndim != 2:
        raise InputError(
            f"rgb must have the shape (height, width, 3) of depth, got {rgb.shape} for "
            f"{depth.shape}"
        )
    known = np.isfinite(depth)
    if not known.any() or known.all():
        return depth.astype(np.float32)
    matrix = _system(grey(rgb), known)
    right = np.where(known, depth, 0.0).astype(np.float64).ravel()
    found = _solved(matrix, right, depth.shape).reshape(depth.shape)
    low, high = depth[known].min(), depth[known].max()
    filled = np.clip(found, low, high).astype(np.float32)
    return np.where(known, depth, filled).astype(np.float32)


def _solved(matrix: Any, right: NDArray[np.float64], shape: tuple[int, int]) -> Any:
    """The solution by elimination, without pivots: every row is diagonally dominant."""
    from scipy.sparse.linalg import splu

    order = np.concatenate(_dissected(np.arange(right.size).reshape(shape)))
    eliminated = splu(
        matrix[order][:, order].tocsc(),
        permc_spec="NATURAL",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    found = np.empty_like(right)
    found[order] = eliminated.solve(right[order])
    return found


def _dissected(places: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """An order of elimination that keeps factors sparse: both halves, then the line between."""
    height, width = places.shape
    if min(height, width) < 3 or height * width <= _LEAF:
        return [places.ravel()]
    lying = places if height >= width else places.T
    middle = len(lying) // 2
    return [*_dissected(lying[:middle]), *_dissected(lying[middle + 1 :]), lying[middle]]


def _system(image: NDArray[np.float64], anchored: NDArray[np.bool_]) -> Any:
    """The matrix in compressed rows: 1 on the diagonal, 2 where depth is known; −w beside it."""
    from scipy.sparse import coo_matrix

    height, width = image.shape
    weights = _weights(image)
    place = np.arange(height * width).reshape(height, width)
    rows, columns, values = [place.ravel()], [place.ravel()], [1.0 + anchored.ravel()]
    for each, (down, right) in enumerate(_STEPS):
        here, there = _overlap(down, height), _overlap(right, width)
        rows.append(place[here[0], there[0]].ravel())
        columns.append(place[here[1], there[1]].ravel())
        values.append(-weights[each][here[0], there[0]].ravel())
    flat = np.concatenate(rows), np.concatenate(columns)
    return coo_matrix((np.concatenate(values), flat)).tocsr()


def _overlap(step: int, size: int) -> tuple[slice, slice]:
    """The places that have a neighbour `step` further, and those neighbours."""
    if step == 1:
        return slice(0, size - 1), slice(1, size)
    if step == -1:
        return slice(1, size), slice(0, size - 1)
    return slice(0, size), slice(0, size)


def _weights(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weight of each of the eight neighbours of each pixel, 0 outside the image."""
    height, width = image.shape
    beside = np.full((len(_STEPS), height, width), np.nan)
    for each, (down, right) in enumerate(_STEPS):
        here, there = _overlap(down, height), _overlap(right, width)
        beside[each][here[0], there[0]] = image[here[1], there[1]]
    inside = ~np.isnan(beside)
    window = np.concatenate([beside, image[None]])
    apart = np.where(inside, (beside - image) ** 2, np.inf)
    with np.errstate(invalid="ignore"):
        spread = _SHARE * np.nanvar(window, axis=0)
    spread = np.maximum(spread, apart.min(axis=0) / -np.log(_LEAST_WEIGHT))
    weights = np.exp(-apart / np.maximum(spread, _FLOOR))
    made: NDArray[np.float64] = weights / weights.sum(axis=0)
    return made
