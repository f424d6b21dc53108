import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { client, data, PREFIX } from "~/api/client";
import { queryClient } from "~/api/queries";
import { useMay } from "~/api/session";
import { Button } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { Icon, type IconName } from "~/components/Icon";
import { PageHeader } from "~/components/PageHeader";
import { toast, toastProblem } from "~/components/Toast";
import { text } from "~/texts/en";
import { curl } from "./commands";
import styles from "./Welcome.module.css";

const { welcome } = text;
const COMMAND = { name: "hello", every: "10s", command: "echo hello at $(date +%T)" };
const SIMULATED = { task: "simulate", name: "first-task", payload: { execution_time_ms: 3000 } };
const BREAKFAST = {
  name: "breakfast",
  steps: [
    { key: "tea", command: "sleep 2; echo '{\"degrees\": 96}' > $FOLIOT_RESULT" },
    { key: "egg", command: "sleep 1; echo soft" },
    { key: "table", command: "cat $FOLIOT_UPSTREAM", after: ["tea", "egg"] },
  ],
};
// No line is longer than its card.
const PYTHON = `# shop.py
import foliot

app = foliot.App()


@app.task(retries=5)
def send_invoice(customer: int):
    return f"sent to {customer}"`;
const START = `foliot up --app shop:app
foliot submit send_invoice \\
  --payload '{"customer": 7}'`;
const FLOW = `# breakfast.py
import foliot

flow = foliot.Workflow("breakfast")
tea = flow.shell("tea", "sleep 2")
egg = flow.shell("egg", "sleep 1")
flow.shell("table", "echo ready",
           after=[tea, egg])
flow.submit()`;

/** What an empty installation shows: three things to try, each a button that really creates it. */
export function Welcome() {
  const maySubmit = useMay("submit");
  const navigate = useNavigate();
  const go = (to: string) => () => void navigate({ to: to as never });
  const create = useMutation({
    mutationFn: async (which: "command" | "python" | "workflow") => {
      if (which === "command") return [await data(client.POST("/v1/jobs", { body: COMMAND as never })), "/runs"] as const;
      if (which === "python") {
        const made = (await data(client.POST("/v1/jobs", { body: SIMULATED as never }))) as { id: string };
        return [made, `/runs/${made.id}`] as const;
      }
      const made = (await data(client.POST("/v1/workflows", { body: BREAKFAST as never }))) as { id: string };
      return [made, `/workflows/${made.id}`] as const;
    },
    onSuccess: ([, to]) => {
      toast({ message: welcome.created, action: { label: welcome.see, run: go(to) } });
      void queryClient.invalidateQueries();
    },
    onError: toastProblem,
  });
  const cards: { which: "command" | "python" | "workflow"; icon: IconName; title: string; told: string; commands: { label: string; command: string }[] }[] = [
    {
      which: "command",
      icon: "jobs",
      title: welcome.command.title,
      told: welcome.command.text,
      commands: [
        { label: "foliot", command: `foliot submit --name hello --every 10s --command 'echo hello at $(date +%T)'` },
        { label: "curl", command: curl("POST", "/v1/jobs", COMMAND) },
      ],
    },
    { which: "python", icon: "bolt", title: welcome.python.title, told: welcome.python.text, commands: [{ label: "Python", command: PYTHON }, { label: "foliot", command: START }, { label: "curl", command: curl("POST", "/v1/jobs", SIMULATED) }] },
    { which: "workflow", icon: "workflows", title: welcome.workflow.title, told: welcome.workflow.text, commands: [{ label: "Python", command: FLOW }, { label: "curl", command: curl("POST", "/v1/workflows", BREAKFAST) }] },
  ];
  return (
    <div className={styles.welcome}>
      <PageHeader title={welcome.title} lead={welcome.lead} />
      <div className={styles.cards}>
        {cards.map((card) => (
          <section key={card.which} aria-label={card.title} className={styles.card}>
            <span className={styles.mark}>
              <Icon name={card.icon} size={22} />
            </span>
            <h2>{card.title}</h2>
            <p>{card.told}</p>
            {maySubmit && (
              <Button kind="primary" isBusy={create.isPending && create.variables === card.which} onClick={() => create.mutate(card.which)}>
                {welcome.tryIt}
              </Button>
            )}
            <CopyCommand commands={card.commands} />
          </section>
        ))}
      </div>
      <p className={styles.more}>
        {welcome.more} <a href={`${PREFIX}/docs`}>{welcome.docs}</a>.
      </p>
    </div>
  );
}
