"""Pictures of results, with Matplotlib. Readable in black and white, and by color-blind readers."""
