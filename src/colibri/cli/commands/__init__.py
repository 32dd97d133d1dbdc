"""The commands, one file each: HELP, DESCRIPTION, EPILOG, configure() declares the options, run()
does what was asked and returns the exit code, or raises what complaint.py can say.
"""
