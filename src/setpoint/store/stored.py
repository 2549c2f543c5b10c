"""One stream of a store, with the calls of a `Stream`."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from setpoint.receipts import checked_groups
from setpoint.sets.family import named
from setpoint.state import Id
from setpoint.store.events import groups_of, id_of, label_of, plain

if TYPE_CHECKING:
    from setpoint.store.store import Store


class Stored:
    """What a store has by a name: each call is committed before it returns."""

    def __init__(self, store: "Store", name: str) -> None:
        self._store, self.name = store, name

    @contextmanager
    def _live(self, id: Id | None = None) -> Iterator[Any]:
        with self._store._transaction([self.name]):
            live = self._store._begun(self.name, new=False)
            if id is not None:
                self._store._fill(live, [id_of(id)])
            yield live

    def drop(self, id: Id | None = None) -> None:
        """Gives up a prediction or an action whose label will not come."""
        with self._live(id) as live:
            live.drop(id)

    def acknowledge(self) -> None:
        """As `Stream.acknowledge`: a change of price is known, and is to stay."""
        with self._live() as live:
            live.acknowledge()

    def apply(self, events: Iterable[Any]) -> list[dict[str, Any]]:
        """As `Store.apply`, for events that name no other stream."""
        return self._store.apply(events, self.name)

    def certificate(self) -> Any:
        """What is guaranteed, and whether the premises hold."""
        with self._live() as live:
            return live.stream.certificate()


class StoredStream(Stored):
    """One stream of a store, made by `Store.stream`: as a `Stream`, committed before it returns."""

    def predict(
        self,
        prediction: Any,
        id: Id | None = None,
        groups: Iterable[Id] | None = None,
        *,
        features: Mapping[str, Any] | None = None,
    ) -> Any:
        """The set for a prediction; it waits for its label under `id`, or a generated number.

        `groups` and `features` are those of `Stream.predict`.
        """
        if features is not None:
            prediction = named(prediction, features)
        names = None if groups is None else groups_of(checked_groups(groups))
        with self._live(id) as live:
            return live.predict(id, plain(prediction, "a prediction"), names)[1]

    def update(self, y: Any, id: Id | None = None, *, step: int | None = None) -> Any:
        """Takes in a label and returns its loss: a tuple if there are several risks.

        Of a path `step` says which step it is of, as for `Stream.update`.
        """
        with self._live(id) as live:
            return live.update(id, label_of(y), step)[1][0]

    def change(
        self,
        *,
        risk: int = 0,
        level: float | None = None,
        step: Any = None,
        bounds: tuple[float, float] | None = None,
        reset: bool = False,
    ) -> bool:
        """As `Stream.change`; False if everything is so already, and then nothing changes.

        With `reset` it does what `Stream.reset` does before that, and both or neither.
        """
        options = {"level": level, "step": step, "bounds": bounds}
        given = {name: value for name, value in options.items() if value is not None}
        with self._live() as live:
            if given or not reset:
                modified = live.modify(risk, given)
            if reset:
                live.reset()
            return reset or modified

    def reset(self) -> None:
        """As `Stream.reset`: forgets what was learnt of a model that another one replaces."""
        with self._live() as live:
            live.reset()
