"""Pixel families against a loop over the pixels, in numpy, in torch and compiled."""

from copy import deepcopy
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.predictions import PixelSpread
from setpoint.regions import Centre, Mask, Whole
from setpoint.sets import Interval, PixelScale, PixelThreshold, Scale
from setpoint.sets.pixel_arithmetic import passes

torch = pytest.importorskip("torch")

FORMS = ("numpy, compiled", "numpy", "torch, compiled", "torch")
LAMS = (-inf, -1e300, -2.0, -0.5, 0.0, 1e-3, 0.7, 1.0, 3.0, 1e6, 1e300, inf)
SUPPORTS = ((-inf, inf), (0.0, inf), (-3.0, 3.0))


@pytest.fixture(params=FORMS)
def form(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """How frames are held, and whether loops over them are compiled."""
    monkeypatch.setenv("SETPOINT_PLAIN", "" if "compiled" in request.param else "1")
    assert (passes("count", np.zeros((1, 1))) is not None) is ("compiled" in request.param)
    return str(request.param)


def held(form: str, frame: Any) -> Any:
    """A frame in one of the forms."""
    return torch.tensor(np.array(frame)) if "torch" in form and frame is not None else frame


def plain(frame: Any) -> Any:
    return frame.numpy() if isinstance(frame, torch.Tensor) else frame


def scene(seed: int, shape: tuple[int, ...] = (5, 7), dtype: Any = np.float64) -> Any:
    """A prediction with zero scales, ties and pixels that are not valid, and a label with holes."""
    rng = np.random.default_rng(seed)
    centre = rng.integers(-4, 5, shape) / 2.0
    low = rng.choice([0.0, 0.5, 1.0, 3.0], shape)
    high = rng.choice([0.0, 0.5, 1.0, 3.0], shape)
    valid = None if seed % 3 == 0 else rng.random(shape) < 0.8
    y = centre + rng.choice([0.0, 0.5, -0.5, 1.5, -3.0, 7.0], shape)
    y = np.clip(y, -3.0, 3.0)
    if seed % 2:
        y[rng.random(shape) < 0.2] = nan
    if valid is not None:
        centre[~valid] = nan  # whatever padding holds
        low[~valid] = -1.0
    frames = [each.astype(dtype) for each in (centre, low, high)]
    return (*frames, valid), y.astype(dtype)


def pixels(prediction: Any, y: Any) -> list[tuple[tuple[int, ...], Any, float] | None]:
    """Every pixel as its place, the prediction of `sets.Scale` and y, None if it is not judged."""
    centre, low, high, valid = prediction
    return [
        (place, (float(centre[place]), float(low[place]), float(high[place])), float(y[place]))
        if (valid is None or valid[place]) and not isnan(y[place])
        else None
        for place in np.ndindex(centre.shape)
    ]


@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("seed", range(4))
def test_each_pixel_is_the_interval_of_scale(form: str, seed: int, support: Any) -> None:
    prediction, y = scene(seed)
    if support[0] == 0.0:
        y = abs(y)
    family, alone = PixelScale(support), Scale(support)
    reading = family.read(tuple(held(form, each) for each in prediction))
    label = family.label(held(form, y))
    values = plain(family.criticals(reading, label))
    mask = np.random.default_rng(seed).random(y.shape) < 0.4
    for lam in LAMS:
        shown = family.at(reading, lam)
        missed = judged = centred = chosen = 0
        for each, place in zip(pixels(prediction, y), np.ndindex(y.shape), strict=True):
            if each is None:
                assert isnan(values[place])
                continue
            one, truth = each[1:]
            wanted = alone.at(one, lam)
            got = Interval(float(shown.lower[place]), float(shown.upper[place]))
            assert (got, float(shown.lower[place])) == (wanted, wanted.lower)
            assert values[place] == alone.critical(one, truth)
            length = float(shown.lengths[place])
            assert length == wanted.length
            judged += 1
            outside = not wanted.contains(truth)
            missed += outside
            chosen += outside and bool(mask[place])
            centred += outside and 2 <= place[0] < 3 and 2 <= place[1] < 5
        for _ in range(2):  # before and after the ends were asked for
            assert shown.count(label) == shown.count(label, Whole()) == (missed, judged)
            shown = family.at(reading, lam)
        assert shown.count(label, Centre(0.2, 0.4))[0] == centred
        assert shown.count(label, Mask(mask))[0] == chosen
        assert shown.contains(label) is (missed == 0 and lam > -inf)
        assert all(type(each) is int for each in shown.count(label))
    finite = values[~np.isnan(values)]
    assert family.critical(reading, label) == (finite.max() if len(finite) else -inf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_form_counts_alike_and_shows_the_same_ends(
    dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    shape = (37, 53)
    centre = rng.normal(8.0, 3.0, shape).astype(dtype)
    y = np.clip(rng.normal(8.0, 3.0, shape), 0.0, 20.0).astype(dtype)
    low, high = (rng.exponential(1.0, shape).astype(dtype) for _ in range(2))
    valid = rng.random(shape) < 0.9
    y[rng.random(shape) < 0.1] = nan
    family = PixelScale((0.0, 20.0))
    criticals = family.criticals(family.read((centre, low, high)), family.label(y))
    # At the critical values themselves the last bit decides.
    lams = [*rng.normal(1.0, 1.0, 40), *map(float, criticals[criticals == criticals][:40])]
    found = []
    for form in FORMS:
        monkeypatch.setenv("SETPOINT_PLAIN", "" if "compiled" in form else "1")
        reading = family.read(tuple(held(form, each) for each in (centre, low, high, valid)))
        label = family.label(held(form, y))
        counts, ends = [], []
        for lam in lams:
            shown = family.at(reading, float(lam))
            regions = (Whole(), Centre(0.3, 0.2), Mask(valid))
            counts += [shown.count(label, region) for region in regions]
            ends.append([plain(each) for each in shown.ends])
            assert shown.count(label) == counts[-3]  # now from the ends
        values = plain(family.criticals(reading, label))
        assert values.dtype == ends[0][0].dtype == dtype
        found.append((counts, np.array(ends), values))
    for counts, shown_ends, values in found[1:]:
        assert counts == found[0][0]
        np.testing.assert_array_equal(shown_ends, found[0][1])
        np.testing.assert_array_equal(values, found[0][2])


@pytest.mark.parametrize("columns", [40_000, 70_001])
def test_rows_longer_than_a_run_of_the_loop_are_counted_whole(form: str, columns: int) -> None:
    zero, one = np.zeros((2, columns), np.float32), np.ones((2, columns), np.float32)
    family = PixelScale()
    reading = family.read([held(form, each) for each in (zero, one, one)])
    y = np.where(np.arange(columns) % 5 == 0, 2.0, 0.5) * one
    assert family.at(reading, 1.0).count(family.label(held(form, y))) == (
        2 * len(range(0, columns, 5)),
        2 * columns,
    )


def test_lengths_are_means_over_the_valid_pixels(form: str) -> None:
    family = PixelScale((-10.0, 10.0))
    parts = ([[1.0, 9.0, nan]], [[1.0, 2.0, 0.0]], [[2.0, 2.0, nan]], [[True, True, False]])
    reading = family.read(tuple(held(form, np.array(each)) for each in parts))
    shown = family.at(reading, 1.0)
    assert shown.length == (3.0 + 3.0) / 2
    assert np.isnan(plain(shown.lengths)[0, 2])
    assert not shown.empty
    crossed = family.at(reading, -1.0)
    assert (crossed.length, crossed.empty) == (0.0, True)
    assert plain(crossed.lower)[0, 0] == inf
    assert family.at(reading, inf).length == 20.0
    assert family.at(reading, -inf).empty
    wide = PixelScale().read(tuple(held(form, np.array(each)) for each in parts))
    assert PixelScale().at(wide, inf).length == inf
    assert family.unit(reading) == (1.5 + 2.0) / 2


def test_a_frame_with_no_valid_pixel_has_nothing_to_judge(form: str) -> None:
    family = PixelScale()
    none = held(form, np.zeros((3, 4), dtype=bool))
    rubbish = held(form, np.full((3, 4), nan))
    reading = family.read(PixelSpread(rubbish, rubbish, rubbish, none))
    label = family.label(held(form, np.ones((3, 4))))
    for lam in LAMS:
        shown = family.at(reading, lam)
        assert shown.count(label) == shown.count(label, Centre()) == (0, 0)
        assert isnan(shown.length)
        assert shown.contains(label) is (lam > -inf)
    assert family.critical(reading, label) == -inf
    assert family.unit(reading) == 0.0


@pytest.mark.parametrize("shape", [(2, 5, 7), (3, 2, 4, 4), (1, 1), (0, 5), (1, 300)])
def test_frames_of_any_number_of_axes(form: str, shape: tuple[int, ...]) -> None:
    prediction, y = scene(1, shape)
    family = PixelScale()
    reading = family.read(tuple(held(form, each) for each in prediction))
    label = family.label(held(form, y))
    shown = family.at(reading, 0.75)
    lower, upper = (plain(each) for each in shown.ends)
    judged = ~np.isnan(y) & prediction[3]
    missed = judged & ~((lower <= y) & (y <= upper))
    assert shown.count(label) == (missed.sum(), judged.sum())
    index = Centre(0.5, 0.5).index(shape)
    assert shown.count(label, Centre(0.5, 0.5)) == (missed[index].sum(), judged[index].sum())
    assert shown.shape == shape


# What goes in


@pytest.mark.parametrize(
    ("given_as", "kept_as"),
    [
        ("uint8", "float32"),
        ("uint16", "float32"),
        ("int16", "float32"),
        ("float16", "float32"),
        ("float32", "float32"),
        (">f4", "float32"),
        ("int32", "float64"),
        ("uint32", "float64"),
        ("int64", "float64"),
        ("float64", "float64"),
    ],
)
def test_numbers_are_kept_in_a_precision_that_holds_them(given_as: str, kept_as: str) -> None:
    values = np.array([[1, 2], [3, 65_535 if "16" in given_as and "u" in given_as else 100]])
    frame = values.astype(given_as)
    family = PixelScale()
    centre, low, high, _ = family.read((frame, frame, frame))
    assert {part.dtype for part in (centre, low, high)} == {np.dtype(kept_as)}
    np.testing.assert_array_equal(centre, values)
    assert family.label(frame).dtype == kept_as
    if given_as != ">f4":
        tensor = torch.tensor(values).to(getattr(torch, given_as))
        read = family.read((tensor, tensor, tensor))
        assert str(read[0].dtype) == f"torch.{kept_as}"
        np.testing.assert_array_equal(read[0].numpy(), values)


def test_a_label_of_another_precision_is_compared_exactly(form: str) -> None:
    one = np.ones((1, 1), np.float32)
    family = PixelScale()
    reading = family.read([held(form, each) for each in (one, one, one)])
    above = np.nextafter(np.array([[2.0]]), inf)  # not a number of single precision
    assert family.at(reading, 1.0).count(family.label(held(form, above))) == (1, 1)


@pytest.mark.parametrize("share", [False, True])
def test_arrays_need_not_be_contiguous(form: str, share: bool) -> None:
    prediction, y = scene(1, (10, 14))
    views = [held(form, each)[::2, 1::3] for each in prediction]
    family = PixelScale(share=share)
    shown = family.at(family.read(tuple(views)), 0.75)
    packed = PixelScale().read(tuple(held(form, each[::2, 1::3].copy()) for each in prediction))
    label = held(form, y)[::2, 1::3]
    for region in (Whole(), Centre(0.5, 0.5)):
        wanted = PixelScale().at(packed, 0.75).count(family.label(label), region)
        assert shown.count(family.label(label), region) == wanted
    transposed = family.read(tuple(held(form, each).T for each in prediction))
    upright = family.read(tuple(held(form, each) for each in prediction))
    label = family.label(held(form, y))
    assert family.at(transposed, 0.75).count(family.label(label.T)) == family.at(
        upright, 0.75
    ).count(label)


def test_only_shared_arrays_are_the_callers_own(form: str) -> None:
    for share in (False, True):
        prediction = [held(form, np.ones((2, 2))) for _ in range(3)]
        y = held(form, np.ones((2, 2)))
        family = PixelScale(share=share)
        reading, label = family.read(prediction), family.label(y)
        for each in (*prediction, y):
            each[...] = 7.0
        assert [float(each[0, 0]) for each in reading[:3]] == [7.0 if share else 1.0] * 3
        assert float(label[0, 0]) == (7.0 if share else 1.0)


def test_ends_that_are_kept_cannot_be_written_to() -> None:
    prediction, _ = scene(0)
    family = PixelScale()
    shown = family.at(family.read(prediction), 1.0)
    with pytest.raises(ValueError, match="read-only"):
        shown.lower[0, 0] = 5.0
    tensors = family.at(family.read(tuple(held("torch", each) for each in prediction)), 1.0)
    tensors.lower[0, 0] = 500.0
    assert float(tensors.lower[0, 0]) == float(shown.lower[0, 0])


def test_tensors_lose_their_graph_and_keep_their_kind() -> None:
    leaf = torch.ones(2, 2, requires_grad=True)
    family = PixelScale(share=True)
    reading = family.read((leaf * 2.0, leaf, leaf))
    assert not any(part.requires_grad for part in reading[:3])
    shown = family.at(reading, 1.0)
    assert isinstance(shown.lower, torch.Tensor)
    assert isinstance(family.criticals(reading, family.label(leaf)), torch.Tensor)
    assert shown.count(family.label(leaf * 5.0)) == (4, 4)
    assert leaf.requires_grad


def test_a_label_goes_where_its_prediction_is() -> None:
    prediction, y = scene(1)
    family = PixelScale()
    arrays = family.read(prediction)
    tensors = family.read(tuple(held("torch", each) for each in prediction))
    wanted = family.at(arrays, 0.75).count(family.label(y))
    assert family.at(tensors, 0.75).count(family.label(y)) == wanted
    assert family.at(arrays, 0.75).count(family.label(torch.tensor(y))) == wanted
    y.flags.writeable = False
    shared = PixelScale(share=True)
    assert shared.at(tensors, 0.75).count(shared.label(y)) == wanted
    y = y.copy()
    np.testing.assert_array_equal(
        family.criticals(tensors, family.label(y)).numpy(),
        family.criticals(arrays, family.label(torch.tensor(y))),
    )


def test_a_prediction_is_all_numpy_or_all_torch() -> None:
    one = np.ones((2, 2))
    with pytest.raises(PredictionError, match="all numpy, or all torch on one device"):
        PixelScale().read((torch.tensor(one), one, one))
    with pytest.raises(LabelError, match="all numpy, or all torch on one device"):
        PixelScale().label((torch.tensor(one), one > 0))


def test_labels_with_holes_are_given_in_three_ways(form: str) -> None:
    values = np.array([[1.0, inf], [3.0, 4.0]])
    valid = np.array([[True, False], [True, True]])
    family = PixelScale()
    wanted = [[1.0, nan], [3.0, 4.0]]
    given_ways: list[Any] = [(held(form, values), held(form, valid))]
    if "torch" not in form:
        given_ways.append(np.ma.masked_array(values, ~valid))
        given_ways.append([[1.0, nan], [3.0, 4.0]])
    for y in given_ways:
        kept = deepcopy(y)
        np.testing.assert_array_equal(plain(family.label(y)), wanted)
        np.testing.assert_array_equal(plain(y[0]), plain(kept[0]))


ONE = np.ones((2, 2))


@pytest.mark.parametrize(
    ("prediction", "said"),
    [
        ((ONE, ONE), "takes \\(centre, low, high\\) or with valid, got 2 parts"),
        (None, "got None"),
        ("abc", "got 'abc'"),
        ((1.0, 2.0, 3.0), "must be a frame with height and width, got 1.0"),
        ((ONE[0], ONE[0], ONE[0]), "with height and width, got float64 of shape \\(2,\\)"),
        ((ONE, ONE, np.ones((2, 3))), "must have one shape, got centre \\(2, 2\\), low"),
        ((ONE, ONE, ONE, ONE), "valid of a prediction must be a boolean mask, got float64"),
        ((ONE, ONE, ONE, np.ones((1, 1), bool)), "one shape, got .*valid \\(1, 1\\)"),
        ((ONE, -ONE, ONE), "uncertainties of at least 0 at every valid pixel, got \\(1.0, -1.0"),
        ((ONE, ONE, ONE * inf), "got \\(1.0, 1.0, inf\\)"),
        ((ONE * nan, ONE, ONE), "got \\(nan, 1.0, 1.0\\)"),
        ((np.array([["a", "b"]]), ONE, ONE), "centre of a prediction must be numbers"),
        ((ONE * 1j, ONE, ONE), "centre of a prediction must be numbers"),
        ({"centre": ONE, "low": ONE, "up": ONE}, "must have centre, low, high, got"),
    ],
)
def test_a_prediction_that_cannot_be_read_is_told_in_one_sentence(
    form: str, prediction: Any, said: str
) -> None:
    if isinstance(prediction, tuple):
        numeric = all(getattr(each, "dtype", ONE.dtype).kind in "fcb" for each in prediction)
        prediction = tuple(
            held(form, each) if isinstance(each, np.ndarray) and numeric else each
            for each in prediction
        )
    with pytest.raises(PredictionError) as caught:
        PixelScale().read(prediction)
    if "torch" not in form:
        assert caught.match(said)


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (None, "must be numbers for each pixel, got None"),
        (nan, "must be a frame with height and width, got nan"),
        (np.array([1.0, 2.0]), "with height and width"),
        (np.array([[1.0, -inf]]), "must be finite at every valid pixel, got -inf"),
        (np.array([[1.0, 2.0], [-3.0, nan]]), "must lie in the support \\[0.0, 5.0\\], got -3.0"),
        ((ONE, ONE), "valid of a label must be a boolean mask"),
        ((ONE, np.ones((1, 2), bool)), "one shape, got values \\(2, 2\\), valid \\(1, 2\\)"),
        ((ONE, ONE, ONE), "a frame or a pair"),
    ],
)
def test_a_label_that_cannot_be_judged_is_told_in_one_sentence(
    form: str, y: Any, said: str
) -> None:
    if isinstance(y, np.ndarray):
        y = held(form, y)
    with pytest.raises(LabelError, match=said.replace("float64", "(torch.)?float64")):
        PixelScale((0.0, 5.0)).label(y)


def test_a_label_of_another_shape_is_an_error_when_judged(form: str) -> None:
    family = PixelScale()
    reading = family.read([held(form, ONE)] * 3)
    label = family.label(held(form, np.ones((2, 3))))
    for ask in (family.at(reading, 1.0).count, lambda y: family.criticals(reading, y)):
        with pytest.raises(LabelError, match=r"shape of its prediction, \(2, 2\), got \(2, 3\)"):
            ask(label)


# Scores


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(
    scores=st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 1.0]), min_size=6, max_size=6),
    y=st.lists(st.booleans(), min_size=6, max_size=6),
    lam=st.one_of(st.floats(-1.0, 0.0), st.sampled_from([-inf, inf, -0.1, -0.3, -0.7, -5.0, 5.0])),
)
def test_a_pixel_is_in_the_set_from_its_critical_value_on(
    dtype: Any, scores: list[float], y: list[bool], lam: float
) -> None:
    frame, truth = np.array(scores, dtype).reshape(2, 3), np.array(y).reshape(2, 3)
    valid = np.array([[True, True, False], [True, True, True]])
    for kind in (np.array, torch.tensor):
        family = PixelThreshold()
        reading = family.read((kind(frame), kind(valid)))
        label = family.label(kind(truth))
        shown, values = family.at(reading, lam), plain(family.criticals(reading, label))
        missed = positives = size = 0
        for place in np.ndindex(2, 3):
            inside = bool(valid[place]) and (-float(frame[place]) <= lam or lam == inf)
            assert bool(shown.mask[place]) is (inside and lam > -inf)
            size += inside and lam > -inf
            if valid[place] and truth[place]:
                positives += 1
                missed += not bool(shown.mask[place])
                assert values[place] == -frame[place]
            else:
                assert isnan(values[place])
        assert shown.count(label) == (missed, positives)
        assert (shown.size, shown.empty) == (size, size == 0)
        largest = max((float(v) for v in values.ravel() if v == v), default=-inf)
        assert family.critical(reading, label) == largest
        assert shown.contains(label) is (missed == 0 and lam > -inf)


def test_masks_of_an_object_are_given_in_several_ways() -> None:
    wanted = [[True, False], [False, False]]
    family = PixelThreshold()
    for y in (
        np.array(wanted),
        [[True, False], [False, False]],
        np.array([[1, 0], [0, 0]], np.uint8),
        np.array([[1.0, 0.0], [nan, 0.0]]),
        (np.array([[True, True], [False, True]]), np.array([[True, False], [True, False]])),
        (np.array([[1.0, 9.0], [0.0, 9.0]]), np.array([[True, False], [True, False]])),
        ([[1.0, 9.0], [0.0, 9.0]], [[True, False], [True, False]]),
        ([[True, True], [False, True]], [[True, False], [True, False]]),
        np.ma.masked_array(np.array([[1, 1], [0, 0]]), np.array([[0, 1], [0, 0]])),
        torch.tensor(wanted),
        torch.tensor([[1, 0], [0, 0]]),
    ):
        assert plain(family.label(y)).tolist() == wanted


@pytest.mark.parametrize(
    ("prediction", "said"),
    [
        (np.array([[0.5, 1.5]]), r"scores must lie in \[0, 1\], got 1.5"),
        (np.array([[0.5, nan]]), r"scores must lie in \[0, 1\], got nan"),
        (np.array([0.5, 0.5]), "with height and width"),
        ((ONE, ONE, ONE), r"scores or a pair \(scores, valid\), got 3 parts"),
        ((ONE, ONE), "must be a boolean mask"),
    ],
)
def test_scores_that_cannot_be_read_are_told(prediction: Any, said: str) -> None:
    with pytest.raises(PredictionError, match=said):
        PixelThreshold().read(prediction)


@pytest.mark.parametrize(
    "y",
    [
        None,
        nan,
        True,
        np.array([[0.5, 1.0]]),
        np.array([[2, 0]]),
        ([[2.0, 1.0]], [[True, False]]),
        ([[1.0, 0.0]], [[True], [False]]),
        ([[1.0, 0.0]], [[1, 0]]),
    ],
)
def test_masks_that_cannot_be_read_are_told(y: Any) -> None:
    with pytest.raises(LabelError):
        PixelThreshold().label(y)


# Regions


@pytest.mark.parametrize(
    ("shape", "share", "wanted"),
    [
        ((448, 448), 50 / 448, (slice(199, 249), slice(199, 249))),
        ((64, 208), 50 / 448, (slice(28, 35), slice(92, 115))),
        ((1, 1), 50 / 448, (slice(0, 1), slice(0, 1))),
        ((5, 4), 1.0, (slice(0, 5), slice(0, 4))),
        ((3, 10, 10), 0.5, (slice(None), slice(2, 7), slice(2, 7))),
    ],
)
def test_the_centre_is_the_same_share_of_every_frame(
    shape: tuple[int, ...], share: float, wanted: Any
) -> None:
    assert Centre(share, share).index(shape) == wanted


@pytest.mark.parametrize(
    ("within", "shape", "wanted"),
    [
        ((0.0, 1.0, 0.0, 1.0), (448, 448), (slice(199, 249), slice(199, 249))),
        ((0.5, 1.0, 0.0, 1.0), (448, 448), (slice(311, 361), slice(199, 249))),
        ((0.0, 1.0, 0.0, 0.5), (448, 448), (slice(199, 249), slice(87, 137))),
        ((0.0, 0.01, 0.0, 1.0), (448, 448), (slice(0, 4), slice(199, 249))),
        ((0.99, 1.0, 0.99, 1.0), (448, 448), (slice(444, 448), slice(444, 448))),
    ],
)
def test_the_middle_of_a_part_of_the_frame(within: Any, shape: Any, wanted: Any) -> None:
    assert Centre(within=within).index(shape) == wanted


def test_regions_refuse_what_they_cannot_be() -> None:
    for wrong in (0.0, -1.0, 1.5, nan, "half"):
        with pytest.raises(InputError, match="height"):
            Centre(height=wrong)
    with pytest.raises(InputError, match="boolean array with height and width"):
        Mask(np.ones((2, 2)))
    with pytest.raises(InputError, match="boolean array with height and width"):
        Mask(np.ones(3, dtype=bool))
    with pytest.raises(InputError, match="one length"):
        Mask(("..", "."))
    with pytest.raises(InputError, match=r"shape \(2, 2\) chooses no pixels .* shape \(3, 3\)"):
        Mask(np.eye(2, dtype=bool)).index((3, 3))
    with pytest.raises(InputError, match="height and width"):
        Centre().index((5,))


def test_masks_are_values() -> None:
    given_mask = np.eye(3, dtype=bool)
    mask = Mask(given_mask)
    given_mask[0, 0] = False
    assert mask == Mask(("#..", ".#.", "..#")) == Mask(torch.eye(3, dtype=torch.bool))
    assert hash(mask) == hash(Mask(mask.rows))
    assert mask != Mask(given_mask)
    assert repr(mask) != repr(Mask(given_mask))
    assert mask != "mask"
    with pytest.raises(ValueError, match="read-only"):
        mask.mask[0, 0] = False


@pytest.mark.parametrize("family", [PixelScale(), PixelThreshold()])
@pytest.mark.parametrize("y", [[[1, 0], [1]], ([[1, 0], [1]], [[True], [False, True]]), [[], [1]]])
def test_a_label_with_rows_of_different_lengths_is_refused(family: Any, y: Any) -> None:
    with pytest.raises(LabelError, match="a label must be numbers for each pixel"):
        family.label(y)
