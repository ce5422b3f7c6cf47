"""Sessions that train: hooks, what starts and restores them, monitored sessions, the Supervisor."""
