"""Session: fetches, feeds, config."""
