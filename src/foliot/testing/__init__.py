"""For the tests of code that uses Foliot: its tasks, run here and now, without a database or a server.

    from foliot.testing import inline

    def test_an_invoice_is_sent():
        with inline(app) as bench:
            job = send_invoice.submit(customer_id=7)
            bench.run()
            assert job.result() == "sent to 7"

`submit`, handles, `ctx`, retries, snoozes and schedules work as they do on a worker, by the same code; time stands
still until `bench.advance` moves it. What belongs to the cluster is not there: limits, time limits, other processes,
and the built-in tasks.
"""

from foliot.testing.bench import Bench, inline

__all__ = ["Bench", "inline"]
