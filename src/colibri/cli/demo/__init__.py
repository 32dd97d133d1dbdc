"""What `colibri demo` plays: the story, and the client that tells it to a server."""
