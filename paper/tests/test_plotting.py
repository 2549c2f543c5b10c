"""What the figures of all experiments share."""

from math import nan

from setpoint_paper.plotting import figure, legend, spread, trim


def test_few_seeds_are_dots_with_their_median_and_five_are_a_box():
    made, panels = figure()
    panel = panels[0, 0]
    spread(panel, [[1.0, 2.0, 6.0, nan], [nan]], [0.0, 1.0], 0.5, "#0072B2")
    (dots,) = panel.lines
    assert list(dots.get_ydata()) == [1.0, 2.0, 6.0]
    assert panel.collections[0].get_segments()[0][:, 1].tolist() == [2.0, 2.0]
    assert not panel.patches
    spread(panel, [[1.0, 2.0, 3.0, 4.0, 5.0]], [2.0], 0.5, "#0072B2", hollow=True, label="five")
    (box,) = panel.patches
    assert box.get_facecolor()[3] == 0.0
    spread(panel, [[1.0]], [3.0], 0.5, "#0072B2", label="five")
    (told,) = legend(made).legends
    assert [text.get_text() for text in told.get_texts()] == ["five"]


def test_a_value_far_above_all_medians_is_written_where_the_axis_ends():
    _, panels = figure()
    panel = panels[0, 0]
    groups, at = [[1.0, 1.1, 9.0], [1.2, 1.3, 1.4]], [0.0, 1.0]
    spread(panel, groups, at, 0.5, "#0072B2")
    trim(panel, groups, at)
    assert panel.get_ylim()[1] < 1.5
    assert [text.get_text() for text in panel.texts] == ["↑ 9"]
    # Of several the largest and their number, with plain digits; side by side not on one line.
    _, panels = figure()
    panel = panels[0, 0]
    trim(
        panel, [[1.0, 1.1, 1.1, 27.7, 31.14], [1.2, 1.3, 2877.8], [1.0], [1.1, 1.2, 5.0]], range(4)
    )
    assert [text.get_text() for text in panel.texts] == ["↑ 31.1 (2)", "↑ 2,878", "↑ 5"]
    first, second, last = (text.get_position()[1] for text in panel.texts)
    assert (first, last) == (0.0, 0.0)
    assert second < -5.0
    _, panels = figure()
    trim(panels[0, 0], [[1.0, 1.2], [nan]], at)
    assert not panels[0, 0].texts
