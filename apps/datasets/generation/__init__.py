"""Generation of rows: plan, questions, answers by the shared loop, judging, assembly; each paid call exactly once."""
