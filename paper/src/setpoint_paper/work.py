"""What runs of all experiments share: the folder of tapes, checkpoints, processes."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TAPES = "SETPOINT_TAPES"
"""The environment variable that names the folder of tapes."""


def folder_of(cache: str | os.PathLike[str] | None = None) -> Path:
    """The folder of tapes: the one given, else the one `SETPOINT_TAPES` names, else the cache."""
    named = os.environ.get(TAPES) if cache is None else cache
    if named:
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("setpoint")) / "tapes"


class Checkpoints:
    """What a long run has reached, beside the file it will leave: each step whole, or not there."""

    def __init__(self, path: Path) -> None:
        self._folder = path.with_suffix(".parts")

    def __iter__(self) -> Iterator[Path]:
        """The folder of every step that is whole, latest first."""
        found = self._folder.iterdir() if self._folder.is_dir() else ()
        return iter(sorted((each for each in found if each.suffix != ".new"), reverse=True))

    @contextmanager
    def put(self, *reached: int) -> Iterator[Path]:
        """A folder to fill in a `with` block; once that ends well it is the step's, older ones go.

        `reached` are whole numbers that order the steps.
        """
        step = self._folder / "-".join(f"{each:06}" for each in reached)
        fresh = step.with_name(f"{step.name}.{os.getpid()}.new")
        fresh.mkdir(parents=True, exist_ok=True)
        yield fresh
        older = [each for each in self if each != step]
        shutil.rmtree(step, ignore_errors=True)
        fresh.replace(step)
        for each in older:
            shutil.rmtree(each, ignore_errors=True)

    def clear(self) -> None:
        """Removes all of them; another process may be at the same file."""
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch: with small matrices several processes are the better use of cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def each(
    work: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], jobs: int, title: str
) -> list[Any]:
    """What a function gives for each of several arguments, in their order; a line tells each."""
    if not arguments:
        return []
    from joblib import Parallel, delayed

    results = []
    parallel = Parallel(n_jobs=min(jobs, len(arguments)), return_as="generator")
    for result in parallel(delayed(work)(*values) for values in arguments):
        results.append(result)
        print(f"{title}: {len(results)} of {len(arguments)}", flush=True)
    return results
