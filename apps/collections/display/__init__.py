"""What the pages of all rooms show alike: their frame, marked text, a document that waits; and the reads behind them."""
