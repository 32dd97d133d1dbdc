"""Programs that are measured or that measure, each run by its path as a separate process."""
