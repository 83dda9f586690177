"""Texts as documents to hand on: one model of paragraphs, tables and footnotes, written as DOCX and as PDF."""
