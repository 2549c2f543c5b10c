"""A stream in memory while it is stored: what a batch does to it, and what is written of that."""

from collections.abc import Mapping, Sequence
from functools import cache
from json import JSONEncoder, loads
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from setpoint import errors, spec
from setpoint._check import is_missing, whole
from setpoint._recent import Recent
from setpoint._state_file import from_text, pack, to_text
from setpoint.alarms import Episodes
from setpoint.controller import Controller
from setpoint.decisions import Terms
from setpoint.errors import InputError, LabelError, StateError
from setpoint.guarantee import asked_of, certify
from setpoint.receipts import Receipt
from setpoint.sets import Fan, Interval, LabelSet
from setpoint.sets.family import Forecasts, InParts, Members, named, size_of
from setpoint.state import Id
from setpoint.store.database import Part, Row, Saved
from setpoint.store.events import (
    Contains,
    described,
    flag,
    groups_of,
    id_from,
    label_of,
    plain,
    quoted,
)
from setpoint.store.stored import Kept, encode
from setpoint.stream import Stream
from setpoint.summary import StreamSummary, summarise
from setpoint.watch import price_of

_PART = 256  # numbers in a part of an array; one that is smaller is written with the state
_HUNDRED = 100  # sets of which the mean width is kept
_RECENT = 1000  # of how many labels it is remembered whether they were covered
_ARRAYS = ("table", "annex", "window", "group_risks")


class Live(Kept):
    """A stream in memory, and what the present batch has done to it.

    Parameters
    ----------
    name, controller, settings
        Those of the stream; the settings are those of its store.
    saved
        What the database has of it, None if it is new.
    """

    def __init__(
        self, name: str, controller: Controller, settings: Mapping[str, Any], saved: Saved | None
    ) -> None:
        super().__init__(name, settings, spec.to_toml(controller))
        self.skips = settings["missing"] == "skip"
        self.partly = isinstance(controller.sets, InParts)
        self.recent, self.known = 0, 0  # the last labels, a bit for each: whether it was covered
        self.widths: list[float] = []  # the mean of each hundred sets, and how many sets in all
        self.sized = 0
        self.asked = _asked(controller)
        self.peak, self.labels = 0, 0  # when the bounds were worked out
        self.bounds: list[float | None] = []
        self.status: list[str] = []
        self.arrays: dict[str, np.ndarray] = {}  # as they are written in parts
        self.rows_of: dict[str, set[int]] = {}  # the numbers of the parts that have a row
        window, tolerance = settings["window"], settings["tolerance"]
        watch: dict[str, Any] = {"on_alarm": self.alarm}
        watch |= {"window": window, "tolerance": tolerance} if window else {}
        options = {key: settings[key] for key in ("max_pending", "overflow", "missing")}
        self.stream = Stream(controller, **options, **watch)
        if saved is not None:
            self.restore(saved)
        self.settle()

    def resume(self, content: Any, overview: dict[str, Any], saved: Saved) -> None:
        """Takes over what `written` gave."""
        rows, settings = saved.waiting or [], self.settings
        receipts = [self._receipt(row) for row in rows]
        self.waiting = {
            receipt.id: (row, receipt.shown)
            for receipt, row in zip(receipts, rows, strict=True)
        }  # fmt: skip
        content["missing"], content["last"] = settings["missing"], None
        content["receipts"] |= {
            "max_pending": settings["max_pending"], "overflow": settings["overflow"],
            "waiting": receipts, "alone": False, "closed": [], "older": [],
            "former": _ids(content["receipts"]["former"]),
        }  # fmt: skip
        content["risks"] = list(map(_memories, content["risks"]))
        content["counts"] = _memories(content["counts"])
        content["counts"]["terms"] = self.stream.controller.terms
        for array in _ARRAYS:
            if isinstance(content[array], str):
                content[array] = from_text(content[array])
            elif content[array] is not None:
                content[array] = self._array(array, content[array], saved.parts)
        content["groups"] = _ids(content["groups"])
        content["watch"] = self._watch(content["watch"])
        self.stream.restore(content)
        self.recent, self.known = int(overview["recent"], 16), int(overview["known"])
        self.widths = list(map(float, overview.get("widths", [])))  # older stores have none
        self.sized = int(overview.get("sized", 0))
        self.serial = content["receipts"]["serial"]

    def _receipt(self, row: Row) -> Receipt:
        """What waits in a row; of a path what is known of it is told again."""
        receipt = Receipt(id_from(row.id), *from_text(row.receipt)[1:])
        for step, y in loads(row.y or "{}").items() if self.partly else ():
            sets: Any = self.stream.controller.sets
            heard = sets.heard(receipt.heard, y, int(step) or None)
            lam = heard.left(receipt.shown, receipt.lam)
            receipt = receipt._replace(heard=heard[:2], lam=lam)
        return receipt

    def _array(self, name: str, value: Any, parts: Sequence[Part]) -> np.ndarray:
        """An array of the state, put together from its parts if it is large."""
        if not isinstance(value, dict):
            return np.array(value)
        mine = [part for part in parts if part.name == name]
        numbers, self.rows_of[name] = np.zeros(value["shape"]), {part.number for part in mine}
        if len(mine) != value["parts"]:
            raise StateError(f"{name} has {value['parts']:,} parts, and {len(mine):,} are there")
        for part in mine:
            some = np.frombuffer(bytes.fromhex(part.numbers), "<f8")
            numbers.reshape(-1)[part.number * _PART :][: len(some)] = some
        self.arrays[name] = numbers
        return numbers.copy()

    def _parts(self, content: dict[str, Any]) -> tuple[list[Part], list[str]]:
        """The parts of large arrays that have changed, and the arrays that begin again.

        A part that was always zero has no row. What stays in the content says how many have one.
        """
        parts, cleared = list[Part](), list[str]()
        for name, array in content.items():
            before = self.arrays.get(name)
            large = isinstance(array, np.ndarray) and array.size > _PART
            if before is not None and not (large and before.shape == array.shape):
                del self.arrays[name], self.rows_of[name]
                cleared.append(name)
                before = None
            if not large:
                continue
            flat = array.astype("<f8").reshape(-1)
            last = np.zeros_like(flat) if before is None else before.reshape(-1)
            moved = np.flatnonzero(flat.view(np.int64) != last.view(np.int64)) // _PART
            numbers, written = np.unique(moved).tolist(), self.rows_of.setdefault(name, set())
            written.update(numbers)
            for number in numbers:
                some = flat[number * _PART : (number + 1) * _PART]
                parts.append(Part(name, number, some.tobytes().hex()))
            self.arrays[name] = flat.reshape(array.shape)
            content[name] = {"shape": array.shape, "parts": len(written)}
        return parts, cleared

    def _watch(self, saved: dict[str, Any] | None) -> dict[str, Any]:
        """The watch to go on with: the saved one, unless the settings have changed."""
        window, tolerance = self.settings["window"] or None, self.settings["tolerance"]
        if saved is None or (saved["window"], saved["tolerance"]) != (window, tolerance):
            levels = [risk.level for risk in self.stream.controller.risks]
            return Episodes(levels, window, tolerance if window else None).content()
        return {**saved, "limits": tuple(saved["limits"])}

    def settle(self) -> None:
        """Begins a batch."""
        super().settle()
        self.changes, self.hits = False, list[bool]()

    # What an event does: the id, what is to be answered, and whether it was so before.

    def predict(
        self, id: Id | None, prediction: Any, groups: tuple[Id, ...] | None = None
    ) -> tuple[Id, Any, bool]:
        """Shows a set; a prediction that is known is answered as before."""
        if id is not None and (row := self.row(id)) is not None:
            before, _, shown, _, _, _, named, _ = Receipt(*from_text(row.receipt))
            if before != prediction or {name for name, _ in named} != set(groups or ()):
                raise InputError(
                    f"another prediction was made under the id {row.id}: use an id once"
                )
            return id, shown, True
        full = len(self.waiting) >= self.settings["max_pending"]
        receipt = self.stream.issue(prediction, id, groups)
        name, shown = receipt.id, receipt.shown
        self.did(Live.predict, id, prediction, groups)
        if full:
            first = next(iter(self.waiting))
            self.end(first, self.waiting[first][0], "expired")
        row = self.begin(name, _text((prediction, *receipt[1:])))
        self.changed[name], self.waiting[name] = row, (row, shown)
        if 0.0 <= (size := size_of(shown)) < inf:
            self._sized(size)
        return name, shown, False

    def _sized(self, size: float) -> None:
        """Takes in how wide or large a set is."""
        place = self.sized % _HUNDRED
        if place and self.widths:
            self.widths[-1] += (size - self.widths[-1]) / (place + 1)
        else:
            self.widths = [*self.widths[-9:], size]
        self.sized += 1

    def _width(self) -> float | None:
        """The mean width or size of about the last hundred sets."""
        if len(self.widths) < 2:
            return self.widths[0] if self.widths else None
        before, now = self.widths[-2:]
        return before + (now - before) * ((self.sized - 1) % _HUNDRED + 1) / _HUNDRED

    def update(
        self, id: Id | None, y: Any, step: int | None = None
    ) -> tuple[Id, tuple[Any, bool | None], bool]:
        """Takes in a label, of a path that of a step: its loss, and whether it was covered."""
        name, row = self.about(id)
        shown = self.waiting[name][1] if name in self.waiting else None
        missing = self.skips and step is None and is_missing(y)
        if self.partly and not missing:
            return self._update_step(name, row, y, step)
        if row.ended is not None:
            return name, _updated(row, y), True
        covered = None
        if missing:
            pass
        elif type(y) is float and type(shown) is Interval:
            covered = shown.lower <= y <= shown.upper
        elif isinstance(shown, Contains):
            # Asked first: whatever it raises, θ has not moved.
            label = self.stream.controller.sets.label(y)
            if type(shown) is LabelSet:
                _check_classes(shown, label, y)
            covered = bool(shown.contains(label))
        loss = self.stream.update(y, name, step=step)
        self.did(Live.update, name, y, step)
        self.end(name, row, "missing" if missing else "answered", _json(y), _json(loss), covered)
        self._hit(row, covered)
        return name, (loss, covered), False

    def _update_step(
        self, name: Id, row: Row, y: Any, step: int | None
    ) -> tuple[Id, tuple[Any, bool | None], bool]:
        """Takes in the label of one step of a path, or of all others: they are kept by step.

        0 stands for all others.
        """
        place = "0" if step is None else str(whole(step, "step", 1))
        y = [None if is_missing(v) else v for v in y] if isinstance(y, list) else y
        y = None if is_missing(y) else y
        known, losses = loads(row.y or "{}") or {}, loads(row.loss or "{}") or {}
        if place in known:
            if known[place] != y:
                raise InputError(
                    f"the id {row.id} already has the label {encode(known[place])} of this step, "
                    f"got {quoted(y)}"
                )
            return name, self._judged(losses.get(place)), True
        if row.ended is not None:
            if row.ended != "answered":
                raise errors.ExpiredReceipt(
                    f"the prediction under {row.id} was given up ({row.ended})"
                )
            raise errors.AnsweredReceipt(f"the prediction under {row.id} has all of its labels")
        loss = self.stream.update(y, name, step=step)
        self.did(Live.update, name, y, step)
        known[place] = y
        if loss is not None:
            losses[place] = loss
        loss, covered = judged = self._judged(loss)
        hit = row.covered if covered is None else int(covered)
        row = row._replace(y=encode(known), loss=encode(losses), covered=hit)
        self._hit(row, covered)
        self.changed[name], self.waiting[name] = row, (row, self.waiting[name][1])
        if self.stream.closed(name) is not None:
            self.end(name, row, "answered")
        return name, judged, False

    def _judged(self, loss: Any) -> tuple[Any, bool | None]:
        """The losses of a path, and whether all of it lay inside its band."""
        sets: Any = self.stream.controller.sets
        several = isinstance(loss, list | tuple)  # of a band alone it is a number
        first = loss[sets.band] if several else loss
        return tuple(loss) if several else loss, None if first is None else first == 0.0

    def _hit(self, row: Row, covered: bool | None) -> None:
        """Counts a label, and whether it was covered."""
        self.came(row)
        if covered is not None:
            self.hits.append(covered)

    def verbs(self, event: Mapping[str, Any], id: Id | None) -> tuple[Id | None, Any, bool]:
        """Shows a set, and takes in a label."""
        answer: dict[str, Any] = {}
        repeated = False
        if strange := {"score", "wrong", "loss"} & event.keys():
            raise InputError(f"{min(strange)} goes to a gate; {quoted(self.name)} is a stream")
        if "prediction" in event:
            prediction = event["prediction"]
            if event.get("features") is not None:
                prediction = named(prediction, event["features"])
            groups = groups_of(event.get("groups"))
            id, shown, repeated = self.predict(id, plain(prediction, "a prediction"), groups)
            answer = {"id": id, **described(shown)}
        if "y" in event:
            id, (loss, covered), repeated = self.update(id, label_of(event["y"]), event.get("step"))
            answer["id"], answer["loss"] = id, list(loss) if type(loss) is tuple else loss
            if covered is not None:
                answer["covered"] = covered
        return id, answer, repeated

    def about(self, id: Id | None) -> tuple[Id, Row]:
        """The id and the row of a prediction, of the only one that waits without an id."""
        if id is None or (row := self.row(id)) is None:
            id = self.stream.receipt(id).id
            row = self.waiting[id][0]
        return id, row

    def modify(self, risk: int, options: dict[str, Any]) -> bool:
        """Changes the level, the step or the bounds of a risk; False if they are so already."""
        risks = self.stream.controller.risks
        held = risks[risk] if options and risk in range(len(risks)) else None
        if held and all(getattr(held, name) == value for name, value in options.items()):
            return False
        self.stream.change(risk=risk, **options)
        self.asked = _asked(self.stream.controller)
        self.changes = self.dirty = True
        return True

    def reset(self) -> None:
        """Forgets what was learnt of the model."""
        self.stream.reset()
        self.changes = self.dirty = True

    # What is written

    def certificate(self) -> Any:
        """What is guaranteed, also where what waits was not read."""
        if not self.unread:
            return self.stream.certificate()
        stream, earlier = self.stream, self.stream.content(waiting=False)["earlier"]
        return certify(stream.controller, stream.state, waiting=self.unread, earlier=earlier)

    def summary(self, rows: list[Row]) -> StreamSummary:
        """How the stream is doing, with the width and the use of its last sets, from their rows."""
        controller, waiting = self.stream.controller, self.unread or len(self.waiting)
        reader, recent = controller.reader, Recent.of(controller)
        for row in rows:
            _, reading, shown, *_ = from_text(row.receipt)
            label, point = None, nan
            if self.partly:  # their labels are no numbers
                shown = None
            else:
                label = controller.sets.label(loads(row.y or "null"))
                point = reader.forecast(reading) if isinstance(reader, Forecasts) else nan
            for losses in losses_of(row, len(controller.risks)):
                given = [nan if each is None else each for each in losses]
                recent.add(shown, given, label, point, waiting)
        return summarise(controller, self.stream.state, waiting=waiting, recent=recent)

    def past(self, row: Row) -> dict[str, Any]:
        """What the history says of a prediction."""
        prediction, _, shown, lam, _, _, groups, _ = Receipt(*from_text(row.receipt))
        return {
            "prediction": prediction, "groups": [name for name, _ in groups],
            "shown": described(shown), "lam": lam,
        }  # fmt: skip

    def written(self) -> tuple[str, dict[str, Any], list[Part], list[str]]:
        """The state and overview of now, parts of arrays that changed, and arrays begun again."""
        content = self.stream.content(waiting=False)  # they have rows of their own
        bits = int("".join(["1" if hit else "0" for hit in self.hits]) or "0", 2)
        self.recent = (self.recent << len(self.hits) | bits) & ((1 << _RECENT) - 1)
        self.known = min(self.known + len(self.hits), _RECENT)
        overview = self._overview(content)
        self.serial = content["receipts"]["serial"]
        for name in ("missing", "last"):
            del content[name]
        del content["counts"]["terms"]  # those of the controller
        if isinstance(content["table"], dict):  # of classes, whose names JSON may not know
            content["table"] = to_text(content["table"])
        if self.changes:
            self.toml = spec.to_toml(self.stream.controller)
        parts, cleared = self._parts(content)  # large arrays leave the content
        return _state(content), overview, parts, cleared

    def _overview(self, content: dict[str, Any]) -> dict[str, Any]:
        """What a list of streams says of this one, as plain values.

        An account is Σ(loss − level) of a risk, its bound what the guarantee lets it reach;
        `coverage` is that of the last 100 and of the last 1,000 labels, `asked` the one asked for.
        """
        risks, counts = content["risks"], content["counts"]
        levels = [risk.level for risk in self.stream.controller.risks]
        price = price_of(content["price"] or [])
        labels = int(max(risk["judged"] for risk in risks))
        if self.changes or counts["peak"] != self.peak or labels > 1.1 * self.labels:
            self.peak, self.labels = counts["peak"], labels
            certificates = self.stream.certificate().risks
            self.bounds = [risk.constant_upper for risk in certificates]
            self.status = [str(risk.status) for risk in certificates]
        return {
            **self.overview(content["watch"], content["price"] or []),
            "labels": labels, "levels": levels, "asked": self.asked,
            "losses": [r["total"] / r["judged"] if r["judged"] else None for r in risks],
            "accounts": [
                risk["total"] - risk["judged"] * level
                for risk, level in zip(risks, levels, strict=True)
            ],
            "bounds": self.bounds, "status": self.status,
            "theta": [risk["theta"] for risk in risks],
            "full": counts["full"], "empty": counts["empty"],
            "coverage": [share(self.recent, min(self.known, n)) for n in (_HUNDRED, _RECENT)],
            "recent": f"{self.recent:x}", "known": self.known, "width": self._width(),
            "widths": self.widths, "sized": self.sized,
            "price": None if price is None else [price.sets, price.model, price.world],
        }  # fmt: skip


def _check_classes(shown: LabelSet, label: Any, y: Any) -> None:
    """Refuses a class that the prediction does not name."""
    for one in label if type(label) is tuple else (label,):
        if not shown.names(one):
            known = ", ".join([quoted(name) for name in shown.classes[:20]])
            more = " …" if len(shown.classes) > 20 else ""
            raise LabelError(f"y must be one of the classes {known}{more}, got {quoted(y)}")


def _asked(controller: Controller) -> float | None:
    """The coverage that is asked for; None where the risks are about something else."""
    shares, sets = [asked_of(risk) for risk in controller.risks], controller.sets
    if isinstance(sets, Fan):
        return sets.hull
    if not isinstance(sets, Members):
        return shares[0]
    if isinstance(sets, InParts):
        return shares[sets.band]
    if None in shares or sets.order or len(shares) != sets.members:
        return None
    missed = sum(risk.level for risk in controller.risks)  # a label may miss either side
    return max(0.0, round(1.0 - missed, 12))


def share(bits: int, count: int) -> float | None:
    """The share of ones in the last bits."""
    return (bits & ((1 << count) - 1)).bit_count() / count if count else None


_exactly = JSONEncoder(check_circular=False, default=np.ndarray.tolist).encode


def _state(content: dict[str, Any]) -> str:
    """A state as JSON, by the encoder that is several times as fast where that gives the same.

    It writes null for an infinite number, so each null must be a None of the content.
    """
    if (quick := _quick()) is not None:
        watch = content["watch"] or {"limits": ()}
        plain = [*content.values(), *content["receipts"].values(), *watch.values()]
        plain += watch["limits"]
        try:
            text: bytes = quick(content)
        except (OverflowError, TypeError):  # a long number
            return _exactly(content)
        if text.count(b"null") == sum([value is None for value in plain]):
            return text.decode()
    return _exactly(content)


def _ids(values: list[Any]) -> list[Id]:
    """Ids as they were: parts of one are a tuple, which JSON does not know."""
    return [tuple(id) if isinstance(id, list) else id for id in values]


def _memories(values: dict[str, Any]) -> dict[str, Any]:
    """A part of a state as it was: its memories are tuples, which JSON does not know."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}


@cache
def _quick() -> Any:
    """An encoder that is several times as fast, where there is one; None otherwise."""
    try:
        from msgspec.json import Encoder
    except ImportError:
        return None
    return Encoder(enc_hook=np.ndarray.tolist).encode


def _text(value: Any) -> str:
    """As `to_text`, and several times as fast where nothing is an array."""
    arrays: dict[str, np.ndarray] = {}
    packed, quick = pack(value, arrays), _quick()
    if arrays or quick is None:
        return to_text(value)
    try:
        return quick(packed).decode()  # type: ignore[no-any-return]
    except OverflowError:  # a long number
        return to_text(value)


def _updated(row: Row, y: Any) -> tuple[Any, bool | None]:
    """What was answered to the label of a prediction that is closed."""
    if row.y is None or row.loss is None:
        raise errors.ExpiredReceipt(f"the prediction under {row.id} was given up ({row.ended})")
    before, loss = loads(row.y), loads(row.loss)
    if before != y and not (is_missing(before) and is_missing(y)):
        raise InputError(f"the id {row.id} already has the label {row.y}, got {quoted(y)}")
    return tuple(loss) if isinstance(loss, list) else loss, flag(row.covered)


def losses_of(row: Row, risks: int) -> list[list[float | None]]:
    """The losses of each label of a prediction: a path has several, one for most of its steps."""
    loss = loads(row.loss or "null")
    told = list(loss.values()) if isinstance(loss, dict) else [loss]
    return [each if isinstance(each, list) else [each] * risks for each in told]


def _json(value: Any) -> str:
    return repr(value) if type(value) is float and isfinite(value) else encode(value)


def toml_of(controller: Controller | Terms) -> str:
    """A controller, or the terms of a gate, as a store keeps them."""
    if isinstance(controller, Terms):
        return controller.to_toml()
    try:
        return spec.to_toml(controller)
    except errors.SpecError as error:
        raise StateError(f"a store keeps its controller as text, and {error}") from error


def check_same(what: str, before: Controller | Terms, controller: Controller | Terms) -> None:
    """Refuses another controller, and says in which line it differs first."""
    if before == controller:
        return
    pairs = zip(*(toml_of(each).splitlines() for each in (before, controller)), strict=False)
    mine, other = next((pair for pair in pairs if pair[0] != pair[1]), ("more", "less"))
    raise StateError(
        f"{what} belongs to another controller: it has {mine!r}, the controller given has "
        f"{other!r}; leave the controller out, or begin another"
    )
