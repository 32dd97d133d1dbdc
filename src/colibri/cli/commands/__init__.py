"""The commands, one file each: HELP, DESCRIPTION, EPILOG, configure(), run()."""
