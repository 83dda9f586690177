"""Conversations given to others: shares and exports."""
