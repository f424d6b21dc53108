import { useMutation } from "@tanstack/react-query";
import { client, data } from "~/api/client";
import { queryClient } from "~/api/queries";
import { useMay, useSession } from "~/api/session";
import { Button } from "~/components/Button";
import { Icon } from "~/components/Icon";
import { toast, toastProblem } from "~/components/Toast";
import { useLive } from "~/live/pulse";
import { useNow } from "~/model/clock";
import { duration } from "~/model/times";
import { sentence, text } from "~/texts/en";
import styles from "./Banners.module.css";

/** What concerns every page: everything is paused, nobody works, or the server is away. */
export function Banners() {
  const isIn = useSession()?.is_signed_in ?? false;
  const { state, heardAt, pulse } = useLive();
  const now = useNow();
  const mayOperate = useMay("operate");
  const resume = useMutation({
    mutationFn: () => data(client.POST("/v1/resume", {})),
    onSuccess: () => {
      toast({ message: text.banner.resumed });
      void queryClient.invalidateQueries();
    },
    onError: toastProblem,
  });
  if (!isIn) return null;
  if (state === "lost" && heardAt !== null && now - heardAt > 8_000)
    return <Banner kind="problem">{text.banner.unreachable(duration(Math.round((now - heardAt) / 1000)))}</Banner>;
  const notice = pulse?.notices?.[0];
  if (!notice) return null;
  return (
    <Banner kind={notice.kind === "database_unavailable" || notice.kind === "read_only" ? "problem" : "notice"}>
      {notice.kind === "everything_paused" ? text.banner.paused(notice.reason ?? null) : sentence(notice.text)}
      {notice.kind === "everything_paused" && mayOperate && (
        <Button size="small" isBusy={resume.isPending} onClick={() => resume.mutate()}>
          {text.banner.resume}
        </Button>
      )}
    </Banner>
  );
}

function Banner({ kind = "notice", children }: { kind?: "notice" | "problem"; children: React.ReactNode }) {
  return (
    <div className={styles.banner} data-kind={kind} role="status">
      <Icon name="warning" size={18} />
      <p>{children}</p>
    </div>
  );
}
