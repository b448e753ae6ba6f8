"""The command line's groups, one file each; what is slow to import waits for the command that needs it."""
