"""Pictures that tools returned, and charts that they drew."""
