"""What runs of all experiments share: the folder of tapes, processes with a bar, the screen."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["TAPES", "each", "folder_of", "one_thread", "say", "screen"]

TAPES = "SETPOINT_TAPES"
"""The environment variable that names the folder of tapes."""


def folder_of(cache: str | os.PathLike[str] | None = None) -> Path:
    """The folder of tapes: the one given, else the one `SETPOINT_TAPES` names, else the cache."""
    named = os.environ.get(TAPES) if cache is None else cache
    if named:
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("setpoint")) / "tapes"


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
    work: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]],
    jobs: int,
    console: Any,
    title: str,
) -> list[Any]:
    """What a function gives for each of several arguments, in their order, with a progress bar."""
    if not arguments:
        return []
    from joblib import Parallel, delayed
    from rich.progress import Progress

    results = []
    parallel = Parallel(n_jobs=min(jobs, len(arguments)), return_as="generator")
    with Progress(console=console) as bar:
        task = bar.add_task(title, total=len(arguments))
        for result in parallel(delayed(work)(*values) for values in arguments):
            results.append(result)
            bar.advance(task)
    return results


def screen() -> Any:
    """The console that reports and progress bars are written to."""
    from rich.console import Console

    return Console()


def say(console: Any, text: str) -> None:
    """Prints a text as it is: no colours, no markup, no line ends of its own."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
