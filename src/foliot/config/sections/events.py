"""Settings of events out."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from foliot.config.sections.channels import ChannelsSettings
from foliot.validation_errors import form

TOPIC_NAME = form(r"^[A-Za-z0-9._:-]*$(?!\n)", "consist of letters, digits and . _ : -")
TopicName = Annotated[str, Meta(max_length=200, pattern=TOPIC_NAME)]


class EventsSettings(ChannelsSettings, frozen=True, kw_only=True):
    events_url: Annotated[
        str,
        Meta(
            description="URL of a message broker that receives events of runs and ticks, such as "
            "`redis://:password@host:6379/0`. Empty: none. See events-out.md."
        ),
    ] = ""
    events_url_file: Annotated[str, Meta(description="File that contains `events_url`.")] = ""
    events_topic: Annotated[TopicName, Meta(min_length=1, description="The topic of these events.")] = "foliot-events"
    events_dead_letter_topic: Annotated[
        TopicName, Meta(description="The topic that also receives runs that failed for good. Empty: none.")
    ] = "dead_letter_queue"
