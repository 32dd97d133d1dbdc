"""What the tests share: a client for the real server, and a server with tools for tests."""
