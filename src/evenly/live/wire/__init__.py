"""How bytes become calls: HTTP/2, gRPC and protocol buffers, as far as a picker needs them."""
