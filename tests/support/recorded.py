"""Numbers of a participant as TensorBoard's own reader and Prometheus' own parser read them.

Owns: reading them back. Never: the product's own code.
"""

import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer


def parsed(text: str) -> dict[str, float]:
    """The samples of a page; labels follow the name, as in `name{label="x"}`."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
            found[sample.name + (f"{{{labels}}}" if labels else "")] = sample.value
    return found


def scrape(port: int) -> dict[str, float]:
    """The samples that a server shows now."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return parsed(answer.read().decode())


def scalars(folder: Path) -> dict[str, dict[int, float]]:
    """The scalars of a TensorBoard folder: by name, the value at each step."""
    reader = EventMultiplexer().AddRunsFromDirectory(str(folder))
    reader.Reload()
    found: dict[str, dict[int, float]] = {}
    for run, tags in reader.Runs().items():
        for tag in tags["scalars"]:
            steps = {one.step: one.value for one in reader.Scalars(run, tag)}
            found.setdefault(tag, {}).update(steps)
    return found
