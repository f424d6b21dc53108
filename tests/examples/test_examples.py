"""Each example, followed line by line."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.examples.reader import Reader
from tests.support.processes import ROOT

EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/README.md"))
# In the output of each example, in this order.
PRINTED = {
    "approval": (r"(?s)paid 900 for conference, approved by grace.*declined: rejected", "3 passed"),
    "billing": (
        r"(200 jobs, from \S+ to \S+\n)\1",
        "200 of 200 customers charged, 0 charged twice, 0 accounts wrong\n",
    ),
    "crontab": (r"3 create", r"(?s)Good morning, it is \w+day\n.*Good evening, it is \w+day\n"),
    "fastapi_shop": (
        r"(?s)\"order\":1,.*Your invoice: <strong>completed",
        r"(?s)this is more than we lend(?!.*send_invoice.*send_invoice)",
    ),
    "link_checker": (
        r": 2 links, 0 broken\n(?s:.*)news: 3 links, 1 broken\n  \S+/news/2: 404 Not Found\n"
        r"(?s:.*)archive: 2 links, 0 broken\n\S+/gone: \S+/gone does not exist\n",
        r"(?m)^\S+/news/2: 404 Not Found$",
    ),
    "nightly_etl": (
        r"(?:night of 2026-03-0\d: \d+ rows from 3 files\n(?:.*\n)*?){3}",
        r"0 ticks to run; 3 already ran",
    ),
    "thumbnails": (
        r"broken.png is not a picture: .* after 1 attempt\n12 of 13 thumbnails\npicture-01.png\n",
        r"(?s)12 of 13.*thumbnail",
    ),
}
NEEDED = {"link_checker": "npm", "thumbnails": "go"}
DRIVEN_BY_OTHER_TESTS = {"django_shop": "test_django_shop.py", "kubernetes": "test_kubernetes.py"}


def test_every_example_is_listed_and_tested() -> None:
    index = (ROOT / "examples" / "README.md").read_text()
    assert sorted(re.findall(r"\]\((\w+)/README\.md\)", index)) == EXAMPLES
    assert set(EXAMPLES) == {*PRINTED, *DRIVEN_BY_OTHER_TESTS}
    for name in DRIVEN_BY_OTHER_TESTS.values():
        assert (Path(__file__).parent / name).exists()


@pytest.mark.deploy
@pytest.mark.process
@pytest.mark.parametrize("example", PRINTED)
async def test_following_the_readme_works(example: str, tmp_path: Path) -> None:
    if example in NEEDED and shutil.which(NEEDED[example]) is None:
        pytest.skip(f"{NEEDED[example]} is missing")
    async with Reader(example, tmp_path) as reader:
        printed = await reader.follow()
    for expected in PRINTED[example]:
        assert re.search(expected, printed), f"{expected}\n{printed}"
