"""What the dashboard shows, as data: the figures of now and of the last hour, and the stream that carries them."""
