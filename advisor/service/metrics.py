"""What the service counts, as Prometheus reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the classes of durations, seconds."""
MEDIA = "text/plain; version=0.0.4; charset=utf-8"


@dataclass
class Metrics:
    """Counts since the start."""

    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """Route, method and status -> requests."""
    classes: Counter[tuple[str, float]] = field(default_factory=Counter)
    """Route and upper bound -> requests in this class."""
    seconds: Counter[str] = field(default_factory=Counter)
    """Route -> seconds, all requests together."""
    lines: Counter[str] = field(default_factory=Counter)
    """Question -> lines of ``/bulk``."""
    in_flight: int = 0

    def note(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that is answered."""
        self.requests[route, method, status] += 1
        self.seconds[route] += seconds  # type: ignore[assignment]  # a counter takes any number
        bound = next((one for one in _BOUNDS if seconds <= one), float("inf"))
        self.classes[route, bound] += 1

    def text(self, gauges: Mapping[str, tuple[str, float]], versions: Mapping[str, str]) -> str:
        """Write everything.

        Args:
            gauges: Name -> its help and value now.
            versions: What answers rest on.
        """
        labels = ",".join(f'{name}="{value}"' for name, value in versions.items())
        lines = [
            *_head("advisor_info", "gauge", "What answers rest on."),
            f"advisor_info{{{labels}}} 1",
            *_head("advisor_requests_total", "counter", "Requests that were answered."),
            *(
                f'advisor_requests_total{{route="{route}",method="{method}",status="{status}"}} {n}'
                for (route, method, status), n in sorted(self.requests.items())
            ),
            *_head("advisor_bulk_lines_total", "counter", "Lines of /bulk."),
            *(
                f'advisor_bulk_lines_total{{question="{question}"}} {n}'
                for question, n in sorted(self.lines.items())
            ),
            *_head("advisor_request_seconds", "histogram", "Time from a request to its answer."),
            *self._histogram(),
        ]
        for name, (said, value) in {**gauges, "in_flight": _in_flight(self.in_flight)}.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [*_head(f"advisor_{name}", kind, said), f"advisor_{name} {value:g}"]
        return "\n".join(lines) + "\n"

    def _histogram(self) -> Iterator[str]:
        name = "advisor_request_seconds"
        for route in sorted({route for route, _ in self.classes}):
            total = 0
            for bound in (*_BOUNDS, float("inf")):
                total += self.classes[route, bound]
                shown = "+Inf" if bound == float("inf") else f"{bound:g}"
                yield f'{name}_bucket{{route="{route}",le="{shown}"}} {total}'
            yield f'{name}_sum{{route="{route}"}} {self.seconds[route]:.6f}'
            yield f'{name}_count{{route="{route}"}} {total}'


def _in_flight(count: int) -> tuple[str, float]:
    return "Requests that are being answered.", count


def _head(name: str, kind: str, said: str) -> tuple[str, str]:
    return f"# HELP {name} {said}", f"# TYPE {name} {kind}"
