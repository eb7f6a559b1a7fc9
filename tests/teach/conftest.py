"""A browser of a desktop's width for the tests of pages."""

import pytest

from tests.report.browser import chromium


@pytest.fixture(scope="module")
def browser():
    with chromium(width=1400) as opened:
        yield opened
