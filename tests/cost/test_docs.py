"""Every Python block of the page about cost runs, one after the other, and its assertions hold."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "cost.md"


def test_blocks_of_the_page_run():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        assert "assert" in block
        exec(compile(block, str(PAGE), "exec", dont_inherit=True), names)
