"""What every REST view shares: keys and sessions, deny by default, one page shape, one error shape."""
