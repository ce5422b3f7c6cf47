"""What all tests share: executables are kept in a folder of this run, not in the user's cache."""

from __future__ import annotations

import hypothesis
import pytest

from thalweg.runtime import executables

# The same examples in every run, so that a red run is about the change. For new ones:
# pytest --hypothesis-profile=search
hypothesis.settings.register_profile("same", derandomize=True)
hypothesis.settings.register_profile("search", derandomize=False, max_examples=500)
hypothesis.settings.load_profile("same")


@pytest.fixture(scope="session", autouse=True)
def executables_on_disk(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One folder for all workers of a test run: what one has compiled, the others load."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base
    executables.store.use_disk(shared / "executables")
