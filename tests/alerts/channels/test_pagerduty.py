"""An alert at PagerDuty: triggered, acknowledged and resolved as one incident."""

from __future__ import annotations

from foliot.alerts.channels.stored import StoredChannels
from foliot.alerts.deliverer import AlertDeliverer
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.alert_channel import EmailChannel, PagerDutyChannel
from foliot.model.namespace import Namespace
from foliot.model.states import RunState
from tests.support.alert_vendors import check_pagerduty
from tests.support.alerts import Watch, put_rule
from tests.support.fake_clock import FakeClock
from tests.support.http import answer, answering
from tests.support.runs import finish

KEY = "0123456789abcdef0123456789abcdef"


async def test_an_incident_is_triggered_acknowledged_once_and_resolved(
    watch: Watch, fake_clock: FakeClock, events: EventBus
) -> None:
    store, config = watch.store, Config(http_allow_private=True, secret_references="env:ALERTS_*")
    channels = StoredChannels(store=store, config=config, clock=fake_clock)
    channels.secrets._environment = {"ALERTS_PAGER": KEY}
    deliverer = AlertDeliverer(store=store, channels=channels, clock=fake_clock, events=events)
    async with answering() as server:
        server.answers["/v2/enqueue"] = answer("202 Accepted", b'{"status":"success"}')
        pager = PagerDutyChannel(routing_key="env:ALERTS_PAGER", api_url=server.url)
        mail = EmailChannel(host="127.0.0.1", port=1, security="none", sender="a@example.org", to=("b@example.org",))
        for name, channel in (("pager", pager), ("mail", mail)):
            assert await store.alert_channels.put_channel(name, channel, {})
        await put_rule(store, "failures", "run_failed", severity="critical", channels=["pager", "mail"])
        await finish(store, RunState.FAILED, error="no such account")
        (alert,) = await watch.look()
        await deliverer.run_once()
        # The answer to the first may have got lost.
        for _ in range(2):
            assert await store.alerts.acknowledge_alert(alert.id, Namespace(), by="ann", note="on it")
        await deliverer.run_once()
        assert await store.alerts.resolve_alert(alert.id, Namespace(), by="ann")
        await watch.look()
        await deliverer.run_once()
    sent = [check_pagerduty(asked) for asked in server.asked]
    assert [event["event_action"] for event in sent] == ["trigger", "acknowledge", "resolve"]
    assert {event["dedup_key"] for event in sent} == {str(alert.id)}
    assert {event["routing_key"] for event in sent} == {KEY}
    assert [message["event"] for message in await watch.messages()].count("acknowledged") == 1
