"""Conversations: questions, cited answers, their live pages."""
