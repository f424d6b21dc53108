import { queryOptions } from "@tanstack/react-query";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import type { AlertChannelShown } from "~/api/schema";

export const alertsQuery = () => queryOptions({ queryKey: key("alerts"), queryFn: () => data(client.GET("/v1/alerts", { params: { query: { limit: 200 } } })) });
export const silencesQuery = () => queryOptions({ queryKey: key("alert-silences"), queryFn: () => data(client.GET("/v1/alert-silences")) });
export const rulesQuery = () => queryOptions({ queryKey: key("alert-rules"), queryFn: () => data(client.GET("/v1/alert-rules")) });
export const channelsQuery = () => queryOptions({ queryKey: key("alert-channels"), queryFn: () => data(client.GET("/v1/alert-channels")) });

/** Where a channel goes; a secret is shown as stars. */
export function destinationOf({ channel }: AlertChannelShown): string {
  switch (channel.kind) {
    case "email":
      return channel.to.join(", ");
    case "pagerduty":
      return channel.routing_key;
    case "sms":
      return channel.to;
    case "webhook":
    case "apprise":
      return channel.url;
    default:
      return channel.webhook_url;
  }
}
