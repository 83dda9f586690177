"""Where files are kept: the data directory, or a bucket that many machines share. Bytes first, then the row that names them."""
