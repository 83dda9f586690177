"""Charts, drawn on the server: ``plot`` for what has axes, ``bars`` for what pages count, ``picture`` for documents."""
