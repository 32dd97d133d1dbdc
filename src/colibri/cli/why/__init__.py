"""What `colibri why` is made of, and what a report says about changes that no deed explains."""
