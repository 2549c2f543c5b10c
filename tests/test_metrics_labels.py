"""Metrics of sets of labels: each against a loop over rows, and equal to the loss of its name."""

from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint import metrics
from setpoint.errors import InputError


def _same(found, wanted):
    wanted = [nan if each is None else each for each in wanted]
    np.testing.assert_array_equal(found, np.array(wanted, dtype=float))


def _row_by_row(masks, truths):
    """Every metric of every step from Python sets; None where there is nothing to judge."""
    rows = []
    for mask, truth in zip(masks, truths, strict=True):
        shown = {k for k, held in enumerate(mask) if held}
        if truth is None:
            rows.append((None, None))
            continue
        rows.append(
            (
                1.0 if truth <= shown else 0.0,
                1.0 - len(truth & shown) / len(truth) if truth else None,
            )
        )
    return list(zip(*rows, strict=True)) if rows else [(), ()]


def _all(masks, labels):
    return (
        metrics.labels_covered(masks, labels),
        metrics.false_negatives(masks, labels),
    )


@given(st.data(), st.integers(1, 6), st.integers(0, 12))
def test_metrics_of_one_label_agree_with_a_loop_over_rows(data, classes, steps):
    masks = np.array(
        data.draw(st.lists(st.lists(st.booleans(), min_size=classes, max_size=classes),
                           min_size=steps, max_size=steps)), dtype=bool
    ).reshape(steps, classes)  # fmt: skip
    # Two classes more than the sets know, and steps without a label.
    drawn = data.draw(
        st.lists(st.none() | st.integers(0, classes + 1), min_size=steps, max_size=steps)
    )
    labels = np.array([nan if each is None else each for each in drawn])
    truths = [None if each is None else {each} for each in drawn]
    for found, wanted in zip(_all(masks, labels), _row_by_row(masks, truths), strict=True):
        _same(found, wanted)
    _same(metrics.set_sizes(masks), [sum(map(bool, mask)) for mask in masks])


@given(st.data(), st.integers(1, 6), st.integers(0, 12))
def test_metrics_of_several_labels_agree_with_a_loop_over_rows(data, classes, steps):
    def matrix():
        row = st.lists(st.booleans(), min_size=classes, max_size=classes)
        drawn = data.draw(st.lists(row, min_size=steps, max_size=steps))
        return np.array(drawn, dtype=bool).reshape(steps, classes)

    masks, truth = matrix(), matrix()
    unseen = np.array(data.draw(st.lists(st.booleans(), min_size=steps, max_size=steps)), bool)
    numbers = truth.astype(float)
    numbers[unseen] = nan
    truths = [set(np.flatnonzero(row).tolist()) for row in truth]
    for found, wanted in zip(_all(masks, truth), _row_by_row(masks, truths), strict=True):
        _same(found, wanted)
    partly = [None if gone else each for gone, each in zip(unseen, truths, strict=True)]
    wanted = _row_by_row(masks, partly)
    for found, each in zip(_all(masks.astype(int), numbers), wanted, strict=True):
        _same(found, each)


@pytest.mark.parametrize("several", [False, True])
def test_metrics_are_the_losses_of_their_name_row_by_row(several):
    random = np.random.default_rng(0)
    classes, steps = 5, 300
    family = sp.sets.Multilabel() if several else sp.sets.Threshold()
    p = random.dirichlet(np.ones(classes), steps)
    shown = [
        family.at(family.read(row), lam) for row, lam in zip(p, -random.random(steps), strict=True)
    ]
    masks = np.array([each.mask for each in shown])
    if several:
        labels = random.random((steps, classes)) < 0.3
        assert not labels.all(axis=1).any()
        labels[7] = True
        labels[8] = False
    else:
        labels = random.integers(0, classes, steps)
    read = [family.label(each) for each in labels]
    for metric, loss in (
        (metrics.false_negatives(masks, labels), sp.losses.FalseNegatives()),
        (1.0 - metrics.labels_covered(masks, labels), sp.losses.Miscoverage()),
    ):
        _same(metric, [loss(each, y) for each, y in zip(shown, read, strict=True)])
    assert 0.0 < metrics.labels_covered(masks, labels).mean() < 1.0
    if several:
        assert isnan(metrics.false_negatives(masks, labels)[8])


def test_the_mean_false_negatives_are_what_a_controller_holds():
    random = np.random.default_rng(1)
    p = random.random((500, 4))
    labels = random.random(p.shape) < p
    risk = sp.Risk(sp.losses.FalseNegatives(), 0.2, step=sp.steps.Fixed(0.02))
    stream = sp.Stream(sp.Controller(sp.sets.Multilabel(), risk))
    masks = []
    for row, y in zip(p, labels, strict=True):
        masks.append(stream.predict(row).mask)
        stream.update(y)
    held = stream.certificate().risks[0]
    found = metrics.false_negatives(np.array(masks), labels)
    assert sp.metrics.risk(found) == pytest.approx(held.mean, abs=1e-12)
    assert np.isnan(found).sum() == held.unjudged > 0


def test_no_step_gives_no_numbers():
    nothing = np.zeros((0, 3), dtype=bool)
    for found in (*_all(nothing, []), *_all(nothing, nothing)):
        assert found.shape == (0,)


@pytest.mark.parametrize(
    ("masks", "labels", "told"),
    [
        ([1, 0], [0], "masks must have one row a step and one column a class, got shape (2,)"),
        ([[0, 2]], [0], "masks must hold 0 and 1, got 2.0"),
        ([[0.0, nan]], [0], "masks must hold 0 and 1, got nan"),
        ([["a", "b"]], [0], "masks must hold numbers or booleans, got values of type <U1"),
        ([[0, 1]], [-1], "labels must be the number of a class from 0, or NaN where not observed, "
         "got -1.0 at step 0"),
        ([[0, 1]], [0.5], "labels must be the number of a class from 0, or NaN where not observed, "
         "got 0.5 at step 0"),
        ([[0, 1]], [0, 1], "labels must have one value for each of the 1 steps, got 2"),
        ([[0, 1]], [[0, 1, 0]], "labels must have the shape (1, 2) of masks where a step may have "
         "several, got (1, 3)"),
        ([[0, 1]], [[0, 3]], "labels must be 0 or 1 for each class, or NaN for all where not "
         "observed, got [0.0, 3.0] at step 0"),
        ([[0, 1]], [[0, nan]], "labels must be 0 or 1 for each class, or NaN for all where not "
         "observed, got [0.0, nan] at step 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_refused_in_one_sentence(masks, labels, told):
    with pytest.raises(InputError) as caught:
        metrics.false_negatives(masks, labels)
    assert str(caught.value) == told
