"""What all tests share: executables are kept in a folder of this run, not in the user's cache."""

from __future__ import annotations

import pytest

from thalweg.runtime import executables


@pytest.fixture(scope="session", autouse=True)
def executables_on_disk(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One folder for all workers of a test run: what one has compiled, the others load."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base
    executables.store.use_disk(shared / "executables")
