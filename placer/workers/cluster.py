"""An engine on the workers of a Dask cluster (``pip install placer[dask]``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placer.base.errors import PlacerError
from placer.version import __version__

if TYPE_CHECKING:
    from placer.workers.engine import Run, Stop, Task

_CONNECT_S = 10
_POLL_S = 0.2


@dataclass(frozen=True)
class Cluster:
    """An engine of the workers behind a Dask scheduler."""

    address: str  # of the scheduler, for example ``tcp://10.0.0.1:8786``

    @contextmanager
    def opened(self, task: Task, stop: Stop) -> Iterator[Run]:
        """As `Engine.opened`.

        Raises `PlacerError` if Dask is not installed, the scheduler cannot be reached,
        it has no workers, or they have another placer.
        """
        try:
            from distributed import Client, wait
        except ImportError:
            message = "a Dask scheduler needs Dask: pip install 'placer[dask]'"
            raise PlacerError(message) from None
        wait_for: Callable[..., Any] = wait
        with self._client(Client) as client:
            self._check_workers(client)
            shared = client.scatter(task, broadcast=True, hash=False)

            def run(points: Sequence[Any]) -> Iterator[tuple[int, Any]]:
                futures = client.map(_answer, points, task=shared, pure=False)
                index_of = {future.key: index for index, future in enumerate(futures)}
                pending = set(futures)
                while pending and not stop():
                    try:
                        with client.as_current():
                            found = wait_for(pending, _POLL_S, "FIRST_COMPLETED")
                    except TimeoutError:
                        continue
                    pending = found.not_done
                    for future in found.done:
                        yield index_of[future.key], future.result()
                client.cancel(list(pending))

            yield run

    def _client(self, connect: Callable[..., Any]) -> Any:
        from distributed.comm.addressing import get_address_host_port

        try:
            if not self.address.startswith("inproc:"):
                # A client waits for 20 s, and then complains, before it says the same.
                get_address_host_port(self.address)
            return connect(self.address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            message = f"the Dask scheduler {self.address} cannot be reached: {reason}"
            raise PlacerError(message) from None

    def _check_workers(self, client: Any) -> None:
        """Refuse a cluster that would never answer, or would answer otherwise."""
        try:
            client.wait_for_workers(1, timeout=_CONNECT_S)
            versions = client.run(_version)
        except TimeoutError:
            message = f"the Dask scheduler {self.address} has no workers"
            raise PlacerError(message) from None
        except ImportError as error:
            message = f"the workers of {self.address} have no placer: {error}"
            raise PlacerError(message) from None
        for worker, version in versions.items():
            if version != __version__:
                message = (
                    f"the Dask worker {worker} has placer {version}, "
                    f"this is {__version__}"
                )
                raise PlacerError(message)


def _version() -> str:
    return __version__


def _answer(point: Any, task: Task) -> Any:
    return task.answer(point, lambda: False)
