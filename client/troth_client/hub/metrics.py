"""The metrics of a hub, as the text that Prometheus reads.

Owns: their names. Never: counts; the server and the folders do.
Next: `process.py`, which shows this page at /metrics.
"""

from collections.abc import Mapping

from troth_client.transport.tally import Tally


def metrics(tally: Tally, numbers: Mapping[str, int]) -> str:
    """Return the page: one line for each number, those of the server first."""
    lines = [
        f'troth_hub_answers_total{{method="{method}",status="{status}"}} {count}'
        for (method, status), count in sorted(tally.answers.items())
    ]
    for name, value in (
        ("received_bytes_total", tally.num_received),
        ("sent_bytes_total", tally.num_sent),
        *numbers.items(),
    ):
        lines.append(f"troth_hub_{name} {value}")
    return "\n".join([*lines, ""])
