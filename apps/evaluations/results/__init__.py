"""What experiments have measured, as it is read: scores as arrays, outcomes, and what a reader may see of them."""
