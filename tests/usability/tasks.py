"""The tasks that the files of this folder list, with the files that a reader of their page has."""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
USERS = ("planner", "engineer", "teacher")
#: a file that a page shows whole, and a plan that it shows without a name
FILE = re.compile(r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PLAN = re.compile(r"^```toml\n(\[plan\]\n.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Task:
    """A question of a user.

    Parameters
    ----------
    user : str
        Of `USERS`.
    number : int
        From 1 to 5.
    question, page : str
        What is asked, and the page that shows the commands, by its path in the checkout.
    commands : tuple of str
        As the page shows them.
    names : dict
        What the answer must name -> a regular expression of it, over several lines.
    writes : dict
        File that is written -> a regular expression of its text.
    long : bool
        Whether it takes more than some seconds of processor time.
    extra : str
        A package beside simperf that it needs.
    """

    user: str
    number: int
    question: str
    page: str
    commands: tuple[str, ...]
    names: dict[str, str]
    writes: dict[str, str] = field(default_factory=dict)
    long: bool = False
    extra: str = ""

    @property
    def shown(self):
        """Text of the page."""
        return (ROOT / self.page).read_text("utf-8")

    def prepare(self, folder):
        """Write the files that the page shows, as its reader would."""
        for name, text in [*FILE.findall(self.shown), *(("plan.toml", text) for text in PLAN.findall(self.shown))]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")

    def missing(self, answer, folder):
        """What the answer does not name, of its text and the files that were written."""
        lost = [what for what, pattern in self.names.items() if not found(pattern, answer)]
        for name, pattern in self.writes.items():
            path = folder / name
            if not (path.is_file() and found(pattern, path.read_text("utf-8"))):
                lost.append(name)
        return lost


def found(pattern, text):
    """Whether a text has a pattern; `^` and `$` are ends of lines, and a dot is any character."""
    return re.search(pattern, text, re.MULTILINE | re.DOTALL) is not None


def read_tasks():
    """All tasks, by user and number."""
    tasks = []
    for user in USERS:
        tables = tomllib.loads((Path(__file__).parent / f"{user}.toml").read_text("utf-8"))["task"]
        for number, table in enumerate(tables, 1):
            tasks.append(Task(user, number, **{**table, "commands": tuple(table["commands"])}))
    return tasks
