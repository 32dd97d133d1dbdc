"""What the client runs when Colibri is installed as a bundle: the package lies beside this file."""

from colibri.__main__ import main

main()
