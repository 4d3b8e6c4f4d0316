"""Figures for Prometheus, in a registry of the app's own: two apps in one process do not mix theirs."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from recollect.engine.care import Totals

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "recollect_http_requests", "Requests answered.", ["route", "method", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "recollect_http_request_seconds",
            "Time until a request was answered.",
            ["route", "method"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._nodes = Gauge("recollect_nodes", "Nodes remembered, in all spaces.", registry=self.registry)
        self._jobs = Gauge("recollect_jobs", "Embedding jobs, by state.", ["state"], registry=self.registry)
        self._embeddings = Gauge("recollect_embeddings", "Vectors stored, by model.", ["model"], registry=self.registry)

    def answered(self, *, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request, by the route's pattern and not its path, so that there are few series."""
        method = method if method in METHODS else "OTHER"
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route, method).observe(seconds)

    def exposed(self, totals: Totals) -> bytes:
        """Everything in Prometheus's text format."""
        self._nodes.set(totals.nodes)
        self._jobs.labels("pending").set(totals.jobs.pending)
        self._jobs.labels("processing").set(totals.jobs.processing)
        self._jobs.labels("completed").set(totals.jobs.completed)
        self._jobs.labels("unreadable").set(totals.jobs.unreadable)
        self._jobs.labels("failed").set(totals.jobs.failed)
        self._embeddings.clear()
        for model, number in totals.embeddings.items():
            self._embeddings.labels(model).set(number)
        return generate_latest(self.registry)
