"""Examples of every command, for its help and for docs/command-line.md. The tests parse each of them."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "up": ("foliot up", "foliot up --port 8123 --data ./data --workers 4 --app shop.tasks:app"),
    "server": ("FOLIOT_DATABASE_URL=postgresql://db/foliot foliot server --port 8000",),
    "scheduler": ("FOLIOT_DATABASE_URL=postgresql://db/foliot foliot scheduler",),
    "worker": ("foliot worker shop.tasks:app", "foliot worker shop.tasks:app --queue mail=20 --queue heavy=2"),
    "submit": (
        "foliot submit send_invoice --payload '{\"customer_id\": 7}'",
        "foliot submit --command 'pg_dump shop > shop.sql' --wait",
        "foliot submit --command ./report.sh --name report --cron '0 3 * * *' --timezone Europe/Berlin",
        "foliot submit send_invoice --batch customers.jsonl",
    ),
    "apply": ("foliot apply jobs/ --dry-run", "foliot apply jobs/ --prune"),
    "import-crontab": ("foliot import-crontab", "foliot import-crontab /etc/crontab --system --apply"),
    "jobs": ("foliot jobs --watch", "foliot jobs show report", "foliot jobs next report --count 3"),
    "ticks": ("foliot ticks report --limit 20",),
    "pause": (
        "foliot pause report --reason 'printer is offline'",
        "foliot pause --queue mail --until 2030-01-01T08:00:00Z",
    ),
    "resume": ("foliot resume report", "foliot resume --queue mail"),
    "trigger": ("foliot trigger report",),
    "backfill": ("foliot backfill report --from 2026-03-01T00:00:00Z --to 2026-03-07T23:59:59Z --dry-run",),
    "runs": ("foliot runs --state failed --since 2h", "foliot runs --job report --watch", "foliot runs show RUN_ID"),
    "logs": ("foliot logs -f RUN_ID", "foliot logs RUN_ID --attempt 1"),
    "cancel": ("foliot cancel RUN_ID --reason 'wrong customer'",),
    "rerun": ("foliot rerun RUN_ID",),
    "dead": (
        "foliot dead --since 1d",
        "foliot dead list --task send_invoice",
        "foliot dead replay --task send_invoice --rate 10",
    ),
    "workflows": (
        "foliot workflows --state running --watch",
        "foliot workflows submit nightly.json --wait",
        "foliot workflows redrive ID",
    ),
    "signal": ('foliot signal RUN_ID --payload \'{"approved_by": "ann"}\'',),
    "workers": ("foliot workers --watch --interval 5s", "foliot workers drain WORKER_ID"),
    "queues": ("foliot queues --watch", "foliot queues --json"),
    "explain": ("foliot explain RUN_ID", "foliot explain report"),
    "events": ("foliot events --since 10m", "foliot events -f --state failed"),
    "tasks": (
        "foliot tasks",
        "foliot tasks disable shell --reason 'shell commands are not allowed here'",
        "foliot tasks enable shell --everywhere",
    ),
    "token": ("foliot token", "foliot token create ci --role submitter --expires 30d", "foliot token revoke ci"),
    "audit": ("foliot audit --since 1d", "foliot audit --denied"),
    "bench": ("foliot bench", "foliot bench --seconds 10 --json"),
    "migrate": ("FOLIOT_DATABASE_URL=postgresql://db/foliot foliot migrate",),
    "cron": ("foliot cron next '30 2 * * *' --tz Europe/Berlin", "foliot cron explain '0 9 * * 1-5'"),
    "check": ("foliot check",),
    "completion": (
        "foliot completion bash > ~/.local/share/bash-completion/completions/foliot",
        'foliot completion zsh > "${fpath[1]}/_foliot"',
        "foliot completion fish > ~/.config/fish/completions/foliot.fish",
    ),
}
