"""Which sentence of which source a statement rests on: markers, quotes, and where a quote stands."""
