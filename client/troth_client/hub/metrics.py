"""The metrics of a hub, as the text that Prometheus reads.

Owns: their names. Never: counts; the server and the folders do.
Next: `process.py`, which shows this page at /metrics.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from troth_client.transport.tally import Tally

PREFIX = "troth_hub"


def metrics(tally: Tally, numbers: Mapping[str, int]) -> str:
    """Return the page: the answers and bytes of the server, then `numbers` by name."""
    registry = CollectorRegistry()
    registry.register(_Page(tally, numbers))
    return generate_latest(registry).decode()


@dataclass(frozen=True, slots=True, eq=False)
class _Page(Collector):
    tally: Tally
    numbers: Mapping[str, int]

    def collect(self) -> Iterator[Metric]:
        """Yield the families of the page."""
        labels = ("method", "status")
        answers = CounterMetricFamily(f"{PREFIX}_answers", "answers to callers", labels=labels)
        for (method, status), count in sorted(self.tally.answers.items()):
            answers.add_metric((method, str(status)), count)
        yield answers
        for name, value in (("received", self.tally.num_received), ("sent", self.tally.num_sent)):
            about = f"bytes of bodies {name}"
            yield CounterMetricFamily(f"{PREFIX}_{name}_bytes", about, value=value)
        for name, value in self.numbers.items():
            yield GaugeMetricFamily(f"{PREFIX}_{name}", name.replace("_", " "), value=value)
