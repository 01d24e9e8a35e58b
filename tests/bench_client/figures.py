"""From runs to the figures that the README quotes. Pure."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from tests.bench_client.runs import Run

OUTPUT_LEN = 256
PACED_TOKENS_PER_S = 5000


def of(runs: Sequence[Run], client: str, kind: str, concurrency: int) -> list[Run]:
    """Those of a client and a load, of whatever size."""
    return [r for r in runs if r.client == client and r.kind == kind and r.concurrency == concurrency]


def per_size(runs: Sequence[Run]) -> tuple[list[Run], list[Run]] | None:
    """The runs of the smallest and of the largest load; None where there are not two sizes."""
    sizes = sorted({run.requests for run in runs})
    if len(sizes) < 2:
        return None
    small, large = ([run for run in runs if run.requests == size] for size in (sizes[0], sizes[-1]))
    return small, large


def full_speed(runs: Sequence[Run]) -> dict[str, float] | None:
    """Medians over repeats: tokens/s of the large load, and CPU per million tokens between the small and the large.

    The difference between two sizes leaves out what a client needs to start and to end. `server_busy` is the fraction
    of its core that the server used in the large load: towards 1 the server was the limit, not the client.
    """
    sizes = per_size(runs)
    if sizes is None:
        return None
    small, large = sizes
    cpu_s = median(run.cpu_s for run in large) - median(run.cpu_s for run in small)
    tokens = (large[0].requests - small[0].requests) * OUTPUT_LEN
    return {
        "tokens_per_s": round(median(run.requests * OUTPUT_LEN / run.duration_s for run in large)),
        "cpu_s_per_million_tokens": round(cpu_s / tokens * 1e6, 2),
        "start_cpu_s": round(median(run.cpu_s for run in small), 2),
        "server_busy": round(median(run.server_cpu_s / run.duration_s for run in large), 2),
        "repeats": len(large),
    }


def paced(runs: Sequence[Run]) -> dict[str, float] | None:
    """Of loads that the server paces: the fraction of a core that the client used between the small and the large."""
    sizes = per_size(runs)
    if sizes is None:
        return None
    small, large = sizes
    cpu_s = median(run.cpu_s for run in large) - median(run.cpu_s for run in small)
    seconds = median(run.duration_s for run in large) - median(run.duration_s for run in small)
    rate = median(run.requests * OUTPUT_LEN / run.duration_s for run in large)
    return {"tokens_per_s": round(rate), "cpu_fraction": round(cpu_s / seconds, 4), "repeats": len(large)}


def figures(runs: Sequence[Run], machine: dict[str, Any]) -> dict[str, Any]:
    """All figures as they are kept in figures.json."""
    clients = list(dict.fromkeys(run.client for run in runs))
    concurrencies = sorted({run.concurrency for run in runs if run.kind == "full"})
    return {
        "machine": machine,
        "clients": {
            client: {
                "version": next(run.version for run in runs if run.client == client),
                "full_speed": {
                    str(concurrency): made
                    for concurrency in concurrencies
                    if (made := full_speed(of(runs, client, "full", concurrency)))
                },
                "paced": paced([run for run in runs if run.client == client and run.kind == "paced"]),
            }
            for client in clients
        },
        "load_1m_highest": round(max((run.load_1m for run in runs), default=0.0), 2),
    }


def table(made: dict[str, Any]) -> Iterator[str]:
    """The figures as a Markdown table: tokens/s, and CPU seconds per million tokens, at each concurrency."""
    clients: dict[str, Any] = made["clients"]
    concurrencies = sorted({key for one in clients.values() for key in one["full_speed"]}, key=int)
    heads = [f"{key} at once: tok/s | CPU s / M tok" for key in concurrencies]
    yield "| client | " + " | ".join(heads) + " |"
    yield "| --- |" + " ---: | ---: |" * len(concurrencies)
    for name, one in clients.items():
        cells = []
        for key in concurrencies:
            cell = one["full_speed"].get(key)
            cells.append(f"{cell['tokens_per_s']:,} | {cell['cpu_s_per_million_tokens']:.1f}" if cell else " | ")
        yield f"| {name} {one['version']} | " + " | ".join(cells) + " |"


BEGIN, END = "<!-- make bench-client writes this table -->\n", "<!-- end of the table -->\n"


def block(made: dict[str, Any]) -> str:
    """What the README says of the figures."""
    machine = made["machine"]
    lines = [*table(made), ""]
    for name, one in made["clients"].items():
        if one["paced"]:
            rate, used = one["paced"]["tokens_per_s"], one["paced"]["cpu_fraction"]
            lines.append(f"At a pace of {rate:,} tok/s {name} takes {used:.1%} of a core.")
    lines.append(f"Measured on {machine['cores']} cores ({machine['cpu']}), one for the server and one for the client.")
    return "\n".join(lines) + "\n"


def with_block(readme: str, made: dict[str, Any]) -> str:
    """The README with the present figures. Raises ValueError where their place is not marked."""
    head, _, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not end:
        raise ValueError("the README has no place for the table")
    return head + BEGIN + block(made) + end + tail
