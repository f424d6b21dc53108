"""Dramatiq on Redis or RabbitMQ: 4 threads, 100 messages fetched ahead."""

import json
import os
import signal
import sys
import time

os.environ.setdefault("dramatiq_queue_prefetch", "100")

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.brokers.redis import RedisBroker

from effects import Recorder

url = os.environ["BENCH_BROKER"]
broker = (RabbitmqBroker if url.startswith("amqp") else RedisBroker)(url=url)
dramatiq.set_broker(broker)


@dramatiq.actor(actor_name="noop")
def noop(number: int, **_: object) -> None:
    recorder.record(number)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["enqueue" | "delayed" | "pace" as command, jobs, payload, *due]:
            for number in range(int(jobs)):
                delay = int(1000 * (float(due[0]) - time.time())) if due else None
                noop.send_with_options(kwargs={**json.loads(payload), "number": number}, delay=delay)
                if command == "pace":
                    # The time at which the call returned.
                    print(time.monotonic(), flush=True)
                    time.sleep(0.05)
        case ["work"]:
            recorder = Recorder()
            worker = dramatiq.Worker(broker, worker_threads=4)
            worker.start()
            signal.sigwait({signal.SIGTERM, signal.SIGINT})
            worker.stop(timeout=5000)
