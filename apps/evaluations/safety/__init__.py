"""Safety suites: planted instructions as rows of a dataset, how they reach what is asked, and what came of them."""
