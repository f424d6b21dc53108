"""Celery on Redis or RabbitMQ: 8 threads, 64 messages fetched ahead for each, acknowledged late, no results kept."""

import json
import os
import sys
import time
from datetime import UTC, datetime

from celery import Celery

from effects import Recorder

app = Celery("bench", broker=os.environ["BENCH_BROKER"])
app.conf.update(
    task_ignore_result=True, worker_prefetch_multiplier=64, task_acks_late=True, broker_connection_retry_on_startup=True
)


@app.task(name="noop")
def noop(number: int, **_: object) -> None:
    recorder.record(number)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["enqueue" | "delayed" | "pace" as command, jobs, payload, *due]:
            eta = datetime.fromtimestamp(float(due[0]), UTC) if due else None
            with app.producer_pool.acquire(block=True) as producer:
                for number in range(int(jobs)):
                    noop.apply_async(kwargs={**json.loads(payload), "number": number}, producer=producer, eta=eta)
                    if command == "pace":
                        # The time at which the call returned.
                        print(time.monotonic(), flush=True)
                        time.sleep(0.05)
        case ["work"]:
            recorder = Recorder()
            name = f"worker-{os.getpid()}@bench"
            flags = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
            app.worker_main(
                ["worker", "--pool", "threads", "--concurrency", "8", "--loglevel", "ERROR", "-n", name, *flags]
            )
