"""The settings of other programs: which clients there are, how their files are changed."""
