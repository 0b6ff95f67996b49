"""Pictures of results, with Matplotlib. Readable in black and white and by colour-blind readers."""
