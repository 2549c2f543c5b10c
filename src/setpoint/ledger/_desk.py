"""Answers to events: what they do the first time, and what is said when they come again."""

from typing import Any

from setpoint._check import is_missing
from setpoint.errors import (
    AnsweredReceipt,
    ExpiredReceipt,
    InputError,
    ReceiptError,
    SetpointError,
)
from setpoint.ledger._book import Book
from setpoint.ledger._recall import brief
from setpoint.ledger._words import described, plain, quoted, read, told
from setpoint.receipts import Id

__all__ = ["Desk"]


class Desk:
    """Takes in events one by one and answers each, with its error if it cannot be taken in."""

    def __init__(self, book: Book) -> None:
        self.book = book

    def answer(self, event: Any, records: list[Any]) -> dict[str, Any]:
        """What is said to an event; what it changed is added to the records."""
        answer: dict[str, Any] = {}
        try:
            name, id = read(event)
            for key in ("stream", "id"):
                if key in event:
                    answer[key] = event[key]
            if "prediction" in event:
                answer |= self._predict(name, id, event["prediction"], records)
                id = answer["id"]
            if "y" in event:
                answer |= self._update(name, id, event["y"], records)
            if event.get("drop"):
                answer |= self._drop(name, id, records)
            if event.get("certificate"):
                answer["certificate"] = self.book.stream(name).certificate().as_dict()
        except _Differs as error:
            answer |= {**error.answer, "repeated": True, "error": told(error, event)}
        except SetpointError as error:
            answer["error"] = told(error, event)
        except RecursionError:
            answer["error"] = (
                "an event must be made of numbers, text and short lists, got deep ones"
            )
        return answer

    def _predict(
        self, name: str, id: Id | None, prediction: Any, records: list[Any]
    ) -> dict[str, Any]:
        given = plain(prediction)
        for each in _outer(given):
            if isinstance(each, bool):
                raise InputError(f"a prediction must be made of numbers, got {quoted(given)}")
        if id is not None and self.book.how(name, id) is not None:
            return self._predicted_before(name, id, given)
        try:
            receipt = self.book.issue(name, id, given)
        except InputError:
            held = None if id is None else self.book.waiting(name, id)
            if id is None or held is None:
                raise
            if brief(self.book.stream(name).read(given, id)) != brief(held.prediction):
                message = f"another prediction already waits under the id {quoted(id)}"
                raise _Differs(message, described(held.shown)) from None
            return {"id": id, **described(held.shown), "repeated": True}
        records.append((name, receipt.id, "prediction", given))
        return {"id": receipt.id, **described(receipt.shown)}

    def _predicted_before(self, name: str, id: Id, prediction: Any) -> dict[str, Any]:
        """The answer to a prediction under an id that is closed."""
        known = self.book.recall.get(name, id)
        if known is None:
            return {"id": id, "repeated": True}
        if brief(self.book.stream(name).read(prediction, id)) != known.prediction:
            message = f"another prediction was made under the id {quoted(id)}: an id is used once"
            raise _Differs(message, known.shown)
        return {"id": id, **known.shown, "repeated": True}

    def _update(self, name: str, id: Id | None, y: Any, records: list[Any]) -> dict[str, Any]:
        given = plain(y)
        try:
            receipt = self.book.stream(name).receipt(id)
        except ReceiptError:
            how = None if id is None else self.book.how(name, id)
            if id is None or how is None:
                raise
            return self._updated_before(name, id, given, how)
        said = self.book.learn(name, receipt, given)
        records.append((name, receipt.id, "y", given))
        return {"id": receipt.id, **said}

    def _updated_before(self, name: str, id: Id, y: Any, how: str) -> dict[str, Any]:
        """The answer to a label under an id that is closed."""
        if how in ("dropped", "expired") or (how == "missing" and not is_missing(y)):
            raise ExpiredReceipt(f"the prediction under the id {quoted(id)} was given up ({how})")
        known = self.book.recall.get(name, id)
        if known is None:
            return {"id": id, "repeated": True}
        if how != "missing" and y != known.y:
            message = f"the id {quoted(id)} already has the label {quoted(known.y)}"
            raise _Differs(f"{message}, got {quoted(y)}", known.said)
        return {"id": id, **known.said, "repeated": True}

    def _drop(self, name: str, id: Id | None, records: list[Any]) -> dict[str, Any]:
        try:
            receipt = self.book.stream(name).receipt(id)
        except ReceiptError:
            how = None if id is None else self.book.how(name, id)
            if id is None or how is None:
                raise
            if how in ("answered", "closed"):
                raise AnsweredReceipt(
                    f"the prediction under the id {quoted(id)} already has its label"
                ) from None
            return {"id": id, "dropped": True, "repeated": True}
        said = self.book.give_up(name, receipt)
        records.append((name, receipt.id, "drop", True))
        return {"id": receipt.id, **said}


class _Differs(InputError):
    """An event under an id that belongs to another one, and the answer that one got."""

    def __init__(self, message: str, answer: dict[str, Any]) -> None:
        super().__init__(message)
        self.answer = answer


def _outer(value: Any) -> Any:
    """A value, or those directly in it."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else (value,)
