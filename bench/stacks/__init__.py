"""Programs that are measured or that measure, each run by its path in a process of its own."""
