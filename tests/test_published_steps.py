"""The published step rules, each against a plain loop written from its formula."""

from collections.abc import Callable
from dataclasses import replace
from math import exp, inf, log, pi, sqrt, tan
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import published
from setpoint.guarantee import Status
from setpoint.steps import Within
from tests.laws.bulk import (
    FLEETS,
    as_run,
    assert_same_fleet,
    assert_same_metrics,
    assert_same_run,
    play,
    swept,
)

LEVEL = 0.1
START = 0.3

# Scores, and the thresholds that a rule shows for them


def scores_of(seed: int, count: int = 600) -> list[float]:
    """Scores that drift, jump and have heavy tails."""
    rng = np.random.default_rng(seed)
    drift = np.linspace(0.0, 2.0, count) + 3.0 * (np.arange(count) > count // 2)
    values: list[float] = (rng.standard_t(3, size=count) * (1.0 + drift) + drift).tolist()
    return values


def shown_by(step: Any, scores: list[float], level: float = LEVEL) -> list[float]:
    """The θ's of a live stream whose scores are these: y above an upper end of 0."""
    risk = sp.Risk(sp.losses.Miscoverage(), level, step, start=START, bounds=(-1e6, 1e6))
    stream = sp.Stream(sp.Controller(sp.sets.Upper(), risk))
    thetas = []
    for score in scores:
        thetas.append(stream.theta)
        stream.predict(0.0)
        stream.update(score)
    return thetas


def decaying(scores: list[float]) -> list[float]:
    q, shown = START, []
    for k, s in enumerate(scores, 1):
        shown.append(q)
        q += 4.0 * max(k**-0.6, 0.01) * ((s > q) - LEVEL)
    return shown


def scale_free(scores: list[float]) -> list[float]:
    q, shown, gradients = START, [], []
    for s in scores:
        shown.append(q)
        gradients.append(LEVEL - (s > q))
        q -= 5.0 / sqrt(3.0) * gradients[-1] / sqrt(sum(g * g for g in gradients))
    return shown


def betting(scores: list[float]) -> list[float]:
    wealth, coins, shown = 2.0, [], []
    for s in scores:
        bet = sum(coins) / (len(coins) + 1) * wealth
        shown.append(START + bet)
        coins.append((s > shown[-1]) - LEVEL)
        wealth += coins[-1] * bet
    return shown


def proportional_integral(scores: list[float]) -> list[float]:
    base, integrator, shown, coins = START, 0.0, [], []
    for t, s in enumerate(scores, 1):
        shown.append(base + integrator)
        coins.append((s > shown[-1]) - LEVEL)
        recent = scores[max(0, t - 100) : t]
        base += 0.1 * (max(recent) - min(recent)) * coins[-1]
        integrator = 6.0 * tan(sum(coins) * log(t + 1) / (5.0 * (t + 1)))
    return shown


def error_quantified(scores: list[float]) -> list[float]:
    base, push, shown, distance = START, 0.0, [], 0.0
    for t, s in enumerate(scores, 1):
        shown.append(base + push)
        recent = scores[max(0, t - 100) : t]
        eta = 0.1 * (max(recent) - min(recent))
        base += eta * ((s > shown[-1]) - LEVEL)
        x = s - shown[-1]
        c = 1.157 / distance if distance else 0.0
        logistic = 1.0 / (1.0 + exp(-c * x))
        push = eta * x * c * logistic * (1.0 - logistic)
        distance += max(0.02, 1.0 / t) * (abs(x) - distance)
    return shown


def mixture(scores: list[float], *, forget: bool = True) -> list[float]:
    scale, interval = 8.0, 50
    gammas = np.array([scale * 0.004 * 2**k for k in range(8)])
    q, w, squares, shown = np.full(8, START), np.full(8, 1 / 8), [], []
    for s in scores:
        shown.append(float(w @ q))
        losses = np.where(s > q, (1 - LEVEL) * (s - q), LEVEL * (q - s)) / scale
        if forget:
            past = sum(v * (1 - 1 / interval) ** i for i, v in enumerate(reversed(squares)))
        else:
            past = sum(squares[-interval:])
        eta = sqrt((log(2 * 8 * interval) + 1) / past) if past else 0.0
        squares.append(float(w @ losses) ** 2)
        w = w * np.exp(-eta * (losses - losses.min()))
        w = (1 - 1 / (2 * interval)) * w / w.sum() + 1 / (2 * interval) / 8
        q = q + gammas * ((s > q) - LEVEL)
    return shown


RULES: dict[str, tuple[Any, Callable[[list[float]], list[float]]]] = {
    "Decaying": (published.Decaying(4.0), decaying),
    "SFOGD": (published.SFOGD(5.0), scale_free),
    "CoinBetting": (published.CoinBetting(2.0), betting),
    "PI": (published.PI(6.0), proportional_integral),
    "ECI": (published.ECI(), error_quantified),
    "DtACI": (published.DtACI(8.0, interval=50), mixture),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_shows_what_its_formula_says(name: str) -> None:
    step, formula = RULES[name]
    scores = scores_of(0, 1000)
    assert shown_by(step, scores) == pytest.approx(formula(scores), rel=1e-9, abs=1e-9)


# Where a rule differs from its paper


def test_forgotten_losses_stand_in_for_a_window_of_them() -> None:
    for seed in range(3):
        scores = scores_of(seed, 2000)
        got, exact = np.array(mixture(scores)), np.array(mixture(scores, forget=False))
        assert np.mean(np.abs(got - exact)) < 0.05 * np.std(scores)
        misses = [np.mean(np.array(scores) > shown) for shown in (got, exact)]
        assert misses[0] == pytest.approx(misses[1], abs=0.005)


def test_a_sharpness_of_its_own_is_the_papers() -> None:
    step = published.ECI(rate=0.5, sharpness=2.0)
    theta, memory = step.rule(step.params, 0.0, step.init(), -0.1, -1.0)
    assert theta == 0.0
    theta, memory = step.rule(step.params, 0.0, memory, 0.9, 1.0)
    logistic = 1.0 / (1.0 + exp(-2.0))
    assert memory[0] == pytest.approx(0.9)
    assert theta == pytest.approx(0.9 + 1.0 * 2.0 * logistic * (1.0 - logistic))


def test_a_forecast_of_the_score_belongs_to_the_prediction() -> None:
    scores = np.array(scores_of(4, 300))
    casts = np.concatenate([[0.0], 0.5 * scores[:-1]])
    step = published.PI(6.0)
    risk = sp.Risk(sp.losses.Miscoverage(), LEVEL, step, start=START, bounds=(-1e6, 1e6))
    stream = sp.Stream(sp.Controller(sp.sets.Upper(), risk))
    shown = []
    for cast, score in zip(casts.tolist(), scores.tolist(), strict=True):
        shown.append(stream.predict(cast).upper)
        stream.update(score)
    assert shown == pytest.approx(casts + proportional_integral((scores - casts).tolist()))


def test_the_integrator_has_no_end_from_a_quarter_turn_on() -> None:
    step = published.PI(1.0, saturation=0.5)
    theta, memory, total = 0.0, step.init(), 0.0
    for k in range(1, 60):
        theta, memory = step.rule(step.params, theta, memory, 0.9, 1.0)
        total += 0.9
        angle = total * log(k + 1) / (0.5 * (k + 1))
        assert theta == (1e300 if angle >= pi / 2 else pytest.approx(tan(angle)))
    assert theta == 1e300
    base = memory[0]
    _, memory = step.rule(step.params, 5.0, memory, -0.1, 1.0)  # something else moved θ
    assert memory[0] == base


@pytest.mark.parametrize("name", ["PI", "ECI", "DtACI"])
def test_a_score_without_end_teaches_nothing_but_its_loss(name: str) -> None:
    step, _ = RULES[name]
    theta, memory = START, step.init()
    for score in (1.0, -1.0, inf, -inf, 2.0):
        theta, memory = step.rule(step.params, theta, memory, 0.9 if score > theta else -0.1, score)
        assert np.isfinite([theta, *memory]).all()
    assert theta > START


@pytest.mark.parametrize("name", RULES)
def test_what_anti_windup_adds_to_theta_stays_there(name: str) -> None:
    step, _ = RULES[name]
    theta, memory = START, step.init()
    for score in (1.0, -1.0, 0.5):
        theta, memory = step.rule(step.params, theta, memory, -0.1, score)
    plain, _ = step.rule(step.params, theta, memory, 0.0, 1e9)
    lifted, _ = step.rule(step.params, theta + 7.0, memory, 0.0, 1e9)
    assert lifted - plain == pytest.approx(7.0, rel=0.2)


# Every way to run


def controller_of(name: str, level: float = 0.4) -> sp.Controller:
    """A controller that leaves its narrow bounds on both sides."""
    step = {
        "PI": published.PI(0.3), "ECI": published.ECI(0.3),
        "DtACI": published.DtACI(2.0),
    }.get(name, RULES[name][0])  # fmt: skip
    risk = sp.Risk(sp.losses.Miscoverage(), level, step, start=0.1, bounds=(-0.5, 0.6))
    return sp.Controller(sp.sets.Widen(), risk)


def hold_every_way(name: str) -> None:
    """A fleet and a sweep do what live streams do."""
    controller = controller_of(name)
    played = [play(controller, 150, seed, ties=False) for seed in range(2)]
    tapes, runs = [tape for tape, _ in played], [run for _, run in played]
    assert any(run.state.full for run in runs)
    assert any(run.state.missing for run in runs)
    for tape, run in played:
        assert_same_run(as_run(sp.replay(controller, tape)), run, exact=False)
    for way in FLEETS:
        assert_same_fleet(way(controller, tapes), runs, exact=False)
    controllers = [controller, controller_of(name, 0.3)]
    metrics = swept(controllers, tapes[0])
    for i, one in enumerate(controllers):
        row = {column: values[i] for column, values in metrics.items()}
        assert_same_metrics(row, sp.replay(one, tapes[0]))


@pytest.mark.parametrize("name", RULES)
def test_a_rule_runs_the_same_live_replayed_in_a_fleet_and_in_a_sweep(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    hold_every_way(name)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_replays_compiled_what_it_showed_live(name: str) -> None:
    controller = controller_of(name)
    tape, run = play(controller, 300, 5, ties=False)
    assert_same_run(as_run(sp.replay(controller, tape)), run, exact=False)


# What the rules guarantee

WITHIN = Within(low=-2.0, high=3.0, start=1.0, fall=-0.1, rise=0.9)


def test_the_bound_of_steps_that_shrink_is_the_reach_over_the_last_step() -> None:
    step = published.Decaying(0.5, 0.5, 0.1)
    claim = step.claim(WITHIN, (25.0,), 25)
    assert claim.reach == (pytest.approx(-2.05), pytest.approx(3.45))
    assert (claim.lower, claim.upper) == (pytest.approx(-55.0), pytest.approx(55.0))
    assert claim.window == (pytest.approx(-110.0), pytest.approx(110.0))
    assert (claim.joint, claim.growth) == (True, 0.5)
    assert step.claim(WITHIN, (1000.0,), 1000).growth == 0.0
    assert published.Decaying(0.5, 0.5, 0.0).claim(WITHIN, (25.0,), 25).window == (None, None)


def test_the_bound_of_scale_free_steps_grows_like_the_root_of_time() -> None:
    claim = published.SFOGD(sqrt(3.0)).claim(WITHIN, (9.0,), 100)
    assert (claim.lower, claim.upper) == (pytest.approx(-21.0), pytest.approx(21.0))
    assert claim.growth == 0.5
    assert claim.window == (None, None)


def test_with_anti_windup_the_upper_end_rests_on_the_lifts_alone() -> None:
    claim = published.Decaying(0.5, 0.5).claim(WITHIN._replace(floor=-4.0), (25.0,), 25)
    assert not claim.joint
    assert claim.upper == pytest.approx((3.45 + 4.0) / 0.1)


def certificate_of(step: Any, count: int = 400, **options: Any) -> Any:
    risk = sp.Risk(sp.losses.Miscoverage(), LEVEL, step, start=0.0, bounds=(-20.0, 20.0))
    risks = [risk, replace(risk, level=0.5)] if options else [risk]
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risks, combine=sp.combine.Max(**options)))
    for score in scores_of(5, count):
        stream.predict((0.0, 0.0))
        stream.update(score)
    return stream.certificate().risks


@pytest.mark.parametrize("step", [published.Decaying(20.0), published.SFOGD(20.0)], ids=repr)
def test_a_bound_that_grows_says_when_it_will_be_small(step: Any) -> None:
    (risk,) = certificate_of(step)
    assert risk.status is Status.HOLDS
    constant = max(-risk.constant_lower, risk.constant_upper)
    steps_needed = risk.steps_until(0.001)
    then = constant * (steps_needed / risk.judged) ** risk.growth
    assert then / steps_needed == pytest.approx(0.001, rel=1e-3)
    (risk,) = certificate_of(step, 0)
    assert risk.status is Status.NO_LABEL_YET
    assert risk.verdict == "no label yet"


def test_of_several_risks_a_rule_with_uneven_steps_needs_the_lifts() -> None:
    slack, lifted = (
        certificate_of(published.Decaying(20.0), anti_windup=delta)[1] for delta in (None, 1.0)
    )
    assert slack.status is Status.NO_GUARANTEE
    assert lifted.status is Status.HOLDS_FROM_ABOVE
    assert lifted.lifts > 0


@pytest.mark.parametrize("name", ["CoinBetting", "PI", "ECI", "DtACI"])
def test_a_rule_without_a_bound_says_so_and_why(name: str) -> None:
    (risk,) = certificate_of(RULES[name][0])
    assert risk.status is Status.NO_GUARANTEE
    assert risk.verdict.count(";") == 1
    assert "states a bound" in risk.verdict


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: published.Decaying(0.0), "Decaying.scale must be greater than 0"),
        (lambda: published.Decaying(1.0, -1.0), "Decaying.power must be greater than 0"),
        (lambda: published.Decaying(1.0, floor=2.0), "Decaying.floor must lie between 0 and 1"),
        (lambda: published.SFOGD(inf), "SFOGD.scale must be finite"),
        (lambda: published.PI(-1.0), "PI.integral must be at least 0"),
        (lambda: published.PI(1.0, rate=0.0), "PI.rate must be greater than 0"),
        (lambda: published.ECI(sharpness=0.0), "ECI.sharpness must be greater"),
        (lambda: published.DtACI(1.0, interval=0), "DtACI.interval must be a whole number"),
    ],
)
def test_options_that_make_no_sense_are_refused(make: Any, message: str) -> None:
    with pytest.raises(sp.errors.InputError, match=message):
        make()
