"""The API that OpenAI's clients speak: chat completions and models, answered by runs of the one loop."""
