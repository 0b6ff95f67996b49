"""HTTP/2, gRPC and protocol buffers: the parts of them that a picker needs."""
