"""Two arms over the rows that both have, an arm's repeats, and whether an arm may be released."""
