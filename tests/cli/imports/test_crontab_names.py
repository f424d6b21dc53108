"""Names of imported jobs that have no comment: short, readable, unique."""

from __future__ import annotations

import pytest

from foliot.cli.imports.crontab_names import Names


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/opt/backup/run.sh --full >> /var/log/backup.log 2>&1", "backup-run"),
        ("find /tmp -mtime +7 -delete", "find-tmp"),
        ("cd /srv/app && python3 manage.py clearsessions", "manage-clearsessions"),
        ("test -x /usr/sbin/anacron || run-parts --report /etc/cron.daily", "run-parts-cron.daily"),
        ("php -f /var/www/nextcloud/cron.php", "nextcloud-cron"),
        ("pg_dump shop | gzip > /backup/shop.gz", "pg_dump-shop"),
        ("timeout 5m curl -fsS https://example.com/ping", "curl-example.com"),
        ('bash -c "echo hi; date"', "echo-hi"),
        ("MAILTO=x /usr/bin/env FOO=bar ruby /x/report.rb", "report"),
        ("***", "crontab-line-7"),
        ("x" * 200, "x" * 60),
    ],
)
def test_the_name_comes_from_the_command(command: str, name: str) -> None:
    assert Names().of([], command, 7) == name


def test_equal_commands_get_different_names() -> None:
    names = Names()
    assert [names.of([], "date", number) for number in range(3)] == ["date", "date-2", "date-3"]
