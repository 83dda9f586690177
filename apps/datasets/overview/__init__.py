"""The list of datasets, and the page of one."""
