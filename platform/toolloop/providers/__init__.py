"""One adapter per wire format; each SDK is imported only when its adapter makes a client."""
