"""FastMCP's proxy before the servers of a configuration: fastmcp_proxy.py CONFIG PORT. Listens on loopback only."""

import json
import sys

from fastmcp.server import create_proxy

with open(sys.argv[1], encoding="utf-8") as file:
    config = json.load(file)
create_proxy(config, name="bench").run(
    transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False
)
