"""How one question is answered: model, prompt, tools and limits, up to the stored answer."""
