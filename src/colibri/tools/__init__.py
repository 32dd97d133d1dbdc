"""The tools: their declarations, their schemas, and the list of all of them, in order.

`catalogue.json` is made from CATALOGUE by scripts/catalogue, so that the server can list the tools
before msgspec is loaded.
"""
