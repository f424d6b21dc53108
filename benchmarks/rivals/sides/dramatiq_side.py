"""Dramatiq on Redis: 4 threads, 100 messages fetched ahead."""

import json
import os
import signal
import sys

os.environ.setdefault("dramatiq_queue_prefetch", "100")

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from effects import Recorder

broker = RedisBroker(url=os.environ["BENCH_REDIS"])
dramatiq.set_broker(broker)


@dramatiq.actor(actor_name="noop")
def noop(number: int, **_: object) -> None:
    recorder.record(number)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["enqueue", jobs, payload]:
            for number in range(int(jobs)):
                noop.send(**{**json.loads(payload), "number": number})
        case ["work"]:
            recorder = Recorder()
            worker = dramatiq.Worker(broker, worker_threads=4)
            worker.start()
            signal.sigwait({signal.SIGTERM, signal.SIGINT})
            worker.stop(timeout=5000)
