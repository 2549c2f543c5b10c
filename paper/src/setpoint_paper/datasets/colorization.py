"""Filling holes of a depth map by colourisation: near pixels of like grey have like depth."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Depths = NDArray[np.float32]
# With the image in [0, 1]: the share of the variance of a window that a difference is judged by,
# the least weight of the likest neighbour, and the floor where a window is flat.
_SHARE, _LEAST_WEIGHT, _FLOOR = 0.6, 0.01, 2e-6


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
    known = np.isfinite(depth)
    if not known.any() or known.all():
        return depth.astype(np.float32)
    from scipy.sparse.linalg import splu

    # Every row is diagonally dominant, so that no pivots are needed.
    options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0}
    factors = splu(_system(grey(rgb), known), **options, options={"SymmetricMode": True})
    found = factors.solve(np.where(known, depth, 0.0).ravel().astype(float)).reshape(depth.shape)
    low, high = depth[known].min(), depth[known].max()
    filled = np.clip(found, low, high).astype(np.float32)
    return np.where(known, depth, filled).astype(np.float32)


def _system(image: NDArray[np.float64], anchored: NDArray[np.bool_]) -> Any:
    """The matrix in compressed columns: 1 on the diagonal, 2 where depth is known; −w beside it."""
    from scipy.sparse import coo_matrix

    weights = _weights(image)
    place = np.arange(image.size).reshape(image.shape)
    here, there = np.broadcast_to(place, weights.shape), _beside(place, -1)
    inside = there >= 0
    rows = np.concatenate([place.ravel(), here[inside]])
    columns = np.concatenate([place.ravel(), there[inside]])
    values = np.concatenate([1.0 + anchored.ravel(), -weights[inside]])
    return coo_matrix((values, (rows, columns))).tocsc()


def _beside(values: NDArray[Any], outside: float) -> NDArray[Any]:
    """The eight neighbours of each pixel, (8, height, width)."""
    height, width = values.shape
    framed = np.pad(values, 1, constant_values=outside)
    places = [(y, x) for y in range(3) for x in range(3) if (y, x) != (1, 1)]
    return np.stack([framed[y : y + height, x : x + width] for y, x in places])


def _weights(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weight of each of the eight neighbours of each pixel, 0 outside the image."""
    beside = _beside(image, np.nan)
    apart = np.nan_to_num((beside - image) ** 2, nan=np.inf)
    spread = _SHARE * np.nanvar(np.concatenate([beside, image[None]]), axis=0)
    spread = np.maximum(spread, apart.min(axis=0) / -np.log(_LEAST_WEIGHT))
    weights = np.exp(-apart / np.maximum(spread, _FLOOR))
    made: NDArray[np.float64] = weights / weights.sum(axis=0)
    return made
