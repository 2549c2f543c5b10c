"""The folder of a ledger: whose it is, its streams written whole, its logs, and what may go.

controller.toml       what is held, and how
options.json          the format, how many may wait, what a missing label does, what was held there
                      earlier, and the controller once more, to see whether it was changed
streams-<n>.zip       every stream after event n, the last two times it was written
log-<n>.jsonl         the events after n, of as many logs as the older of the two needs
damaged-*             what could not be read, kept for whoever wants to look at it
"""

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from setpoint import _store, spec
from setpoint._files import make_folder, put, writing
from setpoint.controller import Controller
from setpoint.errors import SpecError, StateError
from setpoint.ledger._log import Batch, Log, batches, damaged_end
from setpoint.ledger._words import quoted

__all__ = ["FORMAT", "Folder"]

FORMAT = 2
"""Format 1 had a check sum for each event, and every closed id in words."""
_OWN = (".controller.toml.", ".options.json.", ".streams-")
_DEFAULTS = {"max_pending": 10_000, "overflow": "refuse", "missing": "skip"}


class Folder:
    """The files of a ledger, held by one process at a time.

    Parameters
    ----------
    path
        Where it is; made if there is none and a controller is given.
    controller
        That of the folder, or None if it has one.
    options
        Those of a new folder where they are not the usual ones; one that exists has its own.
    """

    def __init__(self, path: Path, controller: Controller | None, options: dict[str, Any]) -> None:
        self.path = path
        self._damaged: dict[int, StateError] = {}
        self._notes: list[str] = []
        if (path / "metrics.json").exists():
            raise StateError(_belongs_to_a_job(path))
        begun = (path / "options.json").exists()
        if not begun and self._has_events():
            raise StateError(
                f"{path} lacks options.json, without which what it holds cannot be read as it was "
                "taken in: restore it from a copy, or begin another folder"
            )
        if controller is None and not begun and not (path / "controller.toml").exists():
            raise StateError(f"{path} holds no ledger yet: give the controller to begin with")
        make_folder(path)
        self._lock = _locked(path / "lock")
        try:
            self.options, self.format = {**_DEFAULTS, **options}, FORMAT
            self._earlier: list[tuple[int, dict[str, Any]]] = []
            self._began: Controller | None = None
            if (path / "options.json").exists():
                self._read_options()
            self.controller = self._agreed_controller(controller)
            for left in path.glob(".*"):
                if left.name.startswith(_OWN):  # a writer was killed before it moved it
                    left.unlink(missing_ok=True)
        except BaseException:
            self.release()
            raise

    def _has_events(self) -> bool:
        """Whether something was taken in: a crash before the first event leaves an empty log."""
        logs = self.path.glob("log-*.jsonl")
        return any(self.path.glob("streams-*.zip")) or any(log.stat().st_size for log in logs)

    def release(self) -> None:
        """Lets other processes have the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # Whose it is

    def _agreed_controller(self, given: Controller | None) -> Controller:
        """The controller of the folder, which must be the one given."""
        file = self.path / "controller.toml"
        try:
            described = None if given is None else spec.to_dict(given)
            text = None if given is None else spec.to_toml(given)
        except SpecError as error:
            raise StateError(f"a ledger keeps its controller as text, and {error}") from error
        held = self._began or given
        if file.exists():
            try:
                held = spec.from_toml(file.read_text(encoding="utf-8"))
            except (SpecError, UnicodeDecodeError) as error:
                raise StateError(f"{file} is damaged: {error}") from error
        if held is None:
            raise StateError(f"{file} is missing: restore it, or give the controller of the folder")
        if self._began is not None and held != self._began:
            where, mine, before = _first_difference(spec.to_dict(held), spec.to_dict(self._began))
            raise StateError(
                f"{file} was changed, and what was answered came from the one before: its {where} "
                f"is {mine} and was {before}; set it back, or begin another folder"
            )
        if described is not None and held != given:
            where, mine, other = _first_difference(spec.to_dict(held), described)
            raise StateError(
                f"{self.path} belongs to another controller: its {where} is {mine}, that of the "
                f"controller given is {other}; leave the controller out, or begin another folder"
            )
        if text is not None and not file.exists():
            put(file, text)
        return held

    def _read_options(self) -> None:
        """Takes over what a folder says of itself."""
        file = self.path / "options.json"
        try:
            held: dict[str, Any] = json.loads(file.read_bytes())
            found = held.get("format", 1)
            self.options = {name: held[name] for name in _DEFAULTS}
            for end, before in held.get("earlier", ()):
                self._earlier.append((int(end), {name: before[name] for name in _DEFAULTS}))
            if "controller" in held and found == FORMAT:
                self._began = spec.from_dict(held["controller"])
        except (SpecError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(
                f"{file} is damaged ({error}): write it again, as in {json.dumps(_DEFAULTS)}"
            ) from error
        if not isinstance(found, int) or found > FORMAT:
            raise StateError(
                f"{self.path} has format {found}; this setpoint reads up to {FORMAT}: update "
                "setpoint to read it"
            )
        self.format = found

    def settle(self) -> None:
        """Notes whose the folder is and that all in it is of the present format, a log at least."""
        if self.format != FORMAT or self._began is None:
            self._write_options()
            self.format, self._began = FORMAT, self.controller

    def options_after(self, serial: int) -> dict[str, Any]:
        """The options under which the events after one were taken in."""
        return next((held for end, held in self._earlier if serial < end), self.options)

    def change(self, serial: int, options: dict[str, Any]) -> None:
        """Notes other options for the events after one, which is the last of its log."""
        oldest = min(self._numbered("log-", ".jsonl"))
        earlier = [*self._earlier, (serial, self.options)]
        self._earlier = [(end, held) for end, held in earlier if end > oldest]
        self.options = options
        self._write_options()

    def _write_options(self) -> None:
        content = {"format": FORMAT, **self.options, "controller": spec.to_dict(self.controller)}
        if self._earlier:
            content["earlier"] = self._earlier
        put(self.path / "options.json", json.dumps(content))

    # What it holds

    def newest(self) -> tuple[int, dict[str, Any] | None]:
        """The streams as they were last written whole, and after which event that was.

        If the file is damaged it is those before, which the logs lead to the same end.
        """
        written, logs = self._numbered("streams-", ".zip"), self._numbered("log-", ".jsonl")
        # Each log is made before what tells of it: the streams, or for the first one the options.
        begins = written or ([] if self._began is None or logs else [0])
        for number in sorted(set(begins).difference(logs)):
            raise StateError(
                f"{self._log(number)} is missing, and with it the events after {number:,}: restore "
                "the folder from a copy, or begin another"
            )
        for number in sorted(written, reverse=True):
            try:
                return number, _store.read(self._streams(number), "ledger", FORMAT)
            except StateError as error:
                self._damaged[number] = error
        if self._damaged and 0 not in logs:
            damage = next(iter(self._damaged.values()))
            raise StateError(f"{damage}; nothing before it is left: restore the folder from a copy")
        return 0, None

    def arrived(self) -> None:
        """Notes that the logs were read to their end, and tells what was damaged."""
        for number, damage in self._damaged.items():
            path = self._streams(number)  # or it would count as one of the last two
            path.rename(_free(path))
            self._notes.append(
                f"{damage}; nothing is lost: what was written before it and the logs were read "
                "instead"
            )
        notes, self._damaged, self._notes = self._notes, {}, []
        for note in notes:
            warnings.warn(note, RuntimeWarning, stacklevel=4)

    def events(self, after: int) -> Iterator[tuple[Path, Batch]]:
        """The batches of every log from the one that begins after an event."""
        begins = sorted(n for n in self._numbered("log-", ".jsonl") if n >= after)
        serial = after
        for begin in begins:
            path = self._log(begin)
            if begin != serial:
                raise StateError(
                    f"{path} begins after event {begin:,}, and those after {serial:,} are missing: "
                    "restore the folder from a copy"
                )
            for batch in batches(path, last=begin == begins[-1]):
                if batch.first != serial + 1:
                    raise StateError(f"{path} is damaged: event {batch.first} after {serial}")
                serial += len(batch.events)
                yield path, batch

    def resumed(self, after: int, path: Path | None, end: int, serial: int) -> Log:
        """The last log, to go on with after an event; a torn batch at its end is cut off."""
        last = self._log(
            max([n for n in self._numbered("log-", ".jsonl") if n >= after] or [after])
        )
        end = end if last == path else 0
        damaged = damaged_end(last, end)
        if damaged:
            aside = put(_free(last), damaged)
            self._notes.append(
                f"{last} is damaged after event {serial:,}: what was sent after it may have been "
                f"answered and is lost, so send it again; its bytes go to {aside.name}"
            )
        return Log(last, end)

    def written(self, number: int, content: dict[str, Any]) -> tuple[Log, int]:
        """Writes the streams whole; the new log, and the size of what was written."""
        with writing(self.path):
            log = Log(self._log(number), 0)
            try:
                _store.write(self._streams(number), "ledger", content, FORMAT)
            except BaseException:
                log.close()
                raise
        self.forget()
        return log, self._streams(number).stat().st_size

    def size(self, number: int) -> int:
        """How many bytes the streams after an event take; 0 if they were not written then."""
        path = self._streams(number)
        return path.stat().st_size if path.exists() else 0

    def forget(self) -> None:
        """Removes what came before the last two times that the streams were written whole."""
        kept = sorted(self._numbered("streams-", ".zip"))[-2:]
        oldest = kept[0] if len(kept) == 2 else 0
        for number in self._numbered("streams-", ".zip"):
            if number < oldest:
                self._streams(number).unlink(missing_ok=True)
        for number in self._numbered("log-", ".jsonl"):
            if number < oldest:
                self._log(number).unlink(missing_ok=True)

    def _streams(self, number: int) -> Path:
        return self.path / f"streams-{number:020d}.zip"

    def _log(self, number: int) -> Path:
        return self.path / f"log-{number:020d}.jsonl"

    def _numbered(self, prefix: str, suffix: str) -> list[int]:
        """The numbers in the names of files of one kind."""
        found = self.path.glob(f"{prefix}*{suffix}")
        names = [path.name[len(prefix) : -len(suffix)] for path in found]
        return [int(name) for name in names if name.isdigit()]


def _belongs_to_a_job(path: Path) -> str:
    told = f"{path} holds the results of a job (metrics.json), and a ledger needs its own folder"
    if (path / "options.json").exists():
        return (
            f"{told}: move what the job wrote out of it, and see that controller.toml is the "
            "ledger's"
        )
    return f"{told}: name another, and {path / 'controller.toml'} as the controller to begin with"


def _free(path: Path) -> Path:
    """A name beside a damaged file that nothing has yet."""
    free, number = path.with_name(f"damaged-{path.name}"), 0
    while free.exists():
        number += 1
        free = path.with_name(f"damaged-{path.stem}-{number}{path.suffix}")
    return free


def _first_difference(held: Any, given: Any, where: str = "") -> tuple[str, str, str]:
    """The first field in which two descriptions differ, and how each has it."""
    if isinstance(held, dict) and isinstance(given, dict):
        if held.get("part") != given.get("part"):
            return where or "part", quoted(held.get("part")), quoted(given.get("part"))
        for key in [*held, *given]:
            if held.get(key) != given.get(key):
                inner = f"{where}.{key}" if where else key
                return _first_difference(held.get(key), given.get(key), inner)
    if isinstance(held, list) and isinstance(given, list) and len(held) == len(given):
        for place, pair in enumerate(zip(held, given, strict=True)):
            if pair[0] != pair[1]:
                return _first_difference(*pair, f"{where}[{place}]")
    return where, _stated(held), _stated(given)


def _stated(value: Any) -> str:
    return "not given" if value is None else quoted(value)


def _locked(path: Path) -> IO[bytes] | None:
    """A lock that the system lets go when the process ends; None where there are no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    with writing(path.parent):
        file = open(path, "ab")  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise StateError(f"another process works on the ledger {path.parent}") from None
    return file
