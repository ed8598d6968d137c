"""A bar of the time spent, for terminals."""

from __future__ import annotations

from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task, TimeElapsedColumn
from rich.progress_bar import ProgressBar


class _TimeColumn(ProgressColumn):
    """How much of the time limit is spent."""

    def render(self, task: Task) -> ProgressBar:
        return ProgressBar(total=task.total, completed=task.elapsed or 0.0, width=40)


class LiveBar:
    """A bar under the printed lines; it vanishes when closed.

    Parameters
    ----------
    time_limit : float, s
    """

    def __init__(self, time_limit: float) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            _TimeColumn(), TimeElapsedColumn(), console=console, transient=True
        )
        self._progress.add_task("", total=time_limit)
        self._progress.start()

    def print(self, line: str) -> None:
        """Print ``line`` above the bar, as it is."""
        self._progress.console.print(line, markup=False, highlight=False, emoji=False)

    def close(self) -> None:
        """Remove the bar."""
        self._progress.stop()


class CountBar:
    """A bar of how many things are done; a context, told by being called."""

    def __init__(self) -> None:
        self._progress = Progress(console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task("points")

    def __enter__(self) -> CountBar:
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._progress.stop()

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` are done."""
        self._progress.update(self._task, completed=done, total=total)
