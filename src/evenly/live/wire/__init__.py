"""HTTP/2, gRPC and protocol buffers: the parts that a picker needs."""
