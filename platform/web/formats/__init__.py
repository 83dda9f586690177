"""How each language writes moments and numbers, over Django's own formats: a module a language, which Django finds by its name.

A template names a format (``{{ at|date:"DAY_TIME" }}``) where it would write a pattern: patterns are English.
"""
