"""Models that grade: how they are asked, by which rubric, and how far they agree with people."""
