"""Creates the recurring job, or replaces it after a change."""

from contextlib import suppress

import foliot
from etl import find, load, report
from foliot.errors import NotFound

flow = foliot.Workflow("nightly-etl", on_failure="fail_fast")
files = flow.step(find)
loaded = flow.map("load", load, over=files.result, item="path")
flow.step(report, after=loaded)

with foliot.connect() as connection, connection.operations as operations:
    with suppress(NotFound):
        operations.delete_job("nightly-etl")
    flow.schedule(cron="0 2 * * *", timezone="Europe/Berlin", overlap="buffer_all")
    print("nightly-etl is scheduled")
