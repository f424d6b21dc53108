"""Runs tasks in tests, without a database or a server.

    from foliot.testing import inline

    def test_an_invoice_is_sent():
        with inline(app) as bench:
            job = send_invoice.submit(customer_id=7)
            bench.run()
            assert job.result() == "sent to 7"

`submit`, handles, `ctx`, durable steps, retries, snoozes and schedules work as on a worker, with the same code. Time
stands still until `bench.advance` moves it. Limits, timeouts, other processes and the built-in tasks are not available.
"""

from foliot.testing.bench import Bench, inline

__all__ = ["Bench", "inline"]
