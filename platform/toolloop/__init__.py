"""The one tool-calling loop over every model provider. Plain Python: no Django, no ORM, no provider SDK at import."""
