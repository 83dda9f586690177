"""How an answer looks: its marks, cards, plan and form, as plain values and as HTML."""
