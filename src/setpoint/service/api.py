"""What is sent and answered: the bodies, the operations, and the OpenAPI document made of them."""

from collections.abc import Callable
from dataclasses import fields
from math import inf
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType
from msgspec.json import schema_components
from starlette.exceptions import HTTPException

from setpoint import __version__, presets
from setpoint.controller import Controller
from setpoint.correction import Correction
from setpoint.decisions import Terms
from setpoint.errors import InputError
from setpoint.store.events import quoted
from setpoint.store.gated import held_from

_NUMBERS = 100_000  # that a stream may keep of its season

Id = int | str | list[int | str]
Forecast = Any
Outcome = Any


class Prediction(Struct, forbid_unknown_fields=True):
    """A prediction to show a set for: [lower, upper], or probabilities; it waits under its id.

    The risks are held in each of the groups that it names, too.
    """

    prediction: Forecast
    id: Id | None = None
    groups: list[Id] | None = None
    features: dict[str, Any] | None = None


class Request(Struct, forbid_unknown_fields=True):
    """A request for a gate to decide on, by its score: higher is surer."""

    score: float
    id: Id | None = None


class Label(Struct, forbid_unknown_fields=True):
    """What came out, for the prediction under an id; null says that it will not be known.

    Of a path y is a list, or a number with the `step` that it is of, from 1.

    For a gate `wrong` or `loss` takes the place of y, with a value for each limit if there are
    several.
    """

    y: Outcome = None
    wrong: Any = None
    loss: Any = None
    id: Id | None = None
    step: int | None = None


class Drop(Struct, forbid_unknown_fields=True):
    """A prediction to give up."""

    id: Id | None = None


class Event(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One of many: a prediction, a label, both, or a prediction to drop."""

    stream: Id | None = None
    id: Id | None = None
    prediction: Forecast | UnsetType = UNSET
    groups: list[Id] | None = None
    features: dict[str, Any] | None = None
    y: Outcome | UnsetType = UNSET
    step: int | None = None
    drop: bool = False
    certificate: bool = False


class Answer(Struct):
    """What was done: the set that is shown, or the loss of a label; or the error of this event.

    Of a gate: whether to `act`, whether the label is drawn (`audit`), and the `reason`. Of a path
    `lower` and `upper` have an end for each step, and its totals and extremes have ends of their
    own; of several levels `levels` has the sets within it.

    A null end is open. `repeated` says that the event was known, and that nothing changed. The
    stream and the id are as they were sent.
    """

    stream: Any = None
    id: Any = None
    lower: float | list[float | None] | None = None
    upper: float | list[float | None] | None = None
    total: dict[str, dict[str, Any]] | None = None
    maximum: dict[str, Any] | None = None
    minimum: dict[str, Any] | None = None
    levels: dict[str, Any] | None = None
    quantiles: dict[str, float | None] | None = None
    labels: list[Any] | None = None
    sets: list[Any] | None = None
    set: str | None = None
    full: bool = False
    empty: bool = False
    loss: float | list[float | None] | None = None
    covered: bool | None = None
    alarms: list[dict[str, Any]] | None = None
    act: bool | None = None
    audit: bool | None = None
    reason: str | None = None
    taken: bool = False
    dropped: bool = False
    certificate: dict[str, Any] | None = None
    repeated: bool = False
    error: str | None = None
    kind: str | None = None


class New(Struct, forbid_unknown_fields=True):
    """What a stream is to hold: a preset and a coverage, or a controller as TOML.

    With `gate` it is a gate, of terms such as {"errors": 0.05, "audits": 0.1}.

    `support` is the range of y, null at an end that is open, and `period` the season in rows; both
    go with intervals and paths, and so do several levels of coverage, of which `guarded` have a
    guarantee of their own. `features` names what is known of a row. A path has a `horizon`, and
    may have `totals`, `maximum` and `minimum`; `every` says how many steps pass between two.
    """

    preset: Literal["intervals", "label_sets", "paths"] | None = None
    coverage: float | list[float] = 0.9
    support: tuple[float | None, float | None] | None = None
    period: int | None = None
    features: list[str] = []
    guarded: list[float] = []
    horizon: int | None = None
    totals: list[int] = []
    maximum: bool = False
    minimum: bool = False
    every: int | None = None
    controller: str | None = None
    gate: dict[str, Any] | None = None


class Alteration(Struct, forbid_unknown_fields=True):
    """What is held from now on: another level, other bounds, another step rule of one risk.

    `reset` forgets what was learnt of the model, because another one takes its place. `acknowledge`
    takes what the sets cost from now on as the reference, and ends the alarms about it. `name` is
    what the stream is called from now on. `gate` has all the terms of a gate.
    """

    name: str | None = None
    reset: bool = False
    acknowledge: bool = False
    risk: int = 0
    level: float | None = None
    bounds: tuple[float, float] | None = None
    step: dict[str, Any] | None = None
    gate: dict[str, Any] | None = None


class Forget(Struct, forbid_unknown_fields=True):
    """Which closed predictions to delete: under some ids, closed before a time, or all."""

    ids: list[Id] | None = None
    before: float | None = None


class Forgotten(Struct):
    """How many predictions were deleted."""

    forgotten: int


class Deleted(Struct):
    """Which stream was deleted."""

    deleted: str


class Summary(Struct):
    """Returns how a stream is doing.

    `coverage` is that of the last 100 and of the last 1,000 labels, `asked` the one asked for,
    null where the risks are about something else; an account is the sum of
    loss − level of a risk, and its bound what the guarantee lets it reach. `price` says how many
    times what they were the sets, the model's errors and the restlessness of the actual values are,
    null until that is known; `alarms` has the kinds of alarms about it that last, and since which
    label. `evidence` speaks against the model: a statement about probability, apart from the
    guarantee. `lag` is after how many seconds labels come. `trouble` is 0 where all is well, 1 and
    more where someone should look. `past` is the coverage of each hundred of the last 1,000 labels,
    of a gate the share of requests that it acted on, and `widths` the mean width or size of each
    hundred of the last sets.
    """

    name: str
    predictions: int
    labels: int
    pending: int
    oldest: float | None
    at: float
    levels: list[float]
    asked: float | None
    losses: list[float | None]
    accounts: list[float]
    bounds: list[float | None]
    status: list[str]
    coverage: list[float | None]
    width: float | None
    theta: list[float]
    full: int
    empty: int
    alarm: str
    trouble: float
    acted: list[float | None] | None = None
    price: list[float] | None = None
    alarms: dict[str, int] = {}
    evidence: float = 0.0
    lag: float | None = None
    past: list[float] = []
    widths: list[float] = []
    called: bool = False
    controller: str | None = None
    summary: dict[str, Any] | None = None


class Past(Struct):
    """A prediction and what became of it."""

    number: int
    id: Id
    prediction: Forecast
    groups: list[Any]
    shown: dict[str, Any]
    lam: Any
    y: Outcome
    loss: Any
    covered: bool | None
    ended: str | None
    made: float
    closed: float | None


class Alarm(Struct):
    """What began to go wrong, and when."""

    number: int
    stream: str
    at: float
    kind: str
    step: int
    risk: int | None
    value: float | None
    limit: float | None
    since: int | None = None
    said: str = ""


class Certificate(Struct):
    """What is guaranteed for a stream, as numbers and as text; of a gate in `gate`."""

    text: str
    risks: list[dict[str, Any]] = []
    groups: dict[str, Any] = {}
    full: int = 0
    empty: int = 0
    missing: int = 0
    dropped: int = 0
    expired: int = 0
    pending: int = 0
    most_pending: int = 0
    earlier: list[dict[str, Any]] = []
    gate: dict[str, Any] | None = None


class Explanation(Struct):
    """Why an interval is as it is, as numbers and as lines of text; see `Stream.explain`."""

    id: Any
    lines: list[tuple[str, str]]
    numbers: dict[str, Any]


class RowsToCome(Struct):
    """What a saved forecast says of the next rows: of each its step, its point and its ends."""

    target: str
    rows: list[dict[str, Any]]
    notes: list[str]


class Health(Struct):
    """Whether the service is up; `ready` says whether it can take events in."""

    status: Literal["ok", "stopping", "no database"]
    version: str = __version__


class Problem(Struct):
    """What went wrong, in one sentence (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str


# What a new stream holds


def terms_of(values: dict[str, Any]) -> Terms:
    """The terms of a gate."""
    known = [field.name for field in fields(Terms)]
    if strange := [name for name in values if name not in known]:
        raise InputError(f"the terms of a gate are {', '.join(known)}, got {quoted(strange[0])}")
    return Terms(**values)


_PRESETS: dict[str, tuple[Callable[..., Controller], tuple[str, ...]]] = {
    "intervals": (presets.intervals, ("support", "period", "features", "guarded")),
    "label_sets": (presets.label_sets, ()),
    "paths": (
        presets.paths,
        ("support", "period", "horizon", "totals", "maximum", "minimum", "every"),
    ),
}
_OPTIONS = dict.fromkeys(name for _, names in _PRESETS.values() for name in names)


def held_of(asked: New) -> Controller | Terms:
    """What a new stream is to hold."""
    from setpoint.jobs.job import check_work  # not at the start: it brings much along

    if (asked.preset, asked.controller, asked.gate).count(None) != 2:
        raise HTTPException(
            422, "a stream needs a preset, a controller as TOML or a gate, one of them"
        )
    if asked.gate is not None:
        return terms_of(asked.gate)
    make, names = _PRESETS.get(asked.preset or "", (None, ()))
    given = {name: getattr(asked, name) for name in _OPTIONS}
    given = {n: v for n, v in given.items() if v is not None and v is not False and v != []}
    if strange := [name for name in given if name not in names]:
        takes = [kind for kind, (_, names) in _PRESETS.items() if strange[0] in names]
        raise HTTPException(422, f"{strange[0]} goes with the preset {' or '.join(takes)} only")
    if make is None:
        held = held_from(asked.controller or "")
        if isinstance(held, Terms):
            return held
        controller = held
    else:
        if asked.preset == "paths" and asked.horizon is None:
            raise HTTPException(422, "a path needs horizon, its number of steps")
        if asked.preset == "label_sets" and isinstance(asked.coverage, list):
            raise HTTPException(422, f"label sets have one coverage, got {asked.coverage}")
        if asked.support is not None:
            low, high = asked.support
            given["support"] = -inf if low is None else low, inf if high is None else high
        controller = make(coverage=asked.coverage, **given)
    check_work(controller, "the service")
    stage = controller.correction
    if isinstance(stage, Correction) and stage.annex > _NUMBERS:
        raise InputError(
            f"the service keeps {_NUMBERS:,} numbers of a season, got {stage.annex:,}: use a "
            "shorter period, or setpoint.Stream in Python"
        )
    return controller


# Operations


class Operation(NamedTuple):
    """One thing that can be asked: where, who may, what is sent and what is answered.

    `query` holds the parameters behind the question mark, each with its default, and `kinds` the
    content types that its body may have.
    """

    name: str
    method: str
    path: str
    scope: str
    what: str
    body: Any = None
    answer: Any = None
    kind: str = "application/json"
    query: dict[str, Any] = {}  # noqa: RUF012 - never changed
    kinds: tuple[bytes, ...] = (b"application/json",)


_STATUS = {
    "400": "not JSON", "401": "no token, or one that is not known", "403": "the token allows less",
    "404": "no such stream or prediction", "405": "this path knows other methods",
    "409": "not as things are",
    "410": "the prediction was given up", "413": "too large", "415": "not JSON by its name",
    "422": "a value that cannot be", "429": "too many events wait", "503": "no database now",
}  # fmt: skip


def document(operations: list[Operation]) -> dict[str, Any]:
    """The OpenAPI document of some operations."""
    bodies = [
        kind for one in operations for kind in (one.body, one.answer) if kind not in (None, bytes)
    ]
    schemas, components = schema_components(
        [*bodies, Problem], ref_template="#/components/schemas/{name}"
    )
    shapes = dict(zip(map(str, [*bodies, Problem]), schemas, strict=True))
    problem = {"application/problem+json": {"schema": shapes[str(Problem)]}}
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        content: dict[str, Any] = {one.kind: {}}
        if one.answer is not None:
            content = {one.kind: {"schema": shapes[str(one.answer)]}}
        place: dict[str, Any] = {
            "operationId": one.name,
            "summary": one.what,
            "responses": {
                "200": {"description": "done", "content": content},
                **{s: {"description": d, "content": problem} for s, d in _STATUS.items()},
            },
            "security": [{"token": [one.scope]}] if one.scope else [],
            "parameters": [
                {"name": name, "in": "query", "schema": _schema(default)}
                for name, default in one.query.items()
            ],
        }
        if "{name}" in one.path:
            name = {"type": "string", "minLength": 1, "maxLength": 200}
            place["parameters"].append(
                {"name": "name", "in": "path", "required": True, "schema": name}
            )
        if one.body is not None:
            sent = {kind.decode(): {"schema": {"type": "string"}} for kind in one.kinds}
            if one.body is not bytes:
                sent["application/json"] = {"schema": shapes[str(one.body)]}
                content |= {kind: shape for kind, shape in sent.items() if kind not in content}
            place["requestBody"] = {"required": True, "content": sent}
        paths.setdefault(one.path, {})[one.method.lower()] = place
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "setpoint", "version": __version__,
            "description": "Prediction sets for any model, at the risk you set.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }  # fmt: skip


def _schema(default: Any) -> dict[str, Any]:
    if isinstance(default, int):
        return {"type": "integer", "default": default}
    return {"type": "string", "default": default}
